"""What a release leaves behind: nothing of tests, and of an upgrade that failed what its notes say how to remove."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chart.harness import chart_of, experiment_of, write_chart
from tests.e2e.release import Release
from tests.tools import HELM_VERSIONS, helm
from tests.waiting import eventually

SLEEP = ["sleep", "600"]
# The API server refuses it, and no schema of values knows it.
REFUSED = 'groups.b.overlay={"spec": {"hostAliases": [{"ip": "nowhere"}]}}'


@pytest.fixture(params=HELM_VERSIONS)
def installed(request: pytest.FixtureRequest, release: Callable[..., Release], tmp_path: Path) -> tuple[Release, Path]:
    """A release of two groups that run for long, and its chart."""
    processes = {"a": {"command": SLEEP}, "b": {"command": SLEEP}, "c": {"command": SLEEP, "lifecycle": "service"}}
    chart = write_chart(chart_of(experiment_of(processes=processes)), tmp_path)
    ours = release("left", helm(request.param))
    ours.install(chart)
    return ours, chart


def test_the_notes_remove_what_a_refused_upgrade_has_begun(installed: tuple[Release, Path]) -> None:
    ours, chart = installed
    refused = ours.try_helm("upgrade", ours.name, str(chart), "--set", "runKey=2", "--set-json", REFUSED)
    assert refused.code != 0
    ours.upgrade(chart, "--set", "runKey=3")
    assert len(ours.runs()) == 2
    program, *command = shlex.split(ours.helm("get", "notes", ours.name).out.strip().splitlines()[-1])
    assert program == "kubectl"
    ours.programs.kubectl(*command)
    eventually(lambda: len(ours.runs()) == 1, 60, lambda: f"one run, not {ours.runs()}")
    assert {job["metadata"]["labels"]["symph.dev/group"] for job in ours.objects("jobs")} == {"a", "b"}
    assert len(ours.objects("statefulsets")) == 1


def test_an_interrupted_upgrade_is_forgotten_without_a_rollback(installed: tuple[Release, Path]) -> None:
    ours, chart = installed
    before = ours.runs()
    argv = [str(ours.helm_path), "-n", ours.namespace, "upgrade", ours.name, str(chart), "--set", "runKey=2"]
    waiting = subprocess.Popen([*argv, "--wait", "--wait-for-jobs"], env=ours.programs.environment())
    eventually(lambda: ours.runs() - before, 60, "a second run")
    waiting.kill()
    waiting.wait(timeout=10)
    assert "another operation" in ours.try_helm("upgrade", ours.name, str(chart), "--set", "runKey=3").err
    (line,) = [one for one in (chart / "README.md").read_text().splitlines() if "status=pending-upgrade" in one]
    program, *command = shlex.split(re.findall("`(kubectl [^`]*)`", line)[0].replace("name=exp", f"name={ours.name}"))
    assert program == "kubectl"
    ours.programs.kubectl("-n", ours.namespace, *command)
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
