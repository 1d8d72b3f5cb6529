"""Find experiments in a cluster, read their objects, and delete them."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path

from symphony_charts.backend.status import Event, ExperimentStatus
from symphony_charts.errors import Conflict, NotFound, ToolFailed, UsageError
from symphony_charts.kinds.base import is_conductor
from symphony_charts.kinds.registry import KINDS, RENDERED, workload_kind
from symphony_charts.kubernetes import container_phase
from symphony_charts.kubernetes.client import Kind, KubeApi, Object, changes, title_of
from symphony_charts.kubernetes.connection import ForbiddenError
from symphony_charts.kubernetes.status import (
    EXPERIMENT,
    INSTANCE,
    event_of,
    explained,
    is_about,
    lacks_reason,
    managers_of,
    name_of,
    refuse_managed,
    refuse_protected,
    status_of,
)

POD: Kind = ("v1", "Pod")
_EVENT: Kind = ("v1", "Event")
_SEALED: Kind = ("bitnami.com/v1alpha1", "SealedSecret")
# The kinds that run pods in our charts; optional API groups are queried only if the cluster serves them.
_ALL = [gvk for kind in RENDERED for gvk in kind.gvks]
PLAIN = tuple(gvk for gvk in _ALL if "." not in gvk[0])
_FURTHER = tuple(gvk for gvk in _ALL if gvk not in PLAIN)
# The objects whose pods have only the labels of their controller.
_LABELLING = {gvk: kind for kind in RENDERED if kind.pod_selector for gvk in kind.gvks}
_LABEL = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


class KubeExperiments:
    """The experiments of one cluster: of one namespace if given, else of all readable ones.

    Without `api` the connection is made at first use. Raises ToolFailed without a cluster.
    """

    def __init__(
        self,
        *,
        namespace: str | None = None,
        context: str | None = None,
        kubeconfig: Path | None = None,
        api: KubeApi | None = None,
    ) -> None:
        self.target = (kubeconfig, context)
        self._namespace = namespace
        self._api = api
        self._may_read_all = namespace is None

    @property
    def api(self) -> KubeApi:
        if self._api is None:
            self._api = KubeApi(*self.target)
        return self._api

    def names(self) -> list[str]:
        ours = self._workloads(EXPERIMENT)
        return sorted({name_of(item) for item in (*ours, *self._adopted())})

    def experiments(self, *, ended: bool = False) -> list[ExperimentStatus]:
        """Return the experiments by name and namespace; finished ones are included until they are deleted."""
        del ended
        workloads = self._workloads(EXPERIMENT)
        pods = self._pods(EXPERIMENT)
        taken = {(name_of(item), item["metadata"]["namespace"]) for item in workloads}
        others = [item for item in self._adopted() if (name_of(item), item["metadata"]["namespace"]) not in taken]
        workloads += others
        pods += self._pods_of_jobs(others)
        names = sorted({(name_of(item), item["metadata"]["namespace"]) for item in (*workloads, *pods)})
        records = self._records(self.collection("v1", "Secret"), "owner=helm") if names else []
        queue = self.queue(workloads)

        def status(name: str, namespace: str) -> ExperimentStatus:
            release = [record for record in _in(records, namespace) if record["metadata"]["labels"].get("name") == name]
            ours, own_pods = _those(workloads, namespace, name), _those(pods, namespace, name)
            return status_of(name, ours, own_pods, releases=release, queue=queue, now=time.time())

        seen = [status(name, namespace) for name, namespace in names]
        spaces = sorted({each.namespace for each in seen if lacks_reason(each)})
        warnings = [event for namespace in spaces for event in self._warnings(namespace)]
        sealed = self.listed(*_SEALED, EXPERIMENT) if spaces else []

        def with_reasons(found: ExperimentStatus) -> ExperimentStatus:
            name, namespace = found.name, found.namespace
            ours = _those(workloads, namespace, name)
            return explained(found, ours, _in(warnings, namespace), _those(sealed, namespace, name))

        return [with_reasons(each) if lacks_reason(each) else each for each in seen]

    def describe(self, name: str, *, events: bool = True) -> ExperimentStatus:
        """Return the status of the experiment; with `events` also its managers, services and last events."""
        workloads, pods = self.workloads(name), self.pods(name)
        if not workloads and not pods:
            workloads = self.adopted(name)
            pods = self._pods_of_jobs(workloads)
        namespace = self.namespace_of(name, [*workloads, *pods])
        services = self.services(name) if events else []
        releases = self.releases(name, namespace) if events else []
        queue = self.queue(workloads)
        status = status_of(name, workloads, pods, services, releases, queue=queue, now=time.time())
        if lacks_reason(status):
            sealed = self.listed(*_SEALED, selector_of(name))
            status = explained(status, workloads, self._warnings(namespace), sealed)
        last = self.events_of(namespace, [*workloads, *pods, *services])[-10:] if events else []
        return dataclasses.replace(status, events=tuple(last))

    def namespace_of(self, name: str, objects: Sequence[Object]) -> str:
        """Return the only namespace of the experiment's objects. Raises NotFound, or UsageError if several."""
        spaces = sorted({item["metadata"]["namespace"] for item in objects})
        if not spaces:
            where = f"namespace {self._namespace}" if self._namespace else f"the cluster of context {self.api.context}"
            raise NotFound(f'no experiment "{name}" in {where}', next="list all: symph ls --on kube")
        if len(spaces) > 1:
            raise UsageError(
                f'"{name}" runs in several namespaces: {", ".join(spaces)}', next="choose one: -n NAMESPACE"
            )
        return str(spaces[0])

    def workloads(self, name: str) -> list[Object]:
        return self._workloads(selector_of(name))

    def conductors(self, name: str) -> list[Object]:
        """Return the Jobs that end its runs; they are not workloads of the experiment."""
        return self._workloads(selector_of(name), conduct=True)

    def _workloads(self, selector: str, *, conduct: bool = False) -> list[Object]:
        listed = [item for kind in self._kinds() for item in self.listed(*kind, selector)]
        return [item for item in listed if is_conductor(item) == conduct]

    def pods(self, name: str) -> list[Object]:
        return self._pods(selector_of(name))

    def adopted(self, name: str) -> list[Object]:
        """Return the objects of this name that no chart of ours made, with the labels that a chart would set."""
        return [item for item in self._adopted() if name_of(item) == name]

    def services(self, name: str) -> list[Object]:
        return self.listed("v1", "Service", f"{selector_of(name)},symph.dev/service")

    def of_kinds(self, kinds: Iterable[Kind], name: str) -> list[Object]:
        return [item for kind in kinds for item in self.listed(*kind, selector_of(name))]

    def releases(self, name: str, namespace: str) -> list[Object]:
        """Return helm's records of the release, without their content; empty if reading them is forbidden."""
        return self._records(self.api.collection("v1", "Secret", namespace), f"owner=helm,name={name}")

    def changes(self, name: str, timeout_s: float | None = None) -> Iterator[ExperimentStatus | None]:
        """Yield the status at once and after each change in the cluster; None once the experiment is gone."""
        yield self.describe(name, events=False)
        for _ in self.object_changes(name, timeout_s):
            try:
                yield self.describe(name, events=False)
            except NotFound:
                yield None
                return

    def object_changes(
        self,
        name: str,
        timeout_s: float | None = None,
        kinds: Iterable[Kind] | None = None,
        *,
        events_in: str = "",
    ) -> Generator[None, None, None]:
        """Yield at once and after each change of a pod or workload of the experiment, until `timeout_s`.

        `kinds` are the watched kinds of workloads, by default all that the cluster serves. Events of the namespace
        `events_in` are watched, too.
        """

        def path_of(kind: Kind) -> str:
            return self.api.collection(*_EVENT, events_in) if kind == _EVENT else self.collection(*kind)

        selector, served = selector_of(name), list(self._kinds() if kinds is None else kinds)
        watched = [(kind, selector) for kind in (POD, *served)]
        selectors = dict.fromkeys(_LABELLING[gvk].pod_selector for gvk in served if gvk in _LABELLING)
        watched += [(POD, labels) for labels in selectors]
        watched += [(_EVENT, "")] if events_in else []
        return changes(self.api, path_of, watched, timeout_s)

    def events_of(self, namespace: str, objects: Sequence[Object]) -> list[Event]:
        """Return the events about these objects, and about deleted pods by the names of their workloads."""
        listed = self.api.listed(self.api.collection(*_EVENT, namespace))
        return sorted(map(event_of, filter(is_about(objects), listed)), key=lambda event: event.time)

    def collection(self, api_version: str, kind: str) -> str:
        """Return the path of a kind's objects in all selected namespaces."""
        scope = self._namespace or (None if self._may_read_all else self.api.namespace)
        return self.api.collection(api_version, kind, scope)

    def listed(self, api_version: str, kind: str, selector: str) -> list[Object]:
        """Return the objects of a kind with the labels; only of the context's namespace if others are forbidden."""
        try:
            path = self.collection(api_version, kind)
            return [{**item, "apiVersion": api_version, "kind": kind} for item in self.api.listed(path, selector)]
        except NotFound:
            return []
        except ForbiddenError:
            if not self._may_read_all:
                raise
            self._may_read_all = False
            return self.listed(api_version, kind, selector)

    def queue(self, workloads: Sequence[Object]) -> container_phase.Queue:
        """Return Kueue's records if a workload waits; empty if reading them is forbidden."""
        if not any(map(container_phase.is_suspended, workloads)) or not self.api.has_group(container_phase.GROUP):
            return container_phase.NO_QUEUE
        ours = [item for kind in self._kinds() for item in self.listed(*kind, f"{EXPERIMENT},{container_phase.QUEUE}")]
        return container_phase.Queue(
            records=self._widely(container_phase.KINDS),
            locals=self._widely(container_phase.QUEUES),
            experiments={item["metadata"]["uid"]: f"{item['metadata']['namespace']}/{name_of(item)}" for item in ours},
        )

    def _widely(self, kinds: Sequence[Kind]) -> list[Object]:
        """Return the objects of the first served kind: of all namespaces, else of one; none if forbidden."""
        for version, kind in kinds:
            for place in (None, self._namespace or self.api.namespace):
                with contextlib.suppress(NotFound, ToolFailed):
                    return self.api.listed(self.api.collection(version, kind, place))
        return []

    def _warnings(self, namespace: str) -> list[Object]:
        with contextlib.suppress(ToolFailed):
            return self.api.listed(self.api.collection(*_EVENT, namespace), fields="type=Warning")
        return []

    def _kinds(self) -> Iterator[Kind]:
        yield from PLAIN
        for version, kind in _FURTHER:
            if self.api.serves(version, kind):
                yield version, kind

    def _pods(self, selector: str) -> list[Object]:
        jobs = [item for kind in self._kinds() if kind in _LABELLING for item in self.listed(*kind, selector)]
        pods = self.listed(*POD, f"{selector},app.kubernetes.io/component=experiment")
        return [*pods, *self._pods_of_jobs(jobs)]

    def _pods_of_jobs(self, jobs: Sequence[Object]) -> list[Object]:
        by_kind: dict[str, list[Object]] = {}
        for job in jobs:
            by_kind.setdefault(_LABELLING[job["apiVersion"], job["kind"]].name, []).append(job)
        return [
            pod
            for name, items in by_kind.items()
            for pod in KINDS[name].labelled_pods(items, lambda labels: self.listed(*POD, labels))
        ]

    def _adopted(self) -> list[Object]:
        kinds = [kind for kind in self._kinds() if kind in _LABELLING]
        jobs = (_LABELLING[kind].adopted(item) for kind in kinds for item in self.listed(*kind, f"!{EXPERIMENT}"))
        # If both API versions are served, each of them lists all jobs.
        return list({job["metadata"]["uid"]: job for job in jobs if job is not None}.values())

    def _records(self, path: str, selector: str) -> list[Object]:
        try:
            return self.api.listed(path, selector, metadata_only=True)
        except ForbiddenError:
            return []


def selector_of(name: str) -> str:
    """Return the label selector of one experiment. Raises NotFound if the name is not a valid label value."""
    if not _LABEL.fullmatch(name):
        raise NotFound(f'"{name}" is not a valid name of an experiment', next="list all: symph ls --on kube")
    return f"{EXPERIMENT},{INSTANCE}={name}"


def _in(items: Sequence[Object], namespace: str) -> list[Object]:
    return [item for item in items if item["metadata"]["namespace"] == namespace]


def _those(items: Sequence[Object], namespace: str, name: str) -> list[Object]:
    return [item for item in _in(items, namespace) if name_of(item) == name]


# Prefix of the name of a DIJob that none of our charts made.
_OF_OTHERS = "dijob/"
# The kinds that our charts make besides workloads.
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
    """Delete the experiment `name` and return the titles of its objects; with `dry_run` only return them.

    Raises NotFound; Conflict, before any change, in a protected namespace and for experiments that Git manages;
    ToolMissing if it is a Helm release and helm is missing.
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
    titles = sorted(set(map(title_of, doomed)))
    if dry_run:
        return titles
    if releases:
        _uninstall(name, namespace, experiments.target)
    for item in doomed:
        experiments.api.delete(item)
    return titles


def objects_of_release(experiments: KubeExperiments, name: str) -> list[Object]:
    """Return the objects with the labels of the release `name`, without its pushed Secret.

    Raises NotFound if there are none.
    """
    return _objects_and_secrets(experiments, name)[0]


def _objects_and_secrets(experiments: KubeExperiments, name: str) -> tuple[list[Object], list[Object]]:
    jobs = [*experiments.workloads(name), *experiments.conductors(name)]
    labelled = [*jobs, *experiments.of_kinds(_OTHERS, name)]
    all_ours = [item for item in labelled if _is_ours(item, name)]
    ours = [item for item in all_ours if not _is_pushed(item)]
    if not ours and experiments.adopted(name):
        what = f'"{name}" is a DIJob that symph did not create'
        raise Conflict(what, next=f"to remove it anyway: symph rm {_OF_OTHERS}{name}")
    if not ours:
        experiments.namespace_of(name, [])
    return ours, [item for item in all_ours if _is_pushed(item)]


def _remove_adopted(experiments: KubeExperiments, name: str, *, dry_run: bool) -> list[str]:
    jobs = experiments.adopted(name)
    refuse_protected(experiments.namespace_of(name, jobs))
    refuse_managed(name, managers_of(jobs, []), "remove it from its source")
    for item in jobs if not dry_run else ():
        experiments.api.delete(item)
    return sorted(map(title_of, jobs))


def wait_gone(
    experiments: KubeExperiments, name: str, namespace: str, objects: Sequence[Object], timeout_s: float
) -> None:
    """Wait until no workload and no pod of the experiment is left; `objects` are those that it had.

    Raises Conflict after `timeout_s`.
    """
    selectors = [selector_of(name)]
    for kind in _LABELLING.values():
        selectors += kind.selectors([item for item in objects if workload_kind(item) is kind])

    def left() -> list[Object]:
        pods = [pod for labels in dict.fromkeys(selectors) for pod in experiments.listed(*POD, labels)]
        return [*experiments.workloads(name), *pods]

    with contextlib.closing(experiments.object_changes(name, timeout_s)) as changes:
        # A first look, even if there is no time to wait.
        for _ in itertools.chain([None], changes):
            remaining = left()
            if not remaining:
                return
    titles = ", ".join(map(title_of, remaining))
    raise Conflict(
        f"these objects still exist after {timeout_s:g} s: {titles}",
        namespace,
        "the cluster is still deleting them: wait",
    )


def _uninstall(name: str, namespace: str, target: tuple[Path | None, str | None]) -> None:
    """Uninstall the release, unless its chart is none of ours, or helm only remembers it."""
    # Importing pyhelm3 takes 130 ms; only the deletion of a release needs it.
    from symphony_charts.kubernetes.releases.helm_client import HelmReleases, Target

    helm = HelmReleases(Target(kubeconfig=target[0], context=target[1]))
    newest = helm.current(name, namespace)
    if newest is None or newest.status == "uninstalled":
        return
    if any(_is_ours(item, name) for item in helm.manifest(name, namespace)):
        helm.uninstall(name, namespace)


def _is_ours(item: Object, name: str) -> bool:
    """Return True if `item` has the labels of the release `name`: a second check of the server's selection."""
    labels = item["metadata"].get("labels") or {}
    return bool(labels.get(EXPERIMENT)) and labels.get(INSTANCE) == name


def _is_pushed(item: Object) -> bool:
    """Return True for a Secret that `symph` pushed before the release; the chart does not contain it."""
    is_secret = item["kind"] == "Secret"
    return is_secret and bool(item["metadata"]["labels"].get("app.kubernetes.io/managed-by") == "symph")
