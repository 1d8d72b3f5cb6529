"""``python -m tests.e2e.tools build [NAME...]``, ``list`` and ``path NAME``."""

from __future__ import annotations

import argparse
import sys
import time

from symphony_charts.errors import SymphError
from tests.e2e.tools.build import FOLDER, build, find_tool
from tests.e2e.tools.catalog import TOOLS
from tests.e2e.tools.modules import keep
from tests.e2e.tools.system import ensure_programs


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.tools", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="make programs stand in tests/e2e/.tools")
    building.add_argument("names", nargs="*", choices=[*TOOLS, []], metavar="NAME", help="default: all of them")
    commands.add_parser("list", help="the programs and where each one is")
    finding = commands.add_parser("path", help="the path of one program")
    finding.add_argument("name")
    options = parser.parse_args(argv)
    try:
        return _run(options)
    except SymphError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


def _run(options: argparse.Namespace) -> int:
    if options.command == "build":
        started = time.monotonic()
        ensure_programs()
        compiled = build(options.names)
        keep()
        print(f"{compiled} built in {time.monotonic() - started:.1f} s; all stand in {FOLDER}", file=sys.stderr)
    elif options.command == "path":
        print(find_tool(options.name))
    else:
        for name in TOOLS:
            link = FOLDER / name
            print(f"{name:24} {link.resolve() if link.exists() else '-'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
