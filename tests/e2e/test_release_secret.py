"""Helm keeps as much of a release on a cluster as the budget counts."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chart.harness import chart_of, experiment_of, write_chart
from tests.chart.release_secret import release_kb
from tests.e2e.release import Release
from tests.tools import HELM_VERSIONS, helm


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_the_secret_of_a_tiny_release_is_as_small_as_counted(
    version: str, release: Callable[..., Release], tmp_path: Path
) -> None:
    chart = chart_of(experiment_of(processes={"main": {"command": ["true"], "binds": "web", "connects": "web"}}))
    tiny = release("tiny", helm(version))
    tiny.install(write_chart(chart, tmp_path))
    argv = ["-n", tiny.namespace, "get", "secrets", "-l", "owner=helm,name=tiny", "-o", "json"]
    (secret,) = json.loads(tiny.programs.kubectl(*argv))["items"]
    kept = len(base64.b64decode(secret["data"]["release"])) / 1000
    assert kept == pytest.approx(release_kb(chart, tiny.helm("get", "manifest", "tiny").out), rel=0.12)
    assert kept <= 22
