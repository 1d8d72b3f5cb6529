"""One road from a spec to its objects: every verb takes it, so that all verbs agree."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings

from symphony_charts.spec import files
from symphony_charts.spec.data import to_data
from tests.chart.harness import EXAMPLES
from tests.law import Case, ask, cases, disagreements

_CASES = int(os.environ.get("SYMPH_LAW_CASES", "50"))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("law") / "charts.git"
    subprocess.run(["git", "init", "--quiet", "--bare", "-b", "main", str(folder)], check=True)
    return folder


@given(case=cases())
@settings(max_examples=_CASES, phases=(Phase.generate,))  # no shrinking: each try runs ten commands
def test_all_verbs_agree_on_objects_faults_and_verdict(case: Case, repository: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert disagreements(case, Path(folder), repository) == []


def case_of(sets: tuple[str, ...] = (), **process: Any) -> Case:
    record = {"command": ["x"], "requests": {"cpu": "1"}, **process}
    return Case(data={"name": "e", "image": "a:1", "processes": {"p": record}}, sets=sets)


def statuses(case: Case, folder: Path, repository: Path) -> set[int]:
    answers = ask(case, folder, repository)
    return {answers[verb].status for verb in ("plan", "package on pools", "install on pools", "publish", "sweep")}


_LARGE = {"name": "proxy", "image": "b:1", "resources": {"requests": {"cpu": "100"}}}


@pytest.mark.parametrize(
    "case",
    [
        case_of(pod_overlay={"spec": {"containers": [_LARGE]}}),
        case_of(pod_overlay={"spec": {"containers": [{**_LARGE, "name": "p"}]}}),
        case_of(pod_overlay={"spec": {"initContainers": [_LARGE]}}),
        case_of(pod_overlay={"spec": {"initContainers": [{**_LARGE, "restartPolicy": "Always"}]}}),
        case_of(container_overlay={"resources": {"requests": {"cpu": "100"}}}),
        case_of(pod_overlay={"spec": {"nodeSelector": {"no": "such"}}}),
        case_of(replicas=60, binds={"s": None}, pod_overlay={"spec": {"hostNetwork": True}}),
        case_of(("groups.p.replicas=10000",)),
        case_of(("groups.p.containers.p.resources.requests.cpu=100",)),
    ],
    ids=["sidecar", "own", "init", "native sidecar", "container", "selector", "host ports", "replicas", "set"],
)
def test_what_cannot_be_scheduled_is_refused_by_every_verb(case: Case, tmp_path: Path, repository: Path) -> None:
    assert statuses(case, tmp_path, repository) == {4}


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("groups.p.replica=3", "did you mean groups.p.replicas?"),
        ("tests.hald=true", "did you mean tests.hold?"),
        ("workload.kind=jobset", "it belongs to the spec: --spec-set workload.kind=VALUE"),
        ("groups.pp.replicas=3", "did you mean groups.p?"),
    ],
)
def test_a_mistyped_value_is_refused_by_every_verb_with_the_nearest_name(
    text: str, near: str, tmp_path: Path, repository: Path
) -> None:
    answers = ask(case_of((text,)), tmp_path, repository)
    assert {answer.status for answer in answers.values()} == {3}
    assert all(near in answer.error for answer in answers.values())


_TWICE = {"replay": {"command": ["x"], "replicas": 2, "binds": {"replay-pods": 7000}, "lifecycle": "service"}}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"processes": _TWICE}, "two objects of the chart have the name Service/e-replay-pods"),
        ({"compat": "di-engine", "processes": {"first": {"command": ["x"]}, "p": {}}}, "container p needs a command"),
    ],
    ids=["name", "command"],
)
def test_what_no_helm_could_install_is_refused_by_every_verb(
    data: dict[str, Any], said: str, tmp_path: Path, repository: Path
) -> None:
    answers = ask(Case(data={"name": "e", "image": "a:1", **data}), tmp_path, repository)
    assert {verb: answer.status for verb, answer in answers.items() if answer.status != 3} == {}
    assert [verb for verb, answer in answers.items() if said not in answer.error] == []


def test_an_image_is_asked_for_in_the_same_words_by_every_verb(tmp_path: Path, repository: Path) -> None:
    case = case_of()
    del case.data["image"]
    answers = ask(case, tmp_path, repository)
    assert {answer.status for answer in answers.values()} == {3}
    assert all('process "p" has no image' in answer.error for answer in answers.values())


@pytest.mark.parametrize("spec", sorted(EXAMPLES), ids=lambda spec: spec.parent.name)
def test_all_verbs_agree_on_every_example(spec: Path, tmp_path: Path, repository: Path) -> None:
    experiment = files.read(spec).experiment
    data, named = to_data(experiment), experiment.placement.pools
    if named is None:
        case = Case(data=data)
    else:
        own = (spec.parent / named).read_text()
        case = Case(data={**data, "placement": {**data["placement"], "pools": "pools.yaml"}}, pools=own)  # type: ignore[dict-item]  # a map
    assert disagreements(case, tmp_path, repository) == []
