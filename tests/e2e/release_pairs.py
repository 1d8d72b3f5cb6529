"""Generated pairs of releases: objects as first installed, foreign edits of them, and the objects of the upgrade."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import yaml

from tests.e2e.rig.api import Object

CHART = {
    "Chart.yaml": "apiVersion: v2\nname: pair\nversion: 0.1.0\n",
    "templates/objects.yaml": "{{- range .Values.objects }}\n---\n{{ toYaml . }}\n{{- end }}\n",
}
"""A chart whose values are its objects."""

_GROUP = "symph-e2e.dev"
WIDGETS: Object = yaml.safe_load(f"""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: widgets.{_GROUP}}}
spec:
  group: {_GROUP}
  scope: Namespaced
  names: {{plural: widgets, singular: widget, kind: Widget}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {{type: integer, minimum: 1}}
              color: {{type: string, enum: [red, green]}}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {{name: {{type: string}}, n: {{type: integer}}}}
""")
"""A custom resource with validation rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two releases and the `kubectl` calls between them, each with its input."""

    first: list[Object]
    second: list[Object]
    edits: list[tuple[tuple[str, ...], str]] = field(default_factory=list)

    def __str__(self) -> str:
        return json.dumps({"first": self.first, "edits": self.edits, "second": self.second}, indent=1)


Change = Callable[[random.Random, dict[str, Object]], None]
Edit = Callable[[random.Random], tuple[tuple[str, ...], str]]


def pair_of(seed: int) -> Pair:
    """Return the pair for this seed: up to four changes, and up to two foreign edits."""
    dice = random.Random(seed)
    first = _objects(dice)
    second = copy.deepcopy(first)
    for change in dice.choices(_CHANGES, k=dice.randint(1, 4)):
        change(dice, second)
    edits = [edit(dice) for edit in dice.choices(_EDITS, k=dice.choice((0, 0, 1, 2)))]
    return Pair(first=list(first.values()), second=list(second.values()), edits=edits)


_BASE = """
StatefulSet:
  apiVersion: apps/v1
  spec: {serviceName: web, replicas: 1, selector: {matchLabels: {app: web}}}
Service:
  apiVersion: v1
  spec: {selector: {app: web}, ports: [{name: http, port: 80}, {name: more, port: 81}]}
ConfigMap: {apiVersion: v1, data: {a: '1', b: '2'}}
Job: {apiVersion: batch/v1, spec: {suspend: true}}
NetworkPolicy:
  apiVersion: networking.k8s.io/v1
  spec: {podSelector: {matchLabels: {app: web}}, ingress: [{ports: [{port: 80}]}]}
Widget:
  apiVersion: symph-e2e.dev/v1
  spec: {size: 1, color: red, parts: [{name: x, n: 1}, {name: y, n: 2}]}
"""
_POD = """
containers:
- name: main
  image: busybox:1.37.0
  command: [sleep, '1000']
  env: [{name: A, value: '1'}, {name: B, value: '2'}]
  ports: [{name: http, containerPort: 80}]
  volumeMounts: [{name: data, mountPath: /data}]
  resources: {requests: {cpu: 10m}}
- {name: side, image: busybox:1.37.0, command: [sleep, '1000']}
volumes: [{name: data, emptyDir: {}}]
"""


def _objects(dice: random.Random) -> dict[str, Object]:
    pod: Object = yaml.safe_load(_POD)
    del pod["containers"][dice.choice((1, 2)) :]
    made: dict[str, Object] = yaml.safe_load(_BASE)
    for kind, more in (("StatefulSet", {}), ("Job", {"restartPolicy": "Never"})):
        made[kind]["spec"]["template"] = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {**copy.deepcopy(pod), **more},
        }
    kept = [kind for kind in made if kind == "StatefulSet" or dice.random() < 0.6]
    return {kind: {"kind": kind, **made[kind], "metadata": {"name": "web"}} for kind in kept}


# --- changes of the release ---


def _container(dice: random.Random, objects: dict[str, Object]) -> Object:
    kind = dice.choice([kind for kind in ("StatefulSet", "Job") if kind in objects] or ["StatefulSet"])
    item = objects.setdefault(kind, _objects(random.Random(1))["StatefulSet"])
    found: Object = item["spec"]["template"]["spec"]["containers"][0]
    return found


def _env_to_source(dice: random.Random, objects: dict[str, Object]) -> None:
    source = {"fieldRef": {"fieldPath": "metadata.name"}}
    _container(dice, objects)["env"][0] = {"name": "A", "valueFrom": source}


def _env(dice: random.Random, objects: dict[str, Object]) -> None:
    entries = _container(dice, objects)["env"]
    dice.choice(
        (
            entries.reverse,
            lambda: entries.insert(0, {"name": "C", "value": "3"}),
            entries.pop,
            lambda: entries.append({"name": "A", "value": "twice"}),
            lambda: entries[0].update(value="other"),
        )
    )()


def _service(dice: random.Random, objects: dict[str, Object]) -> None:
    if "Service" not in objects:
        return
    spec = objects["Service"]["spec"]
    dice.choice(
        (
            lambda: spec["ports"][0].update(port=90),
            lambda: spec["ports"][0].update(name="other"),
            spec["ports"].pop,
            lambda: spec["ports"].append({"name": "udp", "port": 80, "protocol": "UDP"}),
            lambda: spec["ports"].append({"name": "http", "port": 99}),
            lambda: spec.update(clusterIP="None"),
            lambda: spec.update(type="LoadBalancer"),
            lambda: spec["ports"][0].update(targetPort="http"),
        )
    )()


def _workload(dice: random.Random, objects: dict[str, Object]) -> None:
    spec = objects.get("StatefulSet", {"spec": {"template": {"spec": {}}}})["spec"]
    dice.choice(
        (
            lambda: spec.update(replicas=dice.choice((0, 2, -1))),
            lambda: spec.update(serviceName="another"),
            lambda: spec.update(selector={"matchLabels": {"app": "else"}}),
            lambda: spec.update(updateStrategy={"type": "OnDelete"}),
            lambda: spec["template"]["spec"].update(volumes=[{"name": "data", "configMap": {"name": "web"}}]),
            lambda: spec["template"]["spec"].update(volumes=[]),
            lambda: spec["template"]["spec"].update(terminationGracePeriodSeconds=3),
            lambda: spec.update(podManagementPolicy="Parallel"),
            lambda: spec.update(replcas=2),
        )
    )()


def _image(dice: random.Random, objects: dict[str, Object]) -> None:
    _container(dice, objects)["image"] = dice.choice(("busybox:1.36.0", ""))


def _probe(dice: random.Random, objects: dict[str, Object]) -> None:
    probe = dice.choice(({"tcpSocket": {"port": 80}}, {"httpGet": {"port": 80}}, {"exec": {"command": ["true"]}}, {}))
    _container(dice, objects)["readinessProbe"] = probe


def _labels(dice: random.Random, objects: dict[str, Object]) -> None:
    item = objects[dice.choice(list(objects))]
    item["metadata"]["labels"] = {"team": dice.choice(("a", "b", "not a label!"))}


def _data(dice: random.Random, objects: dict[str, Object]) -> None:
    if "ConfigMap" in objects:
        data = dice.choice(({"a": "1"}, {"a": "2", "c": "3"}, {"a b": "1"}, {}))
        objects["ConfigMap"].update(data=data, immutable=dice.choice((True, False)))


def _widget(dice: random.Random, objects: dict[str, Object]) -> None:
    if "Widget" in objects:
        objects["Widget"]["spec"] = dice.choice(
            (
                {"size": 2},
                {"size": 0},
                {"size": 1, "color": "blue"},
                {"size": 1, "parts": [{"name": "y", "n": 3}]},
                {"size": 1, "parts": [{"name": "y"}, {"name": "y"}]},
                {"size": 1, "shape": "round"},
            )
        )


def _removed(dice: random.Random, objects: dict[str, Object]) -> None:
    if len(objects) > 1:
        del objects[dice.choice(list(objects))]


def _added(dice: random.Random, objects: dict[str, Object]) -> None:
    name = dice.choice(("new", "theirs", "adopted"))
    data = dice.choice(({"x": "1"}, {"x y": "1"}))
    objects[f"ConfigMap {name}"] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


_CHANGES: Sequence[Change] = (
    *(_env_to_source, _env, _env, _service, _service, _workload, _workload),
    *(_image, _probe, _labels, _data, _widget, _removed, _added),
)

# --- foreign edits ---


def _map(name: str, **more: object) -> str:
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **more}, "data": {"z": "1"}}
    return json.dumps(item)


def _scaled(_: random.Random) -> tuple[tuple[str, ...], str]:
    return ("scale", "statefulset/web", "--replicas=0"), ""


def _env_edited(dice: random.Random) -> tuple[tuple[str, ...], str]:
    return ("set", "env", "statefulset/web", dice.choice(("A=9", "D=4", "B-"))), ""


def _patched(dice: random.Random) -> tuple[tuple[str, ...], str]:
    patch = dice.choice(
        (
            {"metadata": {"labels": {"theirs": "yes", "team": "z"}}},
            {"metadata": {"annotations": {"meta.helm.sh/release-name": "other"}}},
            {"metadata": {"labels": {"app.kubernetes.io/managed-by": "them"}}},
        )
    )
    return ("patch", dice.choice(("statefulset/web", "service/web", "configmap/web")), "-p", json.dumps(patch)), ""


def _applied(dice: random.Random) -> tuple[tuple[str, ...], str]:
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"a": "theirs", "d": "4"}}
    argv = ("apply", "--server-side", "--force-conflicts", "--field-manager=them", "-f", "-")
    return argv, json.dumps(dice.choice((item, {**item, "data": {"d": "4"}})))


def _deleted(dice: random.Random) -> tuple[tuple[str, ...], str]:
    name = dice.choice(("statefulset/web", "service/web", "configmap/web", "job/web"))
    return ("delete", name, "--ignore-not-found", "--cascade=orphan"), ""


def _made(_: random.Random) -> tuple[tuple[str, ...], str]:
    return ("apply", "-f", "-"), _map("theirs")


def _left_over(_: random.Random) -> tuple[tuple[str, ...], str]:
    marks = {"meta.helm.sh/release-name": "pair", "meta.helm.sh/release-namespace": "NAMESPACE"}
    labels = {"app.kubernetes.io/managed-by": "Helm"}
    return ("apply", "-f", "-"), _map("adopted", annotations=marks, labels=labels)


_EDITS: Sequence[Edit] = (_scaled, _env_edited, _env_edited, _patched, _patched, _applied, _deleted, _made, _left_over)


def _scenario(*changes: Callable[[dict[str, Object]], None], edits: Sequence[tuple[tuple[str, ...], str]] = ()) -> Pair:
    first = _objects(random.Random(8))
    second = copy.deepcopy(first)
    for change in changes:
        change(second)
    return Pair(first=list(first.values()), second=list(second.values()), edits=list(edits))


_ANY = random.Random(0)
_CONTAINER = {"name": "main", "image": "busybox:1.37.0", "command": ["true"]}
_POD_WITH_ACCOUNT: dict[str, Object] = {
    "account": {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "own"}},
    "pod": {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "own"},
        "spec": {"serviceAccountName": "own", "restartPolicy": "Never", "containers": [_CONTAINER]},
    },
}
SCENARIOS: dict[str, Pair] = {
    "an env entry goes from value to source": _scenario(
        lambda o: _env_to_source(_ANY, {"StatefulSet": o["StatefulSet"]})
    ),
    "nothing changes after somebody scaled": _scenario(edits=[_scaled(_ANY)]),
    "replicas change after somebody scaled": _scenario(
        lambda o: o["StatefulSet"]["spec"].update(replicas=2), edits=[_scaled(_ANY)]
    ),
    "two immutable fields and one bad value": _scenario(
        lambda o: o["StatefulSet"]["spec"].update(serviceName="another"),
        lambda o: o.update(
            bad={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"a b": ""}}
        ),
        lambda o: o.update(Job=_objects(random.Random(3)).get("Job", o["StatefulSet"])),
    ),
    "a new object is somebody else's": _scenario(
        lambda o: o.update(new=json.loads(_map("theirs"))), edits=[_made(_ANY)]
    ),
    "a new object was left over by this release": _scenario(
        lambda o: o.update(new=json.loads(_map("adopted"))), edits=[_left_over(_ANY)]
    ),
    "a pod needs an account that comes with it": _scenario(lambda o: o.update(_POD_WITH_ACCOUNT)),
    "a pod needs an account that nobody makes": _scenario(lambda o: o.update(pod=_POD_WITH_ACCOUNT["pod"])),
    "a field is misspelt": _scenario(lambda o: o["StatefulSet"]["spec"].update(replcas=2)),
}
"""Fixed pairs whose verdicts must always be right."""
