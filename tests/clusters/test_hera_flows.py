"""Authors of hera flows can add an experiment to a flow as a template."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

hera = pytest.importorskip("hera.workflows")

from symphony_charts.clusters.hera_flows import hera_flows  # noqa: E402  # needs hera

SPEC = Path(__file__).resolve().parents[2] / "examples/sweep/experiment.yaml"


def test_an_experiment_is_a_template_and_a_workflow() -> None:
    flows = hera_flows(SPEC, release="mine")
    assert {kind: str(flow.name).partition("-descent")[0] for kind, flow in flows.items()} == {
        "WorkflowTemplate": "mine",
        "Workflow": "mine",
    }
    template = flows["WorkflowTemplate"]
    assert yaml.safe_load(template.to_yaml()) == template.to_dict()


def test_a_flow_of_ones_own_runs_the_template(tmp_path: Path) -> None:
    spec = Path(shutil.copytree(SPEC.parent, tmp_path / "sweep")) / SPEC.name
    spec.write_text(SPEC.read_text() + "workload: {argo: {parameters: [LR]}}\n")
    template = hera_flows(spec, values={"workload": {"parameters": {"LR": "0.1"}}})["WorkflowTemplate"]
    (default,) = template.to_dict()["spec"]["arguments"]["parameters"]
    assert default == {"name": "LR", "value": "0.1"}
    with hera.Workflow(name="own", entrypoint="d") as flow, hera.DAG(name="d"):
        reference = hera.models.TemplateRef(name=template.name, template="experiment")
        hera.Task(name="train", template_ref=reference, arguments={"LR": "0.3"})
    (task,) = flow.to_dict()["spec"]["templates"][0]["dag"]["tasks"]
    assert task["templateRef"] == {"name": "descent", "template": "experiment"}
    assert task["arguments"]["parameters"] == [{"name": "LR", "value": "0.3"}]
