"""The model says what Argo CD does with a difference of our charts' objects.

It is no Argo CD. What it holds: automated sync with pruning and without self-healing, one wave, objects that are
applied where they differ and pruned where they are gone. Sources: argoproj/argo-cd, gitops-engine/pkg/sync;
kubernetes/kubernetes, pkg/apis/batch/validation, pkg/apis/apps/validation, pkg/apis/core/validation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from symphony_charts.gitops.diff.fields import Difference
from symphony_charts.kinds.registry import kind_called

__all__ = ["Effect", "Outcome", "effect_of", "effect_of_move", "outcome_of"]

Effect: TypeAlias = Literal["nothing", "created", "pruned", "new run", "restarted", "updated", "fails"]
Outcome: TypeAlias = Literal["nothing", "in place", "new run", "fails"]


def effect_of(difference: Difference) -> tuple[Effect, str]:
    """Return what Argo CD does with one object, and why."""
    kind = kind_called(difference.kind)
    if difference.change == "unchanged":
        return "nothing", ""
    if difference.change == "added":
        return "created", ""
    if difference.change == "removed":
        return "pruned", _ends(difference)
    if difference.is_renamed:
        if kind and kind.is_finite:
            return "new run", _reason(difference)
        return "created", "under a new name; the old one is pruned"
    frozen = _frozen_fields(difference)
    if frozen:
        return (
            "fails",
            f"{frozen[0]} of a live {difference.kind} is immutable: give it another name, or remove it first",
        )
    if kind and not kind.is_finite and difference.has_other_pods:
        return "restarted", "its pods are replaced, one after the other"
    if kind and kind.on_change and difference.fields:
        return "updated", f"in place: {kind.on_change}"
    return "updated", "in place" if difference.fields else "follows the run"


def effect_of_move(difference: Difference, *, ends: bool) -> tuple[Effect, str]:
    """Return what Argo CD does with one object if its application moves to another destination.

    With `ends` that is in the same cluster, where it prunes what the project still allows; elsewhere nothing `ends`.
    Source: argoproj/argo-cd, controller/state.go (GetManagedLiveObjs asks the cluster of the destination alone).
    """
    if difference.change == "removed":
        return ("pruned", _ends(difference)) if ends else ("nothing", "")
    if difference.change == "added":
        return "created", ""
    kind = kind_called(difference.kind)
    return ("new run" if kind and kind.is_finite else "created"), "in another place"


def outcome_of(differences: Sequence[Difference]) -> Outcome:
    """Return the worst that happens to any object."""
    effects = {effect_of(difference)[0] for difference in differences}
    if "fails" in effects:
        return "fails"
    if "new run" in effects:
        return "new run"
    return "nothing" if effects <= {"nothing"} else "in place"


def _reason(difference: Difference) -> str:
    paths = [field.path for field in difference.fields]
    if not paths:
        return "another part of the run changed"
    if any(path.startswith("spec.template") for path in paths):
        return "pod template changed"
    return f"{paths[0]} changed"


def _ends(difference: Difference) -> str:
    return "what it runs is ended" if kind_called(difference.kind) else ""


def _frozen_fields(difference: Difference) -> list[str]:
    if difference.kind == "ConfigMap":
        # Those of our charts are immutable and named after their content.
        return [field.path for field in difference.fields if field.path.startswith(("data", "binaryData"))]
    kind = kind_called(difference.kind)
    if kind is None or kind.mutable is None:
        return []
    specs = [field.path for field in difference.fields if field.path.startswith("spec.")]
    return [path for path in specs if not _is_under(path, kind.mutable)]


def _is_under(path: str, roots: Sequence[str]) -> bool:
    """Return True if a path is one of `roots`, where ``*`` is any name, or below it."""
    patterns = (re.escape(root).replace(r"\*", r"[^.\[]+") for root in roots)
    return any(re.match(rf"{pattern}(?:[.\[]|\Z)", path) for pattern in patterns)
