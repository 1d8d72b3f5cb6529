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
from typing import Any

import pytest
import yaml

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

# The forms of inputs. `$T` is a unique text, `$N` a unique number, `$S` one in quotes; of a list under `$one` one item
# is chosen, and of the fields under `$some` up to as many as `$most`, each with one of its values.
_FORMS: dict[str, Any] = yaml.safe_load(
    """
compose:
  $most: 3
  $some:
    networks: [{default: null}, {back: {driver: $T}}, {default: {ipam: {}}}]
    x-more: [{a: $T}]
    include: [[$T]]
    version: ['3']
volumes:
  data: {$one: [null, {}, {driver: $T}, {labels: {a: $T}}]}
  net: {driver_opts: {type: {$one: [nfs, none]}, o: 'addr=10.0.0.7,rw', device: ':/x'}}
service:
  $most: 9
  $some:
    command: [[$T, $T], $T $T, []]
    entrypoint: [[$T], $T, '']
    working_dir: [/$T]
    environment: [{A: $T, B: $N}, [A=$T, C], {D: null}]
    labels: [{l: $T}, [l=$T]]
    annotations: [{a: $T}]
    ports:
    - ['$N:$N']
    - ['127.0.0.1:$N:$N']
    - [{target: $N, published: $S, mode: host, app_protocol: $T}]
    - [$N/udp]
    expose: [[$N]]
    volumes:
    - ['data:/d:z']
    - ['/$T:/$T:ro']
    - ['net:/n']
    - [/$T]
    - [{type: bind, source: /$T, target: /$T, bind: {propagation: rslave}, consistency: cached}]
    - [{type: tmpfs, target: /$T, tmpfs: {size: $Nm, mode: 448}}]
    - [{type: volume, source: data, target: /$T, volume: {nocopy: true, subpath: $T}}]
    - [{type: npipe, source: $T, target: /$T}]
    tmpfs: [/$T, ['/$T:size=$N']]
    shm_size: [$Nm]
    devices: [['/dev/$T:/dev/$T:r']]
    healthcheck:
    - {test: [{$one: [CMD, CMD-SHELL]}, $T], interval: $Ns, start_period: 5s, start_interval: 2s}
    - {test: $T, retries: 7}
    - {disable: true}
    restart: ['no', always, 'on-failure:3', unless-stopped]
    deploy:
    - $most: 4
      $some:
        replicas: [1, 2, 3]
        mode: [replicated, global]
        labels: [{x: $T}]
        endpoint_mode: [vip]
        update_config: [{parallelism: 2}]
        placement: [{constraints: [$T]}]
        restart_policy: [{condition: {$one: [any, on-failure]}, delay: 5s, max_attempts: 4, window: 9s}]
        resources:
        - limits: {cpus: $S, memory: $NM, pids: 5}
          reservations:
            memory: $NK
            devices:
            - $one:
              - {capabilities: [gpu], count: 2, driver: {$one: [nvidia, amd]}}
              - {capabilities: [tpu]}
              - {capabilities: [gpu], device_ids: ['0', '3'], options: {a: b}}
    gpus: [all, [{count: 2, driver: amd}], [{device_ids: ['1']}]]
    cpus: [$N]
    mem_limit: [$Nm]
    mem_reservation: [$Nk]
    hostname: [$T]
    domainname: [$T]
    container_name: [$T]
    mac_address: [$T]
    runtime: [$T]
    networks: [[back], {back: {aliases: [$T]}}]
    logging: [{driver: $T, options: {max-size: $T}}]
    ulimits: [{nofile: $N}]
    sysctls: [{net.core.somaxconn: $N}]
    stop_signal: [SIGINT]
    stop_grace_period: [$Ns]
    init: [true]
    tty: [true]
    stdin_open: [true]
    attach: [false]
    user: [$S, '$N:$N', $T]
    group_add: [[$T]]
    security_opt: [[$T]]
    pid: [host]
    ipc: [host]
    cap_add: [[SYS_PTRACE]]
    cap_drop: [[NET_RAW]]
    privileged: [true]
    read_only: [true]
    extra_hosts: [['$T:10.0.0.7'], {$T: host-gateway}]
    dns: [[10.0.0.9]]
    dns_search: [$T]
    platform: [linux/arm64, linux/arm/v7, linux]
    pull_policy: [always, missing, daily]
    build: [., {context: $T, args: {a: $T}}]
    profiles: [['off'], [], [], [], []]
    develop: [{watch: []}]
    blkio_config: [{weight: 300}]
    oom_score_adj: [5]
    cpu_shares: [$N]
    cpuset: ['0,1']
    x-note: [{a: $T}]
symphony:
  $most: 2
  $some:
    odd: [$T]
    port_range: [7000-8999, '7000-7005,7010-8000']
    ab: [{s: {host: $T, port: $N}}]
    preamble_cmds: [[$T]]
    start_dir: [/$T]
tmux group: {$most: 1, $some: {start_dir: [/$T], odd: [$T], preamble_cmds: [[$T]]}}
docker: {$most: 2, $some: {environment: [[A=$T]], hostname: [$T], odd: [$T]}}
process: {$most: 1, $some: {odd: [$T], binded_services: [{$T: null}]}}
container:
  $most: 5
  $some:
    command: [[$T]]
    args: [[$T, $T $T]]
    workingDir: [/$T]
    env:
    - - {name: A, value: $T}
      - $one:
        - {name: B, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: B, valueFrom: {secretKeyRef: {name: $T, key: $T, optional: true}}}
        - {name: B, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}
    envFrom: [[{secretRef: {name: $T}}]]
    resources:
    - {requests: {cpu: $N, memory: $NMi}, limits: {nvidia.com/gpu: 2}}
    - {requests: {cpu: $N, memory: $NMi}, limits: {nvidia.com/gpu: 2}, claims: [{name: $T}]}
    imagePullPolicy: [Always]
    livenessProbe: [{exec: {command: [$T]}, periodSeconds: $N}]
    readinessProbe: [{exec: {command: [$T]}, periodSeconds: $N}, {grpc: {port: $N}}]
    lifecycle: [{preStop: {exec: {command: [$T]}}}]
    securityContext: [{runAsUser: $N, capabilities: {add: [SYS_PTRACE]}}]
    ports: [[{name: $T, containerPort: $N, hostPort: $N}]]
    stdin: [true]
    tty: [true]
    terminationMessagePolicy: [FallbackToLogsOnError]
record:
  $one:
  - {type: KubeNFSVolume, server: $T, path: /$T}
  - {type: KubeHostPathVolume, path: /$T, hostpath_type: Directory}
  - {type: KubeSecretVolume, secret_name: $T, defaultMode: 256}
  - {type: KubeGitVolume, repository: https://$T.example.com/x.git, revision: $T}
  - {type: KubeEmptyDirVolume, use_memory: true, odd: $T}
mount: {$most: 2, $some: {readOnly: [true], subPath: [$T], mountPropagation: [HostToContainer]}}
odd: {$most: 1, $some: {odd: [$T]}}
metadata: {$most: 2, $some: {labels: [{l: $T}], annotations: [{a: $T}], finalizers: [[$T]]}}
pod:
  $most: 5
  $some:
    restartPolicy: [Never, OnFailure]
    nodeSelector: [{n: $T}]
    tolerations: [[{key: $T, operator: Exists, effect: NoExecute, tolerationSeconds: $N}]]
    hostNetwork: [true]
    dnsPolicy: [Default]
    priority: [$N]
    affinity:
    - nodeAffinity:
        preferredDuringSchedulingIgnoredDuringExecution:
        - {weight: 1, preference: {matchExpressions: [{key: $T, operator: Exists}]}}
    serviceAccountName: [$T]
    priorityClassName: [$T]
    schedulerName: [$T]
    terminationGracePeriodSeconds: [$N]
    activeDeadlineSeconds: [$N]
    securityContext: [{fsGroup: $N}]
    imagePullSecrets: [[{name: $T}]]
    hostAliases: [[{ip: 10.0.0.1, hostnames: [$T]}]]
    initContainers: [[{name: $T, image: $T, command: [$T]}]]
    volumes: [[{name: $T, hostPath: {path: /$T}}]]
"""
)


class Draw:
    """Fills in forms with random choices, and with unique texts and numbers."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self._last = 20_000

    def number(self) -> int:
        self._last += 1
        return self._last

    def form(self, name: str) -> Any:
        return self.fill(_FORMS[name])

    def fill(self, form: Any) -> Any:
        if form == "$N":
            return self.number()
        if isinstance(form, str):
            return re.sub(r"\$([TNS])", lambda found: f"{'t' * (found[1] == 'T')}{self.number()}", form)
        if isinstance(form, list):
            return [self.fill(item) for item in form]
        if not isinstance(form, dict):
            return form
        if "$one" in form:
            return self.fill(self.rng.choice(form["$one"]))
        if "$some" in form:
            fields = form["$some"]
            names = self.rng.sample(list(fields), self.rng.randint(0, min(form["$most"], len(fields))))
            form = {name: {"$one": fields[name]} for name in names}
        return {self.fill(key): self.fill(value) for key, value in form.items()}


def compose_case(draw: Draw) -> dict[str, object]:
    names = ["web", "db", "cache", "job"][: draw.rng.randint(1, 4)]
    services = {name: _compose_service(draw, names[:index]) for index, name in enumerate(names)}
    return {"name": "fuzz", "services": services, "volumes": draw.form("volumes"), **draw.form("compose")}


def _compose_service(draw: Draw, earlier: list[str]) -> dict[str, object]:
    made: dict[str, object] = {"image": draw.fill("$T:1"), **draw.form("service")}
    if earlier and draw.rng.random() < 0.3:
        other = draw.rng.choice(earlier)
        started = {other: {"condition": "service_started", "restart": True, "required": False}}
        made["depends_on"] = draw.rng.choice([[other], started])
        made["links"] = draw.rng.choice([[other], [draw.fill(f"{other}:$T")]])
    return made


def symphony_case(draw: Draw) -> dict[str, object]:
    kind = draw.rng.choice(["kube", "kube", "kube", "tmux", "docker"])
    groups = [
        {
            "name": f"g{index}",
            **_symphony_pod(draw, kind),
            "processes": [_symphony_process(draw, f"p{member}", kind) for member in range(draw.rng.randint(1, 3))],
            **(draw.form("tmux group") if kind == "tmux" else {}),
        }
        for index in range(draw.rng.randint(0, 2))
    ]
    lone = [
        {**_symphony_process(draw, f"lone{index}", kind), **_symphony_pod(draw, kind)}
        for index in range(draw.rng.randint(1, 2))
    ]
    return {"name": "fuzz", "process_groups": groups, "processes": lone, **draw.form("symphony")}


def _symphony_process(draw: Draw, name: str, kind: str) -> dict[str, object]:
    image = draw.fill("$T:1")
    process: dict[str, object] = {"name": name, "binded_services": {}, "connected_services": {}, "exposed_services": {}}
    if kind == "kube":
        process |= {"container_image": image, "container_yml": _symphony_container(draw, image)}
    elif kind == "docker":
        process["service_yml"] = {"name": name, "data": {"image": image, **draw.form("docker")}}
    else:
        process["cmds"] = draw.fill(["$T", "$T"])
    return {**process, **draw.form("process")}


def _symphony_container(draw: Draw, image: str) -> dict[str, object]:
    data, records = {"name": "c", "image": image, **draw.form("container")}, []
    if draw.rng.random() < 0.5:
        volume = draw.fill("$T")
        records.append({"name": volume, **draw.form("record")})
        data["volumeMounts"] = [{"name": volume, "mountPath": draw.fill("/$T"), **draw.form("mount")}]
    return {"data": data, "mounted_volumes": records, **draw.form("odd")}


def _symphony_pod(draw: Draw, kind: str) -> dict[str, object]:
    if kind != "kube":
        return {}
    metadata = {"name": "pod", **draw.form("metadata")}
    return {"pod_yml": {"data": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": draw.form("pod")}}}


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
