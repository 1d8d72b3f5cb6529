"""Whether a step of a release would succeed: helm rehearses it, and the cluster judges each object that it sends."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from symphony_charts.errors import Conflict, Problem, SpecError
from symphony_charts.kubernetes.client import KubeApi
from symphony_charts.kubernetes.releases.helm_client import HelmReleases
from symphony_charts.kubernetes.releases.helm_command import Target
from symphony_charts.kubernetes.releases.rehearsal import Refusal, Rehearsal, is_owned, rehearsed

__all__ = ["judge"]

Object = dict[str, Any]
Step = Callable[[HelmReleases], object]

_OTHERS = "choose another --name or namespace; what Argo CD runs is changed by symph publish"
_FIELDS = "undo that change, or let helm take the fields over: helm upgrade --force-conflicts"


def judge(
    api: KubeApi,
    step: Step,
    name: str,
    namespace: str,
    *,
    manifest: Callable[[], Sequence[Object]],
    is_there: bool = True,
    timeout_s: float = 300.0,
) -> Rehearsal:
    """Rehearse `step` on the release `name`; the rehearsal, where nothing was refused.

    `manifest` gives the objects of the release as it is. Where the namespace is not there yet, `default` judges in its
    place. Raises SpecError with all that the cluster would refuse, Conflict where that is all somebody else's, and
    whatever helm itself fails with. With releases kept in SQL nothing is judged: helm's records go past the cluster.
    """
    stand_in = {} if is_there else {namespace: "default"}
    rehearsal = Rehearsal(connection=api.connection, stand_in=stand_in)
    if os.environ.get("HELM_DRIVER") == "sql":
        return rehearsal
    try:
        _rehearse(rehearsal, step, namespace, timeout_s)
    except Conflict:
        # helm stops at the first object of somebody else's. Once it is shown none of them, every one is named.
        own = {_title(item) for item in manifest()}
        foreign = Rehearsal(
            connection=api.connection, stand_in=stand_in, hidden=lambda item: _is_foreign(item, own, name, namespace)
        )
        _rehearse(foreign, step, namespace, timeout_s)
        if not foreign.refusals:
            raise
        rehearsal = foreign
    if rehearsal.refusals:
        raise _failure(rehearsal.refusals, namespace)
    return rehearsal


def _rehearse(rehearsal: Rehearsal, step: Step, namespace: str, timeout_s: float) -> None:
    with rehearsed(rehearsal, namespace) as (kubeconfig, env):
        step(HelmReleases(Target(kubeconfig=kubeconfig), timeout_s=timeout_s, env=env))


def _is_foreign(item: Object, own: set[str], name: str, namespace: str) -> bool:
    meta = item.get("metadata") or {}
    if "name" not in meta or item.get("kind") in (None, "Status", "Namespace"):
        return False
    return _title(item) not in own and not is_owned(item, name, namespace)


def _failure(refusals: Sequence[Refusal], namespace: str) -> Conflict | SpecError:
    if all(one.status == 409 for one in refusals):
        said = "; ".join(f"{one.title}: {one.message}" for one in refusals)
        is_fields = any("Apply failed" in one.message for one in refusals)
        return Conflict(said, namespace, _FIELDS if is_fields else _OTHERS)
    return SpecError([_problem(one) for one in refusals], at=f"the cluster, namespace {namespace}")


def _problem(refusal: Refusal) -> Problem:
    next_step = "choose another --name or namespace" if refusal.status == 409 else "change the values that make it so"
    return Problem(what=refusal.message, path=refusal.title, next=next_step)


def _title(item: Object) -> str:
    return f"{item['kind']}/{item['metadata']['name']}"
