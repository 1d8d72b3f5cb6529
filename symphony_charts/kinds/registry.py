"""The registry finds a kind by its word in a spec, and by its objects.

A kind is a module or folder here, a template of the chart, and a row of the chart's ``files/kinds.yaml``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from symphony_charts.formats.data import sub
from symphony_charts.kinds.appwrapper import AppWrapper
from symphony_charts.kinds.argo.kind import ArgoWorkflow
from symphony_charts.kinds.base import Kind
from symphony_charts.kinds.dijob.kind import DIJob
from symphony_charts.kinds.job import Jobs
from symphony_charts.kinds.jobset import JobSet
from symphony_charts.kinds.service import Deployments, StatefulSets
from symphony_charts.kinds.volcano import VolcanoJob
from symphony_charts.system.entry_points import entry_points

__all__ = ["ADDED", "ALL", "KINDS", "RENDERED", "kind_called", "kind_for", "kind_of", "workload_kind"]

_NAMED: tuple[Kind, ...] = (Jobs(), JobSet(), AppWrapper(), VolcanoJob(), ArgoWorkflow(), DIJob())

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _NAMED}
"""Those that a spec may ask for, by name."""

RENDERED: tuple[Kind, ...] = (*_NAMED, StatefulSets())
"""Those whose objects our charts have."""

ADDED: tuple[Kind, ...] = tuple(cast("Kind", entry.load()) for entry in entry_points("symph.kinds").values())
"""Those that other packages add: what others wrote may have objects of them."""

ALL = (*RENDERED, Deployments(), *ADDED)


def kind_of(item: Mapping[str, object]) -> str:
    """The word for an object's kind, the one of Volcano's Jobs being ``VolcanoJob``."""
    is_volcano = str(item.get("apiVersion")).startswith("batch.volcano.sh/")
    return f"{'Volcano' if is_volcano else ''}{item.get('kind')}"


_BY_API = {(api.partition("/")[0], word): kind for kind in ALL for api, word in (*kind.gvks, *kind.further)}
# Of all words that more than one project uses for its objects the one of Kubernetes itself is meant.
_BY_WORD = {word: kind for kind in reversed(ALL) for _, word in (*kind.gvks, *kind.further)}


def kind_for(item: Mapping[str, object]) -> Kind | None:
    """The kind behind an object, by its API and else by its word alone; None for what runs no pods or is another's."""
    word = str(item.get("kind"))
    if word == "Job" and not item.get("apiVersion") and "tasks" in sub(item, "spec"):
        return KINDS["volcano"]
    return _BY_API.get((str(item.get("apiVersion")).partition("/")[0], word)) or _BY_WORD.get(word)


def kind_called(word: str) -> Kind | None:
    """The kind whose runs are objects that `kind_of` calls so; None for any other object."""
    return _BY_OWN_WORD.get(word)


def workload_kind(item: Mapping[str, object]) -> Kind | None:
    """The kind of an object of our charts that runs pods; None for templates of later ones, and for all others."""
    kind = kind_for(item)
    return kind if kind in RENDERED and item.get("kind") in {word for _, word in kind.gvks} else None


_BY_OWN_WORD = {kind_of({"apiVersion": api, "kind": word}): kind for kind in ALL for api, word in kind.gvks}
