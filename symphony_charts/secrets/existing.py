"""The files of an experiment become a Secret, pushed apart from the chart, which only names it."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from symphony_charts.errors import SpecError
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.sources import key_of

__all__ = ["secret_object"]

# Kubernetes refuses a larger Secret (k8s.io/api/core/v1, MaxSecretSize).
_MAX_SECRET_BYTES = 1024 * 1024


def secret_object(
    experiment: Experiment, contents: Mapping[str, bytes], name: str, namespace: str | None = None
) -> dict[str, object]:
    """The Secret `name` with the `contents` (by key) of the experiment's files.

    Raises SpecError when one is missing or the whole is too large.
    """
    keys = [key_of(file) for file in experiment.secrets]
    missing = [key for key in keys if key not in contents]
    if missing:
        raise SpecError.one(f'no content for secret "{missing[0]}"', "secrets")
    size = sum(len(contents[key]) for key in keys)
    if size > _MAX_SECRET_BYTES:
        raise SpecError.one(f"the secrets hold {size} bytes; Kubernetes takes 1 MiB", "secrets")
    metadata: dict[str, object] = {
        "name": name,
        "labels": {"app.kubernetes.io/managed-by": "symph", "symph.dev/experiment": experiment.name},
    }
    if namespace:
        metadata["namespace"] = namespace
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "data": {key: base64.b64encode(contents[key]).decode() for key in sorted(keys)},
    }
