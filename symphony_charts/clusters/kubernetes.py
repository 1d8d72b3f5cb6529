"""`KubeCluster` starts experiments on Kubernetes as charts: with helm if installed, else by applying the objects."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

from symphony_charts.backend.protocol import set_current
from symphony_charts.clusters.base import Addresses, Cluster, Launched
from symphony_charts.errors import Conflict, NotFound, Problem, SpecError, ToolMissing
from symphony_charts.formats.data import sub
from symphony_charts.formats.yaml_write import dump_all
from symphony_charts.kinds.registry import opened
from symphony_charts.kubernetes.backend import KubeWatcher
from symphony_charts.kubernetes.client import Object
from symphony_charts.kubernetes.experiments import objects_of_release, wait_gone
from symphony_charts.kubernetes.releases.releases import prepared_chart
from symphony_charts.kubernetes.status import managers_of, refuse_managed, refuse_protected
from symphony_charts.placement.pools.pool import pools_of_spec
from symphony_charts.prepare import Prepared, prepare_experiment
from symphony_charts.settings.user import save_experiment
from symphony_charts.spec.model import Experiment

__all__ = ["KubeCluster", "addresses_in_chart", "render_pod"]


_END_TIMEOUT_S = 180.0


class KubeCluster(Cluster):
    """A Kubernetes cluster, by a context of the kubeconfig (default: the current one), which is never written.

    Experiments run in `namespace`, else in the one that they name, else in the context's.
    """

    def __init__(
        self,
        *,
        namespace: str | None = None,
        context: str | None = None,
        kubeconfig: Path | None = None,
        preamble_cmds: str | Iterable[str] | None = None,
    ) -> None:
        super().__init__(preamble_cmds=preamble_cmds)
        self._namespace = namespace
        self._target = (kubeconfig, context)
        self._watcher = KubeWatcher(namespace=namespace, context=context, kubeconfig=kubeconfig)

    @property
    def watcher(self) -> KubeWatcher:
        return self._watcher

    def start(
        self,
        experiment: Experiment,
        *,
        folder: Path,
        pins: Mapping[str, int],
        force: bool = False,
        dry_run: bool = False,
    ) -> object:
        """Save the experiment if an experiment folder is configured, push its secrets and start it; return its status.

        With `dry_run` print and return the objects without asking any cluster. `force` ends a running experiment of the
        name and starts again; nothing is merged. Raises, before any change, Conflict if it is running and `force` is
        not given, if Git manages it, and for protected namespaces; SpecError with everything that the cluster refuses;
        PlacementError if the named pools cannot hold it.
        """
        pools = pools_of_spec(folder / experiment.name, experiment.placement.pools)
        prepared = prepare_experiment(experiment, pins, pools=pools)
        return self.start_prepared(prepared, folder=folder, force=force, dry_run=dry_run)

    def addresses(self, launched: Launched, /) -> Addresses:
        """Return each service's name and port in the cluster."""
        return addresses_in_chart(launched.experiment, launched.pins)

    def start_prepared(
        self,
        prepared: Prepared,
        *,
        folder: Path,
        values: Mapping[str, object] | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> object:
        """Start a prepared experiment; `values` override those of the chart."""
        if dry_run:
            sys.stdout.write(dump_all(prepared.objects))
            return list(prepared.objects)
        experiment, values = prepared.experiment, values or {}
        api = self._watcher.api
        namespace = self._namespace or experiment.namespace or api.namespace
        refuse_protected(namespace)
        there = KubeWatcher(namespace=namespace, context=self._target[1], kubeconfig=self._target[0])
        existing = self._refuse_existing(there, experiment.name, namespace, force=force)
        rendering = prepared.under({}, namespace=namespace)
        refusal = rendering.plan.refusal() if rendering.plan is not None else None
        if refusal is not None:
            raise refusal
        objects = rendering.objects
        with prepared_chart(prepared, folder) as source:
            secret = source.secret(experiment.name, namespace, values)
            self._dry_run(objects, namespace)
            save_experiment(experiment, force=force)
            if existing:
                there.delete(experiment.name)
                wait_gone(there, experiment.name, namespace, existing, _END_TIMEOUT_S)
            self._make_namespace(namespace)
            if secret is not None:
                api.apply(secret, namespace, force=True)
            if not self._install(experiment.name, source.chart, values, namespace):
                # Without helm, skip hooks: helm runs them only for `helm test`.
                for item in objects:
                    if not _is_hook(item):
                        api.apply(_marked(item, experiment.name, namespace), namespace)
        set_current(self._watcher.place, experiment.name)
        return there.describe(experiment.name, events=False)

    def _refuse_existing(self, there: KubeWatcher, name: str, namespace: str, *, force: bool) -> list[Object]:
        """Return the objects of an experiment of the name that may be replaced. Raises Conflict if it may not."""
        releases = there.releases(name, namespace)
        try:
            objects = objects_of_release(there, name)
        except NotFound:
            if releases and not force:
                what = f'helm remembers a release "{name}" in {namespace}'
                raise Conflict(what, next=f"symph uninstall {name} -n {namespace}, or choose another name") from None
            return []
        refuse_managed(name, managers_of(objects, releases), f"symph publish {name} --env ENV")
        if not force:
            what = f'experiment "{name}" is already running in {namespace}'
            raise Conflict(what, next=f"symph rm {name} --on kube, or launch(exp, force=True)")
        return objects

    def _dry_run(self, objects: Iterable[Object], namespace: str) -> None:
        """Let the cluster validate every object without changes; raises SpecError with all refused objects."""
        api = self._watcher.api
        # A namespace that does not exist yet cannot validate, but any other can.
        judging_namespace = namespace if api.find(f"/api/v1/namespaces/{namespace}") else "default"
        problems: list[Problem] = []
        for item in objects:
            try:
                api.apply(item, judging_namespace, dry_run=True, force=True)
            except (SpecError, NotFound) as error:
                problems.append(Problem(error.what, f"{item['kind']}/{item['metadata']['name']}"))
        if problems:
            raise SpecError(problems, at=f"the cluster, namespace {namespace}")

    def _make_namespace(self, namespace: str) -> None:
        api = self._watcher.api
        if api.find(f"/api/v1/namespaces/{namespace}") is None:
            api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}, "")

    def _install(self, name: str, chart: Path, values: Mapping[str, object], namespace: str) -> bool:
        # pyhelm3 takes 130 ms to load; watching does not need it.
        from symphony_charts.kubernetes.releases import helm_client, releases

        try:
            target = helm_client.Target(kubeconfig=self._target[0], context=self._target[1])
            helm = releases.Releases(target)
        except ToolMissing:
            return False
        with helm:
            helm.install(name, chart, values, namespace=namespace)
        return True


def addresses_in_chart(experiment: Experiment, pins: Mapping[str, int]) -> Addresses:
    """Return ``host`` and ``port`` of each service in a release of the experiment's name."""
    prepared = prepare_experiment(experiment, pins)
    values, release = prepared.values, prepared.own.release
    return {
        service.name: {
            "host": prepared.built.host(service.name, values, release),
            "port": sub(values, "services", service.name)["port"],
        }
        for service in prepared.services
    }


def _is_hook(item: Object) -> bool:
    return "helm.sh/hook" in (item["metadata"].get("annotations") or {})


def _marked(item: Object, name: str, namespace: str) -> Object:
    """Return the object with helm's ownership annotations, so that helm can adopt it, and the manager's annotation."""
    meta = item["metadata"]
    notes = {
        **(meta.get("annotations") or {}),
        "meta.helm.sh/release-name": name,
        "meta.helm.sh/release-namespace": namespace,
        "symph.dev/held-by": "symph",
    }
    return {**item, "metadata": {**meta, "annotations": notes}}


_GROUP_LABEL = "symph.dev/group"


def render_pod(experiment: Experiment, pod: str) -> dict[str, object]:
    """Return the pod (``metadata`` and ``spec``) of the group or lone process `pod`, as its workload makes it."""
    for item in opened(prepare_experiment(experiment).objects):
        template = sub(item, "spec").get("template")
        if isinstance(template, dict) and sub(template, "metadata", "labels").get(_GROUP_LABEL) == pod:
            return cast("dict[str, object]", template)
    raise NotFound(f'no workload of "{pod}" among the objects of "{experiment.name}"')
