"""What makes the Secret of a release on the cluster, where the chart does: the twin of ``templates/secrets.yaml``.

Formats: bitnami-labs/sealed-secrets, pkg/apis/sealedsecrets/v1alpha1; external-secrets/external-secrets,
apis/externalsecrets/v1.
"""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.chart.render.model import Model
from symphony_charts.chart.render.values import Values, is_true, scalar, strings
from symphony_charts.errors import SpecError
from symphony_charts.formats.data import sub

__all__ = ["SCOPES", "secret_objects"]

# What the controller reads the scope of a SealedSecret from; strict is the default.
SCOPES = {
    "namespace-wide": "sealedsecrets.bitnami.com/namespace-wide",
    "cluster-wide": "sealedsecrets.bitnami.com/cluster-wide",
}
# Before everything that mounts it; it is healthy as soon as it is read.
_WAVE = {"argocd.argoproj.io/sync-wave": "-1"}


def secret_objects(model: Model) -> Iterator[dict[str, object]]:
    """The SealedSecret or ExternalSecret of a release; none where the Secret is made apart from the chart."""
    secrets = sub(model.values, "secrets")
    source = scalar(secrets.get("source") or "existing")
    if source == "sealed" and sub(secrets, "encryptedData"):
        yield _sealed(model, secrets)
    elif source == "external" and sub(secrets, "files"):
        yield _external(model, secrets)


def _sealed(model: Model, secrets: Values) -> dict[str, object]:
    mark = SCOPES.get(scalar(secrets.get("scope") or "strict"))
    scope = {mark: "true"} if mark else {}
    inner: Values = {"name": model.secret_name, "labels": model.labels}
    if scope:
        inner["annotations"] = scope
    return {
        "apiVersion": "bitnami.com/v1alpha1",
        "kind": "SealedSecret",
        "metadata": {"name": model.secret_name, "labels": model.labels, "annotations": {**_WAVE, **scope}},
        "spec": {
            "encryptedData": strings(secrets["encryptedData"]),
            "template": {"metadata": inner, "type": "Opaque"},
        },
    }


def _external(model: Model, secrets: Values) -> dict[str, object]:
    store = sub(secrets, "store")
    name = scalar(store.get("name") or "")
    if not name:
        raise SpecError.one("secrets.store.name names the SecretStore", "secrets.store.name")
    files = sub(secrets, "files")
    data = []
    for key in sorted(files):
        remote = scalar(sub(files, key).get("remote") or key)
        place, hash_, part = remote.partition("#")
        data.append({"secretKey": key, "remoteRef": {"key": place, "property": part} if hash_ else {"key": place}})
    kind = "ClusterSecretStore" if is_true(store.get("isCluster")) else "SecretStore"
    return {
        "apiVersion": "external-secrets.io/v1",
        "kind": "ExternalSecret",
        "metadata": {"name": model.secret_name, "labels": model.labels, "annotations": _WAVE},
        "spec": {
            "refreshInterval": scalar(secrets.get("refreshInterval") or "1h"),
            "secretStoreRef": {"kind": kind, "name": name},
            "target": {"name": model.secret_name, "creationPolicy": "Owner"},
            "data": data,
        },
    }
