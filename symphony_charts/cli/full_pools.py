"""`with_plan` puts what `symph plan` says of a pod that no node takes beside the scheduler's own words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import ExperimentStatus
from symphony_charts.backend.why import Why
from symphony_charts.errors import SymphError
from symphony_charts.kubernetes.experiments import KubeExperiments
from symphony_charts.kubernetes.status import INSTANCE
from symphony_charts.placement.fit.demand import demands_of
from symphony_charts.placement.plan import plan_demands
from symphony_charts.placement.pools.files import read_pool_files, user_catalog
from symphony_charts.placement.pools.pool import Pools
from symphony_charts.placement.pools.readers import read_pools, resolve_references
from symphony_charts.settings.project import find_settings

__all__ = ["with_plan"]

_LIVE = "the cluster's nodes"


def with_plan(watcher: Watcher, status: ExperimentStatus, why: Why) -> Why:
    """The cause with the plan's verdict and way out, on the project's pools, else on the nodes that are there."""
    if not isinstance(watcher, KubeExperiments):
        return why
    first = next(instance for instance in status.instances if instance.path == why.paths[0])
    try:
        pools = _pools(watcher, status)
        plan = plan_demands(demands_of(watcher.workloads(status.name), pools=pools), pools, experiment=status.name)
    except SymphError as error:
        return replace(why, text=f"{why.text}; no plan: {error.what}")
    group = next((group for group in plan.groups if group.name == (first.group or first.process)), None)
    if group is None:
        return why
    text = f"{why.text}; the plan on {pools.source}: {group.verdict}, {group.why}"
    return replace(why, text=text, next=group.next or why.next)


def _pools(watcher: KubeExperiments, status: ExperimentStatus) -> Pools:
    files = find_settings(Path.cwd()).pools
    if files:
        return read_pool_files(files)
    api = watcher.api
    nodes = [{**item, "kind": "Node"} for item in api.listed(api.collection("v1", "Node", None))]
    pods = [
        {**item, "kind": "Pod"}
        for item in api.listed(api.collection("v1", "Pod", None))
        # Its own pods are what is planned.
        if (item["metadata"].get("labels") or {}).get(INSTANCE) != status.name
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, *pods]})
    return resolve_references(read_pools(text, _LIVE, catalog=user_catalog()))
