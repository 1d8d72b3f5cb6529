"""`held_by` says who holds an experiment (helm, Argo CD, Flux), and what is not ours to touch is refused. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from symphony_charts.errors import Conflict
from symphony_charts.kinds.base import Object

__all__ = ["held_by", "refuse_managed", "refuse_protected"]


# Where no experiment belongs, and nothing is ever deleted.
_PROTECTED = frozenset({"kube-system", "kube-public", "kube-node-lease", "argocd", "flux-system"})
_MANAGERS = ("Argo CD", "Flux")
_TRACKED = "argocd.argoproj.io/tracking-id"
_FLUX = "helm.toolkit.fluxcd.io/name"
_HELM = "meta.helm.sh/release-name"
_BY_HAND = "symph.dev/held-by"


def held_by(objects: Sequence[Object], releases: Sequence[Object]) -> tuple[str, ...]:
    """Return the managers: ``Argo CD application X``, ``Flux release X``, ``Helm release X, revision N``."""
    holders: dict[str, None] = {}
    for item in objects:
        labels, notes = item["metadata"].get("labels") or {}, item["metadata"].get("annotations") or {}
        if _TRACKED in notes:
            holders[f"Argo CD application {str(notes[_TRACKED]).partition(':')[0]}"] = None
        if _FLUX in labels:
            holders[f"Flux release {labels[_FLUX]}"] = None
        if notes.get(_BY_HAND) == "symph":
            holders["symph"] = None
    revisions = [int(item["metadata"]["labels"].get("version", 0)) for item in releases]
    if revisions:
        holders[f"Helm release {releases[0]['metadata']['labels']['name']}, revision {max(revisions)}"] = None
    elif not holders:
        # Whoever may not read helm's records sees its mark on the objects.
        marks = (item["metadata"].get("annotations") or {} for item in objects)
        holders |= {f"Helm release {notes[_HELM]}": None for notes in marks if _HELM in notes}
    return tuple(holders)


def refuse_protected(namespace: str) -> None:
    """Raise Conflict for a namespace of the cluster itself."""
    if namespace in _PROTECTED:
        raise Conflict(f"no experiment is started or deleted in {namespace}", next="choose another namespace with -n")


def refuse_managed(name: str, holders: tuple[str, ...], next_step: str) -> None:
    """Raise Conflict for what Git manages: it would come back at once, or be fought over."""
    managed = [holder for holder in holders if holder.startswith(_MANAGERS)]
    if managed:
        raise Conflict(f'"{name}" is held by the {managed[0]}, which follows Git', next=next_step)
