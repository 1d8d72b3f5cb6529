"""Integrations are found by the entry points that other packages use; `test_imports` checks what the core imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from symphony_charts.chart.build.registry import KINDS as BUILDERS
from symphony_charts.errors import SpecError
from symphony_charts.kinds.registry import ADDED
from symphony_charts.spec.data import from_data, to_data
from symphony_charts.system.launching import entry_points

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "symphony_charts"

# The names that other projects import, each a module of few lines.
PUBLIC = ("engine", "kube", "tmux", "commandline", "compat", "torchx_scheduler", "clusters/hera_flows")
FOLDERS = (*PUBLIC, "integrations")


def is_integration(module: str) -> bool:
    path = module.removeprefix("symphony_charts").lstrip(".").replace(".", "/")
    return any(path == folder or path.startswith(f"{folder}/") for folder in FOLDERS)


def test_names_of_integrations_are_texts_in_one_module_of_the_core() -> None:
    named = {
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if node.value.startswith("symphony_charts.") and is_integration(node.value.partition(":")[0])
        if not is_integration(".".join(file.relative_to(PACKAGE).with_suffix("").parts))
    }
    assert named == {"system/launching.py"}


@pytest.mark.parametrize("group", ["symph.kinds", "symph.importers", "symph.exporters"])
def test_every_entry_point_loads(group: str) -> None:
    loaded = {name: entry.load() for name, entry in entry_points(group).items()}
    assert len(loaded) >= 1
    if group != "symph.kinds":
        assert all(hasattr(module, "configure") or hasattr(module, "run") for module in loaded.values())


def test_an_added_kind_has_a_builder_of_its_name() -> None:
    assert {name for name, kind in ADDED.items() if kind.builder} <= BUILDERS.keys()
    assert [(kind.name, BUILDERS[name].name) for name, kind in ADDED.items()] == [(name, name) for name in ADDED]


def test_reading_a_spec_loads_no_integration() -> None:
    code = (
        "import sys; from symphony_charts.spec.data import from_data;"
        "from_data({'name': 'x', 'processes': {'a': {'command': ['x']}}}); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert [name for name in done.stdout.split() if name.startswith("symphony_charts.") and is_integration(name)] == []


def test_settings_of_a_kind_are_decoded_by_its_own_record() -> None:
    spec = {"name": "x", "processes": {"My_A": {"command": ["x"]}}}
    dijob = {"operator": "v1.1", "tasks": {"My_A": "learner"}}
    local = {"start": "in-order"}
    data = to_data(from_data({**spec, "workload": {"kind": "dijob", "dijob": dijob}, "local": local}))
    # Defaults are omitted, and names are sanitised.
    assert data["local"] == {}
    assert data["workload"] == {"kind": "dijob", "dijob": {"tasks": {"my-a": "learner"}}}


def test_all_faults_of_settings_and_the_rest_come_at_once() -> None:
    workload = {
        "kind": "dijobs",
        "retry": 1,
        "dijob": {"operator": "v9", "prioritty": "high", "tasks": {"a": 1}},
        "argo": {"submit": "yes", "schedules": [{}]},
    }
    with pytest.raises(SpecError) as caught:
        from_data({"name": "x", "processes": {"a": {"command": ["x"], "gpus": "all"}}, "workload": workload})
    faults = {problem.path: problem for problem in caught.value.problems}
    assert faults.keys() == {
        *("processes.a.gpus", "workload.kind", "workload.retry"),
        *("workload.dijob.operator", "workload.dijob.prioritty", "workload.dijob.tasks.a"),
        *("workload.argo.submit", "workload.argo.schedules[0]"),
    }
    assert faults["workload.kind"].next == 'did you mean "dijob"?'
    assert faults["workload.dijob.operator"].what == '"v9" is none of: v0, v1.0, v1.1, v1.1.0'
    assert faults["workload.dijob.prioritty"].next == 'did you mean "priority"?'
    assert all(fault.what and fault.next for fault in faults.values())
