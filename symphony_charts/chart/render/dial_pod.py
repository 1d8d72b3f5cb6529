"""The pod that `helm test` starts: the twin of ``tests/dial.yaml``."""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.chart.render import names
from symphony_charts.chart.render.images import image_text, pull_secrets
from symphony_charts.chart.render.model import Model
from symphony_charts.chart.render.scripts import dial_script
from symphony_charts.chart.render.values import Values
from symphony_charts.formats.data import sub

__all__ = ["dial_pod"]

# A pod that failed stays for its log; nothing else outlives the release.
_KEPT_UNTIL = "before-hook-creation,hook-succeeded"


def dial_pod(model: Model) -> Iterator[dict[str, object]]:
    """A pod that dials every bound service, if there are any and tests are not switched off."""
    bound = [f"{service.host}:{service.port}" for service in model.services.values() if service.is_bound]
    tests = sub(model.values, "tests")
    if not bound or tests.get("enabled") in (False, "false"):
        return
    spec: Values = {
        "containers": [
            {
                "name": "dial",
                "image": image_text(model.values, tests.get("image") or ""),
                "command": ["/bin/sh", "-c", dial_script(), "dial"],
                "args": bound,
                "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
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
            "name": names.join(model.fullname, "test-dial", 63),
            "labels": {**model.labels, "app.kubernetes.io/component": "test"},
            "annotations": {"helm.sh/hook": "test", "helm.sh/hook-delete-policy": _KEPT_UNTIL},
        },
        "spec": spec,
    }
