"""Files that ``.dockerignore`` excludes. The answers in the table are those of moby/patternmatcher v0.6.0."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symphony_charts.errors import SpecError
from symphony_charts.oci.workspace import read_ignore

_NAMES = (
    "a b ab abc a/b a/b/c b/a x.log d/x.log d/e/x.log README.md src src/m.py src/m.pyc a.b aXb d/keep.b "
    "keep.b a+b docs/x.md docs/y.md docs/z tempa d/temp1 d/e/temp1 !a (a) {a,b} a$ éa #a bb d/bb axc"
)
PATHS = _NAMES.split()
# The file, and the PATHS that Docker excludes.
DOCKER = [
    ("*.log", "x.log"),
    ("**/*.log", "x.log d/x.log d/e/x.log"),
    ("/a", "a a/b a/b/c"),
    ("a/", "a a/b a/b/c"),
    ("**", _NAMES),
    ("**\n!README.md", " ".join(path for path in PATHS if path != "README.md")),
    ("*\n!src\nsrc/*.pyc", " ".join(path for path in PATHS if path not in ("src", "src/m.py"))),
    ("# a\nb", "b b/a"),
    (" a \n\n!a/b", "a"),
    ("a/**", "a/b a/b/c"),
    ("a/**/b", "a/b a/b/c"),
    ("**/b", "b a/b a/b/c b/a"),
    ("**b", "b ab a/b a/b/c b/a a.b aXb d/keep.b keep.b a+b bb d/bb"),
    ("a**", "a ab abc a/b a/b/c a.b aXb a+b a$ axc"),
    ("?", "a b a/b a/b/c b/a d/x.log d/e/x.log d/keep.b d/temp1 d/e/temp1 d/bb"),
    ("a?c", "abc axc"),
    ("[a-c]", "a b a/b a/b/c b/a"),
    ("[^a]", "b b/a d/x.log d/e/x.log d/keep.b d/temp1 d/e/temp1 d/bb"),
    ("!a\na", "a a/b a/b/c"),
    ("a\n!a/b\na/b/c", "a a/b/c"),
    ("a.b", "a.b"),
    ("a+b", "a+b"),
    ("..", ""),
    ("./a/../b", "b b/a"),
    ("//a", "a a/b a/b/c"),
    ("/!a", ""),
    ("a/*/c", "a/b/c"),
    ("**/a/**/c", "a/b/c"),
    ("\ufeffa", "a a/b a/b/c"),
    ("**/*.b\n!**/keep.b", "a.b"),
    ("temp?", "tempa"),
    ("*/temp*", "d/temp1"),
    ("*/*/temp*", "d/e/temp1"),
    ("docs\n!docs/*.md\ndocs/x.md", "docs/x.md docs/z"),
    ("(a)", "(a)"),
    ("{a,b}", "{a,b}"),
    ("a$", "a$"),
    ("\u00e9*", "éa"),
    (" #a", "#a"),
]


@pytest.mark.parametrize(("text", "left_out"), DOCKER)
def test_the_same_files_are_left_out_as_by_docker(text: str, left_out: str) -> None:
    ignore = read_ignore(text)
    assert [path for path in PATHS if ignore.leaves_out(path)] == left_out.split()


@pytest.mark.parametrize("text", ["!", "a\n! ", "[a", "a\\"])
def test_a_line_that_is_no_pattern_is_refused_with_its_number(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_ignore(text)
    assert f".dockerignore:{len(text.splitlines())}" in caught.value.problems[0].path


def test_a_file_without_patterns_leaves_nothing_out() -> None:
    assert not read_ignore("# nothing\n\n").leaves_out("a/b")


@settings(max_examples=200)
@given(text=st.text(alphabet="ab/*?[]!\\.-^# \n{}()|+$\ufeff", max_size=40), path=st.sampled_from(PATHS))
def test_any_text_is_understood_or_refused(text: str, path: str) -> None:
    try:
        ignore = read_ignore(text)
    except SpecError:
        return
    assert ignore.leaves_out(path) in (True, False)


@pytest.mark.parametrize("path", ["a", "a.b", "src", "a/b", "d/e"])
def test_what_is_left_out_takes_all_below_it_along(path: str) -> None:
    assert read_ignore(path).leaves_out(f"{path}/below/it")
