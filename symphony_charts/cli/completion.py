"""`symph completion` and `symph __complete`: tab completion for shells."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator

import shtab

from symphony_charts.cli import options
from symphony_charts.cli.verbs import VERBS
from symphony_charts.local import runs

_SHELLS = ("bash", "zsh", "fish", "tcsh")


def configure_completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=_SHELLS, help="the shell to complete in")
    options.add_examples(
        parser,
        'eval "$(symph completion bash)"',
        "symph completion zsh > ~/.zfunc/_symph",
        "symph completion fish > ~/.config/fish/completions/symph.fish",
    )


# The arguments whose values are asked for at the prompt, and what `symph __complete` is asked.
_NAMES = {"experiment_name": "experiments", "component_name": "processes"}


_BASH = """_symph_{what}() {{
  compgen -W "$({prog} __complete {what} "$1" 2>/dev/null)" -- "$1"
}}
"""


_ZSH = """_symph_{what}() {{
  local -a names
  names=(${{(f)"$({prog} __complete {what} 2>/dev/null)"}})
  compadd -a names
}}
"""


def run_completion(args: argparse.Namespace) -> int:
    """Print a script that completes verbs, options, files, and the names of what runs on this machine."""
    args.symphony.load_all()
    parser = args.symphony.master_parser
    prog = parser.prog
    _leave_out_aliases(args.symphony.subparsers)
    for action in _actions(parser):
        if action.dest in _NAMES:
            what = _NAMES[action.dest]
            asked = f"_symph_{what}"
            # Where fish asks, it runs the command itself.
            action.complete = {  # type: ignore[attr-defined]  # an attribute that shtab reads
                "bash": asked,
                "zsh": asked,
                "fish": f"({prog} __complete {what} 2>/dev/null)",
            }
        elif action.dest in ("spec", "specs"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # likewise
    preamble = {
        "bash": "".join(_BASH.format(what=what, prog=prog) for what in _NAMES.values()),
        "zsh": "".join(_ZSH.format(what=what, prog=prog) for what in _NAMES.values()),
    }
    sys.stdout.write(shtab.complete(parser, shell=args.shell, preamble=preamble.get(args.shell, "")))
    return 0


def _leave_out_aliases(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Take our verbs' other names out of `verbs`; a name that a project gave to a verb of its own stays."""
    for verb in VERBS:
        for alias in verb.aliases:
            if verbs.choices.get(alias) is verbs.choices[verb.name]:
                del verbs.choices[alias]


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in {id(choice): choice for choice in action.choices.values()}.values():
                yield from _actions(inner)


def configure_complete(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("experiments", "processes"))
    parser.add_argument("prefix", nargs="?", default="", help="only names that begin so")


# Shells expand what they are offered; names of ours hold nothing else, whatever stands in a folder.
_PLAIN = "[A-Za-z0-9][A-Za-z0-9._/-]*"


def run_complete(args: argparse.Namespace) -> int:
    """Print the names; whatever is wrong with a run only leaves it out, since nobody reads errors at a prompt."""
    names = runs.experiment_names() if args.what == "experiments" else runs.process_names()
    sys.stdout.writelines(
        f"{name}\n" for name in sorted(names) if name.startswith(args.prefix) and re.fullmatch(_PLAIN, name)
    )
    return 0
