"""`symph help`, the manual pages, and shell completion."""

from __future__ import annotations

import argparse
import platform
import re
import sys
from collections.abc import Iterator, Sequence

from symphony_charts.cli import options, output
from symphony_charts.cli.defaults import VARIABLES
from symphony_charts.cli.verbs import GROUPS, VERBS, Verb, find_verb
from symphony_charts.errors import NotFound, SymphError
from symphony_charts.local import runs
from symphony_charts.version import __version__


def configure_help(parser: argparse.ArgumentParser) -> None:
    text = "a verb, and an action below it (default: the table of all verbs)"
    parser.add_argument("words", metavar="VERB", nargs="*", help=text)
    parser.add_argument("--man", action="store_true", help="as a manual page, for man")
    options.add_examples(
        parser, "symph help", "symph help up", "symph help gitops lint", "symph help up --man | man -l -"
    )


_SPECIAL = str.maketrans({"\\": "\\e", "-": "\\-", "`": "\\(ga", "'": "\\(aq", "~": "\\(ti", "^": "\\(ha"})


def overview_page(verbs: Sequence[Verb] = VERBS) -> str:
    """Return the page symph(1): all verbs by group, variables, exit statuses."""
    lines = [*_head("symph", "experiments in tmux, as Helm charts and in Git"), ".SH SYNOPSIS"]
    lines += [".B symph", _text("VERB [ARGUMENTS] [-- COMMAND]"), ".SH VERBS"]
    for group, title in GROUPS.items():
        lines.append(f".SS {_text(title)}")
        for verb in verbs:
            if verb.group == group:
                lines += _item(verb.name, verb.summary)
    lines.append(".SH ENVIRONMENT")
    for option, variable in VARIABLES.items():
        lines += _item(variable, f"the default of --{option}")
    lines += [".SH FILES", *_item(".symph.yaml", "settings of a project, in its folder or above")]
    lines += _item("$XDG_CONFIG_HOME/symph/config.yaml", "your own settings, which those of a project come before")
    lines.append(".SH EXIT STATUS")
    for code, text in sorted(_statuses()):
        lines += _item(str(code), text)
    lines += [".SH SEE ALSO", ", ".join(f"\\fBsymph\\-{_text(verb.name)}\\fR(1)" for verb in verbs)]
    return "\n".join(lines) + "\n"


def manual_page(name: str, parser: argparse.ArgumentParser) -> str:
    """Return the page symph-VERB(1), including the verb's subcommands."""
    description = parser.description or ""
    lines = _head(f"symph-{name}", description[:1].lower() + description[1:].rstrip(".").split("\n")[0])
    lines += [".SH SYNOPSIS", *_synopsis(parser), ".SH DESCRIPTION", _text(description)]
    lines += _arguments(parser, ".SH")
    for word, below in _below(parser):
        lines += [f'.SH "{_text(word.upper())}"', *_synopsis(below), ".PP", _text(below.description or "")]
        lines += _arguments(below, ".SS")
    if parser.epilog:
        lines += [".SH EXAMPLES", ".nf", *(_text(line.strip()) for line in parser.epilog.splitlines()[1:]), ".fi"]
    return "\n".join([*lines, ".SH SEE ALSO", "\\fBsymph\\fR(1)"]) + "\n"


def _head(name: str, summary: str) -> list[str]:
    return [
        f'.TH {_text(name.upper())} 1 "" "symphony\\-charts {__version__}" ""',
        ".SH NAME",
        _text(f"{name} - {summary}"),
    ]


def _synopsis(parser: argparse.ArgumentParser) -> list[str]:
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    return [f"\\fB{_text(parser.prog)}\\fR", _text(usage.removeprefix(parser.prog).strip())]


def _arguments(parser: argparse.ArgumentParser, section: str) -> Iterator[str]:
    """Yield a section for each group of a parser's arguments, without hidden ones."""
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if action.help is not argparse.SUPPRESS]
        actions = [action for action in actions if not isinstance(action, argparse._SubParsersAction)]
        if actions:
            yield f'{section} "{_text((group.title or "").upper())}"'
        formatter = parser._get_formatter()
        for action in actions:
            yield from _item(
                formatter._format_action_invocation(action), formatter._expand_help(action) if action.help else ""
            )


def _below(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def _statuses() -> Iterator[tuple[int, str]]:
    """Yield each exit status with the first sentence of its error class."""
    yield 0, "done"
    pending = SymphError.__subclasses__()
    while pending:
        error = pending.pop()
        pending += error.__subclasses__()
        if "exit_code" in vars(error):
            yield error.exit_code, " ".join((error.__doc__ or "").split("\n\n")[0].split())


def _item(term: str, text: str) -> list[str]:
    return [".TP", f"\\fB{_text(term)}\\fR", _text(" ".join(text.split()))]


def _text(text: str) -> str:
    lines = (line.translate(_SPECIAL) for line in text.splitlines() or [""])
    return "\n".join(f"\\&{line}" if line.startswith((".", "\\(aq")) else line for line in lines)


def run_help(args: argparse.Namespace) -> int:
    """Print a help or manual page; plugin programs print their own help."""
    if args.man:
        sys.stdout.write(_manual(args))
        return 0
    status: int = args.symphony.main([*args.words, "--help"])
    return status


def _manual(args: argparse.Namespace) -> str:
    if not args.words:
        return overview_page()
    verb = find_verb(args.words[0])
    if verb is None or len(args.words) > 1:
        raise NotFound(f"there is no manual page symph-{'-'.join(args.words)}", next="symph help --man lists them")
    return manual_page(verb.name, args.symphony.get_subparser(verb.name))


def configure_version(parser: argparse.ArgumentParser) -> None:
    options.add_output(parser, ("table", "json", "yaml"), headers=False)
    options.add_examples(parser, "symph version", "symph version -o json")


def run_version(args: argparse.Namespace) -> int:
    record = {"version": __version__, "python": platform.python_version()}
    output.print_record(args, "Version", record, f"symphony-charts {__version__}")
    return 0


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
_NAMES = {"experiment_name": "experiments", "component_name": "processes"}


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
    # The build of the wheel writes the manual pages with this module, without any dependency.
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
    for action in _actions(parser):
        if what := _NAMES.get(action.dest):
            # fish runs the command itself.
            asked = {"fish": f"({prog} __complete {what} 2>/dev/null)"}
            action.complete = dict.fromkeys(_FUNCTIONS, f"_symph_{what}") | asked  # type: ignore[attr-defined]  # an attribute that shtab reads
        elif action.dest in ("spec", "specs"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # likewise
    function = _FUNCTIONS.get(args.shell, "")
    preamble = "".join(function.format(what=what, prog=prog) for what in _NAMES.values())
    sys.stdout.write(shtab.complete(parser, shell=args.shell, preamble=preamble))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in {id(choice): choice for choice in action.choices.values()}.values():
                yield from _actions(inner)


def configure_complete(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("experiments", "processes"))
    parser.add_argument("prefix", nargs="?", default="", help="only names that begin so")


# Shells expand completions, so print only names that are valid here, even if a folder has other ones.
_PLAIN = "[A-Za-z0-9][A-Za-z0-9._/-]*"


def run_complete(args: argparse.Namespace) -> int:
    """Print the names. Skip broken runs silently, because nobody reads errors while completing."""
    names = runs.experiment_names() if args.what == "experiments" else runs.process_names()
    sys.stdout.writelines(
        f"{name}\n" for name in sorted(names) if name.startswith(args.prefix) and re.fullmatch(_PLAIN, name)
    )
    return 0
