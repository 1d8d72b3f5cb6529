"""`python -m symphony_charts.compat SCRIPT ...` runs an unchanged script written for Symphony."""

from __future__ import annotations

import argparse
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from symphony_charts.cli.failures import status_of
from symphony_charts.compat import names
from symphony_charts.errors import SpecError

__all__ = ["main"]

_EXAMPLES = """examples:
  python -m symphony_charts.compat launch.py create first-experiment
  python -m symphony_charts.compat -m surreal.kube.surreal_kube create ddpg first-experiment
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script and return its exit status, or the exit code of its error."""
    words = list(sys.argv[1:] if argv is None else argv)
    return status_of(lambda: _run(words))


def _run(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m symphony_charts.compat",
        usage="%(prog)s [-m MODULE | SCRIPT] [ARGUMENTS]",
        description="Run a script that imports `symphony`, with the names of this package behind them.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-m", dest="module", metavar="MODULE", default=None, help="a module instead of a script")
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    # As with `python -m`, everything after the module belongs to the module, including options and `--`.
    own, rest = (words[:2], words[2:]) if words[:1] == ["-m"] else (words, [])
    args = parser.parse_args(own)
    if args.module is None and not args.words:
        parser.error("which script?")
    with names():
        if args.module is not None:
            _run_module(args.module, [*args.words, *rest])
        else:
            _run_script(args.words)
    return 0


def _run_script(words: list[str]) -> None:
    script = Path(words[0])
    if not script.is_file():
        raise SpecError.one(f"the script {script} does not exist", next="give the file that you would run with python")
    sys.argv = words
    # Like python; a relative folder would break when the script changes its directory.
    sys.path.insert(0, str(script.absolute().parent))
    runpy.run_path(str(script), run_name="__main__")


def _run_module(module: str, words: list[str]) -> None:
    sys.argv = [module, *words]
    sys.path.insert(0, str(Path.cwd()))
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except ImportError as error:
        steps = traceback.extract_tb(error.__traceback__)
        if "runpy" not in steps[-1].filename:
            raise  # an import in the module itself failed
        raise SpecError.one(
            f"{error}", next=f"install the package of {module}, or go to the folder that it is in"
        ) from error


if __name__ == "__main__":
    sys.exit(main())
