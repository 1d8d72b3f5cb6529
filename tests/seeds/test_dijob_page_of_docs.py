"""The page about DIJobs: every operator's chart takes its YAML as an experiment, and its commands exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from symphony_charts.cli.verbs import VERBS
from symphony_charts.integrations.dijob.settings import DijobSettings
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.data import from_data
from symphony_charts.spec.workload import Workload
from tests.chart.harness import chart_of
from tests.linting import lint

PAGE = (Path(__file__).resolve().parents[2] / "docs/dijob.md").read_text(encoding="utf-8")


def test_its_experiment_is_a_job_without_faults() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    experiment = finish(from_data(yaml.safe_load(text)), for_cluster=True)
    assert [one for one in lint(chart_of(experiment)) if one.severity == "error"] == []


@pytest.mark.parametrize("field", [*DijobSettings.__struct_fields__, "retries"])
def test_every_setting_is_named(field: str) -> None:
    assert f"`{field}`" in PAGE or f"workload.dijob.{field}" in PAGE or f"workload.{field}" in PAGE
    assert field in DijobSettings.__struct_fields__ or field in Workload.__struct_fields__


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`symph ([^`]*)`", PAGE))))
def test_every_command_is_one(command: str) -> None:
    names = {name for verb in VERBS for name in (verb.name, *verb.aliases)}
    assert shlex.split(command.partition("\\|")[0])[0] in names
