"""The documented functions of TorchX's MCAD scheduler, compared with the real ones of the release."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torchx")

from torchx.schedulers import kubernetes_mcad_scheduler as theirs
from torchx.specs import AppDef, AppState, Role

from symphony_charts.torchx_scheduler import mcad


def app() -> AppDef:
    """Return two roles, one of them in two replicas."""
    trainer = Role(name="trainer", image="img:1", entrypoint="python", args=["${rank0_env}"], num_replicas=2)
    return AppDef(name="train", roles=[trainer, Role(name="reader", image="img:2", entrypoint="sh")])


def test_without_an_app_id_the_same_application_gives_the_same_objects() -> None:
    made = [mcad.app_to_resource(app(), "ml", None, None, None, None, None) for _ in range(2)]
    assert made[0] == made[1]


@pytest.mark.parametrize("coscheduler", [None, "gang"])
def test_the_labels_of_a_pod_are_theirs(coscheduler: str | None) -> None:
    made = app()
    arguments = (made, 1, made.roles[1], 0, coscheduler, "train-x1")
    assert mcad.pod_labels(*arguments) == theirs.pod_labels(*arguments)


@pytest.mark.parametrize("state", ["Pending", "Running", "Deleted", "Failed"])
def test_the_states_that_they_know_are_theirs(state: str) -> None:
    assert mcad.get_appwrapper_status({"status": {"state": state}}) is theirs.get_appwrapper_status(
        {"status": {"state": state}}
    )


@pytest.mark.parametrize(
    ("app_wrapper", "state"),
    [
        ({"status": {"state": "Completed"}}, AppState.SUCCEEDED),
        ({"status": {"state": "RunningHoldCompletion"}}, AppState.RUNNING),
        ({}, AppState.PENDING),
        ({"status": {}}, AppState.PENDING),
        ({"status": {"state": "Odd"}}, AppState.UNKNOWN),
    ],
)
def test_no_state_of_an_appwrapper_is_an_error(app_wrapper: dict[str, Any], state: AppState) -> None:
    assert mcad.get_appwrapper_status(app_wrapper) is state
