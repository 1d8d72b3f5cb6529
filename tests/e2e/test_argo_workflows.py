"""Flows before Argo Workflows' own code: its definitions in an API server, its lint, its expansion."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.adapters import specfile
from symphony_charts.chart.assemble import Release, assemble
from symphony_charts.chart.merge import merge
from symphony_charts.spec.yaml_text import dump_all
from tests.chart.harness import EXAMPLE_NAMES, chart_of, example_chart
from tests.e2e.programs import Programs
from tests.e2e.test_gitops_objects import accept
from tests.e2e.tools.build import FOLDER
from tests.e2e.tools.modules import ARGO_WORKFLOWS, module_folder
from tests.workloads.test_argo import PIPELINE, VARIANTS, experiment, native, of_kind
from tests.workloads.test_argo_sweep import TRIALS, flow_of

FLOWS = ("WorkflowTemplate", "Workflow", "CronWorkflow")
RIGHTS = ("ServiceAccount", "Role", "RoleBinding")


@pytest.fixture(scope="module")
def definitions(programs: Programs) -> None:
    """The full definitions of Argo Workflows are in the cluster, and served."""
    folder = module_folder(ARGO_WORKFLOWS) / "manifests" / "base" / "crds" / "full"
    names = []
    for kind in FLOWS:
        file = folder / f"argoproj.io_{kind.lower()}s.yaml"
        programs.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(file))
        names.append(f"{kind.lower()}s.argoproj.io")
    programs.establish(*names)


def argo(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What Argo's own packages say."""
    program = FOLDER / "argo"
    if not program.exists():
        if os.environ.get("SYMPH_REQUIRE_TOOLS"):
            pytest.fail("python -m tests.e2e.tools build argo")
        pytest.skip("argo is not built: python -m tests.e2e.tools build argo")
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120, check=False)


def lint(objects: list[dict[str, object]], folder: Path) -> subprocess.CompletedProcess[str]:
    """What ``argo lint`` says of the flows among `objects`, with a flow for each one that they need."""
    made = [item for item in objects if item["kind"] in FLOWS]
    needed = {
        task["name"]
        for item in made
        for template in item.get("spec", {}).get("templates", [])  # type: ignore[attr-defined]  # parsed JSON
        for task in template.get("dag", {}).get("tasks", [])
        if "templateRef" in task
    }
    other = of_kind(native(argo={"submit": False}), "WorkflowTemplate")
    made += [{**other, "metadata": {"name": name}} for name in sorted(needed)]
    file = folder / "flows.yaml"
    file.write_text(dump_all(made))
    return argo("lint", str(file))


@pytest.mark.usefixtures("definitions")
def test_the_api_server_knows_every_field_of_a_flow(programs: Programs, namespace: str) -> None:
    flows = [item for sets, own, said in VARIANTS.values() for item in native(*sets, argo=own, **said).values()]
    flows.append(flow_of(TRIALS, parallel=2))
    accept(programs, namespace, *[item for item in flows if item["kind"] in (*FLOWS, *RIGHTS)])


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "none"])
def test_argos_own_lint_finds_nothing(variant: str, tmp_path: Path) -> None:
    sets, own, said = VARIANTS[variant]
    objects = list(native(*sets, argo=own, **said).values())
    ended = lint(objects, tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("name", EXAMPLE_NAMES)
def test_argos_own_lint_finds_nothing_in_the_examples(name: str, tmp_path: Path) -> None:
    chart = example_chart(name)
    values = merge(chart.values, {"workload": {"kind": "argo", "gang": "none"}})
    ended = lint(assemble(values, Release(name="r1", chart_name=chart.name)), tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_argos_own_lint_finds_what_one_flow_needs_of_another(tmp_path: Path) -> None:
    charts = [chart_of(specfile.read(path).experiment) for path in PIPELINE]
    flows = [
        item
        for chart in charts
        for item in assemble(chart.values, Release(name=chart.name, chart_name=chart.name))
        if item["kind"] in FLOWS
    ]
    assert [item["kind"] for item in flows] == ["WorkflowTemplate", "WorkflowTemplate", "CronWorkflow"]
    file = tmp_path / "flows.yaml"
    file.write_text(dump_all(flows))
    ended = argo("lint", str(file))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    file.write_text(dump_all(flows[1:]))
    assert argo("lint", str(file)).returncode


def test_argos_own_lint_finds_a_task_without_a_template(tmp_path: Path) -> None:
    flow = of_kind(native(), "WorkflowTemplate")
    flow["spec"]["templates"].pop()
    assert lint([flow], tmp_path).returncode


def test_argo_expands_what_is_ours_and_nothing_of_the_users(tmp_path: Path) -> None:
    flow = of_kind(native(argo={"parameters": ["LR"]}), "WorkflowTemplate")
    file = tmp_path / "flow.yaml"
    file.write_text(dump_all([flow]))
    ended = argo("expand", str(file), 'LR=0.3 "quoted" <&>')
    assert ended.returncode == 0, ended.stderr
    jobs = {job["metadata"]["labels"]["symph.dev/group"]: job for job in map(json.loads, ended.stdout.splitlines())}
    owner = jobs["learner"]["metadata"].pop("ownerReferences")
    assert [(one["name"], one["uid"]) for one in owner] == [("w-name", "w-uid")]
    learner = container(jobs["learner"])
    env = {entry["name"]: entry.get("value") for entry in learner["env"]}
    process = experiment().processes["learner"]
    assert (env["LR"], env["BRACES"], env["H"]) == ('0.3 "quoted" <&>', process.env["BRACES"], process.env["H"])
    assert learner["command"] == process.command


def container(job: dict[str, Any]) -> dict[str, Any]:
    """The first container of a Job."""
    (first, *_) = job["spec"]["template"]["spec"]["containers"]
    return dict(first)


def test_without_our_escapes_argo_would_expand_what_the_user_wrote(tmp_path: Path) -> None:
    flow = json.loads(json.dumps(of_kind(native(), "WorkflowTemplate")).replace("{\\\\u007b", "{{"))
    file = tmp_path / "flow.yaml"
    file.write_text(dump_all([flow]))
    ended = argo("expand", str(file))
    assert ended.returncode or "w-name {" in ended.stdout
