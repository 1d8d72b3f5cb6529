"""The operators' own code is the judge: it makes the same pods of a DIJob, of our chart and of our export.

The chart's intended additions are a closed list; losses must be in the report of the import.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from symphony_charts.importers.input_file import read
from symphony_charts.importers.report import Imported
from symphony_charts.integrations.dijob.export import dijob_objects
from symphony_charts.integrations.dijob.importer import import_dijob
from tests.chart.harness import chart_of, native_objects
from tests.importers.dijob_operators import MAKERS, Object, plain, recorded

# Kubernetes' defaults for missing fields of a probe.
_PROBE = {"periodSeconds": 10, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3}
# Charts restrict every pod by these; the command's report mentions it.
_HARDER = ("enableServiceLinks", "automountServiceAccountToken", "securityContext")
# Fields that an experiment cannot express; the report of the import names them.
_UNSAID = ("mountPropagation", "optional", "mode", "readOnly")


@pytest.mark.parametrize("version", MAKERS)
def test_the_written_down_operator_answers_as_the_operator_did(version: str) -> None:
    for job, made in recorded(version):
        assert plain(MAKERS[version](job)) == plain(made)


@pytest.mark.parametrize("is_chart", [True, False], ids=["chart", "export"])
@pytest.mark.parametrize("version", MAKERS)
def test_the_operator_makes_of_ours_what_it_makes_of_the_job(version: str, is_chart: bool) -> None:
    for job, made in recorded(version):
        imported = import_job(job)
        again = of_chart(imported) if is_chart else of_export(imported)
        assert list(unlike(made, answer(version, again, job), imported, job, is_chart=is_chart)) == []


def of_chart(imported: Imported) -> Object:
    return job_in(native_objects(chart_of(imported.experiment)).values())


def of_export(imported: Imported) -> Object:
    return job_in(dijob_objects(imported.experiment).objects)


def import_job(job: Object) -> Imported:
    return import_dijob(read(json.dumps(job).encode(), "job.json"))


def job_in(objects: Any) -> Object:
    (job,) = (item for item in objects if item["kind"] == "DIJob")
    return cast("Object", job)


def answer(version: str, job: Object, original: Object) -> tuple[Object, Object]:
    """Return the operator's result for `job`, under the original's name and namespace, and the job."""
    namespace = original["metadata"].get("namespace", "default")
    text = json.dumps(MAKERS[version]({**job, "metadata": {**job["metadata"], "namespace": namespace}}))
    return json.loads(text.replace(job["metadata"]["name"], original["metadata"]["name"])), job


def pods_in(made: Object, job: Object) -> Iterator[Object]:
    """Yield the pods; those of operator v0 as its webhook and its controller complete them."""
    if "pods" in made:
        yield from made["pods"]
        return
    for role in ("coordinator", "collector", "learner"):
        if role in made:
            pod = made[role]["pod"]
            if role == "coordinator":
                priority = job["spec"].get("priorityClassName") or pod["spec"].get("priorityClassName")
                pod = {**pod, "spec": {"restartPolicy": "Never", **pod["spec"], "priorityClassName": priority}}
            yield pod


def unlike(
    made: Object, answered: tuple[Object, Object], imported: Imported, job: Object, *, is_chart: bool
) -> Iterator[tuple[str, object, object]]:
    """Yield differences of the operator's results, except intended additions and fields that the report names."""
    title, (ours, again) = job["metadata"]["name"], answered
    wanted, found = list(pods_in(made, job)), list(pods_in(ours, again))
    if len(wanted) != len(found):
        yield f"{title}: pods", len(wanted), len(found)
    if "service" in made and plain(made["service"]) != plain(ours["service"]):
        yield f"{title}: service", made["service"], ours["service"]
    lost = " ".join(f"{note.path} {note.what}" for note in imported.report.lost)
    for want, have in zip(wanted, found, strict=False):
        if plain(want["metadata"].get("annotations")) != plain(have["metadata"].get("annotations")):
            yield f"{title}: annotations", want["metadata"], have["metadata"]
        for path, value, ours_value in differences(seen(want["spec"]), seen(have["spec"]), want["metadata"]["name"]):
            key = path.rpartition(".")[2].partition("[")[0]
            if not (is_added(path, value, ours_value, is_chart) or (key in _UNSAID and key in lost)):
                yield path, value, ours_value


def is_added(path: str, value: object, ours: object, is_chart: bool) -> bool:
    """Return True if `ours` is the original plus an intended addition."""
    if ".initContainers" in path and path.endswith(".name"):  # steps of an experiment need unique names
        return isinstance(ours, str) and ours.startswith(f"{value}-")
    if path.endswith(".imagePullSecrets"):  # all pods of an experiment have all of them
        return value is None or all(item in cast("list[object]", ours) for item in cast("list[object]", value))
    if not is_chart:
        return False
    if any(f".{field}" in path for field in _HARDER):
        return value is None or (isinstance(value, dict) and isinstance(ours, dict) and value.items() <= ours.items())
    if path.endswith(".dnsPolicy"):  # pods on the host network also find the services of the cluster
        return value is None and ours == "ClusterFirstWithHostNet"
    return ".resources" in path and value is None


def seen(spec: Object) -> Object:
    """Return the pod as its processes see it: mounts by path, and Kubernetes' minimal defaults."""
    pod = plain({**spec, "volumes": []})
    volumes = {volume["name"]: plain({**volume, "name": ""}) for volume in spec.get("volumes") or []}
    for key in ("initContainers", "containers"):
        if key in pod:
            pod[key] = [_seen(container, volumes) for container in pod[key]]
    return {"terminationGracePeriodSeconds": 30, "restartPolicy": "Always", **pod}


def _seen(container: Object, volumes: Mapping[str, Object]) -> Object:
    result = {key: value for key, value in container.items() if key not in ("command", "args", "volumeMounts", "env")}
    argv = [*container.get("command", ["<of the image>"]), *container.get("args", [])]
    result["argv"] = [_script(word) for word in argv]
    result["env"] = {name: value for name, value in container.get("env", {}).items() if not _is_ours(name)}
    # A ConfigMap of the chart holds the addresses of services.
    sources = [item for item in container.get("envFrom", []) if "-environment-" not in str(item)]
    result["envFrom"] = sources
    result["mounts"] = {item["mountPath"]: _mount(item, volumes) for item in container.get("volumeMounts", [])}
    # Ports are informational, except the one that operator v0 looks for.
    ports = container.get("ports", []) if container["name"] == "di-container" else []
    result["ports"] = [port["containerPort"] for port in ports if port.get("name") == "di-port"]
    resources = container.get("resources", {})
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    result["resources"] = plain({"limits": limits, "requests": {**limits, **requests}})
    for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
        if probe in result:
            http = {"httpGet": {"scheme": "HTTP", **result[probe]["httpGet"]}} if "httpGet" in result[probe] else {}
            result[probe] = {**_PROBE, **result[probe], **http}
    return result


def _mount(mount: Object, volumes: Mapping[str, Object]) -> Object:
    """Return the mounted volume; a read-only volume equals a read-only mount."""
    volume = volumes[mount["name"]]
    for kind in ("nfs", "persistentVolumeClaim"):
        if volume.get(kind, {}).get("readOnly"):
            kept = {key: value for key, value in volume[kind].items() if key != "readOnly"}
            return {**mount, "readOnly": True, "name": {**volume, kind: kept}}
    return {**mount, "name": volume}


def _is_ours(name: str) -> bool:
    return name == "SYMPHONY_ROLE" or name.startswith("SYMPH_")


def _script(word: str) -> str:
    return "\n".join(line for line in word.split("\n") if line.strip() and not line.lstrip().startswith("#"))


def differences(value: object, ours: object, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(value, dict) and isinstance(ours, dict):
        for key in sorted({*value, *ours}):
            yield from differences(value.get(key), ours.get(key), f"{path}.{key}")
    elif isinstance(value, list) and isinstance(ours, list) and len(value) == len(ours):
        for index, pair in enumerate(zip(value, ours, strict=True)):
            yield from differences(*pair, f"{path}[{index}]")
    elif value != ours and (value or ours):
        yield path, value, ours
