"""A sweep as Helm releases on a real cluster, its Workflow run by Argo, and the output of `export` in kubectl."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from symphony_charts.formats.yaml_write import dump_all
from symphony_charts.kinds.base import is_conductor
from tests.chart.harness import EXAMPLES
from tests.e2e.programs import Output, Programs, Symph
from tests.e2e.test_argo_workflows import argo, definitions  # noqa: F401 - a fixture
from tests.sweep.test_argo import TRIALS, flow_of
from tests.tools import newest_helm
from tests.waiting import eventually

_SPEC = {
    "name": "naps",
    "image": "busybox:1.37.0",
    "processes": {"nap": {"cmds": ['echo "nap of $CODE"', "exit $CODE"], "env": {"CODE": "0"}}},
}


@pytest.fixture
def symph(programs: Programs, namespace: str, tmp_path: Path) -> Symph:
    (tmp_path / "naps.json").write_text(json.dumps(_SPEC))
    return lambda *words: programs.symph(
        *words, "-n", namespace, cwd=tmp_path, timeout_s=180, env={"HELM_BIN": str(newest_helm())}
    )


def outcome_of(item: dict[str, object]) -> tuple[object, object, object]:
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
    # Its pods disappear a moment later.
    eventually(lambda: json.loads(symph("status", "-o", "json").out)["items"] == [], 60, "nothing is left")


_TRAINS = {
    "name": "train",
    "image": "busybox:1.37.0",
    "processes": {
        "t": {
            "cmds": [
                # Three are equal: none is worse than their median, in any start order.
                'case "$LR" in 2|3) loss=1;; *) loss=$LR;; esac',
                'for i in 1 2 3 4 5 6 7 8; do echo "step=$i loss=$loss"; sleep $PACE; done',
                'case "$LR" in 9*) sleep 300;; esac',
            ],
            "env": {"LR": "1", "PACE": "0"},
        }
    },
}


def test_on_a_cluster_too_hopeless_trials_are_removed_and_late_ones_have_failed(symph: Symph, tmp_path: Path) -> None:
    (tmp_path / "train.json").write_text(json.dumps(_TRAINS))
    words = ("sweep", "train.json", "--on", "kube", "--up", "--parallel", "4", "--metric", "loss", "-o", "json")
    early = ("--grid", "lr=1,2,3,9", "--grid", "pace=2", "--early-stop", "median", "--grace", "2")
    done = symph(*words, *early)
    assert done.code == 0, done.err
    items = {item["name"]: item for item in json.loads(done.out)["items"]}
    hopeless = items.pop("train-lr9-pace2")
    assert (hopeless["state"], hopeless["error"].startswith("stopped early: loss 9")) == ("stopped", True)
    assert {item["state"] for item in items.values()} == {"succeeded"}
    again = symph(*words, *early)
    assert [item["kept"] for item in json.loads(again.out)["items"]] == [True] * 4, again.err
    shown = json.loads(symph("sweep", "show", "train", "--on", "kube", "--metric", "loss", "-o", "json").out)["items"]
    assert [item["state"] for item in shown] == ["succeeded"] * 3 + ["stopped"]
    late = symph(*words, "--grid", "lr=99", "--timeout", "3s")
    assert [(item["state"], item["status"]) for item in json.loads(late.out)["items"]] == [("failed", 124)], late.err
    names = {item["name"] for item in json.loads(symph("status", "-o", "json").out)["items"]}
    assert names == {"train-lr1-pace2", "train-lr2-pace2", "train-lr3-pace2"}


def test_a_search_on_a_cluster_goes_on_where_it_stood(symph: Symph, tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="the extra optuna is not installed")
    (tmp_path / "train.json").write_text(json.dumps(_TRAINS))
    words = ("sweep", "train.json", "--on", "kube", "--up", "--parallel", "2", "--metric", "loss", "-o", "json")
    first = symph(*words, "--uniform", "lr=1..3", "--search", "2")
    assert first.code == 0, first.err
    assert first.err.count(", loss ") == 2
    both = json.loads(symph(*words, "--uniform", "lr=1..3", "--search", "3").out)["items"]
    assert [item["kept"] for item in both] == [True, True, False]
    assert {item["state"] for item in both} == {"succeeded"}


@pytest.mark.usefixtures("definitions")
def test_a_workflow_has_the_trials_that_have_not_succeeded_yet(
    symph: Symph, programs: Programs, namespace: str, tmp_path: Path
) -> None:
    def sweep(*grid: str) -> Output:
        return symph("sweep", "naps.json", "--grid", *grid, "--on", "argo", "--up", "-o", "json")

    def items_of(answer: Output) -> list[dict[str, object]]:
        assert answer.code == 0, answer.err
        items: list[dict[str, object]] = json.loads(answer.out)["items"]
        return items

    def make(code: str) -> None:
        """Do the work of Argo's executor, which is not here: create the objects of a trial, and wait for its end."""
        rendered = symph(
            "render",
            "naps.json",
            "-f",
            f"t/naps-trials/naps-code{code}.yaml",
            "--release",
            f"naps-code{code}",
            "--no-tests",
        )
        assert rendered.code == 0, rendered.err
        (tmp_path / "trial.yaml").write_text(rendered.out)
        programs.kubectl("apply", "-n", namespace, "-f", str(tmp_path / "trial.yaml"))
        wanted = "succeeded" if code == "0" else "failed"
        eventually(lambda: _phase(symph, f"naps-code{code}") == wanted, 60, f"naps-code{code} {wanted}")

    assert symph("sweep", "naps.json", "--grid", "code=0,3", "--dest", "t").code == 0
    first = items_of(sweep("code=0,3"))
    assert [item["kept"] for item in first] == [False, False]
    make("0")
    # The Job is complete a moment after its pod.
    answers: list[Output] = []

    def is_kept() -> bool:
        answers.append(sweep("code=0,3"))
        return answers[-1].code == 0

    eventually(is_kept, 60, "naps-code0 is kept")
    second = items_of(answers[-1])
    assert [(item["kept"], item["workflow"] == first[0]["workflow"]) for item in second] == [
        (True, False),
        (False, False),
    ]
    assert [item["kept"] for item in items_of(sweep("code=0"))] == [True]
    make("3")
    third = sweep("code=0,3")
    assert third.code == 7, third.err
    assert "already exist, and cannot be kept: naps-code3" in third.err
    assert "symph rm naps-code3 --on kube" in third.err


def _phase(symph: Symph, name: str) -> object:
    items = json.loads(symph("status", "-o", "json").out)["items"]
    return next((item["phase"] for item in items if item["name"] == name), None)


def test_argo_expands_a_sweep_into_the_objects_of_a_trial(tmp_path: Path) -> None:
    flow, file = flow_of(TRIALS[:2]), tmp_path / "sweep.yaml"
    file.write_text(dump_all([flow]))
    for task, trial in zip(flow["spec"]["templates"][0]["dag"]["tasks"], TRIALS, strict=False):
        given = [f"{one['name']}={one['value']}" for one in task["arguments"]["parameters"]]
        ended = argo("expand", str(file), *given)
        assert ended.returncode == 0, ended.stderr
        made = [json.loads(line) for line in ended.stdout.splitlines()]
        for item in made:
            assert item["metadata"].pop("ownerReferences")[0]["name"] == "w-name"
        assert made == [item for item in trial.objects if not is_conductor(item)]


@pytest.mark.parametrize("name", ["ring", "rl"])
def test_the_server_takes_what_is_exported(name: str, symph: Symph, programs: Programs, tmp_path: Path) -> None:
    spec = next(str(path) for path in EXAMPLES if path.parent.name == name)
    stream = symph("export", "manifests", spec)
    assert stream.code == 0, stream.err
    programs.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=stream.out)
    folder = symph("export", "kustomize", spec, "--to", "base")
    assert folder.code == 0, folder.err
    programs.kubectl("apply", "--dry-run=server", "--validate=strict", "-k", str(tmp_path / "base"))
