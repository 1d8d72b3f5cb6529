"""Functions that TorchX's `kubernetes_mcad_scheduler` documents and newer TorchX releases no longer have.

Arguments and results are those of release 0.7.0, with plain maps instead of Kubernetes' client models. There are two
differences: the app id can be given (TorchX generates a random one), and all states that MCAD reports are known.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from torchx.specs import AppDef, AppState, Resource, Role

from symphony_charts.formats.yaml_write import dump
from symphony_charts.importers.report import Log
from symphony_charts.integrations.torchx import appdef, objects
from symphony_charts.integrations.torchx.components import plain_data
from symphony_charts.integrations.torchx.options import RunOptions

# Source: project-codeflare/multi-cluster-app-dispatcher v1.40.0, pkg/apis/controller/v1beta1/appwrapper.go.
_STATES = {
    "Pending": AppState.PENDING,
    "Running": AppState.RUNNING,
    "RunningHoldCompletion": AppState.RUNNING,
    "Completed": AppState.SUCCEEDED,
    "Deleted": AppState.CANCELLED,
    "Failed": AppState.FAILED,
}
_COUNTERS = ("running", "pending", "failed", "Succeeded")
_FIELDS = (
    ("image", "image"),
    ("command", "args"),
    ("env", "env"),
    ("resources", "resource"),
    ("ports", "port_map"),
    ("volumeMounts", "mounts"),
)
_ROLE = "torchx.pytorch.org/role-name"


@dataclasses.dataclass
class KubernetesMCADJob:
    """A request of TorchX's MCAD scheduler: the images to push before, and the AppWrapper."""

    images_to_push: dict[str, tuple[str, str]]
    resource: dict[str, object]

    def __str__(self) -> str:
        return dump(self.resource)

    __repr__ = __str__


def app_to_resource(
    app: AppDef,
    namespace: str,
    service_account: str | None,
    image_secret: str | None,
    coscheduler_name: str | None,
    priority_class_name: str | None,
    network: str | None,
    priority: int | None = None,
    *,
    app_id: str | None = None,
) -> dict[str, object]:
    """Return the AppWrapper v1beta1 of an application, named `app_id` or by the application's cleaned name."""
    options = RunOptions(
        namespace=namespace,
        service_account=service_account,
        image_secret=image_secret,
        coscheduler_name=coscheduler_name,
        priority_class_name=priority_class_name,
        network=network,
        priority=priority,
    )
    return objects.app_wrapper(_record(app), options, app_id or objects.mcad_name(app.name))


def mcad_svc(app: AppDef, svc_name: str, namespace: str, service_port: str) -> dict[str, object]:
    """Return the headless Service of an application."""
    return objects.mcad_service(_record(app), namespace, svc_name, int(service_port))


def pod_labels(
    app: AppDef, role_idx: int, role: Role, replica_id: int, coscheduler_name: str | None, app_id: str
) -> dict[str, str]:
    """Return the labels of one pod."""
    record = _record(app)
    labels = objects.mcad_pod_labels(record, role.name, role_idx, replica_id, app_id, objects.followed_version())
    group = {} if coscheduler_name is None else {objects.POD_GROUP: f"{app_id}-pg{role_idx}"}
    return {**labels, **group}


def get_appwrapper_status(app: Mapping[str, Any]) -> AppState:
    """Return the state that an AppWrapper reports; without a status it is pending."""
    return _STATES.get(app.get("status", {}).get("state", "Pending"), AppState.UNKNOWN)


def get_tasks_status_description(status: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of pods that an AppWrapper counts in each state."""
    return {name: status[name] for name in _COUNTERS if name in status}


def get_role_information(generic_items: Iterable[Mapping[str, Any]]) -> dict[str, Role]:
    """Return the roles of the pods in an AppWrapper, as far as pods show them."""
    roles: dict[str, Role] = {}
    for item in generic_items:
        template = item.get("generictemplate", {})
        name = template.get("metadata", {}).get("labels", {}).get(_ROLE)
        if name is None:
            continue
        role = roles.setdefault(name, Role(name=name, num_replicas=0, image=""))
        role.num_replicas += 1
        containers = template.get("spec", {}).get("containers")
        if role.num_replicas == 1 and containers:
            _describe(role, containers[0])
    return roles


def _describe(role: Role, container: Mapping[str, Any]) -> None:
    """Copy a container's fields to its role, in Kubernetes' form, until the first missing field."""
    for key, field in _FIELDS:
        if key not in container:
            return
        if key == "resources":
            asked = container[key].get("requests", {})
            if "cpu" not in asked or "memory" not in asked:
                return
            gpus = [count for name, count in asked.items() if "gpu" in name]
            role.resource = Resource(cpu=asked["cpu"], gpu=gpus[-1] if gpus else -1, memMB=asked["memory"])
        else:
            setattr(role, field, container[key])


def _record(app: AppDef) -> appdef.AppDef:
    log = Log()
    record = appdef.read_appdef(plain_data(dataclasses.asdict(app)), log)
    log.raise_faults()
    return record
