"""The effects of an upgrade, a rollback and an uninstall on runs: only a changed run is a new run."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.charts import ExampleCharts, package_data
from tests.e2e.programs import Programs
from tests.e2e.release import Release, Releases, start_pod
from tests.tools import newest_helm
from tests.waiting import eventually

# Answers its WORD to every connection, and for three seconds after TERM: the old one outlives the new one's start.
_SERVER = """
import os, signal, socket, threading
signal.signal(signal.SIGTERM, lambda *_: threading.Timer(3, os._exit, (0,)).start())
server = socket.create_server((os.environ["SYMPH_API_HOST"], int(os.environ["SYMPH_API_PORT"])))
print("serving", os.environ["WORD"], flush=True)
while True:
    connection, _ = server.accept()
    with connection:
        connection.sendall(os.environ["WORD"].encode())
"""

_DIALER = """
import socket, sys, time
host, port = sys.argv[1], int(sys.argv[2])
while True:
    try:
        with socket.create_connection((host, port), timeout=0.3) as connection:
            word = connection.recv(10).decode()
    except OSError:
        word = "-"
    print(word, flush=True)
    time.sleep(0.02)
"""


def _sleeper(seconds: str = "0") -> dict[str, object]:
    return {
        "name": "naps",
        "image": "busybox:1.37.0",
        "processes": {"nap": {"cmds": ["echo napping $WORD; sleep " + seconds], "env": {"WORD": "one"}}},
    }


def _pod_names(release: Release) -> set[str]:
    return {pod["metadata"]["name"] for pod in release.pods()}


WORD = "groups.nap.containers.nap.env.WORD"


def test_only_a_change_is_a_new_run_and_a_rollback_runs_the_older_one_again(
    release: Releases, tmp_path: Path, any_helm: Path
) -> None:
    chart, run = package_data(_sleeper(), tmp_path), release("naps", any_helm)
    run.install(chart)
    run.wait_finished()
    (first,), pods = run.runs(), _pod_names(run)

    run.upgrade(chart)
    run.upgrade(package_data(_sleeper(), tmp_path / "later", version="0.1.1"))
    assert _pod_names(run) == pods

    # An object that only the API server refuses, after it has created others of the new run.
    extra = chart / "templates" / "extra-refused.yaml"
    extra.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n")
    failed = run.try_helm("upgrade", "naps", str(chart), "--cleanup-on-fail", "--set", f"{WORD}=x")
    extra.unlink()
    assert (failed.code != 0, "Not_A_Name" in failed.err) == (True, True), failed.err

    run.upgrade(chart, "--set", f"{WORD}=two")
    run.wait_finished()
    eventually(lambda: len(run.runs()) == len(run.pods()) == 1, 60, "the pods of older runs go")
    assert (run.runs() != {first}, "napping two" in run.log("nap")) == (True, True)

    run.helm("rollback", "naps", "1")
    run.wait_finished()
    eventually(lambda: len(run.pods()) == 1, 60, "only the pods of one run")
    assert (run.runs(), _pod_names(run) & pods, "napping one" in run.log("nap")) == ({first}, set(), True)
    run.uninstall()
    run.wait_gone()


def test_a_service_never_leads_to_an_old_pod_after_it_led_to_a_new_one(
    release: Releases, tmp_path: Path, programs: Programs, namespace: str
) -> None:
    spec: dict[str, object] = {
        "name": "words",
        "image": "python:3.12-slim",
        "processes": {
            "server": {
                "command": ["python", "-c", _SERVER.replace("$", "$$")],
                "env": {"WORD": "one"},
                "binds": {"api": 7500},
            }
        },
    }
    chart, run = package_data(spec, tmp_path), release("words")
    run.install(chart)
    run.wait_ready()
    start_pod(programs, namespace, "dialer", ["python", "-c", _DIALER, "words-api", "7500"])

    def heard() -> list[str]:
        return programs.kubectl("-n", namespace, "logs", "dialer").split()

    eventually(lambda: heard().count("one") > 5, 60, "answers from the first run")
    run.upgrade(chart, "--set", "groups.server.containers.server.env.WORD=two")
    eventually(lambda: heard().count("two") > 100, 60, lambda: f"answers from the second run: {heard()[-20:]}")
    answers = [word for word in heard() if word != "-"]
    assert "one" not in answers[answers.index("two") :]


def test_over_an_upgrade_only_services_begin_anew_that_the_run_connects_to(
    release: Releases, programs: Programs, namespace: str, tmp_path: Path
) -> None:
    stays = {"cmds": ["sleep 300"], "lifecycle": "service", "grace_period": 1}
    spec: dict[str, object] = {
        "name": "naps",
        "image": "busybox:1.37.0",
        "processes": {
            "actor": {"cmds": ["sleep 300"], "connects": ["frames", "db"], "env": {"LR": "1"}, "grace_period": 1},
            "board": {**stays, "exposes": "web"},
            "replay": {**stays, "binds": "frames", "ready": {"exec": ["true"]}},
            "store": {**stays, "binds": "db", "ready": {"exec": ["true"]}, "until": "uninstall"},
        },
    }
    (tmp_path / "naps.json").write_text(json.dumps(spec))
    run = release("naps")
    run.install(package_data(spec, tmp_path / "chart"))
    run.wait_ready()

    def uids() -> dict[str, str]:
        return {
            pod["metadata"]["labels"]["symph.dev/group"]: pod["metadata"]["uid"]
            for pod in run.pods()
            if "deletionTimestamp" not in pod["metadata"]
        }

    before = uids()
    words = ("upgrade", str(tmp_path / "naps.json"), "-n", namespace, "--set", "groups.actor.containers.actor.env.LR=2")
    done = programs.symph(*words, env={"HELM_BIN": str(newest_helm())})
    assert "; restarted with it: replay" in done.out, done.err
    wanted = {"actor": False, "board": True, "replay": False, "store": True}

    def stayed() -> dict[str, bool]:
        return {group: uid == before[group] for group, uid in uids().items()}

    eventually(lambda: stayed() == wanted, 60, lambda: str(stayed()))
    run.wait_ready()
    assert stayed() == wanted


def test_two_releases_of_one_chart_run_side_by_side(release: Releases, charts: ExampleCharts) -> None:
    first, second = release("left"), release("right")
    first.install(charts["integrate"])
    second.install(charts["integrate"])
    for run in (first, second):
        run.wait_finished()
        assert "= 333.3333" in run.log("master")
    first.uninstall()
    first.wait_gone()
    assert second.objects("jobs")


def test_a_new_experiment_keeps_the_settings_of_its_release_and_refuses_old_defaults(
    release: Releases, tmp_path: Path, any_helm: Path
) -> None:
    run = release("naps", any_helm)
    run.install(package_data(_sleeper(), tmp_path), "--set", "groups.nap.replicas=2")
    run.wait_finished()
    (first,) = run.runs()
    renewed = package_data({**_sleeper(), "image": "busybox:1.36.1"}, tmp_path / "new", version="0.2.0")
    refused = run.try_helm("upgrade", "naps", str(renewed), "--reuse-values")
    assert (refused.code, "--reset-then-reuse-values" in refused.err, run.runs()) == (1, True, {first})
    run.upgrade(renewed, "--reset-then-reuse-values")
    run.wait_finished()
    (job,) = run.objects("jobs")
    assert (job["spec"]["completions"], first in run.runs()) == (2, False)
    again = run.runs()
    run.upgrade(renewed, "--reset-then-reuse-values", "--set", "runKey=2")
    run.wait_finished()
    assert not run.runs() & again
