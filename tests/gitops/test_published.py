"""A published chart is read back from its files, even after manual changes."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.chart.build.chart import Release
from symphony_charts.errors import SpecError, ToolMissing
from symphony_charts.gitops.published import objects_of, run_of, unsealed_secrets, values_problems
from tests.chart.harness import chart_of, experiment_of
from tests.tools import HELM_VERSIONS, helm

REFERENCE = b'{"$ref": "file:///etc/hostname"}'
CHART, RELEASE = "charts/ml/rl/0.1.0", Release(name="rl", namespace="rl-dev")
EDITS: dict[str, dict[str, bytes | None]] = {
    "edited template": {"templates/agent.yaml": b"kind: Job\n"},
    "no experiment": {"experiment.yaml": None},
    "experiment that is not text": {"experiment.yaml": b"\xff\xfe"},
    "experiment of another version": {"experiment.yaml": b"name: rl\nnew_key: 1\n"},
    "experiment that lacks parts": {"experiment.yaml": b"name: rl\nprocesses: {}\n"},
    "values without a digest": {"values.yaml": b"{}\n"},
    "values that are not YAML": {"values.yaml": b"a: [\n"},
}


def files(**more: Any) -> dict[str, bytes]:
    processes = {"agent": {"command": ["work"], "replicas": 2}}
    return chart_of(experiment_of(name="rl", processes=processes, **more)).files


def edited(name: str) -> dict[str, bytes]:
    changed: dict[str, bytes | None] = {**files(), **EDITS[name]}
    return {path: content for path, content in changed.items() if content is not None}


def test_an_environments_values_count() -> None:
    objects, note = objects_of(files(), CHART, {"groups": {"agent": {"replicas": 5}}}, RELEASE)
    (job,) = (item for item in objects if item["kind"] == "Job")
    assert note == ""
    assert job["spec"]["completions"] == 5  # type: ignore[index]  # YAML


def test_values_of_another_chart_are_refused() -> None:
    with pytest.raises(SpecError, match="another version of the experiment"):
        objects_of(files(), CHART, {"specDigest": "0"}, RELEASE)


@pytest.mark.parametrize("name", EDITS)
def test_only_helm_renders_a_chart_that_symph_cannot_build_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELM_BIN", "")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolMissing, match="publish the experiment again, or install helm"):
        objects_of(edited(name), CHART, {}, RELEASE)
    assert run_of(edited(name), CHART, {}, RELEASE) is None


def test_helm_is_not_asked_to_follow_references_of_a_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    program = helm(HELM_VERSIONS[-1])
    if program is None:
        pytest.skip("helm is not unpacked: python -m tests.tools")
    monkeypatch.setenv("HELM_BIN", str(program))
    with pytest.raises(SpecError, match="is not a JSON Schema"):
        objects_of({**edited("edited template"), "values.schema.json": REFERENCE}, CHART, {}, RELEASE)
    below = {"charts/sub/Chart.yaml": b"apiVersion: v2\nname: sub\nversion: 1.0.0\n"}
    chart = {**edited("edited template"), **below, "charts/sub/values.schema.json": REFERENCE}
    assert objects_of(chart, CHART, {}, RELEASE)[1].startswith(f"{CHART}: rendered by helm")


def test_a_run_is_that_of_the_values() -> None:
    more = {"groups": {"agent": {"replicas": 5}}}
    labels = {"commonAnnotations": {"a": "b"}}
    runs = [run_of(files(), CHART, values, RELEASE) for values in ({}, more, labels, {"groups": None})]
    assert runs[0] != runs[1]
    assert runs[0] == runs[2]
    assert runs[3] is None, "the chart refuses the values"


def test_the_chart_names_a_value_that_it_does_not_have() -> None:
    (problem,) = values_problems(files(), CHART, {"groups": {"agent": {"replica": 5}}})
    assert (problem.path, problem.next) == ("groups.agent.replica", "did you mean groups.agent.replicas?")


def test_the_schema_of_a_chart_of_another_version_counts() -> None:
    schema = {"values.schema.json": b'{"properties": {"groups": {"not": {}}}}'}
    assert values_problems({**files(), **schema}, CHART, {})[0].path == "groups"
    assert values_problems({**edited("edited template"), **schema}, CHART, {})[0].path == "groups"


@pytest.mark.parametrize("schema", [REFERENCE, b'{"$ref": "http://127.0.0.1:1/"}', b"{", b"[]"])
def test_a_schema_that_is_none_or_refers_elsewhere_is_refused(schema: bytes) -> None:
    with pytest.raises(SpecError, match="is not a JSON Schema"):
        values_problems({**files(), "values.schema.json": schema}, CHART, {})


def test_secrets_are_sealed_for_an_environment_by_its_values() -> None:
    secrets = {"secrets": ["token.txt"], "secret_source": {"source": "sealed"}}
    chart = files(**secrets)
    blank = {"secrets": {"encryptedData": {"token.txt": ""}}}
    assert unsealed_secrets(chart, CHART, blank) == ["token.txt"]
    assert unsealed_secrets(chart, CHART, {"secrets": {"encryptedData": {"token.txt": "AgB"}}}) == []
    assert unsealed_secrets(files(secrets=["token.txt"]), CHART, {}) == []
