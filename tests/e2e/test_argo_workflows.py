"""Flows in Argo Workflows' own code: its definitions in an API server, its lint, its expansion."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.chart.build.chart import Release
from symphony_charts.formats.yaml_write import dump_all
from symphony_charts.spec import files
from tests.chart.harness import EXAMPLE_NAMES, Objects, built_of, example
from tests.e2e.programs import Programs
from tests.e2e.test_gitops_objects import accept
from tests.e2e.tools.build import FOLDER
from tests.e2e.tools.modules import ARGO_WORKFLOWS
from tests.kinds.test_argo import PIPELINE, VARIANTS, experiment, native, of_kind
from tests.sweep.test_argo import TRIALS, flow_of
from tests.waiting import eventually

FLOWS = ("WorkflowTemplate", "Workflow", "CronWorkflow")
RIGHTS = ("ServiceAccount", "Role", "RoleBinding")


@pytest.fixture(scope="module")
def definitions(programs: Programs) -> None:
    """Install the full definitions of Argo Workflows in the cluster, and wait until they are served."""
    for kind in FLOWS:
        programs.define(ARGO_WORKFLOWS, f"manifests/base/crds/full/argoproj.io_{kind.lower()}s.yaml")


def argo(*arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    program = FOLDER / "argo"
    if not program.exists():
        if os.environ.get("SYMPH_REQUIRE_TOOLS"):
            pytest.fail("python -m tests.e2e.tools build argo")
        pytest.skip("argo is not built: python -m tests.e2e.tools build argo")
    argv = [str(program), *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, env=env, check=False)


def lint(objects: list[dict[str, object]], folder: Path) -> subprocess.CompletedProcess[str]:
    """Return the output of ``argo lint`` for the flows among `objects`, with a fake flow for each needed one."""
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


def test_argos_own_lint_finds_nothing_in_variants_examples_and_a_sweep(tmp_path: Path) -> None:
    flows = {
        name: list(native(*sets, argo=own, **said).values())
        for name, (sets, own, said) in VARIANTS.items()
        if name != "none"
    }
    for name in EXAMPLE_NAMES:
        chart = built_of(example(name, {"kind": "argo"}))
        flows[name] = chart.objects(chart.values, Release(name="r1"))
    flows["sweep"] = [flow_of(TRIALS, parallel=2)]
    for name, objects in flows.items():
        ended = lint(objects, tmp_path)
        assert ended.returncode == 0, (name, ended.stdout + ended.stderr)


def test_argos_own_lint_finds_what_one_flow_needs_of_another(tmp_path: Path) -> None:
    charts = [built_of(files.read(path).experiment) for path in PIPELINE]
    objects = [item for chart in charts for item in chart.objects(chart.values, Release(name=chart.name))]
    flows = [item for item in objects if item["kind"] in FLOWS]
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
    (first, *_) = job["spec"]["template"]["spec"]["containers"]
    return dict(first)


def test_without_our_escapes_argo_would_expand_what_the_user_wrote(tmp_path: Path) -> None:
    flow = json.loads(json.dumps(of_kind(native(), "WorkflowTemplate")).replace("{\\\\u007b", "{{"))
    file = tmp_path / "flow.yaml"
    file.write_text(dump_all([flow]))
    ended = argo("expand", str(file))
    assert ended.returncode or "w-name {" in ended.stdout


# --- the executor's part, on a cluster --------------------------------------------------------------------------------

_STEPS = {
    "learner": {"cmds": ['echo "lr $LR {{workflow.name}}"', "exec sleep 1"], "env": {"LR": "0.1"}},
    "actor": {"cmds": ["exec sleep 600"], "grace_period": 1},
    "broken": {"cmds": ["exec false"], "retries": 1},
    "shards": {"cmds": ['test "$SYMPH_INDEX" = 0'], "replicas": 2, "retries": 1},
    "late": {"cmds": ["exec sleep 600"], "deadline": 2, "grace_period": 1},
}


class Executor:
    """Argo's executor, at work for one flow in one namespace of the cluster."""

    def __init__(self, programs: Programs, namespace: str, folder: Path, objects: Objects) -> None:
        flow = of_kind(objects, "WorkflowTemplate")
        self._programs, self._namespace = programs, namespace
        self._file = folder / "flow.yaml"
        self._file.write_text(dump_all([flow]))
        self._config = folder / "kubeconfig"
        self._config.write_bytes(programs.kubeconfig.read_bytes())
        use = ["config", "set-context", "--current", f"--namespace={namespace}", f"--kubeconfig={self._config}"]
        programs.kubectl(*use)
        owner = {**flow, "kind": "Workflow", "spec": {"suspend": True, **flow["spec"]}}
        maps = [item for (kind, _), item in objects.items() if kind == "ConfigMap"]
        programs.kubectl("create", "-n", namespace, "-f", "-", stdin=dump_all([owner, *maps]))
        self.workflow = flow["metadata"]["name"]
        self.uid = self.ask("get", "workflow", self.workflow, "-o", "jsonpath={.metadata.uid}")

    def ask(self, *arguments: str) -> str:
        return self._programs.kubectl("-n", self._namespace, *arguments)

    def run(self, template: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        given = [f"workflow.name={self.workflow}", f"workflow.uid={self.uid}"]
        given += [f"{key}={value}" for key, value in inputs.items()]
        env = {
            "KUBECONFIG": str(self._config),
            "RESOURCE_STATE_CHECK_INTERVAL": "500ms",
            "HOME": str(self._file.parent),
        }
        return argo("run", str(self._file), template, *given, env=env)

    def jobs(self) -> set[str]:
        said = self.ask("get", "jobs", "-o", "jsonpath={.items[*].metadata.labels.symph\\.dev/group}")
        return set(said.split())


@pytest.fixture
def executor(definitions: None, programs: Programs, namespace: str, tmp_path: Path) -> Executor:
    """Return the executor of an experiment in which the learner decides the end and one process fails."""
    own = {"parameters": ["LR"]}
    said = {"processes": _STEPS, "done_when": ["learner", "broken", "shards", "late"]}
    return Executor(programs, namespace, tmp_path, native(argo=own, **said))


def test_the_executor_creates_waits_for_and_deletes_the_jobs(executor: Executor) -> None:
    steps = [executor.run("clear"), executor.run("run-actor", LR="0.3"), executor.run("run-learner", LR='0."3')]
    assert [step.returncode for step in steps] == [0, 0, 0], steps[-1].stdout + steps[-1].stderr
    assert executor.jobs() == {"actor", "learner"}
    assert executor.ask("logs", "-l", "symph.dev/group=learner") == 'lr 0."3 {{workflow.name}}\n'
    assert executor.run("rest").returncode == 0
    assert executor.jobs() == {"learner"}
    assert executor.run("clear").returncode == 0
    assert executor.jobs() == set()


@pytest.mark.parametrize("group", ["broken", "shards", "late"])
def test_the_executor_sees_a_job_fail(group: str, executor: Executor) -> None:
    ended = executor.run(f"run-{group}", LR="0.1")
    assert ended.returncode == 1
    assert "failure condition" in ended.stdout + ended.stderr


def test_the_jobs_go_with_their_workflow(executor: Executor) -> None:
    assert executor.run("run-actor", LR="0.1").returncode == 0
    executor.ask("delete", "workflow", executor.workflow)
    eventually(lambda: not executor.jobs() or None, 60, "the Job has outlived its Workflow")
