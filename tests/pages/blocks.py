"""The code blocks of README.md and docs/, each with the mark that sets its test.

A mark is an HTML comment on the line before the fence, invisible to readers:

    <!-- file: rl.yaml -->     the block is written to that file of the reader's folder
    <!-- is: rl.yaml -->       the block equals that file of the reader's folder
    <!-- run -->               its commands are run there, one by one; lines below a command that begins with ``$ `` are
                               its output
    <!-- run: cluster -->      the same, with a cluster, helm and kubectl; other places are `registry`, which
                               answers for registry.example.org, and `extras`: the wheel with all of them, TorchX too
    <!-- prints: COMMAND -->   that command prints the block; if the block shows another command, one that only a key
                               ends, COMMAND is run in its place
    <!-- experiment -->        an experiment, or a part of one, is parsed as such
    <!-- settings -->          a `.symph.yaml` is parsed as such
    <!-- tested: PATH -->      that test takes the block from the page and tries it
    <!-- shown: REASON -->     the block is not run, for that reason; its `symph` lines are still parsed

A page is one reader: its blocks share a folder, which begins empty. ``<!-- given: examples/rl, a.yaml as b.yaml -->``
anywhere above puts files of this repository there first, if the page expects the reader to have them, and
``<!-- do: COMMAND -->`` between blocks is a hidden command: it prepares the state that the next block shows.
It and `prints` have all places that the page's blocks have; the reader's own programs are in ``~/bin``,
the reader's variables in ``~/variables``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("[!sd]*/**/*.md"))]
# Each kind of mark: True if text must follow its colon, False if not, None if it may.
KINDS: dict[str, bool | None] = {
    "file": True,
    "is": True,
    "run": None,
    "prints": True,
    "do": True,
    "experiment": False,
    "settings": False,
    "tested": True,
    "shown": True,
}
_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*).*$")
_MARK = re.compile(r"^ *<!-- (?P<kind>[a-z]+)(?:: (?P<rest>.+?))? -->$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block: its position, its language and text, and its mark (empty without one).

    A hidden line (`do`) is one as well, without a text.
    """

    page: Path
    line: int
    language: str
    text: str
    kind: str
    rest: str

    @property
    def place(self) -> str:
        """The position, such as ``docs/local.md:7``."""
        return f"{name_of(self.page)}:{self.line}"


def name_of(page: Path) -> str:
    """Return the path of a page in the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> Iterator[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    start: int | None = None
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence is None:
            hidden = _MARK.match(line) if start is None else None
            if hidden and hidden["kind"] == "do":
                yield Block(page=page, line=number + 1, language="", text="", kind="do", rest=hidden["rest"] or "")
            continue
        if start is None:
            start, opening = number, fence
            continue
        mark = _MARK.match(lines[start - 1]) if start else None
        indent = len(opening["indent"])
        yield Block(
            page=page,
            line=start + 1,
            language=opening["language"],
            text="".join(f"{text[indent:]}\n" for text in lines[start + 1 : number]),
            kind=mark["kind"] if mark else "",
            rest=(mark["rest"] or "") if mark else "",
        )
        start = None


def given_files(page: Path) -> dict[str, Path]:
    """Return the given files of a page: name in the reader's folder → file or folder of the repository."""
    found = {}
    for line in page.read_text(encoding="utf-8").splitlines():
        mark = _MARK.match(line)
        if mark and mark["kind"] == "given":
            for item in mark["rest"].split(", "):
                path, _, name = item.partition(" as ")
                found[name or path] = ROOT / path
    return found


def places_of(page: Path) -> set[str]:
    """Return the needs of a page's reader beside the wheel, from its `run` marks."""
    marks = [block.rest for block in blocks_of(page) if block.kind == "run"]
    return {place for mark in marks for place in mark.split(", ") if place}
