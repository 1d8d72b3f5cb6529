"""The documented functions of TorchX's MCAD scheduler, beside the real ones of the release."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

pytest.importorskip("torchx")

from kubernetes.client import ApiClient
from torchx.schedulers import kubernetes_mcad_scheduler as theirs
from torchx.specs import AppDef, AppState, BindMount, Resource, Role

from symphony_charts.torchx_scheduler import mcad


def app() -> AppDef:
    """Two roles, one of them in two replicas."""
    resource = Resource(cpu=4, gpu=2, memMB=16000, capabilities={"node.kubernetes.io/instance-type": "p4d"})
    trainer = Role(name="trainer", image="img:1", entrypoint="python", args=["${rank0_env}", "${replica_id}"])
    trainer.num_replicas, trainer.resource, trainer.port_map = 2, resource, {"http": 80}
    trainer.mounts = [BindMount(src_path="/a", dst_path="/b", read_only=True)]
    reader = Role(name="reader", image="img:2", entrypoint="sh", resource=Resource(cpu=1, gpu=0, memMB=2048))
    return AppDef(name="train", roles=[trainer, reader])


def plain(value: object) -> Any:
    return ApiClient().sanitize_for_serialization(value)


ARGUMENTS: dict[str, Any] = {
    "namespace": "ml",
    "service_account": "sa",
    "image_secret": "pull",
    "coscheduler_name": "gang",
    "priority_class_name": "high",
    "network": "fast",
    "priority": 3,
}


def test_app_to_resource_is_theirs_under_their_app_id() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = plain(theirs.app_to_resource(app(), **ARGUMENTS))
    assert mcad.app_to_resource(app(), **ARGUMENTS, app_id=wanted["metadata"]["name"]) == wanted


def test_without_an_app_id_the_same_application_gives_the_same_objects() -> None:
    assert mcad.app_to_resource(app(), **ARGUMENTS) == mcad.app_to_resource(app(), **ARGUMENTS)


def test_the_service_is_theirs() -> None:
    assert mcad.mcad_svc(app(), "train-x1", "ml", "8080") == plain(theirs.mcad_svc(app(), "train-x1", "ml", "8080"))


@pytest.mark.parametrize("coscheduler", [None, "gang"])
def test_the_labels_of_a_pod_are_theirs(coscheduler: str | None) -> None:
    made = app()
    arguments = (made, 1, made.roles[1], 0, coscheduler, "train-x1")
    assert mcad.pod_labels(*arguments) == theirs.pod_labels(*arguments)


def test_the_roles_of_an_appwrapper_are_theirs() -> None:
    wrapper: Any = mcad.app_to_resource(app(), **ARGUMENTS)
    items = wrapper["spec"]["resources"]["GenericItems"]
    found, wanted = mcad.get_role_information(items), theirs.get_role_information(items)
    assert list(found) == list(wanted) == ["trainer", "reader"]
    shown = [
        {
            name: (role.num_replicas, role.image, role.args, role.env, role.port_map, role.mounts)
            for name, role in both.items()
        }
        for both in (found, wanted)
    ]
    assert shown[0] == shown[1]
    assert found["trainer"].resource == wanted["trainer"].resource


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


def test_the_counters_of_pods_are_theirs() -> None:
    status = {"running": 2, "failed": 1, "other": 5, "Succeeded": 0}
    assert mcad.get_tasks_status_description(status) == theirs.get_tasks_status_description(status)
