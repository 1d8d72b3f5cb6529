"""Symphony's verbs build the one model; errors are raised at the faulty call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from symphony_charts.errors import NotFound, SpecError
from symphony_charts.spec.builder.experiment import ExperimentSpec, ProcessGroupSpec, ProcessSpec
from symphony_charts.spec.model import Process
from symphony_charts.spec.sources import Assignment, EnvSource, NfsVolume, Toleration


def built(*changes: Callable[[ProcessSpec], None]) -> Process:
    """Return a process after `changes`."""
    experiment = ExperimentSpec("x")
    process = experiment.new_process("a", cmds=["true"])
    for change in changes:
        change(process)
    return experiment.finish().processes["a"]


def test_services_are_said_as_text_list_or_map() -> None:
    experiment = ExperimentSpec("x")
    server = experiment.new_process("server")
    server.binds("a")
    server.bind(["b", "c"])
    server.exposes({"tensorboard": 6006})
    server.expose("d")
    client = experiment.new_process("client")
    client.connects(["a", "b"])
    client.connect("c")
    made = experiment.finish().processes
    assert made["server"].binds == {"a": None, "b": None, "c": None}
    assert made["server"].exposes == {"tensorboard": 6006, "d": None}
    assert made["client"].connects == ["a", "b", "c"]
    assert server.binded_services == {"a": None, "b": None, "c": None}
    assert client.connected_services == dict.fromkeys("abc")


def test_resources_take_symphonys_and_the_documents_words() -> None:
    made = built(
        lambda a: a.resource_request(cpu=1.5, mem="2G"), lambda a: a.resource_limit(cpu=1.5, memory="2G", gpu=1)
    )
    assert made.requests == {"cpu": "1.5", "memory": "2G"}
    assert made.limits == {"cpu": "1.5", "memory": "2G"}
    assert made.gpus == 1


def test_text_as_command_stays_one_argument_and_values_of_variables_become_text() -> None:
    experiment = ExperimentSpec("x")
    process = experiment.new_process("a", container_image="u:1", command="python", args="a.py --n 1")
    process.set_env("A", 1)
    process.set_envs({"B": True, "C": EnvSource(config="s", key="k")})
    made = experiment.finish().processes["a"]
    assert (made.command, made.args) == (["python"], ["a.py --n 1"])
    assert made.env == {"A": "1", "B": "true", "C": EnvSource(config="s", key="k")}


def test_pod_settings_of_a_lone_process() -> None:
    def change(a: ProcessSpec) -> None:
        a.node_selector(key="surreal-node", value="agent")
        a.node_selector(key="surreal-node", value="nonagent")
        a.add_toleration(key="surreal", operator="Exists", effect="NoExecute")
        a.add_toleration(key="surreal", operator="Exists", effect="NoExecute")
        a.add_labels(tier="x", n=1)
        a.add_annotation("note", "y")
        a.restart_policy("Never")
        a.image_pull_policy("Always")
        a.set_replicas(4, min_replicas=2)

    made = built(change)
    assert made.node_selector == {"surreal-node": "nonagent"}
    assert made.tolerations == [Toleration(key="surreal", operator="Exists", effect="NoExecute")]
    assert made.labels == {"tier": "x", "n": "1"}
    assert (made.restart, made.image_pull_policy) == ("never", "Always")
    assert (made.replicas, made.min_replicas) == (4, 2)


def test_every_mount_verb_declares_its_volume() -> None:
    experiment = ExperimentSpec("x")
    a = experiment.new_process("a")
    a.mount_nfs("files", "/x", "/m/nfs")
    a.mount_nfs(server="files", path="/y", mount_path="/m/nfs2")
    a.mount_host_path("/data/set", "/m/host", hostpath_type="Directory")
    a.mount_secret("keys", "/m/secret", defaultMode=0o600)
    a.mount_git_repo("https://example.org/Some.Repo.git", "main", "/m/git")
    a.mount_empty_dir("scratch", True, "/m/empty")
    a.mount_shared_memory(size="1Gi")
    a.mount_claim("disk", "/m/claim")
    a.mount_config("settings", "/m/config")
    a.mount_device("/dev/ib")
    a.mount_volume(NfsVolume(server="other", path="/z"), "/m/record", read_only=True)
    a.mount("type=volume,src=more,dst=/m/more,readonly")
    made = experiment.finish()
    shown = {mount.at: made.volumes[mount.volume] for mount in made.processes["a"].mounts}
    assert len(shown) == len(made.volumes) == 12
    assert shown["/m/record"] == NfsVolume(server="other", path="/z")
    assert {"files", "set", "keys", "some-repo", "scratch", "devshm", "disk", "settings", "ib"} < set(made.volumes)


def test_a_declared_volume_is_mounted_by_name_and_has_one_content() -> None:
    experiment = ExperimentSpec("x")
    experiment.add_volume("data", NfsVolume(server="s", path="/x"))
    experiment.new_process("a").mount_volume("data", "/d")
    assert experiment.finish().processes["a"].mounts[0].volume == "data"
    with pytest.raises(SpecError, match="two different contents"):
        experiment.add_volume("data", NfsVolume(server="s", path="/y"))


def test_shell_lines_can_be_added_to_and_dispatch_settings_are_symphonys() -> None:
    made = built(
        lambda a: a.set_cmds("one"),
        lambda a: a.append_cmds(["two", "three"]),
        lambda a: a.set_preamble_cmds("zero"),
        lambda a: a.assign_to("machine", node_pool_name="cpu", process_per_machine=5, gpu_type=None),
    )
    assert (made.cmds, made.preamble) == (["one", "two", "three"], ["zero"])
    assert made.assign_to == Assignment(assign_to="machine", node_pool_name="cpu", process_per_machine=5)


def test_pod_settings_of_a_grouped_process_are_refused_and_name_the_group() -> None:
    group = ExperimentSpec("x").new_process_group("nonagent")
    learner = group.new_process("learner")
    verbs: list[Callable[[], object]] = [
        lambda: learner.node_selector("a", "b"),
        lambda: learner.add_toleration(key="a", operator="Exists"),
        lambda: learner.add_label("a", "b"),
        lambda: learner.restart_policy("Never"),
        lambda: learner.set(replicas=2),
        lambda: learner.pod_yml,
    ]
    for verb in verbs:
        with pytest.raises(SpecError, match='group "nonagent"'):
            verb()
    agent = ProcessSpec("agent")
    agent.node_selector("a", "b")
    with pytest.raises(SpecError, match="node_selector of process"):
        group.add_process(agent)


def test_a_group_says_things_once_for_all_its_processes() -> None:
    experiment = ExperimentSpec("x")
    group = experiment.new_process_group("g")
    first = group.new_process("first")
    group.set_env("A", "1")
    group.set_envs({"B": "2"})
    group.image_pull_policy("Always")
    group.mount_nfs("files", "/x", "/d")
    group.node_selector("pool", "cpu")
    group.new_process("second", env={"A": "own"})
    first.set_env("A", "later")
    made = experiment.finish().groups["g"]
    assert made.node_selector == {"pool": "cpu"}
    assert {name: process.env["A"] for name, process in made.processes.items()} == {"first": "later", "second": "1"}
    assert [process.image_pull_policy for process in made.processes.values()] == ["Always", "Always"]
    assert [process.mounts[0].at for process in made.processes.values()] == ["/d", "/d"]


def test_an_experiment_can_be_built_from_the_bottom_up() -> None:
    one, two = ProcessSpec("one", standalone=False), ProcessSpec("two", standalone=False)
    one.binds("r")
    two.connects("r")
    group = ProcessGroupSpec("g")
    group.add_processes([one, two])
    experiment = ExperimentSpec("x")
    experiment.add_process_group(group)
    experiment.add_processes(ProcessSpec("three"), ProcessSpec("four"))
    made = experiment.finish()
    assert (list(made.groups["g"].processes), list(made.processes)) == (["one", "two"], ["three", "four"])


def test_processes_are_found_and_listed_and_the_nearest_to_an_unknown_name_is_named() -> None:
    experiment = ExperimentSpec("x")
    lone = experiment.new_process("lone")
    group = experiment.new_process_group("g")
    member = group.new_process("member")
    assert experiment.get_process("lone") is lone
    assert experiment.get_process("g/member") is experiment.get_process_group("g").get_process("member") is member
    assert experiment.list_processes() == [lone]
    assert experiment.list_all_processes() == [lone, member]
    assert experiment.list_process_groups() == [group]
    with pytest.raises(NotFound, match='did you mean "lone"'):
        experiment.get_process("loen")


def test_the_order_of_declaration_is_written_unless_it_is_the_usual_one() -> None:
    experiment = ExperimentSpec("x")
    experiment.new_process("first").binds("one")
    experiment.new_process_group("g").new_process("second").binds("two")
    experiment.get_process_group("g").new_process("third")
    assert experiment.finish().order == ["first", "g/second", "g/third"]
    usual = ExperimentSpec("x")
    usual.new_process_group("g").new_process("first")
    usual.new_process("second")
    assert usual.finish().order == []


MISTAKES: list[tuple[str, Callable[[], object], str]] = [
    ("keyword of a process", lambda: ProcessSpec("a", contaner_image="x"), 'mean "container_image"'),  # type: ignore[call-arg]  # the mistake
    ("keyword of a group", lambda: ProcessGroupSpec("g", replica=2), 'mean "replicas"'),  # type: ignore[call-arg]  # the mistake
    ("keyword of an experiment", lambda: ExperimentSpec("x", secret=["k"]), 'mean "secrets"'),  # type: ignore[call-arg]  # the mistake
    ("keyword of a dispatch", lambda: ProcessSpec("a").assign_to("gpu", node_pool="x"), 'mean "node_pool_name"'),  # type: ignore[call-arg]  # the mistake
    ("no name", lambda: ExperimentSpec(""), "is not a valid name"),
    ("None as a name", lambda: ProcessSpec(None), "is not a valid name"),  # type: ignore[arg-type]  # the mistake
    ("colon in a name", lambda: ProcessGroupSpec("a:b"), "is not a valid name"),
    ("no service", lambda: ProcessSpec("a").binds(7), "is not a service"),  # type: ignore[arg-type]  # the mistake
    ("a port of its own", lambda: ProcessSpec("a").connects({"replay": 7000}), "on its own port"),
    ("ports with gaps", lambda: ExperimentSpec("x", port_range=[1, 2, 9]), "consecutive"),
]


@pytest.mark.parametrize(("make", "words"), [mistake[1:] for mistake in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_a_mistake_is_refused_at_once(make: Callable[[], object], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        make()


def test_a_name_stands_for_one_thing() -> None:
    experiment = ExperimentSpec("x")
    experiment.new_process_group("a").new_process("m")
    for make in (experiment.new_process, experiment.new_process_group):
        with pytest.raises(SpecError, match='already has a group "a"'):
            make("A")
    with pytest.raises(SpecError, match='already has a process "m"'):
        experiment.get_process_group("a").new_process("m")


def test_a_process_has_one_place() -> None:
    process, group = ProcessSpec("a"), ProcessGroupSpec("g")
    ExperimentSpec("x").add_process(process)
    ExperimentSpec("x").add_process_group(group)
    with pytest.raises(SpecError, match="already belongs to"):
        ExperimentSpec("y").add_process(process)
    with pytest.raises(SpecError, match="already belongs to"):
        ExperimentSpec("y").add_process_group(group)


@pytest.mark.parametrize("ports", [range(7000, 7100), list(range(7000, 7100)), (7000, 7099), "7000-7099"])
def test_ports_are_given_as_range_list_pair_or_text(ports: Any) -> None:
    experiment = ExperimentSpec("x", port_range=ports)
    experiment.new_process("a")
    assert experiment.finish().port_range == (7000, 7099)


def test_text_forms_give_the_experiment_back() -> None:
    experiment = ExperimentSpec("x", secrets=["~/.key"], owner="jim", preamble_cmds=["source venv"], start_dir="work")
    experiment.add_config("a.yaml", "x: 1")
    experiment.add_config("b.bin", file="b.bin", mode="0600")
    experiment.add_secret("k", only=["a"])
    experiment.new_process("a", cmds=["x"]).mount_nfs("files", "/x", "/d")
    made = experiment.finish()
    assert (made.local.preamble, made.local.cwd) == (["source venv"], "work")
    assert ExperimentSpec.load_dict(experiment.dump_dict()).finish() == made
    assert ExperimentSpec.load_yaml_str(experiment.dump_yaml_str()).finish() == made
    assert ExperimentSpec.load_json_str(experiment.dump_json_str()).finish() == made
