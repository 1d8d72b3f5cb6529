"""Flux objects: the repository as a source, and a HelmRelease per pointer.

Flux waits for Jobs by default, five minutes, and may uninstall slower ones; the fields below prevent that. Source:
fluxcd/helm-controller, docs/spec/v2/helmreleases.md; fluxcd/source-controller, docs/spec/v1/gitrepositories.md;
fluxcd/kustomize-controller, docs/spec/v1/kustomizations.md.
"""

from __future__ import annotations

import re

from symphony_charts.errors import SpecError
from symphony_charts.gitops.argocd import app_name
from symphony_charts.gitops.pointer import Pointer
from symphony_charts.gitops.snapshot import below
from symphony_charts.settings.project import Destination

FLUX_SOURCE_FILE = "bootstrap/flux-source.yaml"

_SOURCE_NAME = "symph"
# user@host:path, as in git and ssh; with a slash before the colon it is a local path.
_SCP = re.compile(r"(?:([\w.+-]+)@)?(\[[0-9A-Fa-f:.]+\]|[\w.-]+):(?!//)(.+)", re.ASCII)


def flux_url(url: str) -> str:
    """Return the address in the form of a GitRepository: ``git@host:path`` becomes ssh. Raises SpecError."""
    if re.match(r"(?:https?|ssh)://", url):
        return url
    match = _SCP.fullmatch(url)
    if match is None:
        raise SpecError.one(
            f"Flux reads no {url}: it knows http, https and ssh",
            "repository.url",
            "say by which address the cluster reads it: --cluster-url URL",
        )
    user, host, path = match.groups()
    return f"ssh://{f'{user}@' if user else ''}{host}/{path.removeprefix('/')}"


def needs_secret(url: str) -> bool:
    """Return True if Flux needs credentials to read the repository: ssh has no anonymous readers."""
    return flux_url(url).startswith("ssh://")


def git_repository(
    url: str, branch: str, namespace: str = "flux-system", secret: str | None = None, *, root: str = ""
) -> dict[str, object]:
    """Return the GitRepository of a branch with only charts and releases; `secret` names its credentials."""
    spec: dict[str, object] = {
        "interval": "1m",
        "url": flux_url(url),
        "ref": {"branch": branch},
        "sparseCheckout": [below(root, "charts"), below(root, "flux")],
    }
    if secret:
        spec["secretRef"] = {"name": secret}
    metadata = {"name": _SOURCE_NAME, "namespace": namespace}
    return {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": metadata, "spec": spec}


def helm_release(pointer: Pointer, namespace: str = "flux-system", *, root: str = "") -> dict[str, object]:
    """Return the HelmRelease of `pointer`; its paths are relative to the folder `root` of the repository.

    Raises SpecError for a cluster that Flux cannot reach.
    """
    no_waiting = {"disableWait": True, "disableWaitForJobs": True, "remediation": {"retries": 0}}
    source = {"kind": "GitRepository", "name": _SOURCE_NAME, "namespace": namespace}
    place, chart = pointer.destination, f"./{below(root, pointer.chart)}"
    spec: dict[str, object] = {
        "interval": "10m",
        "chart": {
            # By version, not by commit: a published chart never changes, so other commits do not matter.
            "spec": {
                "chart": chart,
                "sourceRef": source,
                "reconcileStrategy": "ChartVersion",
            },
        },
        "releaseName": pointer.name,
        "targetNamespace": place.namespace,
        "storageNamespace": place.namespace,
        "values": pointer.values,
        "install": no_waiting,
        "upgrade": {**no_waiting, "cleanupOnFail": True},
    }
    if kubeconfig := _kubeconfig(place):
        spec["kubeConfig"] = {"secretRef": {"name": kubeconfig}}
    if place.service_account:
        spec["serviceAccountName"] = place.service_account
    labels = {"symph.dev/experiment": pointer.name, "symph.dev/team": pointer.team, "symph.dev/env": pointer.env}
    metadata = {
        "name": app_name(pointer.env, pointer.team, pointer.name),
        "namespace": namespace,
        "labels": labels,
        "annotations": {"symph.dev/version": pointer.version, "symph.dev/digest": pointer.digest},
    }
    return {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": metadata, "spec": spec}


def _kubeconfig(place: Destination) -> str:
    """Return the Secret with Flux's access to another cluster, empty for its own; named like Cluster API's."""
    if place.kubeconfig:
        return place.kubeconfig
    if place.name:
        return f"{place.name}-kubeconfig"
    if not place.is_own_cluster:
        raise SpecError.one(
            f"Flux reaches {place.server} only by a Secret that holds its kubeconfig",
            "environments",
            "name it beside `server` in .symph.yaml: `kubeconfig: NAME`",
        )
    return ""


def folder_keeper(env: str) -> bytes:
    """Return the file that keeps an environment's folder: without the folder Flux stops and prunes nothing."""
    text = f"What Flux runs in {env}. This file stays when the last experiment is retired, so that Flux sees it go.\n"
    return text.encode()


def release_kustomization(
    env: str, namespace: str = "flux-system", sops_secret: str = "", *, root: str = ""
) -> dict[str, object]:
    """Return the Kustomization that applies the HelmReleases of an environment, and removes retired ones.

    `sops_secret` names the Secret with the keys for decrypting Secrets.
    """
    spec: dict[str, object] = {
        "interval": "10m",
        "path": f"./{below(root, 'flux')}/{env}",
        "prune": True,
        "wait": False,
        "sourceRef": {"kind": "GitRepository", "name": _SOURCE_NAME, "namespace": namespace},
    }
    if sops_secret:
        spec["decryption"] = {"provider": "sops", "secretRef": {"name": sops_secret}}
    metadata = {"name": f"symph-{env}", "namespace": namespace}
    return {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": metadata, "spec": spec}
