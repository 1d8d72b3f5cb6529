"""Diagnosis of blocked experiments, from texts of Kubernetes 1.35, Kueue 0.19 and the supervisor."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.backend.diagnosis import Diagnosis, diagnose_status
from symphony_charts.backend.status import ExperimentStatus, InstanceStatus

KUBE = {"backend": "kube", "namespace": "ml"}


def status(*instances: InstanceStatus, **fields: Any) -> ExperimentStatus:
    given = {"backend": "tmux", "phase": "pending", **fields}
    return ExperimentStatus(name="rl", experiment="rl", started=0.0, instances=instances, **given)


def one(reason: str, name: str = "a", phase: str = "pending", **fields: Any) -> InstanceStatus:
    given = {"state": f"pending: {reason}", **fields}
    return InstanceStatus(name=name, process=name, phase=phase, reason=reason, **given)  # type: ignore[arg-type]


def why(reason: str, **fields: Any) -> Diagnosis:
    found = diagnose_status(status(one(reason, **fields), **KUBE))
    assert found is not None
    return found


# A reason, and below it the cause and its text; tests/e2e/test_status_causes.py has those of a real cluster.
CAUSES = """\
ImagePullBackOff Back-off pulling image "x:1"
    image: the image x:1 cannot be pulled
ErrImagePull
    image: the image cannot be pulled
MountVolume.SetUp failed for volume "s" : references non-existent secret key: a
    secret: a Secret lacks the key a
MountVolume.SetUp failed for volume "c" : configmap "m" not found
    config: the ConfigMap m is missing
MountVolume.SetUp failed for volume "c" : configmap references non-existent config key: a
    config: a ConfigMap lacks the key a
its gang is incomplete
    gang: its gang is incomplete
waits for replay:7003 of replay, 12s
    port: waits for replay:7003 of replay
waits for prepare to succeed
    order: waits for prepare to succeed
SealedSecret rl-secrets: no key could decrypt secret (token)
    secret: the sealed Secret rl-secrets cannot be opened: no key could decrypt secret (token)
no pod yet
    start: no pod yet
something new
    other: something new
"""


def causes() -> list[tuple[str, str, str]]:
    """Return the reason, cause and text of each row."""
    lines = CAUSES.splitlines()
    return [(reason, *told.strip().split(": ", 1)) for reason, told in zip(lines[::2], lines[1::2], strict=True)]  # type: ignore[misc]


@pytest.mark.parametrize(("reason", "cause", "text"), causes())
def test_each_cause_is_told_by_its_words(reason: str, cause: str, text: str) -> None:
    found = why(reason)
    assert (found.cause, found.text, found.paths) == (cause, text, ("a",))


def test_what_no_node_takes_is_planned() -> None:
    assert why("0/1 nodes are available: 1 Insufficient cpu").next.startswith("symph plan SPEC")


def test_what_git_keeps_is_mended_in_git() -> None:
    found = diagnose_status(status(one("ErrImagePull"), **KUBE, held_by=("Argo CD application dev-ml-rl",)))
    assert found
    assert found.next.endswith("symph publish SPEC")


def test_a_queued_one_says_its_place_and_what_kueue_lacks() -> None:
    state = "queued in mine, second behind ml/ppo: couldn't assign flavors to pod set agent: 2 more needed"
    found = why("in mine", phase="queued", state=state)
    assert found.text == "queued in mine, second behind ml/ppo (Kueue: 2 more needed)"
    assert found.next == "symph wait rl --for running -n ml"


def test_the_worst_cause_is_told_for_all_that_it_holds_up() -> None:
    image = 'ErrImagePull "x:1": denied'
    found = diagnose_status(status(one("waits for b:7000 of b"), one(image, "b"), one(image, "c"), phase="running"))
    assert found
    assert found.sentence == "b +1: the image x:1 cannot be pulled: denied"
    assert found.is_bad


def test_who_is_waited_for_says_what_its_probe_found() -> None:
    a = one("not ready: Connection refused", phase="running", state="running 3s")
    found = diagnose_status(status(a, one("waits for x:7000 of a, 3s", "b"), phase="running"))
    assert found
    assert found.sentence == "b: waits for x:7000 of a, which is not ready: Connection refused"


@pytest.mark.parametrize(
    ("instance", "text"),
    [
        (("failed 3: no gym", "failed", "failed 3"), "failed 3: no gym"),
        (("exit status 3: Error", "failed", "failed 3 after 2s: Error"), "failed 3 after 2s: Error"),
        (("exit status 3: oops", "pending", "failed 3: Error, restarting"), "failed 3: Error, restarting: oops"),
        (("CrashLoopBackOff back-off 5s", "pending", "waiting"), "failed 3, and is started again and again"),
    ],
)
def test_a_failure_tells_the_last_words_once(instance: tuple[str, str, str], text: str) -> None:
    reason, phase, state = instance
    found = diagnose_status(status(one(reason, phase=phase, state=state, status=3)))
    assert found
    assert (found.cause, found.text, found.next) == ("failed", text, "symph logs a rl --tail 50")


@pytest.mark.parametrize(
    ("phase", "note", "cause", "text", "step"),
    [
        ("lost", "its container is gone; symph down rl", "lost", "its container is gone", "symph down rl"),
        ("running", "its supervisor has died; symph up", "supervisor", "its supervisor has died", "symph up"),
        ("running", "its supervisor is suspended; kill 7", "supervisor", "its supervisor is suspended", "kill 7"),
        ("running", "runs on other; then", "elsewhere", "runs on other; then", "symph status rl, over there"),
    ],
)
def test_what_is_wrong_with_a_run_as_a_whole_comes_before_its_processes(
    phase: str, note: str, cause: str, text: str, step: str
) -> None:
    found = diagnose_status(status(one("waits for b:7000 of b"), phase=phase, note=note))
    assert found
    assert (found.cause, found.text, found.next) == (cause, text, step)


@pytest.mark.parametrize("phase", ["succeeded", "stopped", "stopping"])
def test_what_has_succeeded_or_was_ended_has_no_cause(phase: str) -> None:
    assert diagnose_status(status(one("waits for b:7000 of b"), phase=phase)) is None


def test_what_runs_has_no_cause() -> None:
    running = InstanceStatus(name="a", process="a", phase="running", state="running 3s", ready=True, status=3)
    assert diagnose_status(status(running, phase="running")) is None
