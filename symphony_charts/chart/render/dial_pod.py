"""The pod that `helm test` starts: the twin of ``tests/dial.yaml``."""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.chart.render import names
from symphony_charts.chart.render.images import image_text, pull_secrets
from symphony_charts.chart.render.model import Model
from symphony_charts.chart.render.scripts import dial_script
from symphony_charts.chart.render.values import Values
from symphony_charts.formats.data import sub

__all__ = ["HOOK", "dial_name", "dial_pod", "dialled"]

# A pod that failed stays for its log; nothing else outlives the release.
HOOK = {"helm.sh/hook": "test", "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded"}


def dial_name(model: Model) -> str:
    """What the pod is called, and the policy that lets it out."""
    return names.join(model.fullname, "test-dial", 63)


def dialled(model: Model) -> list[str]:
    """The addresses that `helm test` dials: of every bound service; none where tests are switched off."""
    if sub(model.values, "tests").get("enabled") in (False, "false"):
        return []
    return [f"{service.host}:{service.port}" for service in model.services.values() if service.is_bound]


def dial_pod(model: Model) -> Iterator[dict[str, object]]:
    """A pod that dials every bound service, if there are any and tests are not switched off."""
    bound, tests = dialled(model), sub(model.values, "tests")
    if not bound:
        return
    policy = model.defaults.get("imagePullPolicy")
    spec: Values = {
        "containers": [
            {
                "name": "dial",
                "image": image_text(model.values, tests.get("image") or ""),
                **({"imagePullPolicy": policy} if policy else {}),
                "command": ["/bin/sh", "-c", dial_script(), "dial"],
                "args": bound,
                "resources": {
                    "requests": {"cpu": "10m", "memory": "16Mi", "ephemeral-storage": "1Mi"},
                    "limits": {"cpu": "100m", "memory": "64Mi", "ephemeral-storage": "16Mi"},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "runAsGroup": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "restartPolicy": "Never",
    }
    secrets = pull_secrets(model.values)
    if secrets:
        spec["imagePullSecrets"] = secrets
    if model.defaults.get("tolerations"):
        spec["tolerations"] = model.defaults["tolerations"]
    yield {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": dial_name(model),
            "labels": {**model.labels, "app.kubernetes.io/component": "test"},
            "annotations": HOOK,
        },
        "spec": spec,
    }
