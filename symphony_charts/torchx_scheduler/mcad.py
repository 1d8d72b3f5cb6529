"""Functions that TorchX's `kubernetes_mcad_scheduler` documents and newer TorchX releases no longer have."""

from __future__ import annotations

from symphony_charts.integrations.torchx.mcad import (
    KubernetesMCADJob,
    app_to_resource,
    get_appwrapper_status,
    get_role_information,
    get_tasks_status_description,
    mcad_svc,
    pod_labels,
)

__all__ = [
    "KubernetesMCADJob",
    "app_to_resource",
    "get_appwrapper_status",
    "get_role_information",
    "get_tasks_status_description",
    "mcad_svc",
    "pod_labels",
]
