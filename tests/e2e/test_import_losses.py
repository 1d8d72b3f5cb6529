"""Every value of a random import input appears in the chart, or has an entry of its own in the report of losses.

Each text and number of an input is unique, so that the test finds it wherever the import put it.
SYMPH_IMPORT_CASES sets the number of inputs per format, SYMPH_IMPORT_SEED the first seed.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable, Iterator

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.formats.names import join
from symphony_charts.importers.input_file import Source, from_data
from symphony_charts.importers.report import Imported
from symphony_charts.integrations.compose.importer import ComposeContext, import_compose
from symphony_charts.integrations.symphony.importer import import_legacy
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.data import to_data

pytestmark = pytest.mark.e2e

# Read at import: inside a test, the user's environment variables are removed.
_COUNT, _FIRST = int(os.environ.get("SYMPH_IMPORT_CASES", "200")), int(os.environ.get("SYMPH_IMPORT_SEED", "1"))
# Compose itself reads none of these; the name is in every object in another spelling.
_SILENT = re.compile(r"(?:^|\.)x-|^version$|(?:^|\.)(?:name|apiVersion|kind)$")


class Draw:
    """Random choices, and unique texts and numbers."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self._last = 20_000

    def number(self) -> int:
        self._last += 1
        return self._last

    def text(self) -> str:
        return f"t{self.number()}"

    def some(self, fields: dict[str, Callable[[], object]], most: int) -> dict[str, object]:
        """Return up to `most` of the fields."""
        names = self.rng.sample(list(fields), self.rng.randint(0, min(most, len(fields))))
        return {name: fields[name]() for name in names}

    def one(self, *values: object) -> object:
        return self.rng.choice(values)


def compose_case(draw: Draw) -> dict[str, object]:
    names = ["web", "db", "cache", "job"][: draw.rng.randint(1, 4)]
    services = {name: _compose_service(draw, names[:index]) for index, name in enumerate(names)}
    top = draw.some(
        {
            "networks": lambda: draw.one(
                {"default": None}, {"back": {"driver": draw.text()}}, {"default": {"ipam": {}}}
            ),
            "x-more": lambda: {"a": draw.text()},
            "include": lambda: [draw.text()],
            "version": lambda: "3",
        },
        3,
    )
    volumes: dict[str, object] = {"data": draw.one(None, {}, {"driver": draw.text()}, {"labels": {"a": draw.text()}})}
    volumes["net"] = {"driver_opts": {"type": draw.one("nfs", "none"), "o": "addr=10.0.0.7,rw", "device": ":/x"}}
    return {"name": "fuzz", "services": services, "volumes": volumes, **top}


def _compose_service(draw: Draw, earlier: list[str]) -> dict[str, object]:
    text, number, one = draw.text, draw.number, draw.one
    fields: dict[str, Callable[[], object]] = {
        "command": lambda: one([text(), text()], f"{text()} {text()}", []),
        "entrypoint": lambda: one([text()], text(), ""),
        "working_dir": lambda: f"/{text()}",
        "environment": lambda: one({"A": text(), "B": number()}, [f"A={text()}", "C"], {"D": None}),
        "labels": lambda: one({"l": text()}, [f"l={text()}"]),
        "annotations": lambda: {"a": text()},
        "ports": lambda: one(
            [f"{number()}:{number()}"],
            [f"127.0.0.1:{number()}:{number()}"],
            [{"target": number(), "published": str(number()), "mode": "host", "app_protocol": text()}],
            [f"{number()}/udp"],
        ),
        "expose": lambda: [number()],
        "volumes": lambda: one(
            ["data:/d:z"],
            [f"/{text()}:/{text()}:ro"],
            ["net:/n"],
            [f"/{text()}"],
            [
                {
                    "type": "bind",
                    "source": f"/{text()}",
                    "target": f"/{text()}",
                    "bind": {"propagation": "rslave"},
                    "consistency": "cached",
                }
            ],
            [{"type": "tmpfs", "target": f"/{text()}", "tmpfs": {"size": f"{number()}m", "mode": 448}}],
            [
                {
                    "type": "volume",
                    "source": "data",
                    "target": f"/{text()}",
                    "volume": {"nocopy": True, "subpath": text()},
                }
            ],
            [{"type": "npipe", "source": text(), "target": f"/{text()}"}],
        ),
        "tmpfs": lambda: one(f"/{text()}", [f"/{text()}:size={number()}"]),
        "shm_size": lambda: f"{number()}m",
        "devices": lambda: [f"/dev/{text()}:/dev/{text()}:r"],
        "healthcheck": lambda: one(
            {
                "test": [one("CMD", "CMD-SHELL"), text()],
                "interval": f"{number()}s",
                "start_period": "5s",
                "start_interval": "2s",
            },
            {"test": text(), "retries": 7},
            {"disable": True},
        ),
        "restart": lambda: one("no", "always", "on-failure:3", "unless-stopped"),
        "deploy": lambda: draw.some(
            {
                "replicas": lambda: draw.rng.randint(1, 3),
                "mode": lambda: one("replicated", "global"),
                "labels": lambda: {"x": text()},
                "endpoint_mode": lambda: "vip",
                "update_config": lambda: {"parallelism": 2},
                "placement": lambda: {"constraints": [text()]},
                "restart_policy": lambda: {
                    "condition": one("any", "on-failure"),
                    "delay": "5s",
                    "max_attempts": 4,
                    "window": "9s",
                },
                "resources": lambda: {
                    "limits": {"cpus": str(number()), "memory": f"{number()}M", "pids": 5},
                    "reservations": {
                        "memory": f"{number()}K",
                        "devices": [
                            one(
                                {"capabilities": ["gpu"], "count": 2, "driver": one("nvidia", "amd")},
                                {"capabilities": ["tpu"]},
                                {"capabilities": ["gpu"], "device_ids": ["0", "3"], "options": {"a": "b"}},
                            )
                        ],
                    },
                },
            },
            4,
        ),
        "gpus": lambda: one("all", [{"count": 2, "driver": "amd"}], [{"device_ids": ["1"]}]),
        "cpus": number,
        "mem_limit": lambda: f"{number()}m",
        "mem_reservation": lambda: f"{number()}k",
        "hostname": text,
        "domainname": text,
        "container_name": text,
        "mac_address": text,
        "runtime": text,
        "networks": lambda: one(["back"], {"back": {"aliases": [text()]}}),
        "logging": lambda: {"driver": text(), "options": {"max-size": text()}},
        "ulimits": lambda: {"nofile": number()},
        "sysctls": lambda: {"net.core.somaxconn": number()},
        "stop_signal": lambda: "SIGINT",
        "stop_grace_period": lambda: f"{number()}s",
        "init": lambda: True,
        "tty": lambda: True,
        "stdin_open": lambda: True,
        "attach": lambda: False,
        "user": lambda: one(str(number()), f"{number()}:{number()}", text()),
        "group_add": lambda: [text()],
        "security_opt": lambda: [text()],
        "pid": lambda: "host",
        "ipc": lambda: "host",
        "cap_add": lambda: ["SYS_PTRACE"],
        "cap_drop": lambda: ["NET_RAW"],
        "privileged": lambda: True,
        "read_only": lambda: True,
        "extra_hosts": lambda: one([f"{text()}:10.0.0.{draw.rng.randint(1, 9)}"], {text(): "host-gateway"}),
        "dns": lambda: ["10.0.0.9"],
        "dns_search": text,
        "platform": lambda: one("linux/arm64", "linux/arm/v7", "linux"),
        "pull_policy": lambda: one("always", "missing", "daily"),
        "build": lambda: one(".", {"context": text(), "args": {"a": text()}}),
        "profiles": lambda: ["off"] if draw.rng.random() < 0.2 else [],
        "develop": lambda: {"watch": []},
        "blkio_config": lambda: {"weight": 300},
        "oom_score_adj": lambda: 5,
        "cpu_shares": number,
        "cpuset": lambda: "0,1",
        "x-note": lambda: {"a": text()},
    }
    if earlier:
        other = draw.rng.choice(earlier)
        fields["depends_on"] = lambda: one(
            [other], {other: {"condition": "service_started", "restart": True, "required": False}}
        )
        fields["links"] = lambda: one([other], [f"{other}:{text()}"])
    return {"image": f"{text()}:1", **draw.some(fields, 9)}


def symphony_case(draw: Draw) -> dict[str, object]:
    text = draw.text
    kind = draw.rng.choice(["kube", "kube", "kube", "tmux", "docker"])
    groups = [
        {
            "name": f"g{index}",
            **({"pod_yml": _symphony_pod(draw)} if kind == "kube" else {}),
            "processes": [_symphony_process(draw, f"p{member}", kind) for member in range(draw.rng.randint(1, 3))],
            **draw.some(
                {"start_dir": lambda: f"/{text()}", "odd": text, "preamble_cmds": lambda: [text()]}
                if kind == "tmux"
                else {},
                1,
            ),
        }
        for index in range(draw.rng.randint(0, 2))
    ]
    lone = [
        {
            **_symphony_process(draw, f"lone{index}", kind),
            **({"pod_yml": _symphony_pod(draw)} if kind == "kube" else {}),
        }
        for index in range(draw.rng.randint(1, 2))
    ]
    more: dict[str, Callable[[], object]] = {
        "odd": text,
        "port_range": lambda: draw.one("7000-8999", "7000-7005,7010-8000"),
        "ab": lambda: {"s": {"host": text(), "port": draw.number()}},
        "preamble_cmds": lambda: [text()],
        "start_dir": lambda: f"/{text()}",
    }
    return {"name": "fuzz", "process_groups": groups, "processes": lone, **draw.some(more, 2)}


def _symphony_process(draw: Draw, name: str, kind: str) -> dict[str, object]:
    text = draw.text
    image = f"{text()}:1"
    process: dict[str, object] = {"name": name, "binded_services": {}, "connected_services": {}, "exposed_services": {}}
    if kind == "kube":
        process |= {"container_image": image, "container_yml": _symphony_container(draw, image)}
    elif kind == "docker":
        data = {"image": image, **draw.some({"environment": lambda: [f"A={text()}"], "hostname": text, "odd": text}, 2)}
        process["service_yml"] = {"name": name, "data": data}
    else:
        process |= {"cmds": [text(), text()]}
    return process | draw.some({"odd": text, "binded_services": lambda: {f"{name}-{text()}": None}}, 1)


def _symphony_container(draw: Draw, image: str) -> dict[str, object]:
    text, number, one = draw.text, draw.number, draw.one
    fields: dict[str, Callable[[], object]] = {
        "command": lambda: [text()],
        "args": lambda: [text(), f"{text()} {text()}"],
        "workingDir": lambda: f"/{text()}",
        "env": lambda: [
            {"name": "A", "value": text()},
            one(
                {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": text(), "key": text(), "optional": True}}},
                {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
            ),
        ],
        "envFrom": lambda: [{"secretRef": {"name": text()}}],
        "resources": lambda: {
            "requests": {"cpu": number(), "memory": f"{number()}Mi"},
            "limits": {"nvidia.com/gpu": 2},
            **draw.some({"claims": lambda: [{"name": text()}]}, 1),
        },
        "imagePullPolicy": lambda: "Always",
        "livenessProbe": lambda: {"exec": {"command": [text()]}, "periodSeconds": number()},
        "readinessProbe": lambda: one(
            {"exec": {"command": [text()]}, "periodSeconds": number()}, {"grpc": {"port": number()}}
        ),
        "lifecycle": lambda: {"preStop": {"exec": {"command": [text()]}}},
        "securityContext": lambda: {"runAsUser": number(), "capabilities": {"add": ["SYS_PTRACE"]}},
        "ports": lambda: [{"name": text(), "containerPort": number(), "hostPort": number()}],
        "stdin": lambda: True,
        "tty": lambda: True,
        "terminationMessagePolicy": lambda: "FallbackToLogsOnError",
    }
    data = {"name": "c", "image": image, **draw.some(fields, 5)}
    records = []
    if draw.rng.random() < 0.5:
        volume = draw.text()
        records.append({"name": volume, **draw.rng.choice(_records(draw))})
        data["volumeMounts"] = [
            {
                "name": volume,
                "mountPath": f"/{text()}",
                **draw.some(
                    {"readOnly": lambda: True, "subPath": text, "mountPropagation": lambda: "HostToContainer"}, 2
                ),
            }
        ]
    return {"data": data, "mounted_volumes": records, **draw.some({"odd": text}, 1)}


def _records(draw: Draw) -> list[dict[str, object]]:
    return [
        {"type": "KubeNFSVolume", "server": draw.text(), "path": f"/{draw.text()}"},
        {"type": "KubeHostPathVolume", "path": f"/{draw.text()}", "hostpath_type": "Directory"},
        {"type": "KubeSecretVolume", "secret_name": draw.text(), "defaultMode": 256},
        {"type": "KubeGitVolume", "repository": f"https://{draw.text()}.example.com/x.git", "revision": draw.text()},
        {"type": "KubeEmptyDirVolume", "use_memory": True, "odd": draw.text()},
    ]


def _symphony_pod(draw: Draw) -> dict[str, object]:
    text, number, one = draw.text, draw.number, draw.one
    fields: dict[str, Callable[[], object]] = {
        "restartPolicy": lambda: one("Never", "OnFailure"),
        "nodeSelector": lambda: {"n": text()},
        "tolerations": lambda: [
            {"key": text(), "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": number()}
        ],
        "hostNetwork": lambda: True,
        "dnsPolicy": lambda: "Default",
        "priority": number,
        "affinity": lambda: {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchExpressions": [{"key": text(), "operator": "Exists"}]}}
                ]
            }
        },
        "serviceAccountName": text,
        "priorityClassName": text,
        "schedulerName": text,
        "terminationGracePeriodSeconds": number,
        "activeDeadlineSeconds": number,
        "securityContext": lambda: {"fsGroup": number()},
        "imagePullSecrets": lambda: [{"name": text()}],
        "hostAliases": lambda: [{"ip": "10.0.0.1", "hostnames": [text()]}],
        "initContainers": lambda: [{"name": text(), "image": text(), "command": [text()]}],
        "volumes": lambda: [{"name": text(), "hostPath": {"path": f"/{text()}"}}],
    }
    metadata = {
        "name": "pod",
        **draw.some(
            {"labels": lambda: {"l": text()}, "annotations": lambda: {"a": text()}, "finalizers": lambda: [text()]}, 2
        ),
    }
    return {"data": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": draw.some(fields, 5)}}


def leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, join(path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, join(path, index))
    elif value is not None:
        yield path, value


def above(path: str) -> Iterator[str]:
    """Yield `path` and the paths of all enclosing maps and lists."""
    yield from (path[:end] for end in range(1, len(path) + 1) if end == len(path) or path[end] in ".[")


def wrong(data: object, imported: Imported) -> Iterator[str]:
    """Yield the parts of the input that are not reported, or reported as carried and missing."""
    report = imported.report
    carried, noted = set(report.carried), {note.path for note in report.notes}
    try:
        objects: object = prepare_experiment(imported.experiment, force=True).objects
    except SpecError:  # no image, or invalid input: the verb that makes a chart reports it
        objects = to_data(imported.experiment)
    there = json.dumps([objects, to_data(imported.experiment)])
    for path, value in leaves(data):
        places = set(above(path))
        if places & noted or _SILENT.search(path):
            continue
        if not places & carried:
            yield f"{path}: {value} is neither carried nor reported"
        for word in re.findall(r"t?\d{5,}", str(value)):
            if word not in there:
                yield f"{path}: {value} is said to be carried"


def _compose(source: Source) -> Imported:
    return import_compose(source, ComposeContext(name="fuzz"))


@pytest.mark.parametrize(
    ("case", "read"), [(compose_case, _compose), (symphony_case, import_legacy)], ids=["compose", "symphony"]
)
def test_whatever_is_not_reported_is_in_the_pods(
    case: Callable[[Draw], dict[str, object]], read: Callable[[Source], Imported]
) -> None:
    found, refused = [], 0
    for seed in range(_FIRST, _FIRST + _COUNT):
        data = case(Draw(seed))
        try:
            imported = read(from_data(data, "input"))
        except SpecError:
            refused += 1
            continue
        found += [f"seed {seed}: {fault}" for fault in wrong(data, imported)]
    assert not found, "\n".join(found)
    assert refused < _COUNT // 4
