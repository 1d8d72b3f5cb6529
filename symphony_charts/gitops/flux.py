"""Flux is given the repository as a source, and a HelmRelease for each pointer.

Flux waits for Jobs by default, five minutes, and may uninstall what takes longer; the fields below keep it from that.
Source: fluxcd/helm-controller, docs/spec/v2/helmreleases.md; fluxcd/source-controller, docs/spec/v1/gitrepositories.md.
"""

from __future__ import annotations

from symphony_charts.gitops.argocd.objects import app_name
from symphony_charts.gitops.operations.pointer import Pointer

__all__ = ["git_repository", "helm_release", "release_kustomization"]

_SOURCE_NAME = "symph"


def git_repository(
    url: str, branch: str, namespace: str = "flux-system", secret: str | None = None
) -> dict[str, object]:
    """The GitRepository of a branch; only charts and releases are checked out. `secret` names its credentials."""
    spec: dict[str, object] = {
        "interval": "1m",
        "url": url,
        "ref": {"branch": branch},
        "sparseCheckout": ["charts", "flux"],
    }
    if secret:
        spec["secretRef"] = {"name": secret}
    metadata = {"name": _SOURCE_NAME, "namespace": namespace}
    return {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": metadata, "spec": spec}


def helm_release(pointer: Pointer, namespace: str = "flux-system") -> dict[str, object]:
    """The HelmRelease of what `pointer` says."""
    no_waiting = {"disableWait": True, "disableWaitForJobs": True, "remediation": {"retries": 0}}
    source = {"kind": "GitRepository", "name": _SOURCE_NAME, "namespace": namespace}
    spec: dict[str, object] = {
        "interval": "10m",
        "chart": {
            "spec": {"chart": f"./{pointer.chart}", "sourceRef": source, "reconcileStrategy": "Revision"},
        },
        "releaseName": pointer.name,
        "targetNamespace": pointer.destination.namespace,
        "storageNamespace": pointer.destination.namespace,
        "values": pointer.values,
        "install": no_waiting,
        "upgrade": {**no_waiting, "cleanupOnFail": True},
    }
    labels = {"symph.dev/experiment": pointer.name, "symph.dev/team": pointer.team, "symph.dev/env": pointer.env}
    metadata = {
        "name": app_name(pointer.env, pointer.team, pointer.name),
        "namespace": namespace,
        "labels": labels,
        "annotations": {"symph.dev/version": pointer.version, "symph.dev/digest": pointer.digest},
    }
    return {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": metadata, "spec": spec}


def release_kustomization(env: str, namespace: str = "flux-system", sops_secret: str = "") -> dict[str, object]:
    """The Kustomization that applies the HelmReleases of an environment, and removes those that are retired.

    `sops_secret` names the Secret with the keys by which encrypted Secrets are opened.
    """
    spec: dict[str, object] = {
        "interval": "10m",
        "path": f"./flux/{env}",
        "prune": True,
        "wait": False,
        "sourceRef": {"kind": "GitRepository", "name": _SOURCE_NAME, "namespace": namespace},
    }
    if sops_secret:
        spec["decryption"] = {"provider": "sops", "secretRef": {"name": sops_secret}}
    metadata = {"name": f"symph-{env}", "namespace": namespace}
    return {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": metadata, "spec": spec}
