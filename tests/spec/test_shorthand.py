"""Each short form gives the same record as its long form."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_read import load
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment, Process
from symphony_charts.spec.sources import EmptyDirVolume, NfsVolume


def process(text: str) -> Process:
    data: Any = load(text)
    return from_data({"name": "x", "processes": {"a": data}}).processes["a"]


def experiment(text: str) -> Experiment:
    """Return an experiment of one process and the fields in `text`."""
    data: Any = load(text)
    return from_data({"name": "x", "processes": {"a": {}}, **data})


PROCESS_FORMS = [
    ("command: python -m x", "command: ['python -m x']"),
    ("args: [--n, 8, 1e-4, true, 1.10]", "args: ['--n', '8', '1e-4', 'true', '1.10']"),
    ("cmds: exec x", "cmds: [exec x]"),
    ("binds: replay", "binds: {replay: null}"),
    ("binds: [replay, {tb: 6006}]", "binds: {replay: null, tb: 6006}"),
    ("exposes: {tensorboard: 6006}", "exposes: {tensorboard: 6006}"),
    ("{binds: r, connects: r}", "{binds: {r: null}, connects: [r]}"),
    ("env: {LR: 1e-4, N: 8, D: true, E: ''}".replace("N:", "NN:"), "env: {LR: '1e-4', NN: '8', D: 'true', E: ''}"),
    ("requests: {cpu: 1.5, mem: 2G}", "requests: {cpu: '1.5', memory: 2G}"),
    ("limits: {gpu: 1}", "gpus: 1"),
    ("limits: {nvidia.com/gpu: '2'}", "gpus: 2"),
    ("restart: OnFailure", "restart: on-failure"),
    ("ready: 8080", "ready: {tcp: {port: 8080}}"),
    ("ready: {http: 80}", "ready: {http: {port: 80}}"),
    ("ready: {tcp: 80, period: 5s, initial_delay: 2m}", "ready: {tcp: {port: 80}, period: 5, initial_delay: 120}"),
    ("ready: {exec: true.sh}", "ready: {exec: {command: [true.sh]}}"),
    ("ready: {exec: {command: true.sh}}", "ready: {exec: {command: [true.sh]}}"),
    ("assign_to: machine", "assign_to: {assign_to: machine}"),
    ("node_selector: {gpu: true, n1: 1}", "node_selector: {gpu: 'true', n1: '1'}"),
    (
        "tolerations: {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 5}",
        "tolerations: [{key: a, operator: Exists, effect: NoExecute, seconds: 5}]",
    ),
    ("local: {cmds: x, env: {A: 1}}", "local: {cmds: [x], env: {A: '1'}}"),
]


@pytest.mark.parametrize(("short", "long"), PROCESS_FORMS, ids=[form[0] for form in PROCESS_FORMS])
def test_a_short_form_of_a_process_means_its_long_form(short: str, long: str) -> None:
    assert process(short) == process(long)


EXPERIMENT_FORMS = [
    ("secrets: [~/.mjkey.txt]", "secrets: [{file: ~/.mjkey.txt}]"),
    ("secrets: k", "secrets: [{file: k}]"),
    ("configs: {a.yaml: 'x: 1'}", "configs: {a.yaml: {text: 'x: 1'}}"),
    ("port_range: 7000-7100", "port_range: [7000, 7100]"),
    ("done_when: a", "done_when: [a]"),
    ("volumes: {d: {claim: c}}", "volumes: {d: {type: claim, claim: c}}"),
    ("volumes: {d: {nfs: {server: s, path: /p}}}", "volumes: {d: {type: nfs, server: s, path: /p}}"),
    ("local: {preamble: source x}", "local: {preamble: [source x]}"),
]


@pytest.mark.parametrize(("short", "long"), EXPERIMENT_FORMS, ids=[form[0] for form in EXPERIMENT_FORMS])
def test_a_short_form_of_an_experiment_means_its_long_form(short: str, long: str) -> None:
    assert experiment(short) == experiment(long)


def mounted(*mounts: object) -> Experiment:
    return from_data({"name": "x", "processes": {"a": {"mounts": list(mounts)}}})


def test_a_string_mounts_a_path_of_the_node() -> None:
    short = mounted("type=bind,src=/data/set,dst=/d,readonly")
    assert short == from_data(
        {
            "name": "x",
            "volumes": {"set": {"type": "host_path", "path": "/data/set"}},
            "processes": {"a": {"mounts": [{"volume": "set", "at": "/d", "read_only": True}]}},
        }
    )


def test_a_string_mounts_a_claim_and_a_device() -> None:
    short = mounted("type=volume,src=disk,dst=/d,type=device,src=/dev/ib,perm=rw")
    mounts = short.processes["a"].mounts
    assert [(mount.volume, mount.at) for mount in mounts] == [("disk", "/d"), ("ib", "/dev/ib")]


@pytest.mark.parametrize(
    "text", ["src=/a,dst=/b", "type=bind,src=/a", "type=tmpfs,src=/a,dst=/b", "type=bind,src=/a,dst=/b,rdonly"]
)
def test_a_mount_string_that_says_too_little_or_too_much_is_refused(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        mounted(text)
    assert caught.value.problems[0].path.startswith("processes.a.mounts[0]")


def test_two_paths_of_one_server_are_two_volumes_with_names_that_kubernetes_takes_and_one_path_is_one() -> None:
    nfs = {"nfs": {"server": "files", "path": "/x"}}
    assert mounted({"at": "/a", **nfs}, {"at": "/b", **nfs}).volumes == {"files": NfsVolume(server="files", path="/x")}
    made = mounted(*({"at": at, "nfs": {"server": "10.0.0.2", "path": at}} for at in ("/x", "/y")))
    assert list(made.volumes.values()) == [NfsVolume(server="10.0.0.2", path=path) for path in ("/x", "/y")]
    assert [mount.volume for mount in made.processes["a"].mounts] == list(made.volumes)
    assert next(iter(made.volumes)) == "10-0-0-2"


def test_shared_memory_stands_at_its_place() -> None:
    made = mounted({"shm": "2Gi"})
    assert made.processes["a"].mounts[0].at == "/dev/shm"
    assert made.volumes == {"devshm": EmptyDirVolume(memory=True, size="2Gi")}


def test_a_mount_of_two_volumes_is_refused() -> None:
    with pytest.raises(SpecError, match="one volume, not 2"):
        mounted({"at": "/a", "claim": "c", "secret": "s"})


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("env: {A: null}", "processes.a.env.A"),
        ("connects: {replay: 5}", "processes.a.connects.replay"),
        ("binds: [{r: 1}, {r: 2}]", "processes.a.binds[1]"),
        ("binds: [5]", "processes.a.binds[0]"),
        ("requests: {mem: 1G, memory: 2G}", "processes.a.requests"),
        ("{gpus: 1, limits: {gpu: 2}}", "processes.a.limits.gpu"),
    ],
)
def test_a_short_form_that_contradicts_itself_is_refused(text: str, path: str) -> None:
    with pytest.raises(SpecError) as caught:
        process(text)
    assert caught.value.problems[0].path == path


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("container_image", "image"),
        ("environment", "env"),
        ("nodeSelector", "node_selector"),
        ("restartPolicy", "restart"),
        ("bind", "binds"),
        ("depends_on", "after"),
        ("workingDir", "cwd"),
        ("replica", "replicas"),
    ],
)
def test_an_unknown_key_is_refused_with_the_one_meant(key: str, meant: str) -> None:
    with pytest.raises(SpecError, match=f'did you mean "{meant}"'):
        from_data({"name": "x", "processes": {"a": {key: "x"}}})


def test_faults_of_all_kinds_are_reported_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        from_data({"nam": "x", "processes": {"a": {"env": {"A": None}, "replicas": "3"}, "b": None}, "port_range": [1]})
    assert {problem.path for problem in caught.value.problems} == {
        "nam",
        "name",
        "processes.a.env.A",
        "processes.a.replicas",
        "processes.b",
        "port_range",
    }


@pytest.mark.parametrize("data", [None, [], "x", 7])
def test_what_is_no_map_is_no_experiment(data: object) -> None:
    with pytest.raises(SpecError, match="experiment"):
        from_data(data)
