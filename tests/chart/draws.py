"""Random values for charts made of trees, and the experiments that strategies.py generates, by a seed."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from symphony_charts.chart.build.chart import BuiltChart, build
from symphony_charts.chart.build.registry import KINDS
from symphony_charts.errors import SymphError
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate
from tests.chart.strategies import experiments

Data = dict[str, Any]

_WORDS = "1e3 007 true null ~ yes y 0x10 12:30:45 2020-01-01 .inf 1_000 = << &a *a !t % @ ` | > ' \" \\ [x] {x} 1.0 - ?"
ODD = [
    *_WORDS.split(" "),
    "",
    "a: b",
    "# no",
    "- x",
    "{{ .Values.x }}",
    "{{",
    "}}",
    "a\nb\n",
    "a\n\n",
    "\n",
    " lead",
    "trail ",
    "\ttab",
    "ü 😀",
    "a\u2028b",
    "x\u0085y",
    "a \u2029 b",
    "\ufeffbom",
    "a\r\nb",
    "$(SYMPH_GROUP)",
    "$(SYMPH_EXPERIMENT)/x",
    "word " * 40,
    "<a href='x'>&</a>",
]
_SCALARS = [*ODD, 0, 5, 1.5, 1e-7, 10_000_000, 2**53, True, False]
_LABELS = ["true", "1e3", "yes", "007", "n", "a.b", 7, 10_000_000, True]
_MEMORY = {"limits": {"cpu": 2, "memory": "1Gi", "nvidia.com/gpu": "1"}, "requests": {"memory": 1_000_000_000}}
_AFFINITY = {
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "podAffinityTerm": {"topologyKey": "h", "labelSelector": {"matchLabels": {"a": "1"}}}}
        ]
    }
}
_SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"a": "true"}},
}
_IMAGES: list[Any] = [
    {},
    {"tag": "v2"},
    {"tag": 7},
    {"tag": "", "pullPolicy": "Always"},
    {"tag": "1e3", "digest": ""},
    {"digest": "sha256:ab"},
    {"registry": "reg.x:5000", "repository": "a/b"},
    {"registry": ""},
    {"pullPolicy": "Always"},
]
RELEASES = ["r", "rl", "my-rl-1", "a" * 53, "z" * 40 + "-rl-release", "b2", "true", "x-" * 26 + "y", "yes", "7"]


@dataclass(frozen=True, kw_only=True)
class Overrides:
    """A user's input to Helm: values of a file, and ``--set`` and ``--set-string`` arguments with their paths."""

    values: Data = field(default_factory=dict)
    sets: tuple[tuple[str, str], ...] = ()


def charts(first: int, count: int, *, has_overlays: bool) -> list[BuiltChart]:
    """Return charts of `count` generated experiments, named ``e0``, ``e1``, …, without those of other kinds.

    Overlays are odd on purpose: Kubernetes refuses some of them.
    """
    found: list[BuiltChart] = []

    @seed(first)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(experiments())
    def collect(data: Data) -> None:
        kind = data["workload"].get("kind", "jobs")
        if kind in KINDS:
            if not has_overlays:
                _drop_overlays(data)
            chart = _chart(data | {"name": f"e{len(found)}"})
            found.extend([chart] if chart else [])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collect()
    return found


def _drop_overlays(data: Data) -> None:
    for entry in (*data["processes"].values(), *data["groups"].values()):
        entry.pop("pod_overlay", None)
        for process in (entry, *entry.get("processes", {}).values()):
            process.pop("container_overlay", None)


def _chart(data: Data) -> BuiltChart | None:
    """Return the chart of an experiment, or None if its checks refuse it."""
    try:
        experiment = finish(from_data(data), for_cluster=True)
    except SymphError:
        return None
    return build(experiment, allocate(experiment))


def overrides(rng: random.Random, values: Mapping[str, Any]) -> Overrides:
    """Return a few changes of a chart's values that its schema accepts."""
    over: Data = {}
    places = list(_places(values))
    for path in rng.sample(places, min(len(places), rng.choice([1, 2, 3, 6]))):
        _put(over, path, _drawn(rng, path, values))
    sets = tuple(_set(rng, values) for _ in range(rng.choice([0, 0, 1, 2])))
    # Helm cannot set a key of a string.
    kept = tuple(pair for pair in sets if ".image." not in pair[1] or '"image": "' not in json.dumps(over))
    return Overrides(values=over, sets=kept)


def all_overrides(rng: random.Random, values: Mapping[str, Any], number: int) -> Overrides:
    """Return a change of every value; those with a few choices take the one with this `number`."""
    over: Data = {}
    for path in _places(values):
        choices = _choices(path, values)
        _put(over, path, choices[number % len(choices)] if choices else _drawn(rng, path, values))
    return Overrides(values=over)


def _places(values: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for key, value in values.items():
        if key == "workload":
            yield from ((key, name) for name in value)
        elif key not in ("groups", "services", "specDigest", "global"):
            yield (key,)
    for key in ("groups", "services"):
        for name, entry in values.get(key, {}).items():
            for inner, part in entry.items():
                if inner in ("containers", "initContainers"):
                    for program, fields in part.items():
                        yield from ((key, name, inner, program, each) for each in fields)
                else:
                    yield (key, name, inner)
    yield ("global",)


def _put(data: Data, path: tuple[str, ...], value: object) -> None:
    for name in path[:-1]:
        data = data.setdefault(name, {})
    data[path[-1]] = value


def _choices(path: tuple[str, ...], values: Mapping[str, Any]) -> list[Any]:
    if path == ("workload", "priority") and isinstance(values["workload"]["priority"], int):
        return [0, -5, "7"]
    return _CHOICES.get(path[-1], [])


def _drawn(rng: random.Random, path: tuple[str, ...], values: Mapping[str, Any]) -> object:
    """Return a value for `path`, chosen by its last name."""
    name = path[-1]
    if name == "image" and len(path) > 1:
        return rng.choice([*_IMAGES, "a/b:3"])
    choices = _choices(path, values)
    if choices:
        return rng.choice(choices)
    match name:
        case "env":
            sources: list[Any] = [
                {"fieldRef": {"fieldPath": "spec.nodeName"}},
                {"secretKeyRef": {"name": "s", "key": "k"}},
            ]
            names = ["A", "B", "y", "N_1", "SYMPH_RUN", "SYMPH_INDEX", "Z", "on", "true", "null"]
            return {each: rng.choice([*_SCALARS, *sources]) for each in rng.sample(names, rng.randint(0, 4))}
        case "args" | "command":
            return [rng.choice(_SCALARS) for _ in range(rng.randint(0, 4))]
        case "podAnnotations" | "annotations" | "commonAnnotations":
            return {each: rng.choice(_SCALARS) for each in rng.sample(["a/b", "note", "y", "7"], rng.randint(0, 3))}
        case "podLabels" | "commonLabels" | "nodeSelector":
            return {each: rng.choice(_LABELS) for each in rng.sample(["team", "y", "n", "big"], rng.randint(0, 3))}
        case "serviceAccount":
            return {
                "create": rng.choice([True, False]),
                "name": rng.choice(["", "sa", "true"]),
                "annotations": {"a": rng.choice(_SCALARS)},
            }
        case "conductor":
            drawn = {
                "image": rng.choice([*_IMAGES, "a/b:3"]),
                "serviceAccountName": rng.choice(["", "sa"]),
                "nodeSelector": rng.choice([{}, {"pool": "small"}]),
                "tolerations": rng.choice([[], [{"operator": "Exists"}]]),
            }
            return {key: drawn[key] for key in values["conductor"]}
        case "secrets":
            return _secrets(rng, values["secrets"])
        case "gateway":
            return {"name": rng.choice(["gw", "7"]), "namespace": rng.choice(["", "net"])}
    raise KeyError(f"no values are drawn for {'.'.join(path)}")


def _secrets(rng: random.Random, known: Mapping[str, Any]) -> Data:
    choices: Data = {
        "name": ["", "own", "1e3"],
        "encryptedData": [{"token": "AgB1", "key": "1e3"}],
        "sealedFor": [""],
        "store": [{"name": "vault"}, {"kind": "SecretStore", "name": "7"}],
        "refreshInterval": ["1h", "7"],
    }
    return {key: rng.choice(choices[key]) for key in known}


_COUNTS = [0, 1, 2, 7, 12, "0", "3", 5.0]
_NAMES = ["", "high", "1e3", "true"]
_CHOICES: dict[str, list[Any]] = {
    "replicas": _COUNTS,
    "minReplicas": [1, 2],
    "retries": [0, 3, "2"],
    "port": [1, 80, 65535, "7007", 8080],
    "nodePort": [0, 30001],
    "type": ["ClusterIP", "NodePort", "LoadBalancer"],
    "externalTrafficPolicy": ["", "Local"],
    "loadBalancerClass": _NAMES,
    "sourceRanges": [["10.0.0.0/8"], [], ["10.0.0.0/8"]],
    "className": _NAMES,
    "host": ["", "tb.example.com", "1.2"],
    "path": ["/", "/x"],
    "tls": [[], [{"secretName": "1e3", "hosts": ["x"]}]],
    "image": _IMAGES,
    "imagePullSecrets": [[], [{"name": "1e3"}, {"name": "b"}]],
    "resources": [{}, _MEMORY],
    "tolerations": [[], [{"operator": "Exists", "tolerationSeconds": 3_000_000}]],
    "affinity": [{}, _AFFINITY],
    "topologySpreadConstraints": [[], [_SPREAD]],
    "priorityClassName": _NAMES,
    "runKey": _SCALARS,
    "networkPolicy": [
        {"enabled": True},
        {"enabled": False},
        {"enabled": True, "egress": True, "egressRules": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]},
    ],
    "podSecurityContext": [{"runAsUser": 0}, {"runAsUser": 10_000_000}, {}],
    "securityContext": [{"runAsUser": 1000}, {"privileged": True}, {}],
    "nameOverride": ["", "n", "on", "n" * 62 + "-x"],
    "fullnameOverride": ["", "full", "f" * 33 + "-" + "f" * 20],
    "tests": [{"hold": True}, {"image": "a/b:1"}],
    "sealedFor": ["", "default/x"],
    "extraObjects": [
        [],
        [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "7\u2028"}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "db-y"}},
        ],
    ],
    "queue": ["", "q", "7"],
    "priority": ["", "high"],
    "parameters": [{}],
    "global": [{}, {"imageRegistry": "mirror:5000"}, {"imageRegistry": ""}],
}


def _set(rng: random.Random, values: Mapping[str, Any]) -> tuple[str, str]:
    """Return one ``--set`` or ``--set-string`` as the flag and its argument."""
    group = rng.choice(list(values["groups"]))
    program = rng.choice(list(values["groups"][group]["containers"]))
    container = f"groups.{group}.containers.{program}"
    words = [
        f"groups.{group}.replicas={rng.choice([0, 1, 9])}",
        f"{container}.image.tag={rng.choice(['v3', '7', '20261124'])}",
        f"{container}.env.LR={rng.choice(['5', '1e3', 'true', '123456789012', str(2**53), '007', 'null'])}",
        f"runKey={rng.choice(['true', '7', 'a'])}",
        rf"podAnnotations.prometheus\.io/port={rng.choice(['9090', 'true'])}",
        f"groups.{group}.nodeSelector.n={rng.choice(['1.50', '5', 'false'])}",
        "commonLabels.team=10000000",
        *(f"services.{name}.port={rng.choice([9001, 1])}" for name in values.get("services", {})),
    ]
    return rng.choice(["--set", "--set-string"]), rng.choice(words)
