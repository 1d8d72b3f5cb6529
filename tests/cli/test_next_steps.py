"""The next step of an error uses the place and options of the failed command line."""

from __future__ import annotations

import argparse
import ast
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from symphony_charts.cli import options
from symphony_charts.cli.error_report import placed
from symphony_charts.cli.parser import Symph
from symphony_charts.cli.verbs import HIDDEN, VERBS, find_verb
from symphony_charts.errors import NotFound, UsageError


@pytest.mark.parametrize(
    ("words", "step", "wanted"),
    [
        ("wait bad --on kube -n w", "symph logs bad", "symph logs --on kube -n w bad"),
        ("wait bad --context c", "or look: symph p bad", "or look: symph p --context c bad"),
        ("secrets check e.yaml -n s", "symph secrets push e.yaml", "symph secrets -n s push e.yaml"),
        ("logs bad -n w", "symph ls --on kube shows all", "symph ls -n w --on kube shows all"),
        ("logs bad -n w", "symph logs bad -n other", "symph logs bad -n other"),
        ("wait bad -n w", "symph schema lists the keys, symph nothing none", None),
        ("sweep e.yaml --grid a=1", "symph logs e-a1", None),
        ("sweep e.yaml --grid a=1 --on argo -n w", "symph logs e-a1", "symph logs -n w e-a1"),
        ("wait bad", "symph logs bad", None),
        ("wait bad -n w", "give a --timeout", None),
    ],
)
def test_the_verbs_of_a_step_are_given_the_flags_that_they_take(words: str, step: str, wanted: str | None) -> None:
    symph = Symph()
    assert placed(step, symph.parse(words.split())) == (wanted or step)


class Failing(Symph):
    """A command with one verb that fails."""

    def setup(self) -> None:
        """Add the verb."""
        options.add_backend(self.add_subparser("fail"))

    def action_fail(self, _args: argparse.Namespace) -> int:
        """Fail."""
        raise NotFound("there is none", next="symph ls shows all")


def test_the_printed_next_step_uses_the_options_of_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert Failing().main(["fail", "-n", "w"]) == 8
    assert "next: symph ls -n w shows all" in capsys.readouterr().err


def test_a_step_is_one_that_the_command_takes() -> None:
    symph = Symph()
    step = placed("symph secrets push e.yaml", symph.parse(["secrets", "check", "e.yaml", "-n", "s"]))
    again = symph.parse(step.split()[1:])
    assert (again.action, again.spec, again.namespace) == ("push", "e.yaml", "s")


_ROOT = Path(__file__).parents[2] / "symphony_charts"
# A command in a message, up to the punctuation that ends it, its words, and the placeholders in it.
_COMMAND = re.compile(r"\bsymph ([a-z][a-z-]*(?: (?:(?<= )'[^'\n]*'|[^,;|()`'\n])*)?)")
_WORD = re.compile(r"'[^']*'|\S+")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}|\b[A-Z]{2,}\b|\.\.\.")


def commands() -> list[str]:
    """Return the commands in all messages of the package, with `x` for what depends on the case."""
    found = set()
    for path in _ROOT.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        skipped = {*_docstrings(tree), *_parts(tree)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                text = "".join(str(one.value) if isinstance(one, ast.Constant) else "{x}" for one in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
                text = node.value
            else:
                continue
            found |= {_PLACEHOLDER.sub("x", words).strip() for words in _COMMAND.findall(text)}
    return sorted(found)


def _docstrings(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            yield id(body[0].value)


def _parts(tree: ast.AST) -> Iterator[int]:
    """Yield the texts between the placeholders of f-strings: a command may end in another part."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield from map(id, node.values)


def test_every_command_in_a_message_is_one_that_the_parser_takes() -> None:
    verbs = (*VERBS, *HIDDEN)
    told = [[word.strip("'") for word in _WORD.findall(command.rstrip(".:"))] for command in commands()]
    # One word is a verb that a text speaks of.
    lines = [words for words in told if len(words) > 1 and find_verb(words[0], verbs) and words[1] != "x"]
    assert len(lines) > 150
    refused = [words for words in lines if "--help" not in words and not _is_taken(words)]
    assert refused == [["import", "torchx", "--compat"]]  # an option whose value is one of a few words


def _is_taken(words: list[str]) -> bool:
    """Return True if the parser takes `words`, without the prose that may follow the last option."""
    last = max((index for index, word in enumerate(words) if word.startswith("-")), default=0)
    for end in range(len(words), last, -1):
        for line in (words[:end], [*words[:end], "x"]):
            with contextlib.suppress(UsageError):
                Symph().parse(line)
                return True
    return False
