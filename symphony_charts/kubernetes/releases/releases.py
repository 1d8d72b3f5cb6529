"""`Releases` changes Helm releases of experiments once the cluster has judged all objects; nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from symphony_charts.errors import Conflict, NotFound, SpecError
from symphony_charts.kubernetes.client import KubeApi, Object
from symphony_charts.kubernetes.experiments import PLAIN, KubeExperiments
from symphony_charts.kubernetes.releases.helm_client import HelmReleases, Revision, Target
from symphony_charts.kubernetes.releases.rehearsal import rehearse
from symphony_charts.kubernetes.releases.wait import (
    Progress,
    is_finite,
    progress_in,
    run_in,
    services_of_run,
    wait_for,
    wait_gone,
)
from symphony_charts.kubernetes.status import refuse_protected

__all__ = ["Releases", "Removed", "Revision", "Target"]


_EXPERIMENT = "symph.dev/experiment"
_INSTANCE = "app.kubernetes.io/instance"
_RELEASE = "meta.helm.sh/release-name"
_RELEASE_NAMESPACE = "meta.helm.sh/release-namespace"
_ARGO = "argocd.argoproj.io/tracking-id"
# What our charts may make; the kinds of the release's own manifest are looked at as well.
_KINDS = (
    *PLAIN,
    ("v1", "Service"),
    ("v1", "ConfigMap"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("networking.k8s.io/v1", "Ingress"),
    ("v1", "Pod"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """Objects that an uninstall removed: those of the release, and leftovers of failed upgrades."""

    objects: tuple[str, ...]
    swept: tuple[str, ...]


class Releases:
    """The releases of experiments on one cluster.

    Raises ToolMissing without helm, ToolFailed without a cluster. `namespace` is the context's own; `sent_run` the run
    of what was last sent, or would have been by a dry run, `sent_services` its services that begin anew with a run,
    `warnings` what the cluster said of it.
    """

    sent_run = ""
    sent_services: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __init__(self, target: Target | None = None, *, timeout_s: float = 300.0) -> None:
        chosen = target or Target()
        self._helm = HelmReleases(chosen, timeout_s=timeout_s)
        self._api = KubeApi(chosen.kubeconfig, chosen.context)
        self.namespace = self._api.namespace
        self._timeout_s = timeout_s

    def close(self) -> None:
        self._api.close()

    def __enter__(self) -> Releases:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- looking ---

    def current(self, name: str, namespace: str) -> Revision:
        """Return the newest revision of an experiment's release. Raises NotFound, also for others' releases."""
        newest = self._helm.current(name, namespace)
        if newest is None or newest.status == "uninstalled":
            next_step = "symph status lists the releases; -n chooses the namespace"
            raise NotFound(f'there is no release "{name}" in {namespace}', next=next_step)
        if not _is_ours(self._helm.manifest(name, namespace)):
            what = f'the release "{name}" in {namespace} is no experiment'
            raise NotFound(what, next=f"helm itself handles it: helm status {name} -n {namespace}")
        return newest

    def history(self, name: str, namespace: str) -> list[Revision]:
        """Return the revisions of an experiment's release, the newest first; raises NotFound."""
        self.current(name, namespace)
        return self._helm.history(name, namespace)

    def notes(self, name: str, namespace: str) -> str:
        return self._helm.notes(name, namespace)

    def reruns(self, name: str, namespace: str, revision: int) -> list[str]:
        """Return the Jobs that a rollback to `revision` would start again from their beginning."""
        now = {_title(item) for item in self._helm.manifest(name, namespace)}
        then = self._helm.manifest(name, namespace, revision)
        return [item["metadata"]["name"] for item in then if is_finite(item) and _title(item) not in now]

    def find(self, name: str, namespace: str) -> Revision | None:
        """Return the newest revision of a release, None without one. Raises NotFound for others' releases."""
        newest = self._helm.current(name, namespace)
        if newest is None or newest.status == "uninstalled":
            return None
        return self.current(name, namespace)

    def run_of(self, name: str, namespace: str) -> str:
        """Which run the release is in; empty where there is none."""
        return run_in(self._helm.manifest(name, namespace)) if self.find(name, namespace) else ""

    def progress(self, name: str, namespace: str) -> list[Progress]:
        """Return the progress of each workload of the release."""
        return progress_in(self._experiments(namespace), self._helm.manifest(name, namespace), name)

    # --- changing ---

    def install(
        self,
        name: str,
        chart: Path,
        values: Mapping[str, object] | None = None,
        *,
        namespace: str,
        create_namespace: bool = False,
        secret: Object | None = None,
        replace: bool = False,
        dry_run: bool = False,
    ) -> Revision | None:
        """Install a chart of ours as the release `name`; None with `dry_run`, which only asks the cluster.

        `secret` is pushed before. `replace` lets the release be there already and replaces its values. Raises Conflict
        where it is there, NotFound for the namespace, SpecError with every object that the cluster refuses.
        """
        existing = self.find(name, namespace)
        if existing is not None and not replace:
            what = f'the release "{name}" is there already: revision {existing.revision}, {existing.status}'
            raise Conflict(what, namespace, f"symph upgrade, another --name, or symph uninstall {name}")
        return self._send(
            name,
            chart,
            values or {},
            namespace,
            is_new=existing is None,
            secret=secret,
            create_namespace=create_namespace,
            dry_run=dry_run,
        )

    def upgrade(
        self,
        name: str,
        chart: Path,
        values: Mapping[str, object] | None = None,
        *,
        namespace: str,
        secret: Object | None = None,
        dry_run: bool = False,
    ) -> Revision | None:
        """Let an installed release run this chart with these values; None with `dry_run`. Raises as `install` does."""
        self.current(name, namespace)
        return self._send(name, chart, values or {}, namespace, is_new=False, secret=secret, dry_run=dry_run)

    def rollback(self, name: str, namespace: str, revision: int | None = None, *, dry_run: bool = False) -> int:
        """Make the release what it was (None: the last revision that was deployed before); the revision taken.

        The cluster judges every object first; with `dry_run` that is all. Raises NotFound.
        """
        history = self.history(name, namespace)
        chosen = revision if revision is not None else _before(history)
        if chosen is None or chosen not in [one.revision for one in history]:
            names = ", ".join(str(one.revision) for one in history)
            raise NotFound(f'"{name}" has no revision {chosen or "before this one"}', next=f"it has {names}")
        self._rehearse(lambda helm: helm.rollback(name, namespace, chosen, hooks=False), name, namespace, is_there=True)
        if not dry_run:
            self._helm.rollback(name, namespace, chosen)
        return chosen

    def uninstall(
        self,
        name: str,
        namespace: str,
        *,
        keep_history: bool = False,
        wait_s: float | None = None,
        dry_run: bool = False,
    ) -> Removed:
        """Remove a release, then what failed upgrades of it left; with `wait_s` return when its pods are gone."""
        self.current(name, namespace)
        manifest = self._helm.manifest(name, namespace)
        own = {_title(item) for item in manifest}
        if not dry_run:
            self._helm.uninstall(name, namespace, keep_history=keep_history)
        left = [item for item in self._leftovers(name, namespace, manifest) if _title(item) not in own]
        if not dry_run:
            for item in left:
                self._api.delete(item)
            if wait_s is not None:
                wait_gone(self._experiments(namespace), manifest, name, namespace, wait_s)
        return Removed(objects=tuple(sorted(own)), swept=tuple(sorted(map(_title, left))))

    def wait(self, name: str, namespace: str, *, finished: bool = False, timeout_s: float = 300.0) -> None:
        """Return when all that the release runs is ready or has finished (`finished`: has finished, services aside).

        Raises CheckFailed at once when a Job has failed, with its reason, and ToolFailed after `timeout_s`.
        """
        manifest = self._helm.manifest(name, namespace)
        wait_for(self._experiments(namespace), manifest, name, namespace, finished, timeout_s)

    # --- inside ---

    def _experiments(self, namespace: str) -> KubeExperiments:
        return KubeExperiments(namespace=namespace, api=self._api)

    def _send(
        self,
        name: str,
        chart: Path,
        values: Mapping[str, object],
        namespace: str,
        *,
        is_new: bool,
        secret: Object | None,
        create_namespace: bool = False,
        dry_run: bool,
    ) -> Revision | None:
        refuse_protected(namespace)
        is_there = self._api.find(f"/api/v1/namespaces/{namespace}") is not None
        if not is_there and not create_namespace:
            raise NotFound(f'there is no namespace "{namespace}"', next="create it, or add --create-namespace")
        objects = self._helm.render(name, chart, values, namespace=namespace, is_upgrade=not is_new)
        if not _is_ours(objects):
            what = f"{chart} is no chart of an experiment"
            raise SpecError.one(what, next=f"helm itself installs it: helm install {name} {chart}")
        self._rehearse(
            lambda helm: helm.apply(name, chart, values, namespace=namespace, hooks=False),
            name,
            namespace,
            is_there=is_there,
        )
        self.sent_run, self.sent_services = run_in(objects), services_of_run(objects)
        if dry_run:
            return None
        if not is_there:
            self._api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}, "")
        if secret is not None:
            self._api.apply(secret, namespace)
        return self._helm.apply(name, chart, values, namespace=namespace)

    def _rehearse(self, step: Callable[[HelmReleases], object], name: str, namespace: str, *, is_there: bool) -> None:
        """Raise SpecError (or Conflict) with everything that the cluster would refuse of what helm would send."""

        def manifest() -> list[Object]:
            return self._helm.manifest(name, namespace) if self._helm.current(name, namespace) else []

        rehearsal = rehearse(
            self._api, step, name, namespace, manifest=manifest, is_there=is_there, timeout_s=self._timeout_s
        )
        self.warnings = tuple(rehearsal.warnings)

    def _leftovers(self, name: str, namespace: str, manifest: Sequence[Object]) -> list[Object]:
        kinds = dict.fromkeys((*_KINDS, *((item["apiVersion"], item["kind"]) for item in manifest)))
        selector = f"{_INSTANCE}={name},{_EXPERIMENT}"
        labelled = [item for kind in kinds for item in self._api.of_kind(*kind, namespace, selector)]
        return [item for item in labelled if _is_of_release(item, name, namespace)]


def _before(history: Sequence[Revision]) -> int | None:
    """Return the newest revision but the current one that was once deployed."""
    return next((revision.revision for revision in history[1:] if revision.status in ("superseded", "deployed")), None)


def _is_ours(objects: Sequence[Object]) -> bool:
    return any(_EXPERIMENT in (item["metadata"].get("labels") or {}) for item in objects)


def _is_of_release(item: Object, name: str, namespace: str) -> bool:
    """Return True if helm made the object for this release: its annotations say so, or it is a hook (a test pod) of it.

    Labels alone prove nothing: Argo CD puts the same ones on what it manages.
    """
    marks = item["metadata"].get("annotations") or {}
    if _ARGO in marks:
        return False
    is_hook = (
        "helm.sh/hook" in marks and item["metadata"].get("labels", {}).get("app.kubernetes.io/managed-by") == "Helm"
    )
    return is_hook or (marks.get(_RELEASE) == name and marks.get(_RELEASE_NAMESPACE) == namespace)


def _title(item: Object) -> str:
    return f"{item['kind']}/{item['metadata']['name']}"
