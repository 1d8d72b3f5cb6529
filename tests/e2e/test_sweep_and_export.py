"""A sweep as Helm releases on a real cluster, its Workflow in Argo's own hands, and what `export` gives to kubectl."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from symphony_charts.formats.yaml_text import dump_all
from tests.chart.harness import EXAMPLES
from tests.e2e.programs import Output, Programs
from tests.e2e.test_argo_workflows import argo
from tests.sweep.test_argo import TRIALS, flow_of
from tests.tools import HELM_VERSIONS, helm

Symph = Callable[..., Output]

_SPEC = {
    "name": "naps",
    "image": "busybox:1.37.0",
    "processes": {"nap": {"cmds": ['echo "nap of $CODE"', "exit $CODE"], "env": {"CODE": "0"}}},
}


@pytest.fixture
def symph(programs: Programs, namespace: str, tmp_path: Path) -> Symph:
    """Runs one command line in the test's namespace, with the newest helm."""
    env = {**programs.environment(), "HELM_BIN": str(helm(HELM_VERSIONS[-1]))}
    (tmp_path / "naps.json").write_text(json.dumps(_SPEC))

    def run(*words: str) -> Output:
        argv = [sys.executable, "-m", "symphony_charts", *words, "-n", namespace]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=180, env=env, cwd=tmp_path, check=False)
        return Output(code=done.returncode, out=done.stdout, err=done.stderr)

    return run


def outcome_of(item: dict[str, object]) -> tuple[object, object, object]:
    """What a trial is called, how it is, and its exit status."""
    return item["name"], item["state"], item["status"]


def test_each_trial_is_a_release_that_runs_and_is_deleted_by_pattern(symph: Symph) -> None:
    words = ("sweep", "naps.json", "--grid", "code=0,3", "--on", "kube", "--up", "--parallel", "2", "-o", "json")
    done = symph(*words)
    assert done.code == 1, done.err
    assert [outcome_of(item) for item in json.loads(done.out)["items"]] == [
        ("naps-code0", "succeeded", 0),
        ("naps-code3", "failed", 3),
    ]
    before = json.loads(symph("status", "-o", "json").out)["items"]
    second = symph(*words)
    assert [item["kept"] for item in json.loads(second.out)["items"]] == [True, False]
    after = json.loads(symph("status", "-o", "json").out)["items"]
    assert [one["started"] == other["started"] for one, other in zip(before, after, strict=True)] == [True, False]
    listed = symph("status", "-o", "json")
    assert [item["name"] for item in json.loads(listed.out)["items"]] == ["naps-code0", "naps-code3"]
    gone = symph("db", "naps-code.*", "--on", "kube", "--yes")
    assert gone.code == 0, gone.err
    assert json.loads(symph("status", "-o", "json").out)["items"] == []


def test_argos_own_lint_finds_nothing_in_a_sweep(tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(dump_all([flow_of(TRIALS, parallel=2)]))
    ended = argo("lint", str(file))
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("number", range(2))
def test_argo_expands_a_sweep_into_the_objects_of_a_trial(number: int, tmp_path: Path) -> None:
    flow, trial = flow_of(TRIALS[:2]), TRIALS[number]
    file = tmp_path / "sweep.yaml"
    file.write_text(dump_all([flow]))
    task = flow["spec"]["templates"][0]["dag"]["tasks"][number]
    given = [f"{one['name']}={one['value']}" for one in task["arguments"]["parameters"]]
    ended = argo("expand", str(file), *given)
    assert ended.returncode == 0, ended.stderr
    made = [json.loads(line) for line in ended.stdout.splitlines()]
    for item in made:
        assert item["metadata"].pop("ownerReferences")[0]["name"] == "w-name"
    assert made == list(trial.objects)


@pytest.mark.parametrize("name", ["ring", "rl"])
def test_the_server_takes_what_is_exported(name: str, symph: Symph, programs: Programs, tmp_path: Path) -> None:
    spec = next(str(path) for path in EXAMPLES if path.parent.name == name)
    stream = symph("export", "manifests", spec)
    assert stream.code == 0, stream.err
    programs.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=stream.out)
    folder = symph("export", "kustomize", spec, "--to", "base")
    assert folder.code == 0, folder.err
    programs.kubectl("apply", "--dry-run=server", "--validate=strict", "-k", str(tmp_path / "base"))
