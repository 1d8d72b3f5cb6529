"""Read YAML strictly: only data that all YAML readers agree on, with the line of each path and plain error messages.

Returns plain data only (no tags, no Python objects). Refuses duplicate keys and hostile documents (deep nesting,
aliases of aliases) before expanding them. Supports anchors, aliases and `<<` merges.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, TypeAlias

import yaml

from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.names import join, sanitize

_QUOTE = "write the value in quotes"
_SAME_INDENT = "give all keys of one map the same indentation"
# Words of the messages of libyaml (scanner.c, parser.c) and PyYAML, what is wrong (`{at}` is the character), the next
# step, and True if the place is where the value begins.
_FAULTS = (
    (r"tab character|start any token: \t", "a tab where YAML takes only blanks", "indent with blanks", False),
    ("cannot start any token", "no value begins with `{at}`", _QUOTE, False),
    ("maximum nesting depth", "nested too deeply", "nest less", False),  # libyaml's own limit, since PyYAML 6.0.4
    ("quoted.*end of stream", "the quote that opens here is never closed", "close it, or drop it", True),
    (r"did not find expected ','|expected ',' or", "the `{at}` that opens here is not closed before line {line}",
     "close it, and quote values that hold brackets, commas or `: `", True),
    ("expected key|expected '-'|block end", "this line fits neither the lines above it nor what they belong to",
     f"{_SAME_INDENT}; quote the whole value or nothing", False),
    ("expected ':'", "this line is no `KEY: VALUE`", "put a colon and a blank behind the key", True),
    ("alias|anchor", "a bare `{at}` refers to another value", _QUOTE, True),
    ("unknown escape", "a backslash in double quotes begins an escape",
     "use single quotes, or write the backslash twice", False),
)  # fmt: skip


def fault_of(error: Any, text: str) -> Problem:
    """Return the fault of a `yaml.MarkedYAMLError` in `text`; its path is the line."""
    here, begun = error.problem_mark or error.context_mark, error.context_mark or error.problem_mark
    message = ": ".join(filter(None, (error.context, error.problem)))
    if here is None:
        return Problem(f"not valid YAML: {message}")
    lines = text.splitlines()
    at = _line_at(lines, here)[here.column : here.column + 1]
    if "mapping values are not allowed" in message:
        what, step = _second_colon(lines, here.line)
        return Problem(f"not valid YAML: {what}", f"line {here.line + 1}", step)
    for words, what, step, is_begun in _FAULTS:
        if re.search(words, f"{message}: {at}"):
            mark = begun if is_begun else here
            at = _line_at(lines, mark)[mark.column : mark.column + 1]
            said = what.format(at=at, line=here.line + 1)
            return Problem(f"not valid YAML: {said}", f"line {mark.line + 1}", step)
    return Problem(f"not valid YAML: {message}", f"line {here.line + 1}", "look at the colons and quotes")


def _second_colon(lines: list[str], number: int) -> tuple[str, str]:
    """Explain an invalid colon in line `number` by the lines around it."""
    above = next((each for each in range(number - 1, -1, -1) if lines[each].strip()), None)
    before = "" if above is None else lines[above]
    if above is not None and re.match(r"\s*(?:- )?[\w-]+:[^\s/]", before) and not before.rstrip().endswith(":"):
        return f"no blank after the colon of line {above + 1}", "write KEY: VALUE with a blank"
    if re.match(r"\s*(?:- )?[^\s:#]+: .*: ", lines[number] if number < len(lines) else ""):
        return "a second `: ` in this line", f"{_QUOTE}, or begin a new line"
    return "this line is indented below a key that has a value already", _SAME_INDENT


def _line_at(lines: list[str], mark: Any) -> str:
    return lines[mark.line] if mark.line < len(lines) else ""


_MAX_CHARACTERS = 32 * 1024 * 1024
_MAX_DEPTH = 100
_MAX_NODES = 2_000_000

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
# Booleans of YAML 1.1 only.
_MAYBE_BOOLEANS = frozenset(
    f(word) for word in ("y", "yes", "n", "no", "on", "off") for f in (str, str.title, str.upper)
)
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_MAYBE_NUMBER = re.compile(r"[-+]?(?:0[0-9]+|0o[0-7]+|0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*_[0-9_]*)", re.ASCII)
_SPECIAL = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_TAG = "tag:yaml.org,2002:"
_Container: TypeAlias = "dict[str, object] | list[object]"
Lines: TypeAlias = "dict[int, dict[str | int, int]]"


class SourceNumber(float):
    """A number with a dot or an exponent that keeps its spelling, so its text is ``1e-4`` as written."""

    text: str

    def __new__(cls, text: str) -> SourceNumber:
        number = super().__new__(cls, text)
        number.text = text
        return number


def load(text: str, keys: Collection[str] = ()) -> object:
    """Return the data of the single YAML (or JSON) document in `text`; None if it is empty.

    `keys` are known keys that are texts here, although other YAML readers take them for booleans, such as `on`.
    Raises SpecError with every fault found; syntax errors are reported alone, with their line.
    """
    return next(iter(_documents(_Reader(text, known_keys=keys))), (None, {}))[0]


def load_with_problems(text: str) -> tuple[object, list[Problem]]:
    """Return the data of the document in `text` as far as it is known, and the faults of single words in it.

    Raises SpecError for any other fault, as `load` does.
    """
    reader = _Reader(text)
    documents = reader.read()
    if reader.problems and not reader.is_readable:
        raise SpecError(reader.problems)
    return next(iter(documents), None), reader.problems


def load_with_lines(text: str) -> tuple[object, Lines]:
    """Return the data, and for the id() of each map and list the line (from 1) of each entry."""
    return next(iter(_documents(_Reader(text))), (None, {}))


def load_documents(text: str, *, is_compose: bool = False) -> list[tuple[object, Lines]]:
    """Return the documents of another tool's file, each with its lines.

    Words that YAML readers disagree on, and keys that are not text, become text. With `is_compose`, numbers are read as
    docker compose reads them (`010` is 8), and so are its tags `!reset` and `!override`.
    """
    return _documents(_Reader(text, is_lenient=True, is_compose=is_compose))


class Reset:
    """The value of a key that compose's tag `!reset` removes."""


class OverridingMap(dict[str, object]):
    """A map that replaces another instead of being merged into it (compose's tag `!override`)."""


class OverridingList(list[object]):
    """A list that replaces another instead of being appended to it (compose's tag `!override`)."""


def _documents(reader: _Reader) -> list[tuple[object, Lines]]:
    documents = reader.read()
    if reader.problems:
        raise SpecError(reader.problems)
    return [(data, reader.lines) for data in documents]


class _Reader:
    """Builds data from parser events with an explicit stack, so hostile nesting cannot overflow Python's stack."""

    def __init__(
        self, text: str, *, is_lenient: bool = False, known_keys: Collection[str] = (), is_compose: bool = False
    ) -> None:
        self._is_lenient = is_lenient
        self._known_keys = known_keys
        self._is_compose = is_compose
        self._resets: list[_Container] = []
        self._text = text
        self.problems: list[Problem] = []
        # False if a key or a merged map is missing in the data.
        self.is_readable = True
        self.lines: Lines = {}
        self._stack: list[tuple[_Container, int, str | None]] = []
        self._keys: list[str | None] = []
        self._merges: list[list[object]] = []
        self._anchors: dict[str, tuple[object, int]] = {}
        self._nodes = 0
        self._documents: list[object] = []

    def read(self) -> list[object]:
        """Return the documents. Raises SpecError for text that is not YAML; `problems` has all other faults."""
        size = len(self._text)
        if size > _MAX_CHARACTERS:
            raise SpecError.one(f"the text has {size:,} characters; more than {_MAX_CHARACTERS:,} are not read")
        try:
            for event in yaml.parse(self._text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
                self._take(event)
        except yaml.MarkedYAMLError as error:
            raise SpecError([fault_of(error, self._text)]) from error
        except (yaml.YAMLError, UnicodeError) as error:
            what = f"not valid YAML: {str(error).splitlines()[0]}"
            raise SpecError.one(what, next="save it as text in UTF-8") from error
        except RecursionError as error:  # pragma: no cover - only the pure Python parser, without libyaml, recurses
            raise SpecError.one("not valid YAML: nested too deeply", next="nest less") from error
        return self._documents

    def _take(self, event: yaml.Event) -> None:
        self._count(1, event)
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.MappingStartEvent):
            self._open({}, event)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._open([], event)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._close()
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._anchors.clear()
            if self._documents and not self._is_lenient:
                step = "keep one `---` part in the file"
                raise SpecError.one("more than one YAML document", f"line {_line(event)}", step)

    def _count(self, nodes: int, event: yaml.Event) -> None:
        self._nodes += nodes
        if self._nodes > _MAX_NODES:
            what = f"more than {_MAX_NODES:,} values once aliases are filled in"
            raise SpecError.one(what, f"line {_line(event)}")

    def _open(self, container: _Container, event: yaml.CollectionStartEvent) -> None:
        if len(self._stack) >= _MAX_DEPTH:
            raise SpecError.one(f"nested more than {_MAX_DEPTH} deep", f"line {_line(event)}")
        if self._is_compose and event.tag == "!override":
            container = OverridingMap() if isinstance(container, dict) else OverridingList()
        elif self._is_compose and event.tag == "!reset":
            self._resets.append(container)
        elif event.tag not in (None, f"{_TAG}map", f"{_TAG}seq", "!"):
            self._tag(event)
        if self._is_key():
            self.is_readable = False
            self._problem("a list or a map cannot be a key", event, "use text as the key")
        self._note_item(event)
        self._stack.append((container, self._nodes, event.anchor))
        self._keys.append(None)
        self._merges.append([])

    def _close(self) -> None:
        container, before, anchor = self._stack.pop()
        self._keys.pop()
        for merged in self._merges.pop():
            self._merge(container, merged)
        if anchor is not None:
            self._anchors[anchor] = (container, self._nodes - before)
        self._put(Reset() if any(container is each for each in self._resets) else container)

    def _alias(self, event: yaml.AliasEvent) -> None:
        if event.anchor not in self._anchors:
            what = f"`*{event.anchor}` refers to nothing that is complete above it"
            step = f"define `&{event.anchor}` first, and not around its own alias"
            raise SpecError.one(what, f"line {_line(event)}", step)
        value, nodes = self._anchors[event.anchor]
        self._count(nodes, event)
        self._note_item(event)
        if self._is_key() and not isinstance(value, str):
            self.is_readable = False
            self._problem("an alias used as a key must be a text", event, "write the key out")
            value = f"*{event.anchor}"
        if self._is_key():
            self._set_key(str(value), event)
        else:
            self._put(value)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        if self._is_key():
            self._key(event)
            return
        self._note_item(event)
        value = self._value(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1)
        self._put(value)

    def _key(self, event: yaml.ScalarEvent) -> None:
        is_plain, text = event.implicit[0], event.value
        if event.anchor is not None:
            self._anchors[event.anchor] = (text, 1)
        is_text = text == "<<" or self._is_lenient or text in self._known_keys
        if is_plain and not is_text and not isinstance(_resolve(text), str):
            self._problem(f"the key `{text}` is not text to every YAML reader", event, f'write "{text}" in quotes')
        self._set_key(text, event, is_merge=is_plain and text == "<<")

    def _set_key(self, text: str, event: yaml.Event, is_merge: bool = False) -> None:
        container = self._stack[-1][0]
        self._keys[-1] = text
        self.lines.setdefault(id(container), {}).setdefault(text, _line(event))
        if is_merge:
            self._keys[-1] = "\0<<"
        elif isinstance(container, dict) and text in container:
            self._problem(f'the key "{text}" appears twice in one map', event, "keep one of them")

    def _value(self, event: yaml.ScalarEvent) -> object:
        text, tag = event.value, event.tag
        if event.implicit[0] and tag is None:
            value = _resolve(text)
            if isinstance(value, Problem):
                if not self._is_lenient:
                    self._problem(value.what, event, value.next)
                return _as_compose(text) if self._is_compose else text
            return _as_compose(text) if self._is_compose and isinstance(value, str) else value
        if self._is_compose and tag in ("!reset", "!override"):
            return Reset() if tag == "!reset" else text
        if tag in (None, "!", f"{_TAG}str"):
            return text
        if tag in (f"{_TAG}{kind}" for kind in ("int", "float", "bool", "null")):
            value = _resolve(text)
            return text if isinstance(value, Problem) else value
        self._tag(event)
        return text

    def _tag(self, event: yaml.CollectionStartEvent | yaml.ScalarEvent) -> None:
        short = (event.tag or "").replace(_TAG, "!!")
        self._problem(f"the YAML tag `{short}` is not read", event, "write plain text, numbers, lists and maps")

    def _is_key(self) -> bool:
        return bool(self._stack) and isinstance(self._stack[-1][0], dict) and self._keys[-1] is None

    def _put(self, value: object) -> None:
        if not self._stack:
            self._documents.append(value)
            return
        container = self._stack[-1][0]
        if isinstance(container, list):
            container.append(value)
            return
        key, self._keys[-1] = self._keys[-1], None
        if key == "\0<<":
            self._merges[-1].append(value)
        elif key is None:  # a map or list as a key, already reported; a placeholder takes its place
            self._keys[-1] = "\0"
        elif key not in container:
            container[key] = value

    def _note_item(self, event: yaml.Event) -> None:
        if self._stack and isinstance(items := self._stack[-1][0], list):
            self.lines.setdefault(id(items), {})[len(items)] = _line(event)

    def _merge(self, container: _Container, merged: object) -> None:
        """Merge YAML 1.1's `<<` into `container`: its own keys win, then the first of the merged maps."""
        sources = merged if isinstance(merged, list) else [merged]
        for source in sources:
            if not isinstance(source, dict) or not isinstance(container, dict):
                self.is_readable = False
                line = self.lines.get(id(container), {}).get("<<", 0)
                self.problems.append(Problem("`<<` merges maps only", f"line {line}", "give it an alias"))
                return
            for key, value in source.items():
                container.setdefault(key, value)

    def _problem(self, what: str, event: yaml.Event, next_step: str) -> None:
        path = ", ".join(filter(None, (f"line {_line(event)}", self._path())))
        self.problems.append(Problem(what, path, next_step))

    def _path(self) -> str:
        path = ""
        for (container, _, _), key in zip(self._stack, self._keys, strict=True):
            if isinstance(container, list):
                path = join(path, len(container))
            elif key is not None:
                path = join(path, key)
        return path


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 0


def _resolve(text: str) -> object:
    """Return the value of plain `text` in YAML 1.2's core schema, or a Problem if YAML 1.1 reads it differently."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text in _MAYBE_BOOLEANS:
        what = f"`{text}` is a boolean to some YAML readers and text to others"
        return Problem(what, next=f'write true, false or "{text}" in quotes')
    return _resolve_number(text) if text[0] in "-+.0123456789" else text


def _resolve_number(text: str) -> object:
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) < 400 else SourceNumber(text)
    if _MAYBE_NUMBER.fullmatch(text):
        return Problem(f"`{text}` is a different number to different YAML readers", next=f'write "{text}" in quotes')
    if _FLOAT.fullmatch(text):
        return SourceNumber(text)
    return float(text.replace(".", "", 1)) if _SPECIAL.fullmatch(text) else text


def _as_compose(text: str) -> object:
    """Return the number that docker compose's reader finds in `text` (octal, `0x`, `_`); other text unchanged."""
    digits = text.replace("_", "") if text[0] in "-+.0123456789" else ""
    try:
        return int(digits, 8) if re.fullmatch(r"[-+]?0[0-7]+", digits) else int(digits, 0)
    except ValueError:
        return SourceNumber(digits) if _FLOAT.fullmatch(digits) else text


_INDEX = re.compile(r"\[(\d+)\]\.?")
# A path whose line the reader knows, `line 7, processes.a`, also with a column.
_LINE = re.compile(r"line ([\d:]+)(?:, (.*))?", re.DOTALL)


def place(name: str, path: str, line_of: Callable[[str], int | None]) -> str:
    """Return ``name:line, path``; `line_of` finds the line unless the reader put it before the path."""
    match = _LINE.fullmatch(path)
    line, path = (match[1], match[2]) if match else (line_of(path), path)
    return ", ".join(filter(None, (f"{name}:{line}" if line is not None else name, path)))


def line_of(text: str, path: str) -> int | None:
    """Return the line (from 1) of `path` (``processes.learner.binds[0]``) in YAML or JSON `text`.

    If the path ends in something that the text only implies, return the line of its nearest parent; None if even the
    first step is absent or the text cannot be read.
    """
    reader = _Reader(text)
    try:
        documents = reader.read()
    except SpecError:
        documents = []
    return line_in(next(iter(documents), None), reader.lines, path)


def line_in(data: object, lines: Lines, path: str) -> int | None:
    """Return `line_of` for text that `load_with_lines` has read. A key also matches in its sanitised form."""
    line = None
    while path:
        index = _INDEX.match(path)
        if index is not None:
            here, data = _item(data, lines, int(index[1]))
            path = path[index.end() :]
        else:
            here, data, path = _entry(data, lines, path)
        line = here if here is not None else line
    return line


def _item(data: object, lines: Lines, index: int) -> tuple[int | None, object]:
    """Return line and value of entry `index`; for a map the index counts its keys, for a scalar it means the scalar."""
    if isinstance(data, list) and index < len(data):
        return lines.get(id(data), {}).get(index), data[index]
    if isinstance(data, dict) and index < len(data):
        key = list(data)[index]
        return lines.get(id(data), {}).get(key), data[key]
    return None, data


def _entry(data: object, lines: Lines, path: str) -> tuple[int | None, object, str]:
    """Return line and value of the key at the start of the path, and the rest of the path.

    Keys may contain dots (``app.kubernetes.io/name``), so the longest matching key wins.
    """
    if isinstance(data, dict):
        for key in sorted(data, key=len, reverse=True):
            for spelling in (key, sanitize(key)):
                rest = path[len(spelling) :]
                if spelling and path.startswith(spelling) and rest[:1] in ("", ".", "["):
                    return lines.get(id(data), {}).get(key), data[key], rest.removeprefix(".")
    return None, None, ""


def scalar_text(value: object) -> object:
    """Return numbers and booleans as text (``true``, ``8``, ``1e-4`` as written), other values unchanged."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, SourceNumber):
        return value.text
    return repr(value) if isinstance(value, (int, float)) else value


def plain(value: object) -> object:
    """Return `value` with plain floats in place of SourceNumbers, at any depth."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return float(value) if isinstance(value, SourceNumber) else value
