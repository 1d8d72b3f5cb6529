"""Flux: under it the pointer of an experiment is its HelmRelease, so that both cannot differ.

The file of a pointer has two documents: the HelmRelease, and what symph alone reads, which kustomize never applies.
Flux waits for Jobs by default, five minutes, and may uninstall slower ones; the fields below prevent that. Source:
fluxcd/helm-controller, docs/spec/v2/helmreleases.md; fluxcd/source-controller, docs/spec/v1/gitrepositories.md;
kubernetes-sigs/kustomize, api/resource/factory.go (DropLocalNodes).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from symphony_charts.errors import SpecError
from symphony_charts.formats.data import Values, sub
from symphony_charts.formats.yaml_read import load_documents
from symphony_charts.gitops.argocd import app_name
from symphony_charts.gitops.snapshot import below
from symphony_charts.settings.project import Destination

FLUX_SOURCE_FILE = "bootstrap/flux-source.yaml"

_API, _KIND = "helm.toolkit.fluxcd.io/v2", "HelmRelease"
# user@host:path, as in git and ssh; with a slash before the colon it is a local path.
_SCP = re.compile(r"(?:([\w.+-]+)@)?(\[[0-9A-Fa-f:.]+\]|[\w.-]+):(?!//)(.+)", re.ASCII)


class FluxSource(NamedTuple):
    """The GitRepository of a repository: its name and namespace, which its releases share."""

    name: str
    namespace: str


def source_in(content: bytes | None) -> FluxSource | None:
    """Return the GitRepository in the content of `FLUX_SOURCE_FILE`; None without the file.

    Raises SpecError for a file that is not YAML.
    """
    if content is None:
        return None
    documents = load_documents(content.decode("utf-8", "replace"))
    metadata = sub(documents[0][0] if documents else None, "metadata")
    return FluxSource(str(metadata.get("name") or "symph"), str(metadata.get("namespace") or "flux-system"))


def flux_url(url: str) -> str:
    """Return the address in the form of a GitRepository: ``git@host:path`` becomes ssh. Raises SpecError."""
    if re.match(r"(?:https?|ssh)://", url):
        return url
    match = _SCP.fullmatch(url)
    if match is None:
        step = "give the address that the cluster uses: --cluster-url URL"
        raise SpecError.one(f"Flux cannot read {url}: it needs http, https or ssh", "repository.url", step)
    user, host, path = match.groups()
    return f"ssh://{f'{user}@' if user else ''}{host}/{path.removeprefix('/')}"


def needs_secret(url: str) -> bool:
    """Return True if Flux needs credentials to read the repository: ssh has no anonymous readers."""
    return flux_url(url).startswith("ssh://")


def helm_release(
    data: Mapping[str, object], place: Destination, source: FluxSource, *, root: str = ""
) -> dict[str, object]:
    """Return the HelmRelease of a pointer's `data`; its chart is relative to the folder `root` of the repository.

    Raises SpecError for a cluster that Flux cannot reach.
    """
    env, team, name = (str(data[key]) for key in ("env", "team", "name"))
    no_waiting = {"disableWait": True, "disableWaitForJobs": True, "remediation": {"retries": 0}}
    # By version, not by commit: a published chart never changes, so other commits do not matter.
    chart = {"chart": f"./{below(root, str(data['chart']))}", "reconcileStrategy": "ChartVersion"}
    spec: dict[str, object] = {
        "interval": "10m",
        "chart": {"spec": {**chart, "sourceRef": {"kind": "GitRepository", **source._asdict()}}},
        "releaseName": name,
        "targetNamespace": place.namespace,
        "storageNamespace": place.namespace,
        "valuesFrom": [{"kind": "ConfigMap", "name": source.name, "optional": True}],
        "values": data["values"],
        "install": no_waiting,
        "upgrade": {**no_waiting, "cleanupOnFail": True},
    }
    if kubeconfig := _kubeconfig(place):
        spec["kubeConfig"] = {"secretRef": {"name": kubeconfig}}
    if account := _account(place, env, source.name):
        spec["serviceAccountName"] = account
    metadata = {
        "name": f"{source.name}-{app_name(env, team, name)}",
        "namespace": source.namespace,
        "labels": {"symph.dev/experiment": name, "symph.dev/team": team, "symph.dev/env": env},
        "annotations": {"symph.dev/digest": data["digest"]},
    }
    return {"apiVersion": _API, "kind": _KIND, "metadata": metadata, "spec": spec}


def documents_of(data: Mapping[str, object], place: Destination, source: FluxSource, *, root: str) -> list[Values]:
    """Return the two documents of a pointer's file; see `pointer_data`."""
    release = helm_release(data, place, source, root=root)
    held = ("name", "team", "env", "version", "digest", "chart", "values", "apiVersion")
    metadata = {"name": sub(release, "metadata")["name"], "annotations": {"config.kubernetes.io/local-config": "true"}}
    head = {"apiVersion": data["apiVersion"], "kind": "Pointer", "metadata": metadata}
    return [release, {**head, **{key: value for key, value in data.items() if key not in held}}]


def is_release(documents: Sequence[object]) -> bool:
    """Return True if the documents of a pointer's file are those for Flux."""
    return bool(documents) and isinstance(documents[0], dict) and documents[0].get("kind") == _KIND


def pointer_data(documents: Sequence[object]) -> Values:
    """Return a pointer's data from the documents of its file; edits of the HelmRelease count."""
    release, rest = documents[0], dict(sub(documents[1])) if len(documents) > 1 else {}
    spec, labels = sub(release, "spec"), sub(release, "metadata", "labels")
    for key in ("kind", "metadata"):
        rest.pop(key, None)
    env = str(labels.get("symph.dev/env", ""))
    chart = "/".join(str(sub(spec, "chart", "spec").get("chart", "")).split("/")[-4:])
    place: Values = {**sub(rest, "destination"), "namespace": spec.get("targetNamespace", "default")}
    named = Destination(**{key: str(place[key]) for key in ("name", "server") if key in place})
    source = str(sub(spec, "chart", "spec", "sourceRef").get("name", ""))
    usual = _kubeconfig(named) if named.name else "", _account(named, env, source)
    found = sub(spec, "kubeConfig", "secretRef").get("name", ""), spec.get("serviceAccountName", "")
    for key, value, default in zip(("kubeconfig", "service_account"), found, usual, strict=True):
        place[key] = "" if value == default else value
    return {
        **rest,
        "name": labels.get("symph.dev/experiment"),
        "team": labels.get("symph.dev/team"),
        "env": env,
        "version": chart.rpartition("/")[2],
        "digest": sub(release, "metadata", "annotations").get("symph.dev/digest"),
        "chart": chart,
        "values": spec.get("values") or {},
        "destination": place,
    }


def _account(place: Destination, env: str, source: str) -> str:
    """Return the account of a release: that of its environment, if it is in Flux's own cluster."""
    return place.service_account or (f"{source}-{env}" if place.is_own_cluster and not place.kubeconfig else "")


def _kubeconfig(place: Destination) -> str:
    """Return the Secret with Flux's access to another cluster, empty for its own; named like Cluster API's."""
    if place.kubeconfig:
        return place.kubeconfig
    if place.name:
        return f"{place.name}-kubeconfig"
    if not place.is_own_cluster:
        what = f"Flux needs a Secret with the kubeconfig of {place.server}"
        raise SpecError.one(what, "environments", "name the Secret beside `server` in .symph.yaml: `kubeconfig: NAME`")
    return ""


def folder_keeper(env: str) -> bytes:
    """Return the file that keeps an environment's folder: without the folder Flux stops and prunes nothing."""
    text = f"Experiments that Flux runs in {env}. Keep this file: without the folder, Flux prunes nothing.\n"
    return text.encode()
