"""Experiments as AppWrappers under the real controller: they finish, fail, and restart as a whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.e2e.charts import ExampleCharts, package_data
from tests.e2e.programs import Symph
from tests.e2e.release import Release, Releases
from tests.waiting import eventually

WRAPPED = "workload.kind=appwrapper"
_PREFIX = "workload.codeflare.dev.appwrapper/"
# A failed run is removed at once, and the next one begins a second later.
_HASTE = {f"{_PREFIX}retryPausePeriodDuration": "1s", f"{_PREFIX}deletionOnFailureGracePeriodDuration": "0s"}


def status(run: Release) -> dict[str, Any]:
    (found,) = run.objects("appwrappers")
    return dict(found.get("status", {}))


def failing(name: str, **more: object) -> dict[str, object]:
    boss = {"cmds": ["sleep 1; echo sorry; exit 3"], **more}
    processes = {"boss": boss, "worker": {"cmds": ["sleep 600"], "grace_period": 1}}
    return {
        "name": name,
        "image": "busybox:1.37.0",
        "processes": processes,
        "workload": {"kind": "appwrapper", "appwrapper": {"annotations": _HASTE}},
    }


def test_an_example_finishes_as_an_appwrapper(release: Releases, charts: ExampleCharts, symph: Symph) -> None:
    run = release("rl")
    run.install(charts.changed("rl", WRAPPED))
    waited = symph("wait", "rl", "--on", "kube", "--timeout", "60s")
    assert (waited.code, waited.out.strip()) == (0, "rl succeeded"), waited.err
    eventually(lambda: status(run).get("phase") == "Succeeded", 60, lambda: str(status(run)))
    assert "update 20" in run.log("learner")


def test_a_service_that_runs_on_does_not_keep_it_from_its_end(release: Releases, symph: Symph, tmp_path: Path) -> None:
    board = {"cmds": ["sleep 600"], "lifecycle": "service", "grace_period": 1, "until": "uninstall"}
    processes = {"boss": {"cmds": ["sleep 1"]}, "board": board}
    data: dict[str, object] = {"name": "ends", "image": "busybox:1.37.0", "processes": processes}
    run = release("ends")
    run.install(package_data(data, tmp_path, WRAPPED))
    waited = symph("wait", "ends", "--on", "kube", "--timeout", "60s")
    assert waited.code == 0, waited.err
    eventually(lambda: status(run).get("phase") == "Succeeded", 60, lambda: str(status(run)))
    assert len(run.pods()) == 2


def test_a_failure_ends_the_whole_after_as_many_tries_as_a_pod_would_have(
    release: Releases, symph: Symph, tmp_path: Path
) -> None:
    run = release("bad")
    run.install(package_data(failing("bad", retries=1), tmp_path))
    waited = symph("wait", "bad", "--on", "kube", "--timeout", "90s")
    assert (waited.code, "bad has failed" in waited.err.replace('"', "")) == (1, True), waited.err
    eventually(lambda: status(run).get("phase") == "Failed", 60, lambda: str(status(run)))
    assert status(run).get("resettingCount", 0) == 1
    eventually(lambda: not run.pods(), 60, "the worker is gone, too")


def test_the_last_try_may_still_succeed(release: Releases, symph: Symph, tmp_path: Path) -> None:
    data = failing("last")
    env = {"AGAIN": {"config": "taken", "key": "away", "optional": True}}
    lines = ['test -n "$AGAIN" || { sleep 3; exit 3; }']
    data["processes"] = {"boss": {"cmds": lines, "retries": 1, "env": env}}
    run = release("last")
    run.install(package_data(data, tmp_path))
    eventually(lambda: [pod for pod in run.pods() if pod["status"]["phase"] == "Running"], 60, "the first try")
    run.programs.kubectl("-n", run.namespace, "create", "configmap", "taken", "--from-literal=away=yes")
    # `wait` sees each change, also while the last try is counted and the previous Job still exists.
    waited = symph("wait", "last", "--on", "kube", "--timeout", "90s")
    assert (waited.code, waited.out.strip()) == (0, "last succeeded"), waited.err
    assert status(run)["resettingCount"] == 1


def test_a_job_that_failed_for_good_is_told_while_the_controller_still_waits(
    release: Releases, symph: Symph, tmp_path: Path
) -> None:
    data = failing("early")
    patience = {f"{_PREFIX}failureGracePeriodDuration": "5m"}
    data["workload"] = {"kind": "appwrapper", "appwrapper": {"annotations": patience}}
    run = release("early")
    run.install(package_data(data, tmp_path))
    waited = symph("wait", "early", "--on", "kube", "--timeout", "60s")
    assert (waited.code, "has failed" in waited.err) == (1, True), waited.err
    assert status(run).get("phase") == "Running"
    shown = symph("status", "early", "-o", "json")
    (item,) = json.loads(shown.out)["items"]
    assert (shown.code, item["phase"]) == (1, "failed"), shown.out
