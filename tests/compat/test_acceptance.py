"""The test cases of Symphony itself, through its own import names."""

# Names exist only while the fixture holds them, so imports are inside the tests.
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from symphony_charts.kinds.base import is_conductor
from tests.compat.conftest import Script
from tests.waiting import eventually

pytestmark = pytest.mark.usefixtures("symphony", "own_state")


# --- kube, top down and bottom up ------------------------------------------------------------------------------------


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
def test_ports_are_given_to_exposed_services_first_and_a_dump_compiles_to_the_same_again(
    make: Callable[[], Any],
) -> None:
    from symphony.kube import KubeExperimentSpec

    exp = make()
    assert exp.address_book.entries == exp.dump_dict()["ab"] == {}
    compiled, entries = exp.compile(), exp.address_book.entries
    assert {name: entry["port"] for name, entry in entries.items()} == {"tensorboard": 7000, "myserver": 7001}
    assert exp.dump_dict()["ab"] == entries
    loaded = [KubeExperimentSpec.load_dict(exp.dump_dict())]
    for text in ("yaml", "json"):
        loaded.append(getattr(KubeExperimentSpec, f"load_{text}_str")(getattr(exp, f"dump_{text}_str")()))
    for again in loaded:
        assert (again.compile(), again.dump_dict()) == (compiled, exp.dump_dict())


def test_what_is_said_of_a_lone_process_stands_in_its_pod() -> None:
    documents = list(yaml.safe_load_all(topdown().compile()))
    pods = {
        item["metadata"]["labels"]["symph.dev/group"]: item["spec"]["template"]["spec"]
        for item in documents
        if item["kind"] in ("Job", "StatefulSet") and not is_conductor(item)
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
    assert "changed: containers have no capabilities" in err
    assert "which the input does not: group/proc1, group/proc2, agent0 and 7 more" in err
    Cluster.new("kubernetes").launch(topdown(), dry_run=True)
    assert "changed:" not in capsys.readouterr().err  # once in a script


def test_a_launcher_that_is_read_as_a_spec_reports_no_defaults(script: Script, tmp_path: Path) -> None:
    (tmp_path / "launch.py").write_text(
        "from symphony import Cluster\ncluster = Cluster.new('kube')\nexp = cluster.new_experiment('rl')\n"
        "exp.new_process('p', container_image='u:1', args=['x'])\ncluster.launch(exp)\n"
    )
    done = script("render", tmp_path / "launch.py", module=("-m", "symphony_charts"))
    assert (done.returncode, "changed:" in done.stderr) == (0, False), done.stderr


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
    assert ("kind: Job" in shown.out, "learner has no image" in shown.err) == (True, True)


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
    # A container has one probe: it checks the first of the ports that others dial.
    assert probes == {"tensorboard": None, "learner": {"tcpSocket": {"port": "publish"}}}


# --- tmux, top down --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [None, "", "a:b", "a.b"])
def test_tmux_refuses_names_that_it_cannot_have(name: Any) -> None:
    from symphony.engine import Cluster

    cluster = Cluster.new("tmux")
    exp = cluster.new_experiment("valid_name")
    for make in (cluster.new_experiment, exp.new_process_group, exp.new_process):
        with pytest.raises(ValueError, match="is not a valid name"):
            make(name)


def default_tmux(name: str = "exp") -> tuple[Any, Any]:
    """Return the default experiment of Symphony's tests: a group with `hello`, and `alone`; they run until ended."""
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
    # It ignores TERM, and deleting it must not take the default grace period of half a minute.
    (plan,) = live_plans()
    assert [process.grace_s for process in plan.processes] == [1]
    cluster.delete("empty")
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


def test_an_unknown_experiment_is_a_value_error() -> None:
    cluster, _ = default_tmux()
    for call in (cluster.describe_experiment, cluster.delete):
        with pytest.raises(ValueError, match="nobody"):
            call("nobody")


def test_preambles_come_before_the_commands_the_experiments_first() -> None:
    cluster, exp = default_tmux()
    cluster.launch(exp)
    hello = eventually(lambda: (log := cluster.get_log("exp", "hello", "group"))[2:] and log)
    assert hello[:3] == ["of-the-experiment", "of-the-group", "Hello World!"]
    alone = eventually(lambda: (log := cluster.get_log("exp", "alone"))[1:] and log)
    assert alone[:2] == ["of-the-experiment", "I am alone"]
    assert cluster.get_log("exp", "alone", tail=1) == ["I am alone"]


def test_an_empty_preamble_adds_nothing_to_a_dump() -> None:
    from symphony.engine import Cluster

    exp = Cluster.new("tmux").new_experiment("exp", preamble_cmds=[])
    exp.new_process_group("group", preamble_cmds=[]).new_process("hello", cmds=["echo"])
    assert (exp.dump_dict()["preamble_cmds"], "process_groups" in exp.dump_dict()) == ([], True)


# --- docker settings -------------------------------------------------------------------------------------------------


def test_docker_settings_need_a_dockerfile_and_warn_without_a_context() -> None:
    from symphony.addons import DockerBuilder

    with pytest.warns(UserWarning, match="context"):
        builder = DockerBuilder.from_dict({"dockerfile": "D"})
    assert (builder.context_directories, builder.temp_directory.parent.name) == ([], "symphony")
    with pytest.raises(ValueError, match="dockerfile"):
        DockerBuilder.from_dict({"context_directories": []})
