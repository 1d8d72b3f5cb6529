"""`remove` ends an experiment on Kubernetes: its Helm release or its objects, and only what is certainly ours."""

from __future__ import annotations

import time
from pathlib import Path

from symphony_charts.errors import Conflict, NotFound, ToolFailed
from symphony_charts.kinds.registry import RENDERED
from symphony_charts.kubernetes.client import Object
from symphony_charts.kubernetes.experiments import KubeExperiments
from symphony_charts.kubernetes.status import EXPERIMENT, INSTANCE, managers_of, refuse_managed, refuse_protected

# How a DIJob is named that no chart of ours made.
_OF_OTHERS = "dijob/"
# What our charts make beside what runs pods.
_OTHERS = (
    ("v1", "Pod"),
    ("v1", "Service"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "ServiceAccount"),
    ("v1", "PersistentVolumeClaim"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("networking.k8s.io/v1", "Ingress"),
    ("policy/v1", "PodDisruptionBudget"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    ("bitnami.com/v1alpha1", "SealedSecret"),
    ("external-secrets.io/v1", "ExternalSecret"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    *(gvk for kind in RENDERED for gvk in kind.further),
    ("scheduling.k8s.io/v1alpha2", "PodGroup"),
    ("scheduling.k8s.io/v1beta1", "PodGroup"),
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
    ("scheduling.volcano.sh/v1beta1", "PodGroup"),
)


def remove(experiments: KubeExperiments, name: str, *, dry_run: bool = False) -> list[str]:
    """End the experiment `name` and return the titles of its objects; with `dry_run` only return them.

    Raises NotFound; Conflict, before anything is touched, in a protected namespace and for what Git manages;
    ToolMissing where a Helm release holds it and there is no helm.
    """
    if name.startswith(_OF_OTHERS):
        return _remove_adopted(experiments, name.removeprefix(_OF_OTHERS), dry_run=dry_run)
    objects, pushed = _objects_and_secrets(experiments, name)
    namespace = experiments.namespace_of(name, objects)
    refuse_protected(namespace)
    place = namespace, objects[0]["metadata"]["labels"][EXPERIMENT]
    pushed = [
        item for item in pushed if (item["metadata"]["namespace"], item["metadata"]["labels"][EXPERIMENT]) == place
    ]
    releases = experiments.releases(name, namespace)
    refuse_managed(name, managers_of([*objects, *pushed], releases), f"symph retire {name} --env ENV")
    doomed = [item for item in (*objects, *pushed) if not item["metadata"].get("ownerReferences")]
    titles = sorted(set(map(_title, doomed)))
    if dry_run:
        return titles
    if releases:
        _uninstall(name, namespace, experiments.target)
    for item in doomed:
        experiments.api.delete(item)
    return titles


def objects_of_release(experiments: KubeExperiments, name: str) -> list[Object]:
    """Return the objects with the labels of the release `name`, without the Secret that was pushed for it.

    Raises NotFound if there are none.
    """
    return _objects_and_secrets(experiments, name)[0]


def _objects_and_secrets(experiments: KubeExperiments, name: str) -> tuple[list[Object], list[Object]]:
    labelled = [*experiments.workloads(name), *experiments.of_kinds(_OTHERS, name)]
    all_ours = [item for item in labelled if _is_ours(item, name)]
    ours = [item for item in all_ours if not _is_pushed(item)]
    if not ours and experiments.adopted(name):
        what = f'"{name}" is a DIJob that no chart of an experiment made'
        raise Conflict(what, next=f"symph rm {_OF_OTHERS}{name} removes it all the same")
    if not ours:
        experiments.namespace_of(name, [])
    return ours, [item for item in all_ours if _is_pushed(item)]


def _remove_adopted(experiments: KubeExperiments, name: str, *, dry_run: bool) -> list[str]:
    jobs = experiments.adopted(name)
    refuse_protected(experiments.namespace_of(name, jobs))
    refuse_managed(name, managers_of(jobs, []), "remove it where it is kept")
    for item in jobs if not dry_run else ():
        experiments.api.delete(item)
    return sorted(map(_title, jobs))


def wait_gone(experiments: KubeExperiments, name: str, timeout_s: float) -> None:
    """Return when nothing of the experiment runs any more; raises ToolFailed after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    left: list[Object] = []
    for _ in experiments.object_changes(name, timeout_s):
        left = [*experiments.workloads(name), *experiments.pods(name)]
        if not left:
            return
        if time.monotonic() > deadline:
            break
    titles = ", ".join(map(_title, left))
    raise ToolFailed(f'"{name}" did not end within {timeout_s:g} s: {titles}', next=f"symph ps {name} --on kube")


def _uninstall(name: str, namespace: str, target: tuple[Path | None, str | None]) -> None:
    # pyhelm3 takes 130 ms to load, which only those spend who delete a release.
    from symphony_charts.kubernetes.releases.helm_client import Target
    from symphony_charts.kubernetes.releases.releases import Releases

    with Releases(Target(kubeconfig=target[0], context=target[1])) as releases:
        try:
            releases.uninstall(name, namespace)
        except NotFound:
            # Helm's record is of a release that was uninstalled with its history kept.
            return


def _is_ours(item: Object, name: str) -> bool:
    """Return True if `item` has the labels of the release `name`: a second check of what the server selected."""
    labels = item["metadata"].get("labels") or {}
    return bool(labels.get(EXPERIMENT)) and labels.get(INSTANCE) == name


def _is_pushed(item: Object) -> bool:
    """Return True for a Secret that `symph` pushed before the release, whose chart does not make it."""
    is_secret = item["kind"] == "Secret"
    return is_secret and bool(item["metadata"]["labels"].get("app.kubernetes.io/managed-by") == "symph")


def _title(item: Object) -> str:
    return f"{item['kind']}/{item['metadata']['name']}"
