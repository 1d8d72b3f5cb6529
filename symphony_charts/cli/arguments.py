"""`Parser` adapts argparse to the command line: symph's errors and help page, the `--` rule, suggestions."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from symphony_charts.cli import options as cli_options
from symphony_charts.cli.verbs import MEANINGS, Verb, page_of
from symphony_charts.errors import UsageError

# Options of the master parser that take the next word.
_WITH_VALUE = ("--color",)
# Other names of option values.
_CALLED = {"local": "tmux", "k8s": "kube"}
# Options of other tools, and those that do the same here; the empty ones have no counterpart.
_FOREIGN = {
    **dict.fromkeys(("--json", "--yaml", "--format"), "-o json|yaml|table"),
    **dict.fromkeys(("-e", "--env", "--environment"), "-E KEY=VALUE sets a variable"),
    **dict.fromkeys(("--scale", "--replicas"), "--set groups.NAME.replicas=3"),
    **dict.fromkeys(("-it", "-i", "--tty", "--interactive"), "a terminal is used where there is one"),
    **dict.fromkeys(("--build", "--no-cache", "--pull"), "images are built elsewhere; see symph package --workspace"),
    **dict.fromkeys(("--remove-orphans", "--rm"), "symph down leaves nothing behind; symph rm forgets the logs"),
    **dict.fromkeys(("--force", "-f", "-c"), ""),
    **dict.fromkeys(("-t",), "--template"),
    **dict.fromkeys(("--kube-context", "--cluster"), "--context"),
    "--file": "the spec needs no flag; -f takes values of its chart",
    "--name": "the name is in the spec: --spec-set name=NAME",
    "--cpus": "--spec-set processes.NAME.requests.cpu=2",
    "--gpus": "--spec-set processes.NAME.gpus=1",
    "--lines": "--tail LINES",
    "--grep": "--regex PATTERN",
    "--image": "--spec-set image=IMAGE",
    "down --volumes": "symph rm --volumes removes them",
    "rm --all": "symph rm --match '.*' means all",
    "logs -c": "-p PROCESS",
    "ps -a": "symph ls -a lists experiments that have ended",
    "run --wait": "run waits for the end, unless -d",
    **dict.fromkeys(("up --on", "up -n", "up --namespace", "up --context"), "symph run --on kube; up is for here"),
    "-D": "-d",
    "--local": "--on tmux",
    "--remote": "--on kube",
    "--set-env": "-E KEY=VALUE",
    "--var": "-E KEY=VALUE",
    "--workers": "--set groups.NAME.replicas=3",
}
# Verbs with more options than these list the following ones last; the forms of --set are told with --set.
_FEW_OPTIONS = 12
_ADVANCED = frozenset(
    (
        *("--all-namespaces", "--branch", "--cert", "--chart-only", "--color", "--context", "--early-stop"),
        *("--env-file", "--env-set", "--env-unset", "--env-values", "--exit-code", "--expect"),
        *("--force-unschedulable", "--goal", "--grace", "--hours", "--ignore", "--image-repo", "--into"),
        *("--kubeconfig", "--kube-version", "--list", "--loguniform", "--mean", "--message", "--no-headers"),
        *("--no-sign", "--no-wait", "--pattern", "--platform", "--pools", "--previous", "--quiet"),
        *("--regex", "--repo", "--repo-path", "--search", "--seed", "--share-gpus", "--sign", "--spec-set"),
        *("--svg", "--system", "--team", "--template", "--trials", "--uniform", "--until"),
        *("--var", "--verbose", "--wait-for-jobs", "--workspace"),
    )
)
_SETS = ("set_string", "set_json", "set_file", "set_literal")
_EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "_hours": "a number of hours",
    "count": "a whole number of at least 1",
    "seconds": "a time such as 90, 90s, 5m or 1h",
}
# What a word too many probably means, by verb.
_TOO_MANY = {
    "exec": "the command comes after --, as in: symph exec PROCESS -- COMMAND",
    "ssh": "symph exec PROCESS -- COMMAND runs a command",
    "run": "it starts one experiment; arguments of a program are in its spec",
    "up": "it starts one experiment; arguments of a program are in its spec",
    "down": "it ends whole experiments; symph restart PROCESS restarts one",
    "install": "--name NAME names the release",
    "upgrade": "--name NAME names the release",
}


class Parser(argparse.ArgumentParser):
    """argparse that raises UsageError with the nearest name and refuses abbreviated flags."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, **options)
        self._is_mixing = False

    def error(self, message: str) -> NoReturn:
        """Raise UsageError; `status_of` prints it and gives exit status 2."""
        message = message.replace("ignored explicit argument", "takes no value, and is given")
        for kind, text in _EXPECTED.items():
            message = message.replace(f"invalid {kind} value:", f"expected {text}, got")
        for action in self._actions:
            if action.choices and message.endswith(f"required: {action.metavar or action.dest}"):
                message += f", one of {', '.join(map(str, action.choices))}"
        raise UsageError(message, "", f"{self.prog} --help")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse the arguments and refuse unknown ones here, where this parser's flags can be suggested."""
        if self._is_mixing:
            return super().parse_known_args(args, namespace)
        if any(action.nargs in (argparse.PARSER, argparse.REMAINDER) for action in self._get_positional_actions()):
            namespace, extra = super().parse_known_args(args, namespace)
        else:
            # argparse alone accepts no optional word after a flag, as in `logs learner --tail 5 rl`.
            self._is_mixing = True
            try:
                namespace, extra = self.parse_known_intermixed_args(args, namespace)
            finally:
                self._is_mixing = False
        if extra:
            hint = self._hint_for(extra[0])
            if isinstance(self, MasterParser) and extra[0].startswith("-") and not hint:
                hint = f" (options come after the verb: {self.prog} VERB {extra[0]})"
            self.error(f"unrecognized arguments: {' '.join(extra)}{hint}")
        return namespace, extra

    def format_help(self) -> str:
        """Return the help with common options first; a parser of few options has no further ones."""
        optional = self._optionals._group_actions
        if sum(action.help is not argparse.SUPPRESS for action in optional) <= _FEW_OPTIONS:
            return super().format_help()
        advanced = [action for action in optional if not _ADVANCED.isdisjoint(action.option_strings)]
        formatter = self.formatter_class(prog=f"{self.prog} [OPTIONS]")
        formatter.add_usage(self.usage, self._get_positional_actions(), [])
        formatter.add_text(self.description)
        for group in self._action_groups:
            _add_section(formatter, group.title, group.description, group._group_actions, advanced)
        _add_section(formatter, "advanced", None, advanced, [])
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def _hint_for(self, word: str) -> str:
        """Return what an unknown flag, or a word too many, probably means, in parentheses."""
        verb = self.prog.rpartition(" ")[2]
        if not word.startswith("-"):
            return f" ({_TOO_MANY.get(verb, 'a word too many')})"
        flag = word.partition("=")[0]
        text = _FOREIGN.get(f"{verb} {flag}", _FOREIGN.get(flag))
        if text is None:
            shown = (action for action in self._actions if action.help is not argparse.SUPPRESS)
            hint = _nearest(flag, [flag for action in shown for flag in action.option_strings])
            is_programs = not hint and verb in ("run", "up") and flag.startswith("--")
            return " (arguments of a program are in its spec)" if is_programs else hint
        return f" ({text})" if " " in text else f" (did you mean {text}?)" if text else ""

    def _get_option_tuples(self, option_string: str) -> Any:
        """Return the matches of a word with one dash, without longer options that begin like it.

        `allow_abbrev=False` turns off abbreviations of options with two dashes only.
        """
        return [found for found in super()._get_option_tuples(option_string) if len(found[1]) == 2]

    def add_subparsers(self, **options: Any) -> Any:
        """Add subparsers whose parsers take the options of every verb."""
        options.setdefault("parser_class", NestedParser)
        return super().add_subparsers(**options)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += _nearest(str(value), [str(choice) for choice in action.choices or ()])
            raise


class NestedParser(Parser):
    """The parser of an action below a verb, such as `lint` in `symph gitops lint`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        cli_options.add_global_options(self, is_verb=True)


class MasterParser(Parser):
    """The parser above all verbs; its help is the table of verbs, by group."""

    def __init__(self, *args: Any, verbs: Callable[[], tuple[Verb, ...]], **options: Any) -> None:
        super().__init__(*args, **options)
        self._verbs = verbs

    def format_help(self) -> str:
        return self.format_page()

    def format_page(self, *, shows_all: bool = False) -> str:
        """Return the page of the common verbs, or of all."""
        return page_of(self.prog, self.description or "", self._verbs(), shows_all=shows_all)


def _add_section(
    formatter: argparse.HelpFormatter,
    title: str | None,
    text: str | None,
    actions: Sequence[argparse.Action],
    left_out: Sequence[argparse.Action],
) -> None:
    formatter.start_section(title)
    formatter.add_text(text)
    formatter.add_arguments(action for action in actions if action not in left_out and action.dest not in _SETS)
    formatter.end_section()


def split_remainder(words: Sequence[str]) -> tuple[list[str], list[str], bool]:
    """Return the words before the first ``--``, those after it, and True if there was one.

    Later ones belong to the command or script after the first.
    """
    if "--" not in words:
        return list(words), [], False
    place = list(words).index("--")
    return list(words[:place]), list(words[place + 1 :]), True


def refuse_bytes(words: Sequence[str]) -> None:
    """Raise UsageError for a word that is not UTF-8: no name and no written file can contain it."""
    for word in words:
        if any("\ud800" <= letter <= "\udfff" for letter in word):
            raise UsageError(f"{word!a} is not UTF-8", "", "rename the file, or set LC_ALL=C.UTF-8")


def plain_words(words: Sequence[str]) -> list[str]:
    """Return the words that may be a verb: no flags, and no values of flags before the verb."""
    previous = ["", *words]
    return [
        word for before, word in zip(previous, words, strict=False) if word[:1] != "-" and before not in _WITH_VALUE
    ]


def refuse_verb(prog: str, word: str, verbs: Sequence[Verb]) -> NoReturn:
    """Raise UsageError for an unknown verb, with the verbs of that meaning, or the nearest one."""
    shown = {name: [verb.name] for verb in verbs for name in verb.names if not name.startswith("_")}
    # A project may have replaced a verb.
    known = {word: [line for line in lines if line.partition(" ")[0] in shown] for word, lines in MEANINGS.items()}
    lines = {word: found for word, found in known.items() if found} | shown
    near = [word.lower()] if word.lower() in lines else get_close_matches(word, lines, n=1)
    meant = " or ".join(f"`{prog} {line}`" for name in near for line in lines[name])
    hint = f"did you mean {meant}? " if meant else ""
    raise UsageError(f'{prog} has no verb "{word}"', "", f"{hint}all verbs: {prog} help --all")


def _nearest(word: str, names: Sequence[str]) -> str:
    """Return the probable name as a hint; compare flags without their dashes, which all share."""
    bare = {name.lstrip("-"): name for name in names if name.startswith("--") or not word.startswith("--")}
    typed = _CALLED.get(word, word.lstrip("-"))
    near = [name for name in bare if typed and name.startswith(typed)]
    near = near or get_close_matches(typed, bare, n=1, cutoff=0.7)
    # A long form of a short name: kubernetes for kube.
    near = near or [name for name in bare if len(name) > 3 and typed.startswith(name)]
    return f" (did you mean {bare[near[0]]}?)" if near else ""


def fill_defaults(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    for action in parser._actions:
        if action.default is not argparse.SUPPRESS and not hasattr(args, action.dest):
            setattr(args, action.dest, action.default)
