"""A dump contains all settings, and Symphony's dumps can be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_read import load
from symphony_charts.importers.input_file import read
from symphony_charts.integrations.symphony.importer import import_legacy
from symphony_charts.integrations.symphony.kube import KubeExperimentSpec, KubeProcessSpec
from symphony_charts.integrations.symphony.spec import ExperimentSpec
from symphony_charts.integrations.symphony.subproc import SubprocExperimentSpec
from symphony_charts.integrations.symphony.tmux import TmuxExperimentSpec, TmuxProcessGroupSpec
from symphony_charts.spec.data import from_data, to_data
from symphony_charts.spec.pods import allocate
from tests.chart.strategies import experiments
from tests.compat.conftest import EXAMPLES

KINDS = [KubeExperimentSpec, TmuxExperimentSpec, SubprocExperimentSpec]


@pytest.mark.parametrize("kind", KINDS)
@given(data=experiments())
@settings(max_examples=25)
def test_an_experiment_survives_each_backends_dump(kind: type[ExperimentSpec], data: dict[str, Any]) -> None:
    made = kind.from_experiment(from_data(data))
    assert isinstance(made, ExperimentSpec)
    again = kind.load_dict(json.loads(json.dumps(made.dump_dict())))
    assert to_data(again.finish()) == to_data(made.finish())
    assert again.dump_dict() == made.dump_dict()


def test_the_importer_reads_the_dump_of_a_launcher_whole() -> None:
    exp = KubeExperimentSpec("rl")
    process = exp.new_process("p", container_image="u:1", args=["x"])
    process.exposes("tb")
    process.pod_yml.data.spec["hostNetwork"] = True
    process.container_yml.data["securityContext"] = {"privileged": True}
    exp.compile()
    imported = import_legacy(read(exp.dump_yaml_str().encode(), "dump.yaml"))
    assert imported.experiment == exp.finish()
    assert imported.report.lost == ()


@pytest.mark.parametrize("file", ["symphony-tmux.yaml", "symphony-kube.yaml"])
def test_what_symphony_itself_dumped_is_loaded(file: str) -> None:
    text = (EXAMPLES / "import" / file).read_text()
    kind = TmuxExperimentSpec if "tmux" in file else KubeExperimentSpec
    data = load(text)
    assert isinstance(data, dict)
    loaded = kind.load_yaml_str(text)
    assert [one.name for one in loaded.list_processes()] == [one["name"] for one in data["processes"]]
    assert kind.load_dict(loaded.dump_dict()).dump_dict() == loaded.dump_dict()


def test_this_packages_own_form_is_loaded_too() -> None:
    loaded = KubeExperimentSpec.load_dict({"name": "rl", "image": "u:1", "processes": {"a": {"args": "x"}}})
    assert loaded.get_process("a").to_data() == {"args": ["x"]}


def test_tmux_dumps_its_own_form_where_symphonys_would_lose_something() -> None:
    exp = TmuxExperimentSpec("rl")
    exp.new_process("p", cmds=["x"])
    assert exp.dump_dict()["processes"][0]["name"] == "p"
    exp.get_process("p").set_envs({"A": 1})
    dumped = exp.dump_dict()
    assert dumped["processes"]["p"]["env"] == {"A": "1"}
    assert TmuxExperimentSpec.load_dict(dumped).finish() == exp.finish()


RECORDED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("symphony-0.10-dumps.json").read_text())


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: str(case["backend"]))
def test_the_calls_of_a_recorded_dump_make_what_is_read_from_it(case: dict[str, Any]) -> None:
    kind = KubeExperimentSpec if case["backend"] == "kube" else TmuxExperimentSpec
    held: dict[str, Any] = {"": kind(**case["experiment"])}
    for name, on, method, words, keywords in case["calls"]:
        held[name or "_"] = getattr(held[on], method)(*words, **keywords)
    read = kind.load_dict(case["dump"])
    assert read.dump_dict()["processes"] == held[""].dump_dict()["processes"]
    if kind is TmuxExperimentSpec:
        assert read.dump_dict() == case["dump"]


@pytest.mark.parametrize("form", ["yaml_str", "json_str"])
def test_a_process_and_a_group_are_written_and_read_by_themselves(form: str) -> None:
    group = TmuxProcessGroupSpec("g", preamble_cmds=["cd /tmp"])
    process = group.new_process("a", cmds=["run"], start_dir="/x")
    process.binds({"replay": 7100})
    for spec in (process, group):
        text = getattr(spec, f"dump_{form}")()
        read = getattr(type(spec), f"load_{form}")(string=text)
        assert (type(read), read.dump_dict()) == (type(spec), spec.dump_dict())


def test_a_process_is_written_to_a_file_and_read_from_it(tmp_path: Path) -> None:
    process = KubeProcessSpec("a", container_image="u:1", env={"A": "1"})
    process.dump_json_file(file_path=tmp_path / "a.json", indent=4)
    read = type(process).load_file(file_path=tmp_path / "a.json")
    assert read.dump_dict() == process.dump_dict()
    assert (tmp_path / "a.json").read_text().startswith('{\n    "name"')


def test_a_list_of_ports_is_given_out_one_by_one_in_symphonys_order() -> None:
    exp = KubeExperimentSpec("x", port_range=[9000, 9010, 9020])
    exp.new_process("a", container_image="u:1").binds({"r": None, "fixed": 9010})
    exp.new_process("b", container_image="u:1").exposes("t")
    ports = {service.name: service.port for service in allocate(exp.finish())}
    assert ports == {"t": 9000, "fixed": 9010, "r": 9020}
    assert KubeExperimentSpec.load_dict(exp.dump_dict()).finish() == exp.finish()
    exp.get_process("b").binds("more")
    with pytest.raises(SpecError, match="3 services need a port"):
        exp.finish()
