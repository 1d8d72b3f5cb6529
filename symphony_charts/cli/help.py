"""`symph help`, `symph version`, and the manual pages."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterator, Sequence

from symphony_charts.cli import options, output
from symphony_charts.cli.defaults import VARIABLES, parsers_below
from symphony_charts.cli.verbs import GROUPS, VERBS, Verb, find_verb
from symphony_charts.errors import NotFound, SymphError
from symphony_charts.version import __version__


def configure_help(parser: argparse.ArgumentParser) -> None:
    text = "a verb, and an action below it (default: the table of common verbs)"
    parser.add_argument("words", metavar="VERB", nargs="*", help=text)
    options.add_flag(parser, "--all", help="the table of all verbs")
    options.add_flag(parser, "--man", help="as a manual page, for man")
    options.add_examples(
        parser, "symph help --all", "symph help up", "symph help gitops lint", "symph help up --man | man -l -"
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
    for word, below in parsers_below(parser).items():
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
    if args.all:
        sys.stdout.write(args.symphony.master_parser.format_page(shows_all=True))
        return 0
    status: int = args.symphony.main([*args.words, "--help"])
    return status


def _manual(args: argparse.Namespace) -> str:
    if not args.words:
        return overview_page()
    verb = find_verb(args.words[0])
    if verb is None or len(args.words) > 1:
        raise NotFound(f"unknown manual page symph-{'-'.join(args.words)}", next="symph help --man lists them")
    return manual_page(verb.name, args.symphony.get_subparser(verb.name))


def configure_version(parser: argparse.ArgumentParser) -> None:
    options.add_output(parser, ("table", "json", "yaml"), headers=False)
    options.add_examples(parser, "symph version", "symph version -o json")


def run_version(args: argparse.Namespace) -> int:
    record = {"version": __version__, "python": platform.python_version()}
    output.print_record(args, "Version", record, f"symphony-charts {__version__}")
    return 0
