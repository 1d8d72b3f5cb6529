"""Fields of an object that Kubernetes makes immutable, and changes that begin a new run of an experiment."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

from symphony_charts.chart.build.chart import BuiltChart
from symphony_charts.chart.release import merge
from symphony_charts.errors import SpecError
from tests.chart.draws import Overrides, overrides
from tests.chart.judge import Instance, Objects

# Source: the validation of updates in Kubernetes (pkg/apis/batch, pkg/apis/apps), and the webhooks of
# kubernetes-sigs/jobset, project-codeflare/appwrapper and volcano-sh/volcano.
_JOB = ("template", "completions", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "maxFailedIndexes")
_FROZEN = {
    "Job": _JOB,
    "JobSet": ("replicatedJobs", "successPolicy", "network"),
    "AppWrapper": ("components", "resources"),
    "VolcanoJob": ("schedulerName", "queue", "maxRetry", "plugins", "tasks"),
    "DIJob": (),
    "Workflow": ("entrypoint", "serviceAccountName", "arguments", "workflowMetadata", "templates"),
    "StatefulSet": ("serviceName", "selector", "podManagementPolicy"),
    "Service": ("clusterIP",),
}
_OF_RUNS = ("Job", "JobSet", "AppWrapper", "VolcanoJob", "DIJob", "Workflow")
# Another value may hide these: a group's own class, a container's own image or missing command, another's retries.
_HIDDEN = ("priorityClassName", "image", "global", "tests", "retries")


def frozen(objects: Objects) -> dict[tuple[str, str], str]:
    """Return the immutable fields of each object, as text."""
    found = {}
    for item in objects:
        kind, name = _kind(item), item["metadata"]["name"]
        if kind in _FROZEN:
            fields = _frozen_fields(item)
        elif item.get("immutable"):
            fields = {field: item.get(field) for field in ("data", "binaryData")}
        else:
            continue
        found[kind, name] = json.dumps(fields, sort_keys=True)
    return found


def _kind(item: dict[str, Any]) -> str:
    return "VolcanoJob" if item["apiVersion"].startswith("batch.volcano.sh") else str(item["kind"])


def _frozen_fields(item: dict[str, Any]) -> dict[str, Any]:
    fields = {field: item["spec"].get(field) for field in _FROZEN[_kind(item)]}
    if item["kind"] == "DIJob":
        return _fixed_in_run(item["spec"])  # type: ignore[no-any-return]  # parsed JSON
    if "tasks" in fields:
        fields["tasks"] = [{**task, "minAvailable": 0} for task in fields["tasks"]]
    return fields


def _fixed_in_run(value: Any) -> Any:
    """Return a part of a DIJob without retries, numbers of replicas, and the variables that follow from these."""
    if isinstance(value, list):
        return [_fixed_in_run(item) for item in value if not (isinstance(item, dict) and _follows(item))]
    if not isinstance(value, dict):
        return value
    return {key: _fixed_in_run(item) for key, item in value.items() if key not in ("replicas", "backoffLimit")}


def _follows(entry: Mapping[str, Any]) -> bool:
    return str(entry.get("name")).startswith("SYMPH_") and str(entry["name"]).endswith(("_HOSTS", "_REPLICAS"))


def run_of(objects: Objects) -> str | None:
    """Return the hash of the run; None if no finite group has replicas."""
    runs = {item["metadata"]["labels"].get("symph.dev/run") for item in objects if _kind(item) in _OF_RUNS}
    assert len(runs) < 2, runs
    return next(iter(runs), None)


def _content(objects: Objects, run: str) -> list[str]:
    """Return the content of a run, without its hash."""
    parts = [
        [item["kind"], {**_frozen_fields(item), "template": item["spec"].get("template")}]
        for item in objects
        if _kind(item) in (*_OF_RUNS, "StatefulSet")
    ]
    return sorted(json.dumps(part, sort_keys=True).replace(run, "RUN") for part in parts)


def upgrade_faults(rng: random.Random, charts: list[BuiltChart], count: int) -> tuple[list[str], Counter[str]]:
    """Draw `count` upgrades by the evaluator alone; return those that an API server would refuse, and idle new runs."""
    faults: list[str] = []
    counts: Counter[str] = Counter()
    for _ in range(count):
        chart = rng.choice(charts)
        before, more = overrides(rng, chart.values), overrides(rng, chart.values)
        changed = dict([rng.choice(list(more.values.items()))])
        after = Overrides(values=merge(before.values, changed), sets=before.sets)
        try:
            old, new = (_objects(chart, each) for each in (before, after))
        except SpecError:
            counts["refused"] += 1
            continue
        counts["pairs"] += 1
        was, now = frozen(old), frozen(new)
        counts["objects of one name"] += len(was.keys() & now.keys())
        faults += [f"{key}: {before} -> {changed}" for key in was.keys() & now.keys() if was[key] != now[key]]
        runs = run_of(old), run_of(new)
        if None in runs or runs[0] == runs[1]:
            continue
        counts["new runs"] += 1
        is_idle = _content(old, str(runs[0])) == _content(new, str(runs[1]))
        if is_idle and not _may_be_idle(chart, after, changed):
            faults.append(f"a new run without a change: {before} -> {changed}")
    return faults, counts


def _objects(chart: BuiltChart, over: Overrides) -> Objects:
    return Instance(alias=chart.frame.chart, chart=chart, overrides=over).objects("r")


def _may_be_idle(chart: BuiltChart, over: Overrides, changed: Mapping[str, Any]) -> bool:
    values = Instance(alias="", chart=chart, overrides=over).values()
    is_left_out = any(int(group["replicas"]) == 0 for group in values["groups"].values())
    return is_left_out or "runKey" in changed or any(f'"{key}"' in json.dumps(changed) for key in _HIDDEN)
