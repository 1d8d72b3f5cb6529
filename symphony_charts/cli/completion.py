"""`symph completion` prints scripts for shells, which ask the hidden `symph __complete` for names."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from symphony_charts.cli import options
from symphony_charts.cli.defaults import parsers_below
from symphony_charts.cli.verbs import VERBS
from symphony_charts.errors import SymphError
from symphony_charts.local import runs
from symphony_charts.settings import project
from symphony_charts.sweep import record

LATE = (project, record)  # most completions need neither
_SHELLS = ("bash", "zsh", "fish", "tcsh")


def configure_completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=_SHELLS, help="the shell to complete in")
    options.add_examples(
        parser,
        'eval "$(symph completion bash)"',
        "symph completion zsh > ~/.zfunc/_symph",
        "symph completion fish > ~/.config/fish/completions/symph.fish",
    )


# Arguments with dynamic completion, and the word that `symph __complete` takes for each.
_NAMES = {
    "experiment_name": "experiments",
    "component_name": "processes",
    "sweep_name": "sweeps",
    "env": "environments",
}
# Verbs that need an experiment that runs.
_LIVE = ("down", "restart", "attach", "top", "exec", "ssh", "cp", "open")


_FUNCTIONS = {
    "bash": """_symph_{what}() {{
  compgen -W "$({prog} __complete {what} "$1" 2>/dev/null)" -- "$1"
}}
""",
    "zsh": """_symph_{what}() {{
  local -a names
  names=(${{(f)"$({prog} __complete {what} 2>/dev/null)"}})
  compadd -a names
}}
""",
}


def run_completion(args: argparse.Namespace) -> int:
    """Print a script that completes verbs, options, files, and names of experiments and processes of this machine."""
    # The build of the wheel writes manual pages of all verbs, without any dependency.
    import shtab

    args.symphony.load_all()
    parser = args.symphony.master_parser
    prog = parser.prog
    # Leave out aliases of built-in verbs, but no name that a project gave to its own verb.
    choices = args.symphony.subparsers.choices
    for verb in VERBS:
        for alias in verb.aliases:
            if choices.get(alias) is choices[verb.name]:
                del choices[alias]
    for word, action in _actions(parser):
        if what := _NAMES.get(action.dest):
            what = "running" if what == "experiments" and word in _LIVE else what
            # fish runs the command itself.
            asked = {"fish": f"({prog} __complete {what} 2>/dev/null)"}
            action.complete = dict.fromkeys(_FUNCTIONS, f"_symph_{what}") | asked  # type: ignore[attr-defined]  # an attribute that shtab reads
        elif action.dest in ("spec", "specs"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # likewise
    function = _FUNCTIONS.get(args.shell, "")
    preamble = "".join(function.format(what=what, prog=prog) for what in (*_NAMES.values(), "running"))
    sys.stdout.write(shtab.complete(parser, shell=args.shell, preamble=preamble))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    for action in parser._actions:
        yield parser.prog.rpartition(" ")[2], action
    for below in parsers_below(parser).values():
        yield from _actions(below)


def configure_complete(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=(*_NAMES.values(), "running"))
    parser.add_argument("prefix", nargs="?", default="", help="only names that begin so")


# Shells expand completions, so print only names that are valid here, even if a folder has other ones.
_PLAIN = "[A-Za-z0-9][A-Za-z0-9._/-]*"


def run_complete(args: argparse.Namespace) -> int:
    """Print the names. Skip broken runs silently, because completion cannot show errors."""
    names: set[str] = set()
    with contextlib.suppress(SymphError, OSError, ValueError):
        names = _names_of(args.what)
    sys.stdout.writelines(
        f"{name}\n" for name in sorted(names) if name.startswith(args.prefix) and re.fullmatch(_PLAIN, name)
    )
    return 0


def _names_of(what: str) -> set[str]:
    match what:
        case "processes":
            return runs.process_names()
        case "running":
            return {run.experiment for run in runs.live_runs()}
        case "sweeps":
            return {sweep.name for backend in ("tmux", "kube") for sweep in record.sweeps_of(backend)}
        case "environments":
            return set(project.find_settings(Path.cwd()).environments)
        case _:
            return runs.experiment_names()
