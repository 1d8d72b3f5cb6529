"""The leftovers of a release: a small Secret, nothing of tests, and after a failed upgrade those in docs/chart.md."""

from __future__ import annotations

import base64
import json
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chart.harness import chart_of, experiment_of, write_chart
from tests.chart.release_secret import release_kb
from tests.e2e.charts import CHECKOUT
from tests.e2e.release import Release
from tests.tools import HELM_VERSIONS, helm
from tests.waiting import eventually

SLEEP = ["sleep", "600"]
# The API server refuses it, and the schema of values does not.
REFUSED = "groups.b.containers.b.resources.limits.cpu=1m"


@pytest.fixture(params=HELM_VERSIONS)
def installed(request: pytest.FixtureRequest, release: Callable[..., Release], tmp_path: Path) -> tuple[Release, Path]:
    processes = {"a": {"command": SLEEP}, "b": {"command": SLEEP}, "c": {"command": SLEEP, "lifecycle": "service"}}
    chart = write_chart(chart_of(experiment_of(processes=processes)), tmp_path)
    ours = release("left", helm(request.param))
    ours.install(chart)
    return ours, chart


def documented(start: str, **names: str) -> list[str]:
    """Return the arguments of the kubectl command in docs/chart.md that begins with `start`."""
    (line,) = [line for line in (CHECKOUT / "docs" / "chart.md").read_text().splitlines() if line.startswith(start)]
    program, *command = shlex.split(line)
    assert program == "kubectl"
    return [re.sub("|".join(names), lambda match: names[match[0]], word) for word in command]


def test_what_a_refused_upgrade_has_begun_is_removed(installed: tuple[Release, Path]) -> None:
    ours, chart = installed
    refused = ours.try_helm("upgrade", ours.name, str(chart), "--set", "runKey=2", "--set", REFUSED)
    assert refused.code != 0
    ours.upgrade(chart, "--set", "runKey=3")
    assert len(ours.runs()) == 2
    (run,) = re.findall(r"run ([0-9a-f]{8})\b", ours.helm("get", "notes", ours.name).out)
    ours.programs.kubectl("-n", ours.namespace, *documented("kubectl delete jobs", NAME=ours.name, RUN=run))
    eventually(lambda: len(ours.runs()) == 1, 60, lambda: f"one run, not {ours.runs()}")
    assert {job["metadata"]["labels"]["symph.dev/group"] for job in ours.objects("jobs")} == {"a", "b", "c"}


def test_an_interrupted_upgrade_is_forgotten_without_a_rollback(installed: tuple[Release, Path]) -> None:
    ours, chart = installed
    before = ours.runs()
    argv = [str(ours.helm_path), "-n", ours.namespace, "upgrade", ours.name, str(chart), "--set", "runKey=2"]
    waiting = subprocess.Popen([*argv, "--wait", "--wait-for-jobs"], env=ours.programs.environment())
    eventually(lambda: ours.runs() - before, 60, "a second run")
    waiting.kill()
    waiting.wait(timeout=10)
    assert "another operation" in ours.try_helm("upgrade", ours.name, str(chart), "--set", "runKey=3").err
    ours.programs.kubectl("-n", ours.namespace, *documented("kubectl delete secret", NAME=ours.name))
    ours.upgrade(chart, "--set", "runKey=2")
    eventually(lambda: len(ours.runs() - before) == len(ours.runs()) == 1, 60, lambda: f"one run, not {ours.runs()}")


def test_a_test_that_succeeds_leaves_no_pod(release: Callable[..., Release], tmp_path: Path) -> None:
    processes = {"web": {"cmds": "exec python3 -m http.server $SYMPH_WEB_PORT", "binds": "web", "lifecycle": "service"}}
    ours = release("tested")
    ours.install(write_chart(chart_of(experiment_of(processes=processes)), tmp_path))
    ours.wait_ready()
    ours.helm("test", ours.name)
    ours.uninstall()
    eventually(lambda: not ours.pods(with_tests=True), 60, "no pod")


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
