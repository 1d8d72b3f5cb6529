"""The test cases of Symphony itself, through its own import names."""

# Names exist only while the fixture holds them, so imports stand inside the tests.
from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.waiting import eventually

pytestmark = pytest.mark.usefixtures("symphony")
BACKENDS = ("tmux", "kube", "subproc", "docker")


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs of these tests stay among themselves and end with them."""
    from symphony_charts.local import up as local_run
    from symphony_charts.local.runs import live_runs

    monkeypatch.setenv("SYMPH_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SYMPH_RUNTIME_DIR", str(tmp_path / "r"))
    yield
    for run in live_runs():
        local_run.down(run)


# --- 1. configuration -------------------------------------------------------------------------------------------------


def test_the_configuration_is_one_object_with_handlers() -> None:
    from symphony.engine import SymphonyConfig

    SymphonyConfig().update({"username": "jim", "experiment_folder": "~/f"})
    assert (SymphonyConfig().username, SymphonyConfig().experiment_folder) == ("jim", "~/f")
    with pytest.raises(ValueError, match="username"):
        SymphonyConfig().register_handler("username", str)
    SymphonyConfig().register_handler("data", lambda given: {"made": given})
    SymphonyConfig().update({"data": 3})
    assert SymphonyConfig().data == {"made": 3}


# --- 2. and 3. kube, top down and bottom up ---------------------------------------------------------------------------


def topdown() -> Any:
    from symphony.engine import Cluster

    exp = Cluster.new("kube").new_experiment("rl")
    group = exp.new_process_group("group")
    one = group.new_process("proc1", container_image="u:1", command="python", args=["a.py"])
    two = group.new_process("proc2", container_image="u:1", command=["python"], args="b.py")
    one.binds("myserver")
    two.connects("myserver")
    for index in range(8):
        agent = exp.new_process(f"agent{index}", container_image="u:1", args=["x"])
        agent.connects("myserver")
    tb = exp.new_process("tb", container_image="u:1", args=["tb"])
    tb.exposes("tensorboard")
    for process in exp.list_processes():
        process.mount_nfs("nfs-server", "/data", "/mnt")
    tb.resource_request(cpu=1.7)
    tb.resource_limit(cpu=7)
    tb.node_selector("surreal-node", "agent")
    tb.add_toleration(key="surreal", operator="Exists", effect="NoExecute")
    tb.image_pull_policy("Always")
    return exp


def bottomup() -> Any:
    from symphony.kube import KubeExperimentSpec, KubeProcessGroupSpec, KubeProcessSpec

    first, second = (
        KubeProcessSpec(name, standalone=False, container_image="u:1", args=["a"]) for name in ("proc1", "proc2")
    )
    first.binds("myserver")
    second.connects("myserver")
    group = KubeProcessGroupSpec("group")
    group.add_processes(first, second)
    tb = KubeProcessSpec("tb", container_image="u:1", args=["tb"])
    tb.exposes("tensorboard")
    exp = KubeExperimentSpec("rl")
    exp.add_process_group(group)
    exp.add_process(tb)
    return exp


@pytest.mark.parametrize("make", [topdown, bottomup])
def test_ports_are_given_to_exposed_services_first(make: Callable[[], Any]) -> None:
    exp = make()
    assert exp.address_book.entries == {}
    exp.compile()
    entries = exp.address_book.entries
    assert {name: entry["port"] for name, entry in entries.items()} == {"tensorboard": 7000, "myserver": 7001}


def test_what_is_said_of_a_lone_process_stands_in_its_pod() -> None:
    documents = list(yaml.safe_load_all(topdown().compile()))
    pods = {
        item["metadata"]["labels"]["symph.dev/group"]: item["spec"]["template"]["spec"]
        for item in documents
        if item["kind"] in ("Job", "StatefulSet")
    }
    assert sorted(pods) == [*(f"agent{i}" for i in range(8)), "group", "tb"]
    tb = pods["tb"]
    assert tb["nodeSelector"] == {"surreal-node": "agent"}
    assert {"key": "surreal", "operator": "Exists", "effect": "NoExecute"} in tb["tolerations"]
    (container,) = tb["containers"]
    assert (str(container["resources"]["requests"]["cpu"]), str(container["resources"]["limits"]["cpu"])) == (
        "1.7",
        "7",
    )
    assert container["imagePullPolicy"] == "Always"
    assert [v["nfs"]["server"] for v in tb["volumes"] if "nfs" in v] == ["nfs-server"]


def test_a_dry_run_launch_prints_the_objects(capsys: pytest.CaptureFixture[str]) -> None:
    from symphony.engine import Cluster

    Cluster.new("kubernetes").launch(topdown(), dry_run=True)
    out, err = capsys.readouterr()
    kinds = [item["kind"] for item in yaml.safe_load_all(out)]
    assert (kinds.count("Service") >= 2, "Job" in kinds) == (True, True)
    assert "changed: containers lose all capabilities" in err
    assert "which nobody asked for: group/proc1, group/proc2, agent0 and 7 more" in err
    assert "process_groups[0].pod_yml.data.spec.restartPolicy and 9 more\n  next: `lifecycle: service`" in err
    assert "0 lost: everything came over; the pods are Symphony's own but for" in err


def test_a_launch_that_says_more_than_symphony_could_is_not_called_symphonys(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from symphony.engine import Cluster

    cluster = Cluster.new("kube")
    exp = cluster.new_experiment("rl")
    exp.new_process("worker", container_image="u:1", args=["x"], replicas=2)
    cluster.launch(exp, dry_run=True)
    err = capsys.readouterr().err
    assert ("request 100m of cpu" in err, "everything" in err, "not compared with Symphony's pods" in err) == (
        True,
        False,
        True,
    )


@pytest.mark.parametrize("backend", ["kube", "tmux"])
def test_booleans_and_numbers_are_the_text_that_python_makes_of_them(backend: str) -> None:
    from symphony.engine import Cluster

    exp = Cluster.new(backend).new_experiment("rl")
    group = exp.new_process_group("g")
    process = group.new_process("p", container_image="u:1", args=["--fast", True, 1e-7], env={"DEBUG": True})
    group.set_env("RATE", 1e-7)
    process.set_envs({"OFF": False, "N": 4})
    made = exp.finish().groups["g"].processes["p"]
    assert made.args == ["--fast", "True", "1e-07"]
    assert made.env == {"DEBUG": "True", "RATE": "1e-07", "OFF": "False", "N": "4"}


def test_a_dry_run_shows_a_process_without_an_image_and_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    from symphony.engine import Cluster

    cluster = Cluster.new("kube")
    exp = cluster.new_experiment("rl")
    exp.new_process("learner", args=["x"])
    cluster.launch(exp, dry_run=True)
    shown = capsys.readouterr()
    assert ("kind: Job" in shown.out, "no image is named for learner" in shown.err) == (True, True)


def test_a_dashboard_is_reached_from_outside_once_all_containers_of_its_pod_are_ready() -> None:
    from symphony.engine import Cluster

    exp = Cluster.new("kube").new_experiment("rl")
    group = exp.new_process_group("nonagent")
    group.restart_policy("Always")
    group.new_process("tensorboard", container_image="u:1", args=["x"]).exposes({"tensorboard": 6006})
    group.new_process("learner", container_image="u:1", args=["x"]).binds(["publish", "queue"])
    objects = list(yaml.safe_load_all(exp.compile()))
    exposed = {item["spec"].get("type"): item["spec"] for item in objects if item["kind"] == "Service"}["LoadBalancer"]
    assert not exposed.get("publishNotReadyAddresses")
    (pod,) = [item["spec"]["template"]["spec"] for item in objects if item["kind"] == "StatefulSet"]
    probes = {one["name"]: one.get("readinessProbe") for one in pod["containers"]}
    # A container has one probe: it asks the first of the ports that others dial.
    assert probes == {"tensorboard": None, "learner": {"tcpSocket": {"port": 7000}}}


# --- 4. serialization -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [topdown, bottomup])
@pytest.mark.parametrize("text", ["dict", "yaml", "json"])
def test_what_was_dumped_compiles_to_the_same_again(make: Callable[[], Any], text: str) -> None:
    from symphony.kube import KubeExperimentSpec

    exp = make()
    assert exp.dump_dict()["ab"] == {}
    exp.compile()
    assert exp.address_book.entries == exp.dump_dict()["ab"] != {}
    if text == "dict":
        again = KubeExperimentSpec.load_dict(exp.dump_dict())
    else:
        again = getattr(KubeExperimentSpec, f"load_{text}_str")(getattr(exp, f"dump_{text}_str")())
    assert again.compile() == exp.compile()
    assert again.dump_dict() == exp.dump_dict()


@pytest.mark.parametrize("name", ["e.yaml", "e.yml", "e.json"])
def test_a_file_is_dumped_and_loaded_by_its_ending(tmp_path: Path, name: str) -> None:
    from symphony.kube import KubeExperimentSpec

    topdown().dump_file(tmp_path / name)
    assert KubeExperimentSpec.load_file(tmp_path / name).compile() == topdown().compile()
    with pytest.raises(OSError, match="ends neither"):
        topdown().dump_file(tmp_path / "e.txt")


# --- 5. tmux, top down ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [None, "", "a:b", "a.b"])
@pytest.mark.parametrize("make", ["new_experiment", "new_process_group", "new_process"])
def test_tmux_refuses_names_that_it_cannot_have(make: str, name: Any) -> None:
    from symphony.engine import Cluster

    cluster = Cluster.new("tmux")
    holder = cluster if make == "new_experiment" else cluster.new_experiment("valid_name")
    with pytest.raises(ValueError, match="cannot be the name"):
        getattr(holder, make)(name)


def default_tmux(name: str = "exp") -> tuple[Any, Any]:
    """The default experiment of Symphony's tests: a group with `hello`, and `alone`; they stay until ended."""
    from symphony.engine import Cluster

    cluster = Cluster.new("tmux")
    exp = cluster.new_experiment(name, preamble_cmds=["echo of-the-experiment"])
    group = exp.new_process_group("group", preamble_cmds=["echo of-the-group"])
    group.new_process("hello", cmds=["echo Hello World!", "sleep 60"])
    exp.new_process("alone", cmds=["echo I am alone", "sleep 60"])
    return cluster, exp


def test_an_experiment_without_processes_is_a_shell_where_symphony_left_an_empty_session() -> None:
    from symphony.engine import Cluster

    from symphony_charts.local.runs import live_plans

    cluster = Cluster.new("tmux")
    cluster.launch(cluster.new_experiment("empty"))
    assert cluster.list_experiments() == ["empty"]
    # It does not hear TERM, and who deletes it must not wait for the half minute that others get.
    (plan,) = live_plans()
    assert [process["grace_s"] for process in plan["processes"]] == [1]
    cluster.delete("empty")
    assert cluster.list_experiments() == []


def test_what_runs_is_listed_described_and_deleted() -> None:
    from symphony.errors import ResourceExistsError

    cluster, exp = default_tmux()
    assert cluster.list_experiments() == []
    cluster.launch(exp)
    live = {"group": {"hello": {"status": "live"}}, None: {"alone": {"status": "live"}}}
    eventually(lambda: cluster.describe_experiment("exp") == live)
    assert cluster.describe_process_group("exp", None) == {"alone": {"status": "live"}}
    assert cluster.describe_process("exp", "hello", "group") == {"status": "live"}
    with pytest.raises(ResourceExistsError):
        cluster.launch(exp)
    cluster.delete("exp")
    assert cluster.list_experiments() == []


def test_the_address_book_is_empty_before_the_launch_and_holds_what_processes_are_told_after_it() -> None:
    from symphony.engine import Cluster

    cluster, exp = default_tmux()
    says = ["echo at $SYMPH_REPLAY_ADDR and $SYMPH_BOARD_ADDR", "sleep 60"]
    exp.new_process_group("pair").new_process("learner", cmds=says).binds("replay")
    exp.new_process("board", cmds=says).exposes({"board": 6006})
    assert exp.address_book.entries == {}
    cluster.launch(exp)
    told = exp.address_book.dump()
    lines = [f"at {told['SYMPH_REPLAY_ADDR']} and {told['SYMPH_BOARD_ADDR']}"]
    assert list(exp.address_book.entries) == ["board", "replay"]
    eventually(lambda: cluster.get_log("exp", "learner", "pair")[-1:] == lines)
    dry = Cluster.new("tmux").new_experiment("dry")
    dry.new_process("a", cmds=says).binds("replay")
    cluster.launch(dry, dry_run=True)
    assert dry.address_book.entries["replay"]["port"] == 7000


def test_two_experiments_are_listed_in_order() -> None:
    cluster, second = default_tmux("second")
    cluster.launch(second)
    cluster.launch(default_tmux("first")[1])
    assert cluster.list_experiments() == ["first", "second"]


@pytest.mark.parametrize("call", ["describe_experiment", "delete"])
def test_an_unknown_experiment_is_a_value_error(call: str) -> None:
    cluster, _ = default_tmux()
    with pytest.raises(ValueError, match="nobody"):
        getattr(cluster, call)("nobody")


def test_preambles_come_before_the_commands_the_experiments_first() -> None:
    cluster, exp = default_tmux()
    cluster.launch(exp)
    hello = eventually(lambda: (log := cluster.get_log("exp", "hello", "group"))[2:] and log)
    assert hello[:3] == ["of-the-experiment", "of-the-group", "Hello World!"]
    alone = eventually(lambda: (log := cluster.get_log("exp", "alone"))[1:] and log)
    assert alone[:2] == ["of-the-experiment", "I am alone"]
    assert cluster.get_log("exp", "alone", tail=1) == ["I am alone"]


def test_a_tmux_dump_is_symphonys_own_and_survives_loading() -> None:
    from symphony.engine import Cluster
    from symphony.tmux import TmuxExperimentSpec

    exp = Cluster.new("tmux").new_experiment("exp")
    exp.new_process_group("group").new_process("hello", cmds=["echo Hello World!"])
    exp.new_process("alone", cmds=["echo I am alone"])
    services: dict[str, object] = {"binded_services": {}, "connected_services": {}, "exposed_services": {}}
    fixed = {
        "process_groups": [
            {
                "processes": [{"name": "hello", **services, "start_dir": ".", "cmds": ["echo Hello World!"]}],
                "name": "group",
                "start_dir": ".",
                "preamble_cmds": [],
            }
        ],
        "processes": [{"name": "alone", **services, "start_dir": ".", "cmds": ["echo I am alone"]}],
        "name": "exp",
        "ab": {},
        "port_range": "7000-8999",
        "start_dir": ".",
        "preamble_cmds": [],
    }
    assert exp.dump_dict() == fixed
    loaded = TmuxExperimentSpec.load_dict(fixed)
    assert (len(loaded.list_process_groups()), len(loaded.list_all_processes())) == (1, 2)
    assert loaded.dump_dict() == fixed


def test_an_empty_preamble_adds_nothing_to_a_dump() -> None:
    from symphony.engine import Cluster

    exp = Cluster.new("tmux").new_experiment("exp", preamble_cmds=[])
    exp.new_process_group("group", preamble_cmds=[]).new_process("hello", cmds=["echo"])
    assert (exp.dump_dict()["preamble_cmds"], "symph" in exp.dump_dict()) == ([], False)


# --- 6. switching the backend -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_script_is_launched_on_every_backend(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    from symphony.engine import Cluster

    cluster = Cluster.new(backend)
    exp = cluster.new_experiment("rl")
    learner = exp.new_process("learner", cmds=["echo l"], image="u:1")
    agent = exp.new_process_group("pack").new_process("agent", cmds=["echo a"], image="u:1")
    learner.binds("replay")
    agent.connects("replay")
    agent.set_envs({"A": 1})
    cluster.launch(exp, force=True, dry_run=True)
    said = capsys.readouterr().out
    assert ("learner" in said, "agent" in said) == (True, True)


def test_the_second_word_of_a_service_of_docker_is_its_image(capsys: pytest.CaptureFixture[str]) -> None:
    from symphony.engine import Cluster

    cluster = Cluster.new("docker")
    exp = cluster.new_experiment("rl")
    exp.new_process("server", "ubuntu:18.04")
    exp.new_process_group("pack").new_process("agent", "ubuntu:16.04")
    # The second word of a launch is `dry_run` there.
    cluster.launch(exp, True)
    services = yaml.safe_load(capsys.readouterr().out)["services"]
    assert {name: one["image"] for name, one in services.items()} == {
        "server": "ubuntu:18.04",
        "pack--agent": "ubuntu:16.04",
    }


# --- 7. docker settings -----------------------------------------------------------------------------------------------


def test_docker_settings_with_all_fields() -> None:
    from symphony import DockerBuilder

    builder = DockerBuilder.from_dict(
        {
            "name": "x",
            "temp_directory": "~/temp",
            "dockerfile": "~/Dockerfile",
            "context_directories": [{"name": "a", "path": "~/a", "force_update": False}],
            "verbose": False,
        }
    )
    assert builder.temp_directory == Path("~/temp/symphony_docker_build").expanduser()
    assert builder.dockerfile == Path("~/Dockerfile").expanduser()


def test_docker_settings_need_a_dockerfile_and_warn_without_a_context() -> None:
    from symphony.addons import DockerBuilder

    with pytest.warns(UserWarning, match="context"):
        builder = DockerBuilder.from_dict({"dockerfile": "D"})
    assert (builder.context_directories, builder.temp_directory.parent.name) == ([], "symphony")
    with pytest.raises(ValueError, match="dockerfile"):
        DockerBuilder.from_dict({"context_directories": []})


def test_an_experiment_is_json_after_all() -> None:
    assert json.loads(topdown().dump_json_str())["name"] == "rl"
