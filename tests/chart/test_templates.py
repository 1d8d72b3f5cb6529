"""What helm makes of a chart besides its objects: notes, and a model that is computed once."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.chart.harness import chart_of, example_chart, experiment_of, run_helm, write_chart
from tests.tools import HELM_VERSIONS

# What begins the computation of the model, and what refuses to do it again; all templates of a chart share its values.
_BEGIN = '{{- if not (hasKey . "symph") -}}'
_ONCE = '{{- if hasKey .Values "began" }}{{ fail "computed again" }}{{ end -}}{{- $_ := set .Values "began" true -}}'


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_the_model_of_a_release_is_computed_once_for_all_templates(version: str, tmp_path: Path) -> None:
    where = write_chart(example_chart("rl"), tmp_path)
    wanted = run_helm(version, "template", "r1", where).stdout
    file = where / "charts/symph/templates/_model.tpl"
    text = file.read_text(encoding="utf-8")
    assert text.count(_BEGIN) == 1
    file.write_text(text.replace(_BEGIN, _BEGIN + _ONCE), encoding="utf-8")
    assert run_helm(version, "template", "r1", where).stdout == wanted
    file.write_text(text.replace(_BEGIN, "{{- if true -}}" + _ONCE), encoding="utf-8")
    assert "computed again" in run_helm(version, "template", "r1", where, check=False).stderr


@pytest.mark.parametrize(("sets", "replicas"), [((), "8"), (("--set", "groups.agent.replicas=12"), "12")])
def test_the_command_for_logs_follows_as_many_pods_as_there_are(
    sets: tuple[str, ...], replicas: str, tmp_path: Path
) -> None:
    """Without a number kubectl refuses to follow more than five, and without prefixes nobody tells them apart."""
    processes = {"learner": {"command": ["x"]}, "agent": {"command": ["x"], "replicas": 8}}
    where = write_chart(chart_of(experiment_of(processes=processes)), tmp_path)
    shown = run_helm("4.3", "install", "r1", where, "--dry-run=client", *sets).stdout.partition("NOTES:")[2]
    commands = [shlex.split(line) for line in shown.splitlines() if line.lstrip().startswith("kubectl logs")]
    ends = {words[words.index("-c") + 1]: words[words.index("-c") + 2 :] for words in commands}
    assert ends == {"learner": ["-f"], "agent": ["-f", "--prefix", "--max-log-requests", replicas]}
