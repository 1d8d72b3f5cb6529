"""Any application that TorchX accepts runs in our pods as in TorchX's own, or a loss reports the difference.

The real release builds the objects of every case; `SYMPH_SEED` sets the first seed.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torchx")

from symphony_charts.errors import SpecError
from symphony_charts.importers.report import Imported
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.environment import expand
from tests.importers.samples import import_appdef
from tests.torchx_scheduler.conftest import Torchx
from tests.torchx_scheduler.test_own_objects import answers, mcad_case

CASES = int(os.environ.get("SYMPH_TORCHX_CASES", "200"))
FIRST = int(os.environ.get("SYMPH_SEED", "1000"))
KINDS = ["jobs", "jobset", "appwrapper", "volcano"]
RANK0 = "TORCHX_RANK0_HOST"
# TorchX's variable with rank 0's host, outside rank 0 itself; ours has one name everywhere.
HOSTS = re.compile(r"TORCHX_MCAD_[A-Z0-9_]*_0_HOSTS")
ROLE = "torchx.pytorch.org/role-index"
# The variables of a program that are our own.
OURS = re.compile(r"SYMPH_.*|SYMPHONY_ROLE|TORCHX_RELEASE|TORCHX_RUN")


@dataclass(kw_only=True)
class Pod:
    """The settings of a replica, from either side; `where` is its role in the input."""

    where: str
    facts: dict[str, object]


@pytest.mark.parametrize("kind", KINDS)
def test_every_replica_is_as_with_torchx_or_the_report_says_why(kind: str, tmp_path: Path) -> None:
    seeds = range(FIRST, FIRST + CASES // len(KINDS))
    cases = [mcad_case(seed) for seed in seeds]
    if kind == "volcano":  # it has its own scheduler, and refuses a second one
        for case in cases:
            case["cfg"].pop("coscheduler_name", None)
    compared, wrong = 0, []
    for seed, case, answer in zip(seeds, cases, answers(Torchx(folder=tmp_path), cases), strict=True):
        version = {"appwrapper_version": "v1beta1"} if kind == "appwrapper" else {}
        try:
            imported = import_appdef(answer["app"], {**case["cfg"], "kind": kind, **version})
        except SpecError as refusal:
            wrong += [f"{seed}: {problem.what}" for problem in refusal.problems if "port" not in problem.what]
            continue
        objects = prepare_experiment(imported.experiment).objects
        app_id = answer["object"]["metadata"]["name"]
        theirs, ours = list(their_pods(answer["object"])), our_pods(objects, app_id)
        for pod in theirs:
            compared += 1
            held = ours(pod.where, int(str(pod.facts["replica"])))
            wrong += [
                f"{seed} {pod.where}: {fact} is {pod.facts[fact]!r} there and {held.get(fact)!r} here"
                for fact in pod.facts
                if pod.facts[fact] != held.get(fact) and not is_said(imported, pod.where, fact)
            ]
        if kind == "appwrapper":
            (wrapper,) = [item for item in objects if item["kind"] == "AppWrapper"]
            assert priority_of(wrapper) == priority_of(answer["object"]), seed
    assert not wrong, "\n".join(wrong[:20])
    assert compared > CASES // len(KINDS)


def is_said(imported: Imported, where: str, fact: str) -> bool:
    field = {"ports": "port_map", "account": "service_account"}.get(fact, fact)
    return any(note.path.startswith(f"{where}.{field}") or note.path == f"cfg.{field}" for note in imported.notes)


def priority_of(wrapper: Mapping[str, Any]) -> object:
    return wrapper["spec"].get("priority", 0)


def their_pods(wrapper: Mapping[str, Any]) -> Iterator[Pod]:
    """Yield the replicas of TorchX's AppWrapper, each as a pod of its own."""
    for item in wrapper["spec"]["resources"]["GenericItems"]:
        pod = item["generictemplate"]
        if pod["kind"] == "Pod":
            labels = pod["metadata"]["labels"]
            spec = pod["spec"]
            (container,) = spec["containers"]
            env = {entry["name"]: HOSTS.sub(RANK0, entry.get("value", "")) for entry in container["env"]}
            if not (labels[ROLE] == "0" and labels["torchx.pytorch.org/replica-id"] == "0"):
                env.pop(RANK0, None)
            env = {name: value for name, value in env.items() if not HOSTS.fullmatch(name)}
            argv = [HOSTS.sub(RANK0, word) for word in container["command"]]
            facts = {"replica": labels["torchx.pytorch.org/replica-id"], "env": env, "args": argv}
            yield Pod(where=f"roles[{labels[ROLE]}]", facts={**facts, **plain_facts(pod)})


def our_pods(objects: Any, app_id: str) -> Any:
    """Return a function of a role's place in the input and an index that returns the settings of that replica."""
    templates = {f"roles[{pod['metadata']['labels'][ROLE]}]": pod for pod in pods_in(list(objects))}

    def facts_of(where: str, index: int) -> dict[str, object]:
        pod = templates[where]
        (container,) = pod["spec"]["containers"]
        release, _, run = app_id.rpartition("-")
        known = {"SYMPH_INDEX": str(index), "TORCHX_RELEASE": release, "TORCHX_RUN": run}
        for entry in container["env"]:
            known.setdefault(entry["name"], expand(entry.get("value", ""), known))
        argv = [expand(word, known) for word in [*container.get("command", []), *container.get("args", [])]]
        if argv[3:4] == ["symph-attempt"]:  # the shell that counts tries
            argv = argv[4:]
        if argv[:3] == ["/bin/sh", "-e", "-c"] and argv[3].endswith('exec "$@"') and RANK0 in argv[3]:
            known, argv = after_preamble(argv, known), argv[5:]
        env = {name: value for name, value in known.items() if not OURS.fullmatch(name)}
        if not (where == "roles[0]" and index == 0):
            env.pop(RANK0, None)
        return {"replica": str(index), "env": env, "args": argv, **plain_facts(pod)}

    return facts_of


def after_preamble(argv: list[str], known: Mapping[str, str]) -> dict[str, str]:
    """Return the environment that a program gets from the shell in front of it."""
    shell = [*argv[:5], "env", "-0"]
    done = subprocess.run(shell, env=dict(known), capture_output=True, text=True, timeout=30, check=True)
    told = dict(line.split("=", 1) for line in done.stdout.split("\0") if line)
    return {name: value for name, value in told.items() if name in known or name == RANK0}


def pods_in(item: object) -> Iterator[Any]:
    if isinstance(item, list):
        for part in item:
            yield from pods_in(part)
    elif isinstance(item, dict):
        spec, metadata = item.get("spec"), item.get("metadata")
        if isinstance(spec, dict) and "containers" in spec:
            if isinstance(metadata, dict) and ROLE in metadata.get("labels", {}):
                yield item
            return
        for part in item.values():
            yield from pods_in(part)


def plain_facts(pod: Mapping[str, Any]) -> dict[str, object]:
    spec = pod["spec"]
    (container,) = spec["containers"]
    volumes = {volume["name"]: volume for volume in spec.get("volumes", [])}
    annotations = pod["metadata"].get("annotations", {})
    return {
        "image": container["image"],
        "ports": sorted(port["containerPort"] for port in container.get("ports", [])),
        "limits": container["resources"].get("limits", {}),
        "nodeSelector": spec.get("nodeSelector") or {},
        "mounts": sorted(map(str, mounts_of(container, volumes))),
        "privileged": (container.get("securityContext") or {}).get("privileged") or False,
        "account": spec.get("serviceAccountName"),
        "image_secret": [secret for secret in spec.get("imagePullSecrets", []) if secret],
        "priority_class_name": spec.get("priorityClassName"),
        "coscheduler_name": spec.get("schedulerName") if spec.get("schedulerName") != "volcano" else None,
        "istio": annotations.get("sidecar.istio.io/inject"),
        "network": annotations.get("k8s.v1.cni.cncf.io/networks"),
    }


def mounts_of(container: Mapping[str, Any], volumes: Mapping[str, Any]) -> Iterator[tuple[object, ...]]:
    """Yield the mount of each user volume and of the shared memory; our own files are left out."""
    for mount in container.get("volumeMounts", []):
        source = {key: value for key, value in volumes[mount["name"]].items() if key != "name"}
        path = source.get("hostPath", {}).get("path")
        claim = source.get("persistentVolumeClaim", {}).get("claimName")
        medium = source.get("emptyDir", {}).get("medium")
        if path or claim or medium:
            yield path, claim, medium, mount["mountPath"], bool(mount.get("readOnly"))
