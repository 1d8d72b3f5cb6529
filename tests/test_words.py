"""Plain words in documentation, help, messages and docstrings: each phrase to avoid, with the words to use instead."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from symphony_charts.cli.parser import SymphonyParser
from symphony_charts.cli.verbs import VERBS

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = sorted((ROOT / "symphony_charts").rglob("*.py"))
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

PLAIN = {
    r"stands?(?!-)|stood": "is, has",
    r"mend(s|ed|ing)?": "fix",
    r"whoever": "a user who, a process that",
    r"nobody": "no process, no user",
    r"somebody": "another user, another process",
    r"everybody": "all users, all processes",
    r"anew": "again",
    r"of late": "recently",
    r"thereby": "so",
    r"at all": "(leave it out)",
    r"so many": "this many, or the number",
    r"for good": "permanently",
    r"go(es)? on|going on": "continue, keep running",
    r"(is|are|was|were|be) (said|told)": "is printed, is reported, is set",
    r"bears?": "has",
    r"an own": "its own",
    r"others'": "of other users",
    r"la(id|y|ys) down": "write",
    r"whatever (ends|is|was|two|the)": "any, every",
    r"taken off": "subtracted",
    r"what it is": "meaning",
    r"certainly finds?|find no room": "fits",
    r"here and there": "in both places",
    r"says? (who|whether|so)": "shows, sets",
    r"for who": "for users who",
    r"know(s)? of": "know, need",
}
_PHRASE = re.compile(rf"\b({'|'.join(PLAIN)})(?!\w)", re.IGNORECASE)
_RIDDLE = re.compile(r"(What|Who|Whether|How|Where|Why)\b")


def found(text: str) -> list[str]:
    """Return the phrases to avoid in a text."""
    return [match[0] for match in _PHRASE.finditer(" ".join(text.split()))]


def prose(page: Path) -> str:
    """Return a page without its code."""
    text = re.sub(r"(?ms)^ *```.*?^ *```", "", page.read_text(encoding="utf-8"))
    return re.sub(r"`[^`\n]*`", "", text)


def docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and node.body and isinstance(node.body[0], ast.Expr):
            value = node.body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value


def messages(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the strings of a module that have a space, without its docstrings."""
    documents = set(docstrings(tree))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and " " in node.value
            and node not in documents
        ):
            yield node


def helps() -> Iterator[tuple[str, str]]:
    parser = SymphonyParser()
    parser.load_all()
    waiting: list[argparse.ArgumentParser] = [parser.get_subparser(verb.name) for verb in VERBS]
    while waiting:
        verb = waiting.pop()
        yield verb.prog, verb.format_help()
        for action in verb._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += action.choices.values()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_plain_words(page: Path) -> None:
    assert found(prose(page)) == []


def test_pages_name_only_options_that_a_verb_has() -> None:
    known = set(re.findall(r"--[a-z][a-z-]+", " ".join(text for _, text in helps())))
    known |= {"--cleanup-on-fail", "--reuse-values", "--gangs"}  # of helm, and of the cluster of the tests
    # Their options are those of other tools. So are all after a bare `--`.
    others = ("from-", "torchx.md", "import.md")
    named = {
        f"{page.name}: {option}"
        for page in PAGES
        if not page.name.startswith(others)
        for words in re.findall(r"`(--[^`]+)`|\bsymph ([^`\n]+)", page.read_text(encoding="utf-8"))
        for option in re.findall(r"(?<!\S)--[a-z][a-z-]+", re.split(r"\s--\s|[|;&#]", "".join(words))[0])
        if option not in known
    }
    assert named == set()


def test_the_pages_are_within_their_budget() -> None:
    pages = (page for page in PAGES if page.name != "CHANGELOG.md")
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= 28_000


def test_messages_and_help_have_plain_words() -> None:
    faults = [f"{name}: {phrase}" for name, text in helps() for phrase in found(text)]
    for path in MODULES:
        for text in messages(ast.parse(path.read_text(encoding="utf-8"))):
            place = f"{path.relative_to(ROOT)}:{text.lineno}"
            faults += [f"{place}: {phrase}" for phrase in found(str(text.value))]
    assert faults == []


def test_no_docstring_begins_with_a_question() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{text.lineno}"
        for path in MODULES
        for text in docstrings(ast.parse(path.read_text(encoding="utf-8")))
        if _RIDDLE.match(str(text.value).strip())
    ] == []


@pytest.mark.parametrize(
    "text",
    [
        "Whoever waits for a process that has failed for good is given up.",
        "Whatever two YAML readers take differently is refused, with the way to say what is meant",
        "What your machines are called stands in a file",
        "They must find the old fault before it is mended",
        "`null` of what has ended while nobody looked",
        "So many supervisors may be killed, or find no room for what they have to write, before an end is given up.",
        "The run of the experiment that goes on here, after all others that stand in its way have ended",
        "what waiting cannot mend is not waited for; what is asked again is said",
        "Who finds a run without a supervisor may find somebody else about to end it",
        "ten minutes for who runs the cluster",
        "all 3 pods certainly find room, on 1 node for $0.27 an hour",
        "are all that the two have to know of each other",
        "a process that fails for good ends the run here, and no other group on kind jobs",
        "a branch that an administrator rewound or began anew is read anew",
    ],
)
def test_a_sentence_of_the_old_pages_is_found(text: str) -> None:
    assert found(text)


def test_code_on_a_page_is_no_prose(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Use `goes on`.\n\n```text\nnobody\n```\n\nIt stands alone.\n")
    assert found(prose(page)) == ["stands"]
