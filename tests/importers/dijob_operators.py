"""The four operators' conversion of a DIJob, reimplemented from their Go sources and checked by recorded answers.

Each function returns the pods and Services that the operator would create, as plain data without owners and
timestamps. Sources: opendilab/DI-orchestrator v0.2.2 utils/replicas_util.go; v1.0.0 pkg/context/{pod,job}.go; v1.1.0
and v1.1.3 pkg/context/pod.go. The files in ``dijob_recorded`` hold DIJobs and the results of those functions.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Object = dict[str, Any]

_FOLDER = Path(__file__).parent / "dijob_recorded"
_PORTS = {"collector": 22270, "learner": 22271, "aggregator": 22272, "coordinator": 22273}


def recorded(version: str) -> list[tuple[Object, Object]]:
    """Return DIJobs and the results of the operator's own code, without random suffixes of names."""
    text = (_FOLDER / f"{version}.json").read_text(encoding="utf-8")
    if version == "v0.2.2":
        text = re.sub(r'(?<=")([a-z0-9-]+-(?:collector|learner|aggregator))-[a-z0-9]{5}(?=")', r"\1", text)
    pairs: list[Object] = json.loads(text)
    return [(pair["job"], pair["made"]) for pair in pairs]


def plain(made: Any) -> Any:
    """Return `made` without empty values, with the environment as a map (the last entry counts) and numbers as text."""
    if isinstance(made, list):
        return [plain(item) for item in made]
    if not isinstance(made, dict):
        return made
    result = {}
    for key, value in made.items():
        simple = _plain_field(key, value)
        is_usual = (key, simple) in (("divisor", "0"), ("initialDelaySeconds", 0))
        if simple not in (None, {}, [], "") and not is_usual:
            result[key] = simple
    return result


def _plain_field(key: str, value: Any) -> Any:
    if key == "env":
        return {item["name"]: plain(item.get("valueFrom")) or item.get("value", "") for item in value}
    if key in ("requests", "limits"):
        return {name: _amount(amount) for name, amount in value.items()}
    return _amount(value) if key == "sizeLimit" else plain(value)


def _amount(value: object) -> float:
    text = str(value)
    units = {"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
    unit = next((name for name in sorted(units, key=len, reverse=True) if text.endswith(name)), "")
    return float(text.removesuffix(unit)) * units.get(unit, 1)


def _of_tasks(job: Object, *, domain: str, own: Callable[[Object, int, int], Object], has_volumes: bool) -> Object:
    spec, name = job["spec"], job["metadata"]["name"]
    namespace = job["metadata"].get("namespace", "default")
    tasks = [{"name": task.get("type"), "replicas": 1, **task} for task in spec["tasks"]]
    hosts = [
        (task, f"{name}-{task['name']}-{index}.{domain}.{namespace}.svc.cluster.local")
        for task in tasks
        for index in range(task["replicas"])
    ]
    pods: list[Object] = []
    for task in tasks:
        for index in range(task["replicas"]):
            title, rank = f"{name}-{task['name']}-{index}", len(pods)
            # All tasks of one type, so tasks without a type count as one type.
            same = [host for other, host in hosts if other.get("type") == task.get("type")]
            env = {
                "DI_JOB_ID": f"{namespace}/{name}",
                "DI_SERVER_URL": "http://di-server.di-system.svc.cluster.local:8081",
                "DI_RANK": str(rank),
                "DI_NODES": ",".join(host for _, host in hosts),
                f"DI_{task['name'].upper().replace('-', '_')}_NODES": ",".join(same),
            }
            pod = _pod(task["template"], env, spec.get("volumes", []) if has_volumes else [])
            pod["spec"] |= {"restartPolicy": "Never", "hostname": title, "subdomain": domain}
            labels = {"diengine/job": name, "diengine/operator": "di-operator", "diengine/pod": title}
            marks = {"replicas": str(len(hosts)), "rank": str(rank), "task-rank": str(index)}
            extra = own(task, rank, index)
            pod["metadata"] = {
                "name": title,
                "namespace": namespace,
                "labels": {**labels, **extra["labels"]},
                "annotations": {f"diengine/{key}": text for key, text in {**marks, **extra["annotations"]}.items()},
            }
            pods.append(pod)
    return {"pods": pods}


def _v1_1_3(job: Object) -> Object:
    name = job["metadata"]["name"]

    def own(task: Object, rank: int, index: int) -> Object:
        del rank, index
        return {
            "labels": {"diengine/task-name": task["name"], "diengine/task-type": task.get("type", "")},
            "annotations": {},
        }

    made = _of_tasks(job, domain=f"di-{name}", own=own, has_volumes=True)
    labels = {"diengine/job": name, "diengine/operator": "di-operator"}
    return {**made, "service": _service(f"di-{name}", job, labels, 22270)}


def _v1_1_0(job: Object) -> Object:
    name = job["metadata"]["name"]
    group = {"diengine/group": job["spec"].get("group", "")}

    def own(task: Object, rank: int, index: int) -> Object:
        del index
        return {
            "labels": {**group, "diengine/rank": str(rank)},
            "annotations": {"task-type": task.get("type", "")},
        }

    made = _of_tasks(job, domain=name, own=own, has_volumes=False)
    labels = {**group, "diengine/job": name, "diengine/operator": "di-operator"}
    return {**made, "service": _service(f"dijob-{name}", job, labels, 22270)}


def _v1_0_0(job: Object) -> Object:
    spec, name = job["spec"], job["metadata"]["name"]
    namespace = job["metadata"].get("namespace", "default")
    engine = spec.get("engineFields") or {}
    workers, topology = engine.get("parallelWorkers", 0), engine.get("topology", "")
    labels = {"diengine/group": spec.get("group", ""), "diengine/job": name, "diengine/operator": "di-operator"}
    pods = []
    for rank in range(spec.get("minReplicas", 0)):
        title = f"{name}-0-{rank}"
        nodes = [
            f"tcp://{name}-0-{other}.{name}:{22270 + worker}" for other in range(rank) for worker in range(workers)
        ]
        peers = {"star": f"tcp://{name}-0-0.{name}:22270", "mesh": ",".join(nodes)}.get(topology)
        env = {
            "DI_JOB_ID": f"{namespace}/{name}",
            "DI_JOB_GENERATION": "0",
            "DI_SERVER_URL": "http://di-server.di-system:8080",
            "DI_PARALLEL_WORKERS_ARG": f"--parallel-workers={workers}",
            "DI_PORTS_ARG": "--ports=" + ",".join(str(22270 + worker) for worker in range(workers)),
            "DI_NODE_IDS_ARG": "--node-ids=" + ",".join(str(worker + workers * rank) for worker in range(workers)),
            "DI_ATTACHED_NODES_ARG": f"--attach-to={peers}" if rank and peers is not None else "",
        }
        pod = _pod(spec["template"], env, [])
        pod["spec"] |= {"restartPolicy": "Never", "hostname": title, "subdomain": name}
        marks = {"generation": "0", "replicas": str(spec["minReplicas"]), "rank": str(rank)}
        pod["metadata"] = {
            "name": title,
            "namespace": namespace,
            "labels": {**labels, "diengine/rank": str(rank), "diengine/pod": title},
            "annotations": {f"diengine/{key}": text for key, text in marks.items()},
        }
        pods.append(pod)
    return {"pods": pods, "service": _service(name, job, labels, 22270)}


def _v0_2_2(job: Object) -> Object:
    spec, name = job["spec"], job["metadata"]["name"]
    namespace = job["metadata"].get("namespace", "default")
    made: Object = {}
    for role in _PORTS:
        if role not in spec:
            continue
        template, title = spec[role]["template"], f"{name}-{role}"
        main = [item for item in template["spec"]["containers"] if item["name"] == "di-container"]
        ports = [port for item in main for port in item.get("ports", []) if port.get("name") == "di-port"]
        number = ports[0]["containerPort"] if ports else _PORTS[role]
        env = {
            f"{role.upper()}_PORT": str(number),
            "KUBERNETES_POD_NAMESPACE": namespace,
            "KUBERNETES_POD_NAME": title,
            "KUBERNETES_SERVER_URL": "di-server.di-system:8080",
        }
        pod = _pod(template, env, spec.get("volumes", []))
        for container in pod["spec"]["containers"]:
            if container["name"] == "di-container" and not ports:
                container.setdefault("ports", []).append({"name": "di-port", "containerPort": number})
        labels = {
            **(template.get("metadata") or {}).get("labels", {}),
            "group-name": "diengine.opendilab.org",
            "dijob-name": name,
            "controller-name": "di-operator",
            "replica-type": role,
            "pod-name": title,
        }
        metadata = {**(template.get("metadata") or {}), "name": title, "namespace": namespace, "labels": labels}
        pod |= {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        service = _service(title, job, labels, number)
        service["spec"]["type"] = "ClusterIP"
        made[role] = {"pod": pod, "port": number, "service": service}
    return made


def _pod(template: Mapping[str, Any], env: Mapping[str, str], volumes: list[Object]) -> Object:
    spec = copy.deepcopy(dict(template["spec"]))
    spec["volumes"] = [*(spec.get("volumes") or []), *volumes]
    for container in spec["containers"]:
        added = [{"name": key, "value": value} for key, value in env.items()]
        container["env"] = [*(container.get("env") or []), *added]
    return {"spec": spec}


def _service(name: str, job: Object, labels: Mapping[str, str], port: int) -> Object:
    metadata = {"name": name, "namespace": job["metadata"].get("namespace", "default"), "labels": dict(labels)}
    ports = [{"name": "di-port", "port": port, "targetPort": 0}]
    return {"metadata": metadata, "spec": {"clusterIP": "None", "selector": dict(labels), "ports": ports}}


MAKERS: Mapping[str, Callable[[Object], Object]] = {
    "v0.2.2": _v0_2_2,
    "v1.0.0": _v1_0_0,
    "v1.1.0": _v1_1_0,
    "v1.1.3": _v1_1_3,
}
