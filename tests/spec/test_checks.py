"""One test for each refusal of `finish`: the smallest spec that causes it, and the path it must name."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment


def one(for_cluster: bool = False, **process: Any) -> Experiment:
    return from_data({"name": "x", "processes": {"a": {"cmds": ["true"]} | process}}, for_cluster=for_cluster)


def whole(for_cluster: bool = False, **fields: Any) -> Experiment:
    """Return an experiment with these fields, and a default process if they name none."""
    lone: dict[str, Any] = {} if "processes" in fields or "groups" in fields else {"processes": {"a": {}}}
    return from_data({"name": "x", **lone, **fields}, for_cluster=for_cluster)


def group(**processes: dict[str, Any]) -> Experiment:
    return whole(groups={"g": {"processes": processes}})


def lone(**processes: dict[str, Any]) -> Experiment:
    return whole(processes=processes)


def member(**fields: Any) -> Experiment:
    return group(m=fields)


POOL = {"assign_to": "machine", "node_pool_name": "p"}

# Fields of a lone process `a`, the path of the fault below it, and words of the message.
OF_A_PROCESS: list[tuple[dict[str, Any], str, str]] = [
    ({"connects": "ghost"}, "connects[0]", "no process binds"),
    ({"binds": {"r": 5, "s": 5}}, "binds[1]", "port 5"),
    ({"binds": {"r": 5}, "exposes": {"r": 6}}, "exposes[0]", "bound on port 5"),
    ({"binds": {"r": 0}}, "binds[0]", "is not a valid port"),
    ({"exposes": {"r": 65536}}, "exposes[0]", "is not a valid port"),
    ({"binds": "Replay"}, "binds[0]", "is not a valid name"),
    ({"binds": "1r"}, "binds[0]", "is not a valid name"),
    ({"binds": "r\n"}, "binds[0]", "is not a valid name"),
    ({"binds": "r" * 41}, "binds[0]", "41 characters"),
    ({"binds": ["r", "r-bind"]}, "", "SYMPH_R_BIND_HOST"),
    ({"command": ["$(SYMPH_CONFIG_DRI)/a.py"]}, "command[0]", 'mean "SYMPH_CONFIG_DIR"'),
    ({"env": {"A": "$(SYMPH_GHOST_HOST)"}}, "env.A", "is not a variable that symph sets"),
    ({"local": {"cmds": ["echo $(SYMPH_RUNN)"]}}, "local.cmds[0]", 'mean "SYMPH_RUN"'),
    ({"mounts": ["./data:/data"]}, "mounts[0]", "claim: {claim: data, local: ./data}"),
    ({"mounts": ["/data:/d"]}, "mounts[0]", "{host_path: /data, at: /d}"),
    ({"mounts": {"host_path": "./data", "at": "/d"}}, "mounts[0].host_path", "claim: {claim: data, local: ./data}"),
    ({"ready": {}}, "ready", "exactly one kind"),
    ({"ready": {"tcp": 1, "exec": "x"}}, "ready", "exactly one kind"),
    ({"ready": "ghost"}, "ready.tcp.port", "does not listen on a service"),
    ({"ready": {"tcp": 1, "period": 0}}, "ready.period", "too low"),
    ({"ready": {"http": {"port": 1, "path": "x"}}}, "ready.http.path", "is not a path"),
    ({"after": "a"}, "after", "a -> a"),
    ({"after": "ghost"}, "after[0]", "unknown process"),
    ({"mounts": [{"volume": "v", "at": "/x"}]}, "mounts[0].volume", "unknown volume"),
    ({"mounts": [{"at": "x", "claim": "c"}]}, "mounts[0].at", "not an absolute path"),
    ({"mounts": [{"at": "/a/../b", "claim": "c"}]}, "mounts[0].at", "absolute"),
    ({"mounts": [{"at": "/", "claim": "c"}]}, "mounts[0].at", "root folder of a machine"),
    ({"mounts": [{"at": "/x", "claim": "c"}, {"at": "/x/", "claim": "d"}]}, "mounts[1].at", "already"),
    ({"mounts": [{"at": "/x", "claim": "c", "sub_path": "../y"}]}, "mounts[0].sub_path", "leads out"),
    (
        {"mounts": [{"at": "/x", "claim": "c", "name": "n"}, {"at": "/y", "claim": "d", "name": "n"}]},
        "mounts[1]",
        "two different contents",
    ),
    ({"local": {"log_size": "-1Gi"}}, "local.log_size", "is not a size of a log"),
    ({"local": {"log_size": "none"}}, "local.log_size", "is not a size of a log"),
    ({"restart": "always"}, "restart", "forever"),
    ({"replicas": -1}, "replicas", "too low"),
    ({"replicas": 100_001}, "replicas", "at most"),
    ({"replicas": 2, "min_replicas": 3}, "min_replicas", "above `replicas`"),
    ({"retries": -1}, "retries", "too low"),
    ({"deadline": 0}, "deadline", "too low"),
    ({"command": "x"}, "cmds", "has no effect beside"),
    ({"args": "x"}, "cmds", "has no effect beside"),
    ({"shell": []}, "shell", "is empty"),
    ({"shell": "zsh"}, "shell", "none of: bash, sh"),
    ({"shell": 3}, "shell", "bash or sh or a list"),
    ({"shell": ["bash", {}]}, "shell[1]", "expected text, got a map"),
    ({"local": {"cmds": "x", "command": "y"}}, "local.cmds", "instead of a command"),
    ({"requests": {"memory": "2GB"}}, "requests.memory", "not an amount"),
    ({"limits": {"memory": "Gi"}}, "limits.memory", "not an amount"),
    ({"limits": {"memory": "1e400"}}, "limits.memory", "more memory than"),
    ({"limits": {"cpu": "9E"}}, "limits.cpu", "more cpu than"),
    ({"limits": {"a.b/c": "500m"}}, "limits.a.b/c", "not a whole number"),
    (
        {"container_overlay": {"resources": {"requests": {"memory": "2GB"}}}},
        "container_overlay.resources.requests.memory",
        "not an amount",
    ),
    ({"limits": {"cpu": "-1"}}, "limits.cpu", "not an amount"),
    ({"requests": {"cpu": "2"}, "limits": {"cpu": "1500m"}}, "requests.cpu", "above its limit"),
    ({"requests": {"a b": "1"}}, "requests.a b", "is not a valid resource"),
    ({"pod_share": ["memory"]}, "pod_share[0]", "requests no memory"),
    ({"gpus": -1}, "gpus", "at least 0"),
    ({"assign_to": POOL | {"process_per_machine": 0}}, "assign_to.process_per_machine", "too low"),
    ({"labels": {"a b": "x"}}, "labels.a b", "is not a valid key"),
    ({"labels": {"a": "x y"}}, "labels.a", "value of a label"),
    ({"labels": {"symph.dev/run": "x"}}, "labels.symph.dev/run", "symph sets it"),
    ({"node_selector": {"a": "x" * 64}}, "node_selector.a", "value of a label"),
    ({"tolerations": {"key": "a", "operator": "Exists", "value": "x"}}, "tolerations[0].value", "cannot have a value"),
    ({"tolerations": {"effect": "NoExecute"}}, "tolerations[0].key", "has no key"),
    ({"tolerations": {"key": "a", "effect": "NoSchedule", "seconds": 1}}, "tolerations[0].seconds", "NoExecute"),
    ({"env": {"1A": "x"}}, "env.1A", "is not a valid name"),
    ({"env": {"SYMPH_INDEX": "x"}}, "env.SYMPH_INDEX", "cannot set it"),
    ({"env": {"A": "$(B)", "B": "$(SYMPH_X)"}}, "env.A", "set later"),
    ({"env": {"PATH": "$(PATH):/x"}}, "env.PATH", "itself"),
    ({"env": {"A": {"secret": "s", "key": "k", "field": "f"}}}, "env.A", "exactly one source"),
    ({"env": {"A": {"secret": "s"}}}, "env.A", "has no `key`"),
    ({"local": {"env": {"a b": "x"}}}, "local.env.a b", "is not a valid name"),
    ({"env": {"A": "\x85"}}, "env.A", "U+0085"),
    ({"env": {"A": "\0"}}, "env.A", "U+0000"),
    ({"env": {"A": "\ud83d"}}, "env.A", "U+D83D"),
    ({"container_overlay": {"a": {"b": [2**53 + 1]}}}, "container_overlay.a.b[0]", "2^53"),
    ({"pod_overlay": {"spec": None}}, "pod_overlay.spec", "cannot contain null"),
    ({"container_overlay": {"a": float("nan")}}, "container_overlay.a", "not a JSON number"),
    ({"container_overlay": {"a": PurePath("b")}}, "container_overlay.a", "cannot be written as YAML"),
]
FAULTS: list[tuple[Any, str, str]] = [
    (lambda: lone(a={"connects": "t"}, b={"exposes": "t"}), "processes.a.connects[0]", "no process binds"),
    (lambda: lone(a={"connects": ["r", "r"]}, b={"binds": "r"}), "processes.a.connects[1]", "twice"),
    (lambda: lone(a={"binds": "r"}, b={"binds": "r"}), "processes.b.binds[0]", "listen on"),
    (lambda: group(a={"binds": "r"}, b={"binds": "r"}), "groups.g.processes.b.binds[0]", "listen on"),
    (lambda: lone(a={"binds": "r"}, b={"exposes": "r"}), "processes.b.exposes[0]", "listen on"),
    (lambda: group(a={"binds": {"r": 5}}, b={"binds": {"s": 5}}), "groups.g.processes.b", "port 5"),
    (lambda: whole(port_range=[9000, 8000]), "port_range", "is not a range"),
    (lambda: whole(port_range=[7, 7], processes={"a": {"binds": ["r", "s"]}}), "port_range", "free"),
    (lambda: whole(expose={"t": "ClusterIP"}), "expose.t", "no process exposes"),
    (lambda: whole(processes={}), "processes", "has no process"),
    (lambda: whole(groups={"g": {"processes": {}}}), "groups.g", "is empty"),
    (lambda: whole(groups={"a": {"processes": {"m": {}}}}, processes={"a": {}}), "processes.a", "lone"),
    (lambda: lone(a_b={}, **{"a.b": {}}), "processes.a.b", "become the same name"),
    (lambda: whole(name="-x"), "name", "is not a valid name"),
    (lambda: whole(name="1x"), "name", "begin with a letter"),
    (lambda: whole(name="x" * 64), "name", "64 characters"),
    (lambda: lone(**{"a/b": {}}), "processes.a/b", "is not a valid name"),
    (lambda: lone(**{"a" * 41: {}}), "processes." + "a" * 41, "41 characters"),
    (lambda: whole(volumes={"A": {"type": "empty_dir"}}), "volumes.A", "is not a valid name"),
    (lambda: whole(namespace="N S"), "namespace", "is not a valid name"),
    (lambda: lone(a={"after": "b"}, b={"after": "a"}), "processes.a.after", "a -> b -> a"),
    (
        lambda: whole(processes={"a": {"after": "m"}}, groups={g: {"processes": {"m": {}}} for g in "gh"}),
        "processes.a.after[0]",
        "matches several",
    ),
    (lambda: whole(done_when=["ghost"]), "done_when[0]", "unknown process"),
    (lambda: whole(done_when=["a"], processes={"a": {"lifecycle": "service"}}), "done_when[0]", "never ends"),
    (lambda: whole(order=["ghost"]), "order[0]", "unknown process"),
    (lambda: whole(order=["a", "a"]), "order[1]", "twice"),
    (lambda: whole(prepare={"s": {"cmds": "x", "groups": "ghost"}}), "prepare.s.groups[0]", "unknown group"),
    (lambda: whole(secrets=[{"file": "k", "only": "ghost"}]), "secrets[0].only[0]", "unknown process"),
    (lambda: whole(secrets=["a/k", "b/k"]), "secrets[1]", "two files"),
    (lambda: whole(secrets=["a b"]), "secrets[0]", "is not a valid key"),
    (lambda: whole(configs={"a/b": "x"}), "configs.a/b", "is not a valid configuration file"),
    (lambda: whole(configs={"a": {}}), "configs.a", "exactly one source"),
    (lambda: whole(configs={"a": {"text": "x", "file": "y"}}), "configs.a", "exactly one source"),
    (lambda: whole(configs={"a": {"base64": "!"}}), "configs.a.base64", "not base64"),
    (lambda: whole(configs={"a": {"text": "x", "mode": "999"}}), "configs.a.mode", "is not a file mode"),
    (
        lambda: whole(secrets=["k"], processes={"a": {"mounts": [{"at": "/etc/secrets", "claim": "c"}]}}),
        "processes.a.mounts[0].at",
        "already a mount point of symph",
    ),
    (lambda: whole(volumes={"v": {"type": "host_path", "path": "x"}}), "volumes.v.path", "not an absolute"),
    (
        lambda: whole(volumes={"v": {"type": "host_path", "path": "/x", "kind": "Directry"}}),
        "volumes.v.kind",
        "is not a kind",
    ),
    (lambda: whole(volumes={"v": {"type": "empty_dir", "size": "2GB"}}), "volumes.v.size", "not an amount of storage"),
    (lambda: whole(local={"log_size": "10"}), "local.log_size", "is not a size of a log"),
    (lambda: whole(volumes={"v": {"type": "claim", "claim": "A B"}}), "volumes.v.claim", "Kubernetes object"),
    (
        lambda: whole(volumes={"v": {"type": "device", "path": "/d", "perm": "q"}}),
        "volumes.v.perm",
        "is not a permission",
    ),
    (
        lambda: whole(volumes={"v": {"type": "git", "repository": "--upload-pack=x"}}),
        "volumes.v.repository",
        "is not the address",
    ),
    (
        lambda: whole(volumes={"v": {"type": "git", "repository": "/srv/x", "revision": "--upload-pack=x"}}),
        "volumes.v.revision",
        "dash",
    ),
    (lambda: member(replicas=2), "groups.g.processes.m.replicas", 'group "g"'),
    (lambda: member(restart="never"), "groups.g.processes.m.restart", 'group "g"'),
    (lambda: member(local={"replicas": 2}), "groups.g.processes.m.local.replicas", 'group "g"'),
    (
        lambda: group(a={"assign_to": POOL}, b={"assign_to": POOL | {"node_pool_name": "q"}}),
        "groups.g.processes.b.assign_to",
        "one pod",
    ),
    (lambda: lone(a={"command": "x", "shell": "bash"}), "processes.a.shell", "has no effect without"),
    (
        lambda: lone(a={"cmds": "x", "local": {"command": "y", "shell": "bash"}}),
        "processes.a.local.shell",
        "has no effect without",
    ),
    (lambda: lone(a={"cmds": "x", "local": {"args": ["y"]}}), "processes.a.local.args", "belong to a command"),
    (lambda: lone(a={"command": "x", "local": {"shell": "bash"}}), "processes.a.local.shell", "has no effect without"),
    (lambda: lone(a={"command": []}), "processes.a.command", "is empty"),
    (
        lambda: lone(a={"pod_overlay": {"spec": {"overhead": {"cpu": -1}}}}),
        "processes.a.pod_overlay.spec.overhead.cpu",
        "not an amount",
    ),
    (
        lambda: lone(
            a={"pod_overlay": {"spec": {"containers": [{"name": "x", "resources": {"limits": {"cpu": "?"}}}]}}}
        ),
        "processes.a.pod_overlay.spec.containers[0].resources.limits.cpu",
        "not an amount",
    ),
    (lambda: lone(a={"args": ["a\x7f"]}), "processes.a.args[0]", "U+007F"),
    (lambda: lone(a={"args": ["a\ufffe"]}), "processes.a.args[0]", "U+FFFE"),
    (lambda: one(True, image="u", cwd="sub"), "processes.a.cwd", "not an absolute path"),
    (
        lambda: whole(True, image="u", prepare={"s": {"cmds": "x", "cwd": "sub"}}),
        "prepare.s.cwd",
        "not an absolute path",
    ),
    (lambda: one(for_cluster=True), "processes.a.image", "no image"),
    (lambda: whole(True, processes={"a": {"image": "u"}}, prepare={"s": {"cmds": "x"}}), "prepare.s.image", "no image"),
    (lambda: one(True, image="u", lifecycle="service", restart="never"), "processes.a.restart", "always restarts"),
]


@pytest.mark.parametrize(("fields", "path", "words"), OF_A_PROCESS)
def test_a_field_of_a_process_is_refused_with_its_path_and_a_way_out(
    fields: dict[str, Any], path: str, words: str
) -> None:
    test_it_is_refused_with_its_path_and_a_way_out(lambda: one(**fields), f"processes.a.{path}".rstrip("."), words)


@pytest.mark.parametrize(("make", "path", "words"), FAULTS)
def test_it_is_refused_with_its_path_and_a_way_out(make: Any, path: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        make()
    found = [problem for problem in caught.value.problems if problem.path.startswith(path) and words in f"{problem}"]
    assert found, caught.value
    assert all(problem.next for problem in caught.value.problems)
    assert caught.value.exit_code == 3


GOOD: list[tuple[str, Any]] = [
    ("one port in two pods", lambda: lone(a={"binds": {"r": 5}}, b={"binds": {"s": 5}})),
    ("bound and exposed at once", lambda: one(binds={"r": 5}, exposes="r")),
    ("a process that dials itself", lambda: one(binds="r", connects="r")),
    ("a member named with its group", lambda: whole(done_when=["g/m"], groups={"g": {"processes": {"m": {}}}})),
    ("one name in two groups", lambda: whole(groups={g: {"processes": {"m": {}}} for g in "gh"})),
    (
        "a reference to an earlier variable",
        lambda: one(env={"B": "$(A) $(SYMPH_X_HOST) $$(SYMPH_C)", "A": "1"}, binds="x"),
    ),
    ("a service's address of one's own", lambda: one(env={"SYMPH_X_HOST": "db.example.org"})),
    ("no replicas", lambda: one(replicas=0)),
    ("an always restarted service", lambda: one(lifecycle="service", restart="Always")),
    ("relative folder here", lambda: one(cwd="sub")),
    ("images at home", lambda: whole(for_cluster=True, image="u")),
    ("a mode in octal", lambda: whole(configs={"a": {"text": "x", "mode": "0600"}})),
    ("2^53 itself", lambda: one(container_overlay={"a": 2**53})),
]


@pytest.mark.parametrize("make", [good[1] for good in GOOD], ids=[good[0] for good in GOOD])
def test_it_is_taken(make: Any) -> None:
    make()


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        lone(a={"connects": "ghost", "replicas": -1}, b={"requests": {"cpu": "x"}})
    assert len(caught.value.problems) == 3


def test_a_near_miss_is_named() -> None:
    with pytest.raises(SpecError, match='did you mean "replay"'):
        lone(a={"connects": "repaly"}, b={"binds": "replay"})


@pytest.mark.parametrize(
    ("names", "what", "path"),
    [
        ({"a": ["my_db"]}, '"my_db" is not a valid name', "processes.a.names[0]"),
        ({"a": ["db", "1db"]}, '"1db" is not a valid name', "processes.a.names[1]"),
        ({"a": ["d" * 64]}, "has 64 characters; names of its objects allow 63", "processes.a.names[0]"),
        ({"a": ["localhost"]}, '"localhost" always means the pod itself', "processes.a.names[0]"),
        ({"a": ["db"], "b": ["db"]}, '"db" is a name of both "a" and "b"', "processes.b.names[0]"),
        ({"a": ["db", "db"]}, '"db" appears twice', "processes.a.names[1]"),
    ],
)
def test_names_by_which_pods_are_found_are_names_of_one_service(
    names: dict[str, list[str]], what: str, path: str
) -> None:
    with pytest.raises(SpecError) as caught:
        lone(**{name: {"names": said} for name, said in names.items()})
    assert [(what in problem.what, problem.path) for problem in caught.value.problems] == [(True, path)]


def test_names_belong_to_the_pod_and_not_to_a_process_in_it() -> None:
    with pytest.raises(SpecError, match="`names` belongs to a pod"):
        member(names=["db"])


def test_names_are_sanitised_wherever_they_are_said() -> None:
    experiment = whole(
        name="My Exp",
        owner="Jim_Fan",
        processes={"Agent_1": {"after": "Learner.x"}},
        groups={"G_1": {"processes": {"Learner.x": {}}}},
        order=["Agent_1", "G_1/Learner.x"],
        done_when=["G_1/Learner.x"],
        prepare={"s": {"cmds": "x", "groups": ["G_1"]}},
        secrets=[{"file": "k", "only": ["Agent_1"]}],
    )
    assert experiment.name == "jim-fan-my-exp"
    assert experiment.order == ["agent-1", "g-1/learner-x"]
    assert experiment.done_when == ["g-1/learner-x"]
    assert experiment.processes["agent-1"].after == ["learner-x"]
    assert experiment.prepare["s"].groups == ["g-1"]
    assert experiment.secrets[0].only == ["agent-1"]


def test_a_long_name_with_its_owner_is_shortened_to_a_release_name() -> None:
    name = whole(name="x" * 50, owner="jim").name
    assert len(name) == 53
    assert name.startswith("jim-xxx")


def test_ten_thousand_processes_in_a_chain_are_checked() -> None:
    processes: dict[str, Any] = {f"p{index}": {"after": f"p{index + 1}"} for index in range(10_000)}
    with pytest.raises(SpecError) as caught:
        lone(**processes)
    assert [problem.path for problem in caught.value.problems] == ["processes.p9999.after[0]"]
