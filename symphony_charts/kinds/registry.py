"""Find a kind by its word in a spec or by its objects, and the objects that controllers create."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from symphony_charts.formats.data import sub
from symphony_charts.kinds.appwrapper import AppWrapper
from symphony_charts.kinds.base import Kind
from symphony_charts.kinds.job import Deployments, Jobs, StatefulSets
from symphony_charts.kinds.jobset import JobSet, VolcanoJob
from symphony_charts.system.installation import entry_points

_NAMED: tuple[Kind, ...] = (Jobs(), JobSet(), AppWrapper(), VolcanoJob())

ADDED: Mapping[str, Kind] = {name: cast("Kind", entry.load()) for name, entry in entry_points("symph.kinds").items()}
"""The kinds of integrations and other packages, by the names of their entry points."""

KINDS: Mapping[str, Kind] = {**{kind.name: kind for kind in _NAMED}, **ADDED}
"""The kinds by their words in a spec."""

RENDERED: tuple[Kind, ...] = (*_NAMED, StatefulSets(), *(kind for kind in ADDED.values() if kind.builder))
"""The kinds whose objects our charts have."""

ALL = (*_NAMED, StatefulSets(), Deployments(), *ADDED.values())


def kind_of(item: Mapping[str, object]) -> str:
    """Return the kind of an object; ``VolcanoJob`` for a Job of Volcano."""
    is_volcano = str(item.get("apiVersion")).startswith("batch.volcano.sh/")
    return f"{'Volcano' if is_volcano else ''}{item.get('kind')}"


_BY_API = {(api.partition("/")[0], word): kind for kind in ALL for api, word in (*kind.gvks, *kind.further)}
# If several projects have objects of one kind, Kubernetes' own counts.
_BY_WORD = {word: kind for kind in reversed(ALL) for _, word in (*kind.gvks, *kind.further)}


def kind_for(item: Mapping[str, object]) -> Kind | None:
    """Return the kind of an object, by its API group or else its `kind` alone; None if it is unknown."""
    word = str(item.get("kind"))
    if word == "Job" and not item.get("apiVersion") and "tasks" in sub(item, "spec"):
        return KINDS["volcano"]
    return _BY_API.get((str(item.get("apiVersion")).partition("/")[0], word)) or _BY_WORD.get(word)


def compat_kind(word: str | None) -> Kind | None:
    """Return the kind with the word of `compat` in a spec; None without one."""
    return next((kind for kind in KINDS.values() if word and kind.compat == word), None)


def kind_called(word: str) -> Kind | None:
    """Return the kind whose runs are objects for which `kind_of` returns `word`; None for others."""
    return _BY_OWN_WORD.get(word)


def workload_kind(item: Mapping[str, object]) -> Kind | None:
    """Return the kind of an object in our charts that runs pods; None for others, as templates of later runs."""
    kind = kind_for(item)
    return kind if kind in RENDERED and item.get("kind") in {word for _, word in kind.gvks} else None


_BY_OWN_WORD = {kind_of({"apiVersion": api, "kind": word}): kind for kind in ALL for api, word in kind.gvks}


def opened(objects: Iterable[dict[str, object]]) -> list[dict[str, object]]:
    """Return `objects`, each followed by those that its controller creates from it, with the names that it gives."""
    beside = list(objects)

    def with_children(item: dict[str, object]) -> Iterator[dict[str, object]]:
        yield item
        kind = kind_for(item)
        for child in kind.children(item, beside) if kind else ():
            yield from with_children(child)

    return [one for item in beside for one in with_children(item)]
