"""Parity: a process sees the same in tmux as its container, but for the closed list."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from symphony_charts.chart.build.chart import Release, build
from symphony_charts.local import up
from symphony_charts.local.machine.machine import plan_here
from symphony_charts.local.runs import Run
from symphony_charts.spec import files as specfile
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import allocate
from tests.local.parity.pod_view import view_of_manifests
from tests.local.parity.process_view import ProcessView, differences, file_mark, view_of_plan
from tests.local.runs import until

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = {
    path.parent.name: path
    for name in ("rl", "surreal", "ring", "ring-group", "integrate")
    for path in (ROOT / "examples" / name).glob("experiment.*")
    if path.suffix in (".py", ".yaml") and not path.name.endswith(".lock.yaml")
}


def planned(experiment: Experiment, folder: Path) -> dict[str, ProcessView]:
    return view_of_plan(plan_here(experiment, allocate(experiment), folder, "r1"))


def in_pods(experiment: Experiment) -> dict[str, ProcessView]:
    chart = build(experiment, allocate(experiment))
    return view_of_manifests(chart.objects(chart.values, Release(name="demo")))


def observed(run: Run, planned_view: ProcessView, slot: int) -> ProcessView | None:
    """Return the kernel's record of a process, None until it runs: arguments, environment, folder, files."""
    pid_file = run.process_dir(slot) / "pid"
    pid = pid_file.read_text().strip() if pid_file.exists() else ""
    proc = Path("/proc") / pid
    if not pid or _argv(proc)[:1] != planned_view.argv[:1]:
        return None
    entries = (proc / "environ").read_bytes().decode().split("\0")
    files = {path: _mark(proc / "root" / path.lstrip("/")) for path in planned_view.files}
    return replace(
        planned_view,
        argv=_argv(proc),
        env=dict(entry.split("=", 1) for entry in entries if entry),
        cwd=str((proc / "cwd").readlink()),
        files=files,
    )


def _argv(proc: Path) -> tuple[str, ...]:
    return tuple((proc / "cmdline").read_bytes().decode().split("\0")[:-1])


def _mark(path: Path) -> str:
    return file_mark(path.read_bytes(), path.stat().st_mode & 0o777)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_plan_of_an_example_agrees_with_its_chart(name: str) -> None:
    spec = specfile.read(EXAMPLES[name])
    here, there = planned(spec.experiment, spec.path.parent), in_pods(spec.experiment)
    assert here.keys() == there.keys()
    assert {key: differences(here[key], there[key]) for key in here} == {key: [] for key in here}


@pytest.mark.usefixtures("tmux")
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_processes_of_an_example_see_what_their_containers_see(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{ROOT}/.venv/bin:{os.environ['PATH']}")
    spec = specfile.read(EXAMPLES[name])
    run = up.up(spec.experiment, allocate(spec.experiment), folder=spec.path.parent)
    assert run is not None
    there, here = in_pods(spec.experiment), planned(spec.experiment, spec.path.parent)
    slots = {f"{item.pod}/{item.process}": item.slot for item in run.plan().processes}
    hosts = frozenset(item.address for item in run.plan().processes)
    seen: dict[str, ProcessView] = {}

    def all_seen() -> bool:
        for key in here.keys() - seen.keys():
            view = observed(run, replace(here[key], hosts=hosts), slots[key])
            if view is not None:
                seen[key] = view
        return seen.keys() == here.keys()

    until(all_seen)
    assert {key: differences(seen[key], there[key]) for key in seen} == {key: [] for key in here}


def test_a_changed_variable_is_a_difference() -> None:
    data = {"name": "x", "image": "i", "processes": {"a": {"command": ["c"], "env": {"LR": "1"}}}}
    changed = {"name": "x", "image": "i", "processes": {"a": {"command": ["c"], "env": {"LR": "2"}}}}
    here, there = planned(from_data(data), Path("/")), in_pods(from_data(changed))
    assert differences(here["a/a"], there["a/a"]) == ["env LR: '1' here, '2' in the pod"]


def test_a_changed_file_is_a_difference() -> None:
    data = {"name": "x", "image": "i", "processes": {"a": {"command": ["c"]}}, "configs": {"f": {"text": "1"}}}
    changed = {**data, "configs": {"f": {"text": "2"}}}
    here, there = planned(from_data(data), Path("/")), in_pods(from_data(changed))
    assert [text.partition(":")[0] for text in differences(here["a/a"], there["a/a"])] == ["file /etc/symph/config/f"]


def test_a_changed_port_is_a_difference() -> None:
    data = {"name": "x", "image": "i", "processes": {"a": {"command": ["c"], "binds": {"s": 7000}}}}
    changed = {"name": "x", "image": "i", "processes": {"a": {"command": ["c"], "binds": {"s": 7001}}}}
    here, there = planned(from_data(data), Path("/")), in_pods(from_data(changed))
    found = {text.partition(":")[0] for text in differences(here["a/a"], there["a/a"])}
    assert found == {"env SYMPH_S_ADDR", "env SYMPH_S_HOSTS", "env SYMPH_S_PORT"}
