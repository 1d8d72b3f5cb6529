"""Options that nobody typed take their values from the environment or from settings, wherever the option stands.

Such a value says which namespace, environment or format is meant, and never whether: the current namespace does not
turn `symph ps` from this machine to a cluster, nor the current environment a sweep into a publish. `typed` is what the
command line says itself.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping

from symphony_charts.errors import UsageError

# The option (by its long flag) and the variable that stands for it.
VARIABLES = {
    "on": "SYMPH_ON",
    "namespace": "SYMPH_NAMESPACE",
    "context": "SYMPH_CONTEXT",
    "env": "SYMPH_ENV",
    "repo": "SYMPH_REPO",
    "output": "SYMPH_OUTPUT",
}
# What some verb can print; a verb that cannot prints as if nothing were said.
_FORMATS = ("table", "wide", "json", "yaml", "name", "markdown", "sarif", "shell")


class Default(str):
    """A value that was not typed; `source` is the variable or the file that says it."""

    __slots__ = ("source",)

    source: str

    def __new__(cls, value: str, source: str) -> Default:
        """The text `value`, which `source` says."""
        default = super().__new__(cls, value)
        default.source = source
        return default

    def __reduce__(self) -> tuple[type[Default], tuple[str, str]]:
        """What a copy is made of."""
        return Default, (str(self), self.source)


def typed(args: argparse.Namespace, name: str) -> str | None:
    """What the command line says of an option; None where a default says it, or nothing."""
    value: str | None = getattr(args, name, None)
    return None if isinstance(value, Default) else value


def name_variables(parser: argparse.ArgumentParser) -> None:
    """Name the variable in the help of each option that has one."""
    for action in _options_of(parser):
        action.help = f"{action.help} [${VARIABLES[action.dest]}]"


def fill_in(parser: argparse.ArgumentParser, configured: Callable[[], Mapping[str, Default]]) -> None:
    """Set the options' defaults by the environment, else by what is `configured`, asked only where it can matter.

    Raises UsageError for a variable that says what no verb knows.
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


def _options_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The options of a parser, and of those below it, that a variable may stand for."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in {id(choice): choice for choice in action.choices.values()}.values():
                yield from _options_of(below)
        elif action.dest in VARIABLES and f"--{action.dest}" in action.option_strings:
            # An import prints an experiment; only whoever asks for its report in a format gets that. What may be
            # said several times means all of them by default, not the current one.
            is_report = action.dest == "output" and not action.default
            if not is_report and not isinstance(action.default, list):
                yield action
