"""One test for each thing that `finish` refuses: the smallest spec that shows it, and the path it must name."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment


def one(for_cluster: bool = False, **process: Any) -> Experiment:
    """An experiment of one process."""
    return from_data({"name": "x", "processes": {"a": {"cmds": ["true"]} | process}}, for_cluster=for_cluster)


def whole(for_cluster: bool = False, **fields: Any) -> Experiment:
    """An experiment with these fields, and a process if they name none."""
    lone: dict[str, Any] = {} if "processes" in fields or "groups" in fields else {"processes": {"a": {}}}
    return from_data({"name": "x", **lone, **fields}, for_cluster=for_cluster)


def group(**processes: dict[str, Any]) -> Experiment:
    """An experiment of one group, `g`."""
    return whole(groups={"g": {"processes": processes}})


def lone(**processes: dict[str, Any]) -> Experiment:
    """An experiment of lone processes."""
    return whole(processes=processes)


def member(**fields: Any) -> Experiment:
    """An experiment of one process in a group."""
    return group(m=fields)


POOL = {"assign_to": "machine", "node_pool_name": "p"}

FAULTS: list[tuple[str, Any, str, str]] = [
    ("dangling connect", lambda: one(connects="ghost"), "processes.a.connects[0]", "nobody binds"),
    (
        "exposed is not bound",
        lambda: lone(a={"connects": "t"}, b={"exposes": "t"}),
        "processes.a.connects[0]",
        "nobody",
    ),
    ("a connect twice", lambda: lone(a={"connects": ["r", "r"]}, b={"binds": "r"}), "processes.a.connects[1]", "twice"),
    ("two binders", lambda: lone(a={"binds": "r"}, b={"binds": "r"}), "processes.b.binds[0]", 'by "b" and by "a"'),
    ("two binders in a pod", lambda: group(a={"binds": "r"}, b={"binds": "r"}), "groups.g.processes.b.binds[0]", "by"),
    ("bound here, exposed there", lambda: lone(a={"binds": "r"}, b={"exposes": "r"}), "processes.b.exposes[0]", "by"),
    (
        "a port twice in a pod",
        lambda: group(a={"binds": {"r": 5}}, b={"binds": {"s": 5}}),
        "groups.g.processes.b",
        "port 5",
    ),
    ("a port twice in a process", lambda: one(binds={"r": 5, "s": 5}), "processes.a.binds[1]", "port 5"),
    (
        "bound and exposed apart",
        lambda: one(binds={"r": 5}, exposes={"r": 6}),
        "processes.a.exposes[0]",
        "bound on port 5",
    ),
    ("port 0", lambda: one(binds={"r": 0}), "processes.a.binds[0]", "is no port"),
    ("port 65536", lambda: one(exposes={"r": 65536}), "processes.a.exposes[0]", "is no port"),
    ("service name", lambda: one(binds="Replay"), "processes.a.binds[0]", "cannot be the name"),
    ("service name with a digit first", lambda: one(binds="1r"), "processes.a.binds[0]", "cannot be the name"),
    ("service name with a newline", lambda: one(binds="r\n"), "processes.a.binds[0]", "cannot be the name"),
    ("long service name", lambda: one(binds="r" * 41), "processes.a.binds[0]", "41 characters"),
    ("shared variable", lambda: one(binds=["r", "r-bind"]), "processes.a", "SYMPH_R_BIND_HOST"),
    ("port range", lambda: whole(port_range=[9000, 8000]), "port_range", "no range"),
    (
        "port range too small",
        lambda: whole(port_range=[7, 7], processes={"a": {"binds": ["r", "s"]}}),
        "port_range",
        "free",
    ),
    ("settings of nothing exposed", lambda: whole(expose={"t": "ClusterIP"}), "expose.t", "no process exposes"),
    ("no way to probe", lambda: one(ready={}), "processes.a.ready", "one way"),
    ("two ways to probe", lambda: one(ready={"tcp": 1, "exec": "x"}), "processes.a.ready", "one way"),
    ("probe of an unknown port", lambda: one(ready="ghost"), "processes.a.ready.tcp.port", "listens on no service"),
    ("probe without period", lambda: one(ready={"tcp": 1, "period": 0}), "processes.a.ready.period", "too little"),
    ("probe path", lambda: one(ready={"http": {"port": 1, "path": "x"}}), "processes.a.ready.http.path", "no path"),
    ("no process", lambda: whole(processes={}), "processes", "no process"),
    ("empty group", lambda: whole(groups={"g": {"processes": {}}}), "groups.g", "is empty"),
    (
        "group and process of a name",
        lambda: whole(groups={"a": {"processes": {"m": {}}}}, processes={"a": {}}),
        "processes.a",
        "lone",
    ),
    ("names that become one", lambda: lone(a_b={}, **{"a.b": {}}), "processes.a.b", "become the same name"),
    ("experiment name", lambda: whole(name="-x"), "name", "cannot be a name"),
    ("experiment name with a digit first", lambda: whole(name="1x"), "name", "letter first"),
    ("long experiment name", lambda: whole(name="x" * 64), "name", "64 characters"),
    ("process name", lambda: lone(**{"a/b": {}}), "processes.a/b", "cannot be a name"),
    ("long process name", lambda: lone(**{"a" * 41: {}}), "processes." + "a" * 41, "41 characters"),
    ("volume name", lambda: whole(volumes={"A": {"type": "empty_dir"}}), "volumes.A", "cannot be a name"),
    ("namespace", lambda: whole(namespace="N S"), "namespace", "cannot be a name"),
    ("circle", lambda: lone(a={"after": "b"}, b={"after": "a"}), "processes.a.after", "a -> b -> a"),
    ("after itself", lambda: one(after="a"), "processes.a.after", "a -> a"),
    ("after nobody", lambda: one(after="ghost"), "processes.a.after[0]", "no process"),
    (
        "after one of two",
        lambda: whole(processes={"a": {"after": "m"}}, groups={g: {"processes": {"m": {}}} for g in "gh"}),
        "processes.a.after[0]",
        "fits several",
    ),
    ("done when nobody", lambda: whole(done_when=["ghost"]), "done_when[0]", "no process"),
    (
        "done when a service",
        lambda: whole(done_when=["a"], processes={"a": {"lifecycle": "service"}}),
        "done_when[0]",
        "never ends",
    ),
    ("order of nobody", lambda: whole(order=["ghost"]), "order[0]", "no process"),
    ("order twice", lambda: whole(order=["a", "a"]), "order[1]", "twice"),
    (
        "prepared nowhere",
        lambda: whole(prepare={"s": {"cmds": "x", "groups": "ghost"}}),
        "prepare.s.groups[0]",
        "no group",
    ),
    ("secret for nobody", lambda: whole(secrets=[{"file": "k", "only": "ghost"}]), "secrets[0].only[0]", "no process"),
    ("secrets of one key", lambda: whole(secrets=["a/k", "b/k"]), "secrets[1]", "two files"),
    ("key of a secret", lambda: whole(secrets=["a b"]), "secrets[0]", "cannot be a key"),
    ("config name", lambda: whole(configs={"a/b": "x"}), "configs.a/b", "cannot be a configuration file"),
    ("config of nothing", lambda: whole(configs={"a": {}}), "configs.a", "one place"),
    ("config of two", lambda: whole(configs={"a": {"text": "x", "file": "y"}}), "configs.a", "one place"),
    ("config that is no base64", lambda: whole(configs={"a": {"base64": "!"}}), "configs.a.base64", "not base64"),
    ("config mode", lambda: whole(configs={"a": {"text": "x", "mode": "999"}}), "configs.a.mode", "no file mode"),
    (
        "undeclared volume",
        lambda: one(mounts=[{"volume": "v", "at": "/x"}]),
        "processes.a.mounts[0].volume",
        "no volume",
    ),
    ("relative mount", lambda: one(mounts=[{"at": "x", "claim": "c"}]), "processes.a.mounts[0].at", "no absolute path"),
    (
        "mount out of bounds",
        lambda: one(mounts=[{"at": "/a/../b", "claim": "c"}]),
        "processes.a.mounts[0].at",
        "absolute",
    ),
    (
        "mount of the root",
        lambda: one(mounts=[{"at": "/", "claim": "c"}]),
        "processes.a.mounts[0].at",
        "root of a machine",
    ),
    (
        "mount twice",
        lambda: one(mounts=[{"at": "/x", "claim": "c"}, {"at": "/x/", "claim": "d"}]),
        "processes.a.mounts[1].at",
        "already",
    ),
    (
        "mount over the secrets",
        lambda: whole(secrets=["k"], processes={"a": {"mounts": [{"at": "/etc/secrets", "claim": "c"}]}}),
        "processes.a.mounts[0].at",
        "by symph itself",
    ),
    (
        "sub path",
        lambda: one(mounts=[{"at": "/x", "claim": "c", "sub_path": "../y"}]),
        "processes.a.mounts[0].sub_path",
        "leads out",
    ),
    (
        "two contents of a name",
        lambda: one(mounts=[{"at": "/x", "claim": "c", "name": "n"}, {"at": "/y", "claim": "d", "name": "n"}]),
        "processes.a.mounts[1]",
        "two contents",
    ),
    ("host path", lambda: whole(volumes={"v": {"type": "host_path", "path": "x"}}), "volumes.v.path", "no absolute"),
    (
        "kind of host path",
        lambda: whole(volumes={"v": {"type": "host_path", "path": "/x", "kind": "Directry"}}),
        "volumes.v.kind",
        "no kind",
    ),
    (
        "size",
        lambda: whole(volumes={"v": {"type": "empty_dir", "size": "2GB"}}),
        "volumes.v.size",
        "no amount of storage",
    ),
    ("size of logs", lambda: whole(local={"log_size": "10"}), "local.log_size", "no size of a log"),
    ("size of a log", lambda: one(local={"log_size": "-1Gi"}), "processes.a.local.log_size", "no size of a log"),
    ("word for no size", lambda: one(local={"log_size": "none"}), "processes.a.local.log_size", "no size of a log"),
    ("claim", lambda: whole(volumes={"v": {"type": "claim", "claim": "A B"}}), "volumes.v.claim", "Kubernetes object"),
    (
        "device permission",
        lambda: whole(volumes={"v": {"type": "device", "path": "/d", "perm": "q"}}),
        "volumes.v.perm",
        "no permission",
    ),
    (
        "git option as repository",
        lambda: whole(volumes={"v": {"type": "git", "repository": "--upload-pack=x"}}),
        "volumes.v.repository",
        "no address",
    ),
    (
        "git option as revision",
        lambda: whole(volumes={"v": {"type": "git", "repository": "/srv/x", "revision": "--upload-pack=x"}}),
        "volumes.v.revision",
        "dash",
    ),
    ("pod setting in a group", lambda: member(replicas=2), "groups.g.processes.m.replicas", 'group "g"'),
    ("restart in a group", lambda: member(restart="never"), "groups.g.processes.m.restart", 'group "g"'),
    (
        "local replicas in a group",
        lambda: member(local={"replicas": 2}),
        "groups.g.processes.m.local.replicas",
        'group "g"',
    ),
    (
        "two pools for a pod",
        lambda: group(a={"assign_to": POOL}, b={"assign_to": POOL | {"node_pool_name": "q"}}),
        "groups.g.processes.b.assign_to",
        "one pod",
    ),
    ("restart of finite work", lambda: one(restart="always"), "processes.a.restart", "for ever"),
    ("replicas", lambda: one(replicas=-1), "processes.a.replicas", "too little"),
    ("too many replicas", lambda: one(replicas=100_001), "processes.a.replicas", "at most"),
    ("more at least than at all", lambda: one(replicas=2, min_replicas=3), "processes.a.min_replicas", "impossible"),
    ("retries", lambda: one(retries=-1), "processes.a.retries", "too little"),
    ("deadline", lambda: one(deadline=0), "processes.a.deadline", "too little"),
    ("command and cmds", lambda: one(command="x"), "processes.a.cmds", "no place beside"),
    ("args and cmds", lambda: one(args="x"), "processes.a.cmds", "no place beside"),
    ("shell of nothing", lambda: one(shell=[]), "processes.a.shell", "names no program"),
    ("unknown shell", lambda: one(shell="zsh"), "processes.a.shell", "none of: bash, sh"),
    ("shell of no kind", lambda: one(shell=3), "processes.a.shell", "bash or sh or a list"),
    ("word of a shell", lambda: one(shell=["bash", {}]), "processes.a.shell[1]", "text is needed"),
    ("shell without lines", lambda: lone(a={"command": "x", "shell": "bash"}), "processes.a.shell", "there are none"),
    (
        "shell without lines here",
        lambda: lone(a={"cmds": "x", "local": {"command": "y", "shell": "bash"}}),
        "processes.a.local.shell",
        "there are none",
    ),
    (
        "arguments of lines",
        lambda: lone(a={"cmds": "x", "local": {"args": ["y"]}}),
        "processes.a.local.args",
        "those of a command",
    ),
    (
        "local shell",
        lambda: lone(a={"command": "x", "local": {"shell": "bash"}}),
        "processes.a.local.shell",
        "are none",
    ),
    ("empty command", lambda: lone(a={"command": []}), "processes.a.command", "is empty"),
    (
        "local command and cmds",
        lambda: one(local={"cmds": "x", "command": "y"}),
        "processes.a.local.cmds",
        "in place of",
    ),
    ("amount", lambda: one(requests={"memory": "2GB"}), "processes.a.requests.memory", "no amount"),
    ("amount without a number", lambda: one(limits={"memory": "Gi"}), "processes.a.limits.memory", "no amount"),
    ("endless amount", lambda: one(limits={"memory": "1e400"}), "processes.a.limits.memory", "can count of memory"),
    ("as many CPUs", lambda: one(limits={"cpu": "9E"}), "processes.a.limits.cpu", "can count of cpu"),
    ("half a device", lambda: one(limits={"a.b/c": "500m"}), "processes.a.limits.a.b/c", "whole ones"),
    (
        "amount in an overlay",
        lambda: one(container_overlay={"resources": {"requests": {"memory": "2GB"}}}),
        "processes.a.container_overlay.resources.requests.memory",
        "no amount",
    ),
    (
        "amount of a pod",
        lambda: lone(a={"pod_overlay": {"spec": {"overhead": {"cpu": -1}}}}),
        "processes.a.pod_overlay.spec.overhead.cpu",
        "no amount",
    ),
    (
        "amount of a container that an overlay adds",
        lambda: lone(
            a={"pod_overlay": {"spec": {"containers": [{"name": "x", "resources": {"limits": {"cpu": "?"}}}]}}}
        ),
        "processes.a.pod_overlay.spec.containers[0].resources.limits.cpu",
        "no amount",
    ),
    ("negative amount", lambda: one(limits={"cpu": "-1"}), "processes.a.limits.cpu", "no amount"),
    (
        "request above limit",
        lambda: one(requests={"cpu": "2"}, limits={"cpu": "1500m"}),
        "processes.a.requests.cpu",
        "above its limit",
    ),
    ("resource name", lambda: one(requests={"a b": "1"}), "processes.a.requests.a b", "cannot be a resource"),
    ("gpus", lambda: one(gpus=-1), "processes.a.gpus", "0 or more"),
    (
        "processes per machine",
        lambda: one(assign_to=POOL | {"process_per_machine": 0}),
        "processes.a.assign_to.process_per_machine",
        "too little",
    ),
    ("label key", lambda: one(labels={"a b": "x"}), "processes.a.labels.a b", "cannot be a key"),
    ("label value", lambda: one(labels={"a": "x y"}), "processes.a.labels.a", "value of a label"),
    (
        "our own label",
        lambda: one(labels={"symph.dev/run": "x"}),
        "processes.a.labels.symph.dev/run",
        "by symph itself",
    ),
    ("node selector", lambda: one(node_selector={"a": "x" * 64}), "processes.a.node_selector.a", "value of a label"),
    (
        "toleration with a value",
        lambda: one(tolerations={"key": "a", "operator": "Exists", "value": "x"}),
        "processes.a.tolerations[0].value",
        "takes no value",
    ),
    (
        "toleration of nothing",
        lambda: one(tolerations={"effect": "NoExecute"}),
        "processes.a.tolerations[0].key",
        "which taint",
    ),
    (
        "toleration seconds",
        lambda: one(tolerations={"key": "a", "effect": "NoSchedule", "seconds": 1}),
        "processes.a.tolerations[0].seconds",
        "NoExecute",
    ),
    ("variable name", lambda: one(env={"1A": "x"}), "processes.a.env.1A", "cannot be the name"),
    ("our own variable", lambda: one(env={"SYMPH_INDEX": "x"}), "processes.a.env.SYMPH_INDEX", "cannot be set"),
    (
        "reference to a later variable",
        lambda: one(env={"A": "$(B)", "B": "$(SYMPH_X)"}),
        "processes.a.env.A",
        "set after it",
    ),
    ("reference to itself", lambda: one(env={"PATH": "$(PATH):/x"}), "processes.a.env.PATH", "itself"),
    (
        "value from two places",
        lambda: one(env={"A": {"secret": "s", "key": "k", "field": "f"}}),
        "processes.a.env.A",
        "one place",
    ),
    ("value without a key", lambda: one(env={"A": {"secret": "s"}}), "processes.a.env.A", "which key"),
    ("local variable", lambda: one(local={"env": {"a b": "x"}}), "processes.a.local.env.a b", "cannot be the name"),
    ("DEL", lambda: lone(a={"args": ["a\x7f"]}), "processes.a.args[0]", "U+007F"),
    ("C1 control", lambda: one(env={"A": "\x85"}), "processes.a.env.A", "U+0085"),
    ("NUL", lambda: one(env={"A": "\0"}), "processes.a.env.A", "U+0000"),
    ("half a character", lambda: one(env={"A": "\ud83d"}), "processes.a.env.A", "U+D83D"),
    (
        "large integer",
        lambda: one(container_overlay={"a": {"b": [2**53 + 1]}}),
        "processes.a.container_overlay.a.b[0]",
        "2^53",
    ),
    ("null in an overlay", lambda: one(pod_overlay={"spec": None}), "processes.a.pod_overlay.spec", "no null"),
    (
        "not a number",
        lambda: one(container_overlay={"a": float("nan")}),
        "processes.a.container_overlay.a",
        "no number",
    ),
    ("relative folder on a cluster", lambda: one(True, image="u", cwd="sub"), "processes.a.cwd", "no absolute path"),
    (
        "relative folder of a step",
        lambda: whole(True, image="u", prepare={"s": {"cmds": "x", "cwd": "sub"}}),
        "prepare.s.cwd",
        "no absolute path",
    ),
    ("no image on a cluster", lambda: one(for_cluster=True), "processes.a.image", "no image"),
    (
        "no image for a step",
        lambda: whole(True, processes={"a": {"image": "u"}}, prepare={"s": {"cmds": "x"}}),
        "prepare.s.image",
        "no image",
    ),
    (
        "a service that never restarts",
        lambda: one(True, image="u", lifecycle="service", restart="never"),
        "processes.a.restart",
        "always restarted",
    ),
]


@pytest.mark.parametrize(("make", "path", "words"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
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
    ("a reference to an earlier variable", lambda: one(env={"B": "$(A) $(SYMPH_X_HOST) $$(C)", "A": "1"})),
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
        ({"a": ["my_db"]}, '"my_db" cannot be a name', "processes.a.names[0]"),
        ({"a": ["db", "1db"]}, '"1db" cannot be a name', "processes.a.names[1]"),
        ({"a": ["d" * 64]}, "has 64 characters; 63 fit", "processes.a.names[0]"),
        ({"a": ["localhost"]}, '"localhost" is every pod itself', "processes.a.names[0]"),
        ({"a": ["db"], "b": ["db"]}, '"db" is a name of "a" and of "b"', "processes.b.names[0]"),
        ({"a": ["db", "db"]}, '"db" stands twice', "processes.a.names[1]"),
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
