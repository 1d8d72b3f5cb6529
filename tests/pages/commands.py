"""The `symph` commands of a page, and checks of their verbs and options against the command line."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator

from symphony_charts.cli.parser import SymphonyParser
from symphony_charts.cli.verbs import find_verb
from symphony_charts.errors import SymphError
from tests.pages.blocks import Block

_SEPARATORS = frozenset("();<>|&")
_SPAN = re.compile(r"`(symph [^`\n]+)`")
_PARSER = SymphonyParser()

# A command line, and the output lines on the page (None: it shows none).
Shown = tuple[str, list[str] | None]


def steps_of(block: Block) -> list[Shown]:
    """Return the commands of a block in order: each line of `sh`, in `console` each line that begins with ``$ ``."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.language in ("sh", "bash"):
        return [(line, None) for line in lines if line.strip() and not line.startswith("#")]
    steps: list[tuple[str, list[str]]] = []
    for line in lines if block.language == "console" else []:
        if line.startswith("$ "):
            steps.append((line[2:], []))
        else:
            steps[-1][1].append(line)
    return list(steps)


def symph_commands(line: str) -> Iterator[list[str]]:
    """Yield the words after `symph` of each command in a line for a shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, "|"]:
        if not set(word) <= _SEPARATORS:
            words.append(word)
            continue
        while words and re.fullmatch(r"\w+=.*", words[0]):
            del words[0]
        if words[:1] == ["symph"]:
            yield words[1:]
        words = []


def fault_of_command(words: list[str]) -> str:
    """Return the parser's error for a command; empty if it is accepted."""
    try:
        _PARSER.parse(words)
    except SymphError as error:
        return f"symph {shlex.join(words)}: {error}"
    except SystemExit:  # of --help
        return ""
    return ""


def spans_of(text: str) -> Iterator[str]:
    yield from _SPAN.findall(text)


def fault_of_span(span: str) -> str:
    """Return the unknown verb or option of a command in a sentence, which may omit required arguments."""
    words = re.split(r"\s*(?:\\\||\||#|…|\.\.\.)", span)[0].split()[1:]
    if not words or words[0].startswith("-") or words[0].isupper():
        return ""
    verb = find_verb(words[0])
    if verb is None:
        return f"{span}: there is no verb {words[0]}"
    parser: argparse.ArgumentParser = _PARSER.get_subparser(verb.name)
    options = set(parser._option_string_actions)
    for word in words[1:]:
        if word == "--":
            break
        nested = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        if nested and word in nested[0].choices:
            parser = nested[0].choices[word]
            options |= set(parser._option_string_actions)
        elif word.startswith("--") and word.partition("=")[0].strip("[]()") not in options:
            return f"{span}: {verb.name} has no option {word}"
    return ""
