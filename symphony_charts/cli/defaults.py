"""Options that were not typed take their values from the environment or from settings, on every verb.

Such a value selects a namespace, environment or format, but never switches a mode: the current namespace does not turn
`symph ps` from this machine to a cluster, nor the current environment a sweep into a publish. `typed` returns the value
from the command line only.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping

from symphony_charts.errors import UsageError

# Options (by long flag) and their variables.
VARIABLES = {
    "on": "SYMPH_ON",
    "namespace": "SYMPH_NAMESPACE",
    "context": "SYMPH_CONTEXT",
    "env": "SYMPH_ENV",
    "repo": "SYMPH_REPO",
    "output": "SYMPH_OUTPUT",
}
# Formats of any verb; a verb without the format prints its default.
_FORMATS = ("table", "wide", "json", "yaml", "name", "markdown", "sarif", "shell")


class Default(str):
    """A value that was not typed; `source` is the variable or the file that sets it."""

    __slots__ = ("source",)

    source: str

    def __new__(cls, value: str, source: str) -> Default:
        default = super().__new__(cls, value)
        default.source = source
        return default

    def __reduce__(self) -> tuple[type[Default], tuple[str, str]]:
        """Support copies, which need the source."""
        return Default, (str(self), self.source)


def typed(args: argparse.Namespace, name: str) -> str | None:
    """Return the value typed on the command line; None if it is a default or not set."""
    value: str | None = getattr(args, name, None)
    return None if isinstance(value, Default) else value


def name_variables(parser: argparse.ArgumentParser) -> None:
    """Add the variable to the help of each option that has one."""
    for action in _options_of(parser):
        action.help = f"{action.help} [${VARIABLES[action.dest]}]"


def fill_in(parser: argparse.ArgumentParser, configured: Callable[[], Mapping[str, Default]]) -> None:
    """Set the options' defaults from the environment, else from `configured`, called only if needed.

    Raises UsageError for a variable with a value that no verb supports.
    """
    settings: Mapping[str, Default] | None = None
    for action in _options_of(parser):
        text = os.environ.get(VARIABLES[action.dest], "")
        if text:
            value = Default(text, f"${VARIABLES[action.dest]}")
        else:
            settings = configured() if settings is None else settings
            if action.dest not in settings:
                continue
            value = settings[action.dest]
        if action.dest == "output" and value not in _FORMATS:
            raise UsageError(f'{value.source} names no format: "{value}"', "", f"use one of {', '.join(_FORMATS)}")
        if value in (action.choices or (value,)):
            action.default = value


def parsers_below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of subcommands by name, each under its first one."""
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                if below not in found.values():
                    found[name] = below
    return found


def _options_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the options, also of subparsers, that a variable may set."""
    for below in parsers_below(parser).values():
        yield from _options_of(below)
    for action in parser._actions:
        if action.dest in VARIABLES and f"--{action.dest}" in action.option_strings:
            # The default output of an import is an experiment; only a typed format prints the report. A repeatable
            # option defaults to all values, not to the current one.
            is_report = action.dest == "output" and not action.default
            if not is_report and not isinstance(action.default, list):
                yield action
