"""The command line as the parsers define it: every action and its required arguments."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from symphony_charts.cli.parser import SymphonyParser
from symphony_charts.cli.verbs import VERBS


@dataclass(frozen=True, slots=True)
class Command:
    """The words that choose a parser without subparsers, and that parser."""

    words: tuple[str, ...]
    parser: argparse.ArgumentParser

    @property
    def flags(self) -> list[str]:
        return [flag for action in self.parser._actions for flag in action.option_strings if flag.startswith("--")]

    @property
    def positionals(self) -> list[argparse.Action]:
        return [action for action in self.parser._actions if not action.option_strings]

    def least(self) -> list[str]:
        """Return the shortest command line that the parser accepts."""
        words = list(self.words)
        for action in self.parser._actions:
            if action.option_strings and action.required:
                words.append(action.option_strings[-1])
            elif action.option_strings or action.nargs in ("?", "*"):
                continue
            words.append(str(next(iter(action.choices))) if action.choices else "x")
        return words


def all_commands() -> list[Command]:
    """Return every verb without actions, and every action of the other verbs."""
    parser = SymphonyParser()
    parser.load_all()
    return [command for verb in VERBS for command in _below((verb.name,), parser.get_subparser(verb.name))]


def _below(words: tuple[str, ...], parser: argparse.ArgumentParser) -> Iterator[Command]:
    nested = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not nested:
        yield Command(words, parser)
    for action in nested:
        for name, below in action.choices.items():
            yield from _below((*words, name), below)
