"""Scripts read, assign and append to the public attributes of Symphony 0.10's specs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.errors import SpecError
from tests.compat.conftest import Script

pytestmark = pytest.mark.usefixtures("symphony")

# Source: symphony 0.10, symphony/{spec,tmux,kube,subproc}/{experiment,process,process_group}.py.
OF_PROCESSES = ["name", "parent_process_group", "parent_experiment"]
OF_PROCESSES += ["binded_services", "connected_services", "exposed_services"]
OF_EXPERIMENTS = ["name", "address_book", "lone_processes", "all_processes", "process_groups"]
OF_EXPERIMENTS += ["port_range", "binded_services", "exposed_services"]
READ = {
    "kube": (
        [*OF_EXPERIMENTS, "secrets"],
        ["name", "processes", "parent_experiment", "pod_yml"],
        [*OF_PROCESSES, "container_image", "standalone", "container_yml", "pod_yml"],
    ),
    "tmux": (
        [*OF_EXPERIMENTS, "start_dir", "preamble_cmds"],
        ["name", "processes", "parent_experiment", "start_dir", "preamble_cmds"],
        [*OF_PROCESSES, "start_dir", "cmds", "env"],
    ),
    "subproc": (OF_EXPERIMENTS, ["name", "processes", "parent_experiment"], [*OF_PROCESSES, "cmd", "env"]),
}


def built(backend: str) -> tuple[Any, Any, Any]:
    """Return an experiment with a group of one process and a lone process."""
    from symphony import Cluster

    exp = Cluster.new(backend).new_experiment("rl")
    words = {"container_image": "u:1", "command": ["run"]} if backend == "kube" else {"cmd": "echo old"}
    group = exp.new_process_group("g")
    group.new_process("inner", **words)
    return exp, group, exp.new_process("p", **words)


@pytest.mark.parametrize("backend", READ)
def test_every_attribute_is_read(backend: str) -> None:
    for spec, names in zip(built(backend), READ[backend], strict=True):
        for name in names:
            getattr(spec, name)
    exp, group, process = built(backend)
    assert (exp.lone_processes["p"], list(exp.all_processes), exp.process_groups["g"]) == (
        process,
        ["inner", "p"],
        group,
    )
    assert (group.processes["inner"].parent_process_group, process.parent_experiment) == (group, exp)
    assert exp.port_range[:2] == [7000, 7001]
    assert exp.finish() == built(backend)[0].finish()  # reading changed nothing


def fields(process: Any) -> Any:
    return process.experiment.finish().processes["p"]


@pytest.mark.parametrize(
    ("change", "field", "expected"),
    [
        (lambda p: setattr(p, "cmds", ["a", "b"]), "cmds", ["a", "b"]),
        (lambda p: p.cmds.append("b"), "cmds", ["echo old", "b"]),
        (lambda p: setattr(p, "env", {"A": "1"}), "env", {"A": "1"}),
        (lambda p: p.env.update(B=2), "env", {"B": "2"}),
        (lambda p: setattr(p, "start_dir", "/x"), "cwd", "/x"),
        (lambda p: setattr(p, "binded_services", {"s": 1234}), "binds", {"s": 1234}),
        (lambda p: p.exposed_services.update(t=None), "exposes", {"t": None}),
    ],
)
def test_a_change_of_a_process_is_launched(change: Callable[[Any], object], field: str, expected: object) -> None:
    process = built("tmux")[2]
    change(process)
    made = getattr(fields(process), field)
    assert ({name: str(value) for name, value in made.items()} if field == "env" else made) == expected


def test_lines_may_be_appended_where_there_were_none() -> None:
    from symphony.tmux import TmuxExperimentSpec, TmuxProcessSpec

    process = TmuxProcessSpec("p")
    process.cmds.append("echo new")
    exp = TmuxExperimentSpec("rl")
    exp.add_process(process)
    assert fields(process).cmds == ["echo new"]


def test_connected_services_are_a_map() -> None:
    exp, group, process = built("tmux")
    group.processes["inner"].binded_services["s"] = None
    process.connected_services["s"] = None
    assert (dict(process.connected_services), fields(process).connects) == ({"s": None}, ["s"])
    process.connected_services = {}
    assert fields(process).connects == []
    assert exp.binded_services == {"s": None}


def test_a_change_of_a_group_or_an_experiment_is_launched() -> None:
    exp, group, _ = built("tmux")
    exp.preamble_cmds += ["source x"]
    exp.start_dir = "/work"
    exp.port_range = [7100, 7200, 7300]
    group.preamble_cmds.append("source y")
    group.start_dir = "/g"
    group.processes["inner"].binded_services["s"] = None
    made = exp.finish()
    inner = made.groups["g"].processes["inner"]
    assert (made.local.preamble, made.local.cwd) == (["source x"], "/work")
    assert (inner.preamble, inner.cwd, inner.binds) == (["source y"], "/g", {"s": 7100})
    secret = built("kube")[0]
    secret.secrets.append("~/k.txt")
    assert [each.file for each in secret.finish().secrets] == ["~/k.txt"]


def test_a_port_that_is_removed_from_the_range_is_not_given() -> None:
    exp, _, process = built("tmux")
    process.binds("s")
    exp.port_range.remove(7000)
    assert exp.finish().processes["p"].binds == {"s": 7001}


def test_a_new_name_counts() -> None:
    exp, group, process = built("tmux")
    process.name, group.name, exp.name = "q", "h", "other"
    made = exp.finish()
    assert (made.name, list(made.processes), list(made.groups)) == ("other", ["q"], ["h"])
    assert exp.get_process("q") is process


@pytest.mark.parametrize(
    ("backend", "index", "name", "hint"),
    [
        ("kube", 2, "conainer_image", "container_image"),
        ("tmux", 2, "cmd_lines", ""),
        ("tmux", 1, "preamble_cmd", "preamble_cmds"),
        ("tmux", 0, "port_rang", "port_range"),
        ("tmux", 2, "binds", "call binds"),
        ("tmux", 0, "all_processes", "add_"),
    ],
)
def test_what_symphony_did_not_have_is_refused(backend: str, index: int, name: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        setattr(built(backend)[index], name, {})
    assert name in str(caught.value)
    assert hint in str(caught.value)


def test_a_class_of_a_project_has_attributes_of_its_own() -> None:
    from symphony.tmux import TmuxProcessSpec

    class Worker(TmuxProcessSpec):  # type: ignore[misc]  # a module that exists in compat runs alone
        def __init__(self, name: str) -> None:
            super().__init__(name)
            self.rank = 3

    worker = Worker("w")
    with pytest.raises(SpecError, match="start_dir"):
        worker.start_dirr = "/x"
    assert worker.rank == 3


def test_a_script_that_assigns_starts_what_it_assigned(script: Script, tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(
        "from symphony import Cluster\ncluster = Cluster.new('tmux')\nexp = cluster.new_experiment('rl')\n"
        "p = exp.new_process('p', cmds=['echo old'])\np.cmds = ['echo new $A']\np.env['A'] = 1\n"
        "cluster.launch(exp, dry_run=True)\n"
    )
    done = script(tmp_path / "s.py")
    assert (done.returncode, "echo new" in done.stdout, "echo old" in done.stdout) == (0, True, False), done.stderr
