"""The tree of a chart: Kubernetes objects as maps and lists whose variable leaves are expressions.

Builders know experiments and make trees. Two readers know only trees: `emit` writes Go templates, `evaluate` returns
the objects that Helm would print. The set of expressions is closed; a new one needs a page in ``docs/decisions/``.

A path is written as in Go (``.Values.image``, ``$group.replicas``, ``.root.Values.x``, ``.``), and a word in double
quotes is a constant. Both readers use the same scopes. Texts and paths use YAML and Go syntax.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from string import Formatter
from typing import Any, TypeAlias

Tree: TypeAlias = Any
Scope: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Value:
    """A scalar of the values. `is_text`: the field is a string, so a number becomes text.

    If the first value is empty, the value at `fallback` counts.
    """

    path: str
    is_text: bool = False
    fallback: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A map or a list of the values, left out when empty. `via` names the helper that prints it.

    `is_sure`: the surrounding condition guarantees that it is not empty.
    """

    path: str
    via: str = ""
    is_sure: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """Constants and expressions in one string: ``Text("{$fullname}-api:{.Values.services.api.port}")``.

    A name in braces is a path (it begins with ``.`` or ``$``) or a helper. Doubled braces print one brace. Do not use
    values here that users choose freely: they are not quoted.
    """

    format: str

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        return _parts(self.format)


@lru_cache(maxsize=4096)
def _parts(text: str) -> tuple[tuple[str, str], ...]:
    parts = []
    before = ""
    for constant, name, *_ in Formatter().parse(text):
        # A doubled brace ends a constant in the parser.
        before += constant
        if name:
            parts.append((before, name))
            before = ""
    return (*parts, (before, "")) if before or not parts else tuple(parts)


@dataclass(frozen=True, slots=True)
class Join:
    """One text per replica, separated by commas; ``$i`` in `item` counts from 0."""

    count: str
    item: Text


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum of numbers of replicas. Each term is the smallest of its paths and constants."""

    terms: tuple[tuple[str | int, ...], ...]
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class NonZero:
    """True if the number at `path` is not 0; digits in a string count as a number."""

    path: str


@dataclass(frozen=True, slots=True)
class Equals:
    """True if the string at `path` is `constant`."""

    path: str
    constant: str


@dataclass(frozen=True, slots=True)
class All:
    """True if all `conditions` are."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """True if one of `conditions` is."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """True if `condition` is not."""

    condition: Condition


# A path is true unless its value is false, 0, empty or missing.
Condition: TypeAlias = str | NonZero | Equals | All | Either | Not


@dataclass(frozen=True, slots=True)
class When:
    """`tree` if `condition` holds, otherwise nothing: around a key, an item, an object or a list of objects."""

    condition: Condition
    tree: Tree


def optional(path: str) -> When:
    """Return the text at `path`, left out if it is empty."""
    return When(path, Value(path, is_text=True))


@dataclass(frozen=True, slots=True)
class Let:
    """`tree` with the variable `name` (``$group``) for `source`: a path, or the text of a helper."""

    name: str
    source: str
    tree: Tree


@dataclass(frozen=True, slots=True)
class Entries:
    """As an argument: what the helper `name` prints."""

    name: str


@dataclass(frozen=True, slots=True)
class Include:
    """The map or list of a helper. `args` become the helper's dot: a map of them, or one path."""

    name: str
    args: Mapping[str, str | Entries] | str = "."


@dataclass(frozen=True, slots=True)
class Call:
    """The text of a helper with arguments, as a scalar. `is_block`: it is multi-line and fits a literal block."""

    name: str
    args: Mapping[str, str | Entries] | str = "."
    is_block: bool = False


@dataclass(frozen=True, slots=True)
class File:
    """A file of the chart, byte for byte: as text, or in base64 if it is not text. `root` is the path of the root."""

    path: str
    root: str = "."


@dataclass(slots=True, init=False)
class Merged:
    """Maps or lists, concatenated in the same place. No key may occur twice.

    `is_sure`: the surrounding condition guarantees that something remains.
    """

    parts: tuple[Tree, ...]
    is_sure: bool

    def __init__(self, *parts: Tree, is_sure: bool = False) -> None:
        self.parts = parts
        self.is_sure = is_sure


@dataclass(frozen=True, slots=True, kw_only=True)
class Helper:
    """A named template: a tree for both readers, or Go text beside the equivalent Python function.

    In `go`, ``CHART.`` is a placeholder for the prefix of the helpers. `py` gets the helper's dot. `reads` are the
    paths of the values that it prints, relative to that dot, and constants in double quotes that change with its text.
    `is_plain`: its text never looks like a YAML number or boolean, so it needs no quotes. `is_inline`: `go` is an
    expression, which templates print in place. `is_range`: its text begins with a line break. `is_constant`: its dot is
    the root, and Helm evaluates it once per release.
    """

    name: str
    tree: Tree = None
    go: str = ""
    py: Callable[[Any], Any] | None = None
    comment: str = ""
    reads: tuple[str, ...] = ()
    is_plain: bool = False
    is_inline: bool = False
    is_range: bool = False
    is_constant: bool = False


def function_of(helper: Helper) -> Callable[[Any], Any]:
    if helper.py is None:
        raise TypeError(f"the helper {helper.name} is a tree")
    return helper.py


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The chart of trees: its name, its helpers by name and its files."""

    chart: str
    helpers: Mapping[str, Helper]
    files: Mapping[str, bytes] = field(default_factory=dict)


def text_of(content: bytes) -> str | None:
    """Return the text of a file; None if it is not UTF-8 or begins with a byte order mark."""
    try:
        return None if content.startswith(BOM_UTF8) else content.decode()
    except UnicodeDecodeError:
        return None


@lru_cache(maxsize=4096)
def steps_of(path: str) -> tuple[str, tuple[str, ...]]:
    """Return the start of a path (``.`` or a variable) and the names after it."""
    head, *names = path.split(".") if path != "." else [""]
    return head or ".", tuple(names)


def children(node: Tree) -> Iterable[Tree]:
    """Return the trees inside a node, without those of the helpers that it includes."""
    match node:
        case dict():
            return node.values()
        case list():
            return node
        case Merged():
            return node.parts
        case When() | Let():
            return (node.tree,)
        case _:
            return (node.item,) if isinstance(node, Join) else ()


def names_in(node: Value | Block | Join | Sum | Text) -> list[str]:
    """Return the paths and helpers that a node prints."""
    match node:
        case Value():
            return [node.path, *([node.fallback] if node.fallback else [])]
        case Block():
            return [node.path]
        case Join():
            return [node.count]
        case Sum():
            return [part for term in node.terms for part in term if isinstance(part, str)]
        case Text():
            return [name for _, name in node.parts if name]


def leaves_of(condition: Condition) -> Iterator[str | NonZero | Equals]:
    """Yield the conditions in a condition that contain no others."""
    match condition:
        case Not():
            yield from leaves_of(condition.condition)
        case All() | Either():
            for part in condition.conditions:
                yield from leaves_of(part)
        case _:
            yield condition


def may_be_empty(tree: Tree) -> bool:
    """Return True if some values leave nothing of `tree`."""
    match tree:
        case dict():
            return bool(tree) and all(may_be_empty(item) for item in tree.values())
        case list():
            return bool(tree) and all(may_be_empty(item) for item in tree)
        case Merged():
            return not tree.is_sure and all(may_be_empty(part) for part in tree.parts)
        case Let():
            return may_be_empty(tree.tree)
        case Block():
            return not tree.is_sure
        case _:
            return isinstance(tree, When)


_PLAIN = re.compile(
    r"(?!.*(: |:$| #|\s$))(?:[A-Za-z_./$(]|--?[A-Za-z])[^\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff]*"
    r"|[0-9]+(?:m|[kMGTP]|[KMGTP]i)"
)
# YAML 1.1 reads these as numbers, booleans or null.
_SPECIAL = re.compile(
    r"y|n|yes|no|on|off|true|false|null|~|\.inf|\.nan|[-+.]?[0-9][-+.:_0-9a-fx]*|[-+.]?[0-9.]+e[-+]?[0-9]+",
    re.IGNORECASE,
)
_FLOW_SYNTAX = re.compile(r"[,\[\]{}]")
# A literal block keeps one final line break, and allows no control characters or leading blanks.
_NOT_IN_BLOCK = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_BLOCK = re.compile(r"\S(.*[^\n])?\n", re.DOTALL)
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


@lru_cache(maxsize=4096)
def quoted(text: str) -> str:
    """Return `text` in double quotes that YAML and Go read alike."""
    return '"' + "".join(char if char.isprintable() and char not in '"\\' else _escape(char) for char in text) + '"'


def _escape(char: str) -> str:
    code = ord(char)
    return _SHORT_ESCAPES.get(char) or (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


@lru_cache(maxsize=4096, typed=True)
def constant(value: str | int | float | bool, *, in_flow: bool = False) -> str:
    """Return a constant in YAML, quoted only if necessary. Template syntax in it stays data."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if "{{" in value or "}}" in value:
        return "{{ " + quoted(value) + " | quote }}"
    is_plain = _PLAIN.fullmatch(value) and not _SPECIAL.fullmatch(value)
    return value if is_plain and not (in_flow and _FLOW_SYNTAX.search(value)) else quoted(value)


def fits_block(text: str) -> bool:
    """Return True if a literal block scalar preserves `text`."""
    return not _NOT_IN_BLOCK.search(text) and _BLOCK.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def go_path(path: str) -> str:
    """Return `path` in Go syntax, with `index` for names that are not identifiers."""
    if path == "." or path.startswith('"'):
        return path
    expression, *names = path.split(".")
    for name in names:
        is_identifier = name.isascii() and name.isidentifier()
        expression = f"{expression}.{name}" if is_identifier else f'(index {expression or "."} "{name}")'
    return expression
