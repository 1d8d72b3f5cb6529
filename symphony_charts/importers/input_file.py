"""Read an input file as data, with the line of each path.

`symphony_charts.formats.yaml_read` does the reading; it is strict and safe against deep nesting and aliases. Files of
other tools differ in two ways: they hold several documents, and they write `on`, `no`, `0440` or `8080:` without
quotes; such words are read as text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace

from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_read import Lines, line_in, load_documents, load_with_lines, place
from symphony_charts.importers.report import Report

_MAX_BYTES = 16 * 1024 * 1024
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # half of a surrogate pair is not text
_PYTHON_TAG = re.compile(r"^([^\n\"'#]*?(?:[:\-?]|&\w+)[ ]+)(!!python/[^\s,\]}]*)", re.MULTILINE)
_DOCUMENT = re.compile(r"\[(\d+)\]\.?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document of a file; `lines` are line numbers of the file."""

    data: object
    lines: Lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file that was read: its name as errors print it, and its non-empty documents.

    Paths in a file with several documents begin with the document's index: `[1].spec.tasks[0]`.
    """

    name: str
    text: str = field(repr=False)
    documents: tuple[Document, ...]

    def prefix(self, index: int) -> str:
        """Return the prefix of all paths of a document."""
        return f"[{index}]" if len(self.documents) > 1 else ""

    def locate(self, path: str) -> str:
        """Return `path` as ``file:line, path``, or as an option if it comes from the command line."""
        has_cfg = any(isinstance(each.data, dict) and "cfg" in each.data for each in self.documents)
        if path.startswith("cfg.") and not has_cfg:
            return f"--{path.replace('.', ' ', 1)}"
        return place(self.name, path, self._line)

    def with_location(self, error: SpecError) -> SpecError:
        """Return `error` with file and line in every path."""
        return SpecError(problem.moved_to(self.locate(problem.path)) for problem in error.problems)

    def located(self, report: Report) -> Report:
        """Return `report` with file and line in every path."""
        return replace(
            report,
            carried=tuple(self.locate(path) for path in report.carried),
            notes=tuple(replace(note, path=self.locate(note.path)) for note in report.notes),
        )

    def _line(self, path: str) -> int | None:
        index = 0
        if len(self.documents) > 1 and (match := _DOCUMENT.match(path)) is not None:
            index, path = int(match[1]), path[match.end() :]
        if index >= len(self.documents) or not self.text:
            return None
        document = self.documents[index]
        data, lines = (document.data, document.lines) if document.lines else _late_lines(self.text)
        if not path and (first := lines.get(id(data))):
            return min(first.values())
        return line_in(data, lines, path) or 1


def read(content: bytes, name: str, *, python_tags: bool = False, is_compose: bool = False) -> Source:
    """Return the documents of a YAML or JSON file.

    With `python_tags`, ignore tags of Python objects; with `is_compose`, read numbers and tags as docker compose does.

    Raises SpecError, with file and line, if the content is not text or YAML, too large, or nested too deeply.
    """
    text = _decode(content, name)
    try:
        if text.lstrip()[:1] in ("{", "[") and (data := _json(text)) is not None:
            return Source(name=name, text=text, documents=data)
        tagless = _without_python_tags(text) if python_tags else text
        read_documents = load_documents(tagless, is_compose=is_compose)
        documents = tuple(Document(data=data, lines=lines) for data, lines in read_documents if data is not None)
    except SpecError as error:
        raise Source(name=name, text=text, documents=()).with_location(error) from error
    if not documents:
        raise SpecError.one("the file is empty", at=f"{name}:1", next="give a file with the job to import")
    return Source(name=name, text=text, documents=documents)


def from_data(data: object, name: str) -> Source:
    """Return a source for data without text: errors show `name` and the path, but no line."""
    return Source(name=name, text="", documents=(Document(data=data, lines={}),))


def _decode(content: bytes, name: str) -> str:
    if len(content) > _MAX_BYTES:
        raise SpecError.one(f"the file has {len(content):,} bytes; symph reads at most {_MAX_BYTES:,}", at=name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        what = f"the file is not UTF-8 text: byte 0x{content[error.start]:02x}"
        raise SpecError.one(what, at=f"{name}:{line}", next="save the file as UTF-8") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise SpecError.one(
            "the file is not text: it contains a NUL byte", at=f"{name}:{line}", next="give a YAML or JSON file"
        )
    return text


def _json(text: str) -> tuple[Document, ...] | None:
    """Return the data of JSON text; None if it is not JSON, or if JSON readers disagree about it."""
    try:
        data = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
        if _SURROGATE.search(text):
            json.dumps(data, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None  # the YAML reader reports the error with its line
    return (Document(data=data, lines={}),)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("the file has a key twice")
    return mapping


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


def _late_lines(text: str) -> tuple[object, Lines]:
    """Return data and lines of JSON text; only errors and notes need them."""
    try:
        return load_with_lines(text)
    except SpecError:
        return None, {}


def _without_python_tags(text: str) -> str:
    """Return `text` with blanks for `!!python/...` tags (from PyYAML's unsafe dumper); keep the tagged values."""
    return _PYTHON_TAG.sub(lambda match: f"{match[1]}{' ' * len(match[2])}", text)
