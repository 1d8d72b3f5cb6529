"""Random DIJobs of every dialect are imported without loss, judged by their operator's code, or the report names it.

The cases start from jobs with recorded answers of the operators and add fields from the whole definition of a pod,
including those that an experiment cannot express.
"""

from __future__ import annotations

import copy
import os
import random
import re
from typing import Any

import pytest

from symphony_charts.importers.report import Report
from tests.importers.dijob_operators import MAKERS, Object, recorded
from tests.importers.test_dijob_oracle import answer, import_job, of_chart, of_export, unlike

CASES = int(os.environ.get("SYMPH_SOAK", "24"))
SEED = int(os.environ.get("SYMPH_SEED", "18"))

# Fields that the operator uses for the job and puts in no pod.
KEPT = {"backoffLimit", "cleanPodPolicy", "priority", "priorityClassName", "group", "maxReplicas", "engineFields"}
POD: list[tuple[str, Any]] = [
    ("hostAliases", [{"ip": "10.1.1.1", "hostnames": ["nas"]}]),
    ("dnsPolicy", "Default"),
    ("dnsConfig", {"nameservers": ["10.0.0.2"]}),
    ("schedulerName", "own"),
    ("runtimeClassName", "kata"),
    ("hostNetwork", True),
    ("hostIPC", True),
    ("shareProcessNamespace", True),
    ("serviceAccountName", "runner"),
    ("automountServiceAccountToken", True),
    ("priorityClassName", "high"),
    ("nodeSelector", {"disk": "ssd"}),
    ("tolerations", [{"key": "gpu", "operator": "Exists"}]),
    ("terminationGracePeriodSeconds", 5),
    ("activeDeadlineSeconds", 60),
    ("enableServiceLinks", True),
    ("securityContext", {"runAsUser": 1000, "fsGroup": 5}),
    ("overhead", {"cpu": "1"}),
]
CONTAINER: list[tuple[str, Any]] = [
    ("stdin", True),
    ("tty", True),
    ("workingDir", "/w"),
    ("imagePullPolicy", "Always"),
    ("terminationMessagePath", "/m"),
    ("lifecycle", {"preStop": {"exec": {"command": ["sync"]}}}),
    ("livenessProbe", {"exec": {"command": ["true"]}, "periodSeconds": 7}),
    ("readinessProbe", {"tcpSocket": {"port": 8000}}),
    ("securityContext", {"privileged": True}),
    ("securityContext", {"capabilities": {"add": ["SYS_PTRACE"]}}),
    ("env", [{"name": "MORE", "value": "$(HOME)/x"}, {"name": "MORE", "value": "last"}]),
    ("env", [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]),
    ("env", [{"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}}]),
    ("envFrom", [{"secretRef": {"name": "s3"}, "prefix": "S3_"}]),
    ("resources", {"limits": {"cpu": "2", "example.com/fpga": "1"}}),
    ("resources", {"requests": {"ephemeral-storage": "1Gi"}}),
    ("command", ["/bin/bash", "-c", "# a remark\n\nset -o pipefail\npython train.py | tee log\n"]),
    ("volumeDevices", [{"name": "raw", "devicePath": "/dev/x"}]),
]


def pods_of(item: Any) -> list[Object]:
    """Return the specs of all pod templates below `item`."""
    if isinstance(item, list):
        return [pod for one in item for pod in pods_of(one)]
    if not isinstance(item, dict):
        return []
    own = [item["template"]["spec"]] if "spec" in (item.get("template") or {}) else []
    return [*own, *(pod for key, value in item.items() if key != "template" for pod in pods_of(value))]


def drawn(number: int) -> tuple[str, Object]:
    """Return an operator and a job for it."""
    chance = random.Random(f"{SEED}-{number}")
    version = chance.choice(list(MAKERS))
    job = copy.deepcopy(chance.choice(recorded(version))[0])
    for pod in pods_of(job["spec"]):
        for key, value in chance.sample(POD, chance.randint(0, 2)):
            pod[key] = value
        for container in pod["containers"]:
            for key, value in chance.sample(CONTAINER, chance.randint(0, 2)):
                container[key] = value
    return version, job


def names(path: str) -> set[str]:
    return {word for word in re.split(r"[^A-Za-z]+", path) if len(word) > 2}


def is_said(path: str, report: Report) -> bool:
    """Return True if a note names the field of a difference."""
    said = set().union(*(names(f"{note.path} {note.what}") for note in report.notes))
    field = re.sub(r"^[^.]*", "", path).replace(".mounts.", ".volumeMounts.").replace(".argv", ".command")
    return bool(names(field) - {"containers", "initContainers"} & said & names(field))


@pytest.mark.parametrize("number", range(CASES))
def test_it_comes_over_whole_or_the_report_names_what_did_not(number: int) -> None:
    version, job = drawn(number)
    imported = import_job(job)
    report = imported.report
    exported = of_export(imported)
    for made, is_chart in ((of_chart(imported), True), (exported, False)):
        found = list(unlike(MAKERS[version](job), answer(version, made, job), imported, job, is_chart=is_chart))
        assert [one for one in found if not is_said(one[0], report)] == []
    kept = KEPT & job["spec"].keys()
    assert {key: exported["spec"].get(key) for key in kept} == {key: job["spec"][key] for key in kept}
