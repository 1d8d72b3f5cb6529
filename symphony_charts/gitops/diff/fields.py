"""Two renderings of an experiment are compared object by object and field by field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from symphony_charts.formats.data import sub
from symphony_charts.kinds.registry import kind_of

__all__ = ["Difference", "FieldChange", "Objects", "compare"]

Objects: TypeAlias = Iterable[Mapping[str, object]]
Kind: TypeAlias = Literal["added", "removed", "changed", "unchanged"]

_HASHED = re.compile(r"-[0-9a-f]{8}\Z")
_ABSENT = object()
# What only says which run an object belongs to: it changes with every run, and says nothing of its own.
_NOISE = re.compile(
    r"metadata\.name\Z|(^|\.)(labels|selector|matchLabels)\.symph\.dev/run\Z|(^|\.)labels\.helm\.sh/chart\Z"
    # A DIJob's pods are found by its name, and are told their run in so many words.
    r"|(^|\.)(selector|matchLabels)\.(diengine/job|dijob-name)\Z|\.env\.SYMPH_RUN\Z"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One field, by its dotted path; `before` or `after` is None where the field is absent."""

    path: str
    before: object = None
    after: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One object on both sides: `before` and `after` are its names, empty where it is absent.

    `has_other_pods` is also true if the pods differ only by their run, which `fields` leave out.
    """

    kind: str
    change: Kind
    before: str = ""
    after: str = ""
    fields: tuple[FieldChange, ...] = ()
    has_other_pods: bool = False

    @property
    def name(self) -> str:
        """``Kind/name`` as people know it: without the digits of a run."""
        name = self.after or self.before
        return f"{self.kind}/{_HASHED.sub('', name) if self.is_renamed else name}"

    @property
    def is_renamed(self) -> bool:
        """True if it is another object by name than before."""
        return bool(self.before and self.after and self.before != self.after)


def compare(before: Objects, after: Objects) -> tuple[Difference, ...]:
    """Return every object of either side, those of `after` in its order, then those that are gone.

    Objects are the same when kind and name are, but for the hash at the end of what is replaced instead of changed.
    """
    old, new = _keyed(before), _keyed(after)
    differences = [_difference(old.get(key), item) for key, item in new.items()]
    differences += [_difference(item, None) for key, item in old.items() if key not in new]
    return tuple(differences)


def _keyed(objects: Objects) -> dict[tuple[str, str, str], Mapping[str, object]]:
    keyed: dict[tuple[str, str, str], Mapping[str, object]] = {}
    for item in objects:
        group = str(item.get("apiVersion", "")).rpartition("/")[0]
        key = (group, str(item.get("kind")), _HASHED.sub("", _name(item)))
        # Two of one key are an accident of names; then the whole name counts.
        keyed[key if key not in keyed else (group, str(item.get("kind")), _name(item))] = item
    return keyed


def _difference(before: Mapping[str, object] | None, after: Mapping[str, object] | None) -> Difference:
    kind = kind_of(after or before or {})
    if before is None or after is None:
        name = _name(after or before or {})
        return (
            Difference(kind=kind, change="added", after=name)
            if after
            else Difference(kind=kind, change="removed", before=name)
        )
    runs = _run_of(before), _run_of(after)
    seen = _with_text(before, *runs) if all(runs) else before
    fields = tuple(change for change in _walk(seen, after, "") if not _NOISE.search(change.path))
    is_same = before == after
    return Difference(
        kind=kind,
        change="unchanged" if is_same else "changed",
        before=_name(before),
        after=_name(after),
        fields=fields,
        has_other_pods=sub(before, "spec", "template") != sub(after, "spec", "template"),
    )


def _run_of(item: Mapping[str, object]) -> str:
    return str(sub(item, "metadata", "labels").get("symph.dev/run") or "")


def _with_text(value: object, old: str, new: str) -> object:
    match value:
        case str():
            return value.replace(old, new)
        case dict():
            return {key: _with_text(item, old, new) for key, item in value.items()}
        case list():
            return [_with_text(item, old, new) for item in value]
    return value


def _name(item: Mapping[str, object]) -> str:
    metadata = item.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, Mapping) else ""


def _walk(before: object, after: object, path: str) -> Iterator[FieldChange]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys([*before, *after]):
            yield from _walk(before.get(key, _ABSENT), after.get(key, _ABSENT), f"{path}.{key}" if path else str(key))
        return
    named = _by_name(before), _by_name(after)
    if named[0] is not None and named[1] is not None:
        yield from _walk(named[0], named[1], path)
        return
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _walk(old, new, f"{path}[{index}]")
        return
    if before != after or type(before) is not type(after):
        yield FieldChange(
            path=path, before=None if before is _ABSENT else before, after=None if after is _ABSENT else after
        )


def _by_name(value: object) -> dict[str, object] | None:
    """Return a list of items with unique names as a map by name; None for any other value."""
    if not isinstance(value, list) or not value:
        return None
    names = [item.get("name") if isinstance(item, Mapping) else None for item in value]
    if any(not isinstance(name, str) for name in names) or len(set(names)) != len(names):
        return None
    return {str(name): _plain(item) for name, item in zip(names, value, strict=True)}


def _plain(item: Mapping[str, object]) -> object:
    """Return a named item without its name; a lone value stands for itself, as in ``env.LR``."""
    rest = {key: value for key, value in item.items() if key != "name"}
    return rest["value"] if list(rest) == ["value"] else rest
