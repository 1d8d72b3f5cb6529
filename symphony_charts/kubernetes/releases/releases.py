"""Install, upgrade, read and remove releases of charts, from specs, chart folders and archives."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symphony_charts.chart.build.chart import BuiltChart, Release
from symphony_charts.chart.build.faults import unsealed
from symphony_charts.chart.folder import read_chart
from symphony_charts.chart.release import merge
from symphony_charts.errors import Conflict, NotFound, SpecError, UsageError
from symphony_charts.formats.data import Values, sub
from symphony_charts.kubernetes.client import KubeApi, Object, title_of
from symphony_charts.kubernetes.experiments import PLAIN, KubeExperiments, wait_gone
from symphony_charts.kubernetes.releases.helm_client import HelmReleases, Revision, Target
from symphony_charts.kubernetes.releases.rehearsal import rehearse
from symphony_charts.kubernetes.releases.wait import (
    Progress,
    is_finite,
    progress_in,
    run_in,
    services_of_run,
    wait_for,
)
from symphony_charts.kubernetes.status import refuse_protected
from symphony_charts.package import template
from symphony_charts.prepare import Prepared, judge, prepare
from symphony_charts.secrets.files import read_secret_files, secret_object
from symphony_charts.spec import files
from symphony_charts.spec.sources import key_of
from symphony_charts.system.files import write_tree

_EXPERIMENT = "symph.dev/experiment"
_RELEASE = "meta.helm.sh/release-name"
_RELEASE_NAMESPACE = "meta.helm.sh/release-namespace"
_ARGO = "argocd.argoproj.io/tracking-id"
# The kinds that our charts may contain; the kinds of the release's own manifest are checked as well.
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
    """Objects that an uninstall removed: objects of the release, and leftovers of failed upgrades."""

    objects: tuple[str, ...]
    swept: tuple[str, ...]


class Releases:
    """The releases of experiments on one cluster.

    `namespace` is the context's namespace. After an operation or dry run, `sent_run` is the run of the sent objects,
    `sent_services` its services that restart with each run, and `warnings` the cluster's warnings. Raises ToolMissing
    without helm, ToolFailed without a cluster.
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

    def __enter__(self) -> Releases:
        return self

    def __exit__(self, *_: object) -> None:
        self._api.close()

    def current(self, name: str, namespace: str) -> Revision:
        """Return the newest revision of an experiment's release. Raises NotFound, also for releases of other charts."""
        newest = self.find(name, namespace)
        if newest is None:
            next_step = "list releases: symph status; another namespace: -n NAMESPACE"
            raise NotFound(f'namespace {namespace} has no release "{name}"', next=next_step)
        return newest

    def history(self, name: str, namespace: str) -> list[Revision]:
        """Return the revisions of an experiment's release, newest first. Raises NotFound."""
        self.current(name, namespace)
        return self._helm.history(name, namespace)

    def notes(self, name: str, namespace: str) -> str:
        return self._helm.notes(name, namespace)

    def reruns(self, name: str, namespace: str, revision: int) -> list[str]:
        """Return the Jobs that a rollback to `revision` would start again from the beginning."""
        now = {title_of(item) for item in self._helm.manifest(name, namespace)}
        then = self._helm.manifest(name, namespace, revision)
        return [item["metadata"]["name"] for item in then if is_finite(item) and title_of(item) not in now]

    def find(self, name: str, namespace: str) -> Revision | None:
        """Return the newest revision of a release, None without one. Raises NotFound for releases of other charts."""
        newest = self._helm.current(name, namespace)
        if newest is None or newest.status == "uninstalled":
            return None
        if not _is_ours(self._helm.manifest(name, namespace)):
            what = f'the release "{name}" in {namespace} is not an experiment'
            raise NotFound(what, next=f"use helm: helm status {name} -n {namespace}")
        return newest

    def run_of(self, name: str, namespace: str) -> str:
        """Return the run of the release; empty if there is none."""
        return run_in(self._helm.manifest(name, namespace)) if self.find(name, namespace) else ""

    def progress(self, name: str, namespace: str) -> list[Progress]:
        return progress_in(self._experiments(namespace), self._helm.manifest(name, namespace), name)

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
        """Install a chart of ours as the release `name`; with `dry_run` only ask the cluster and return None.

        `secret` is pushed first. With `replace`, an existing release is allowed and its values are replaced. Raises
        Conflict if the release exists, NotFound for the namespace, SpecError with every object that the cluster
        refuses.
        """
        existing = self.find(name, namespace)
        if existing is not None and not replace:
            what = f'the release "{name}" already exists: revision {existing.revision}, {existing.status}'
            raise Conflict(what, namespace, f"use symph upgrade, another --name, or symph uninstall {name}")
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
        """Upgrade a release to this chart and these values; None with `dry_run`. Raises the errors of `install`."""
        self.current(name, namespace)
        return self._send(name, chart, values or {}, namespace, is_new=False, secret=secret, dry_run=dry_run)

    def rollback(self, name: str, namespace: str, revision: int | None = None, *, dry_run: bool = False) -> int:
        """Roll the release back to `revision` (None: the previously deployed one); return the revision used.

        The cluster first checks every object; with `dry_run` nothing else happens. Raises NotFound.
        """
        history = self.history(name, namespace)
        earlier = (one.revision for one in history[1:] if one.status in ("superseded", "deployed"))
        chosen = revision if revision is not None else next(earlier, None)
        if chosen is None or chosen not in [one.revision for one in history]:
            names = ", ".join(str(one.revision) for one in history)
            raise NotFound(f'"{name}" has no revision {chosen or "before this one"}', next=f"its revisions: {names}")
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
        """Remove a release and the leftovers of its failed upgrades; with `wait_s` wait until its pods are gone."""
        self.current(name, namespace)
        manifest = self._helm.manifest(name, namespace)
        own = {title_of(item) for item in manifest}
        if not dry_run:
            self._helm.uninstall(name, namespace, keep_history=keep_history)
        left = [item for item in self._leftovers(name, namespace, manifest) if title_of(item) not in own]
        if not dry_run:
            for item in left:
                self._api.delete(item)
            if wait_s is not None:
                wait_gone(self._experiments(namespace), name, namespace, manifest, wait_s)
        return Removed(objects=tuple(sorted(own)), swept=tuple(sorted(map(title_of, left))))

    def wait(self, name: str, namespace: str, *, finished: bool = False, timeout_s: float = 300.0) -> None:
        """Wait until all workloads of the release are ready or finished (`finished`: finished, except services).

        Raises CheckFailed with the reason as soon as a Job has failed, and ToolFailed after `timeout_s`.
        """
        manifest = self._helm.manifest(name, namespace)
        wait_for(self._experiments(namespace), manifest, name, namespace, finished, timeout_s)

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
            raise NotFound(f'the namespace "{namespace}" does not exist', next="create it, or add --create-namespace")
        objects = self._helm.render(name, chart, values, namespace=namespace, is_upgrade=not is_new)
        if not _is_ours(objects):
            what = f"{chart} is not a chart of symph"
            raise SpecError.one(what, next=f"use helm: helm install {name} {chart}")
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
        """Raise SpecError (or Conflict) with all objects of the step that the cluster would refuse."""

        def manifest() -> list[Object]:
            return self._helm.manifest(name, namespace) if self._helm.current(name, namespace) else []

        rehearsal = rehearse(
            self._api, step, name, namespace, manifest=manifest, is_there=is_there, timeout_s=self._timeout_s
        )
        self.warnings = tuple(rehearsal.warnings)

    def _leftovers(self, name: str, namespace: str, manifest: Sequence[Object]) -> list[Object]:
        kinds = dict.fromkeys((*_KINDS, *((item["apiVersion"], item["kind"]) for item in manifest)))
        labelled = self._experiments(namespace).of_kinds(kinds, name)
        return [item for item in labelled if _is_of_release(item, name, namespace)]


def _is_ours(objects: Sequence[Object]) -> bool:
    return any(_EXPERIMENT in (item["metadata"].get("labels") or {}) for item in objects)


def _is_of_release(item: Object, name: str, namespace: str) -> bool:
    """Return True if helm made the object for this release: by its annotations, or as a hook (test pod) of it.

    Labels alone prove nothing: Argo CD sets the same labels on objects that it manages.
    """
    marks = item["metadata"].get("annotations") or {}
    labels = item["metadata"].get("labels") or {}
    is_hook = "helm.sh/hook" in marks and labels.get("app.kubernetes.io/managed-by") == "Helm"
    is_made = (marks.get(_RELEASE), marks.get(_RELEASE_NAMESPACE)) == (name, namespace)
    return _ARGO not in marks and (is_hook or is_made)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSource:
    """A chart on disk, and the data needed to push the secrets of its release.

    `name` is the default name of the release; `namespace` is empty if the experiment sets none. `built` is the chart
    with its default values, None for a chart that was packaged before: its secrets are pushed separately. Secret files
    are relative to `folder`.
    """

    name: str
    chart: Path
    namespace: str = ""
    built: BuiltChart | None = None
    folder: Path = Path()

    def secret(self, release: str, namespace: str, values: Mapping[str, object] | None = None) -> dict[str, Any] | None:
        """Return the Secret to push for a release with `values` over the chart's own; None if it needs none.

        It needs none without secrets, if the chart makes the Secret, or if the values name an existing one.

        Raises:
            SpecError: Secret files cannot be read, or secrets that must be sealed are not; they are never pushed in
                plain text.
        """
        if self.built is None or not self.built.experiment.secrets:
            return None
        experiment = self.built.experiment
        source = experiment.secret_source.source
        complete = merge(self.built.values, values or {})
        chosen = sub(complete, "secrets")
        missing = unsealed(chosen, map(key_of, experiment.secrets)) if source == "sealed" else []
        if missing:
            what = f"the experiment seals its secrets, and {', '.join(missing)} has no sealed value"
            step = f"symph secrets seal SPEC -n {namespace} --cert cluster > sealed.yaml, then add -f sealed.yaml"
            raise SpecError.one(what, "secrets.encryptedData", next=step)
        if source in ("sealed", "external") or chosen.get("name"):
            return None
        name = self.built.secret_name(complete, Release(name=release, namespace=namespace))
        contents = read_secret_files(experiment, self.folder)
        return dict(secret_object(experiment, contents, name, namespace, release=release))


@contextmanager
def chart_of(
    source: str,
    values: Values | None = None,
    pools: Sequence[str] = (),
    *,
    changes: Sequence[str] = (),
    force: bool = False,
) -> Iterator[ReleaseSource]:
    """Yield the chart of `source` (a spec file, a chart folder or an archive), to be installed with `values`.

    A spec is checked with the values as by `symph package`, but its chart is built without them: helm gets the values.
    `changes` are applied to the spec before it is read. Raises NotFound, SpecError, UsageError, and the errors of
    `Verdict.refuse`.
    """
    path = Path(source).expanduser()
    if path.is_dir() or path.suffix == ".tgz":
        if changes:
            raise UsageError("--spec-set needs a spec, and this is a chart", source, "package its spec again")
        if not (path / "Chart.yaml" if path.is_dir() else path).exists():
            raise NotFound(f"{path} is not a chart", next="give a spec file, a chart's folder or a .tgz archive")
        yield ReleaseSource(name=read_chart(path).name, chart=path.absolute())
        return
    spec = files.read(path, changes)
    prepared = prepare(spec, overrides=values, pools=pools, force=True)
    judge(spec, prepared, prepared.chart(template(), spec.lock.version), is_forced=force).refuse()
    with prepared_chart(prepared, path.absolute().parent, spec.lock.version) as chart:
        yield chart


@contextmanager
def prepared_chart(
    prepared: Prepared, folder: Path, version: str | None = None, *, with_overrides: bool = False
) -> Iterator[ReleaseSource]:
    """Write the prepared chart to a temporary folder; secret files are relative to `folder`."""
    chart = prepared.chart(template(), version, with_overrides=with_overrides)
    with tempfile.TemporaryDirectory(prefix="symph-release-") as parent:
        root = Path(parent) / chart.name
        write_tree(root, chart.packed)
        namespace = prepared.experiment.namespace or ""
        built = prepared.own.chart if with_overrides else prepared.built
        yield ReleaseSource(name=chart.name, chart=root, namespace=namespace, built=built, folder=folder)
