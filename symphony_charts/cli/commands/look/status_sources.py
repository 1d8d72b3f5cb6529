"""Where `symph status` asks: this machine, clusters by their contexts, and the Git repository of charts."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import ExperimentStatus
from symphony_charts.backend.why import Why, why_of
from symphony_charts.cli.commands.gitops import git_repository
from symphony_charts.cli.diagnosis import diagnose
from symphony_charts.errors import NotFound, SymphError, UsageError
from symphony_charts.formats.data import sub
from symphony_charts.gitops.store.pointers import Placed, pointers
from symphony_charts.gitops.store.review import Waiting, find_waiting, is_done
from symphony_charts.kubernetes.kubeconfig import read_context
from symphony_charts.local.backend import LocalWatcher
from symphony_charts.settings.project import Settings
from symphony_charts.system.git.addresses import direct_address
from symphony_charts.system.user_folders import state_dir

__all__ = ["Live", "Place", "Published", "address_of", "ask_cluster", "ask_git", "ask_here"]

_ARGO = ("argoproj.io/v1alpha1", "Application")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place of a cluster: its context (None: the current one), namespace (None: all), and the environment there."""

    context: str | None = None
    namespace: str | None = None
    env: str = ""
    kubeconfig: Path | None = None

    @property
    def name(self) -> str:
        """What the place is called."""
        return self.env or self.context or "cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What runs in a place, each with why it does not; and Argo CD's Applications."""

    found: Sequence[tuple[ExperimentStatus, Why | None]]
    applications: Sequence[Mapping[str, Any]] = ()
    context: str | None = None

    def application(self, name: str, url: str) -> Mapping[str, Any] | None:
        """The Application of a name; where several Argo CDs have one, that of the repository at `url`."""
        named = [item for item in self.applications if item["metadata"]["name"] == name]
        ours = [item for item in named if sub(item, "spec", "source").get("repoURL") == url]
        # Alone it may be ours by another address, as ssh is one of https.
        return next(iter(named if len(named) == 1 else ours), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What the repository holds: pointers, and what waits on branches with the version that runs instead."""

    pointers: Sequence[Placed]
    waiting: Sequence[tuple[Waiting, str | None]]


def ask_here(name: str) -> Live:
    """The experiments of this machine that run; by its name also one that has ended."""
    watcher = LocalWatcher()
    try:
        statuses = [watcher.describe(name, events=False)] if name else watcher.experiments()
    except NotFound:
        statuses = []
    return Live(found=[(status, why_of(status)) for status in statuses])


def address_of(place: Place) -> tuple[str, int] | None:
    """Host and port of a place's API server. Raises ToolFailed without a kubeconfig, SpecError for a broken one.

    None where a proxy leads there.
    """
    cluster = read_context(place.kubeconfig, place.context).cluster
    return None if cluster.text("proxy-url") else direct_address(cluster.text("server"))


def ask_cluster(place: Place, name: str) -> Live:
    """The experiments of a place. Raises ToolFailed where there is no cluster."""
    # The client of Kubernetes takes 100 ms to import, which whoever has no cluster has not.
    from symphony_charts.kubernetes.backend import KubeWatcher

    def watcher_of(namespace: str | None) -> KubeWatcher:
        return KubeWatcher(namespace=namespace, context=place.context, kubeconfig=place.kubeconfig)

    watcher = watcher_of(place.namespace)
    try:
        # A look into logs for each of many takes too long.
        found = [_diagnosed(watcher, name)] if name else [(each, why_of(each)) for each in watcher.experiments()]
    except NotFound:
        found = []
    except UsageError:
        # Several namespaces have one of this name.
        spaces = [each.namespace for each in watcher.experiments() if each.name == name]
        found = []
        for space in spaces:
            # One of them may end between two looks.
            with contextlib.suppress(NotFound):
                found.append(_diagnosed(watcher_of(space), name))
    api, applications = watcher.api, []
    if place.env and api.serves(*_ARGO):
        try:
            applications = api.listed(api.collection(*_ARGO, None))
        except SymphError:
            # Whoever may not read them is told of what runs alone.
            applications = []
    return Live(found=found, applications=applications, context=api.context)


def _diagnosed(watcher: Watcher, name: str) -> tuple[ExperimentStatus, Why | None]:
    status = watcher.describe(name)
    return status, diagnose(watcher, status)


def ask_git(args: argparse.Namespace, settings: Settings, env: str | None) -> Published:
    """What the repository says. Raises what fetching raises."""
    repository = settings.repository
    assert repository is not None  # noqa: S101 - the caller has seen to it
    placed = pointers(git_repository.open_store(args, settings, reads_only=True), env)
    versions = {(each.env, each.team, each.name): each.pointer.version for each in placed if each.pointer}
    waiting = find_waiting(repository.url, repository.branch, state_dir() / "git")
    pairs = [(each, versions.get((each.env, each.team, each.name))) for each in waiting if env in (None, each.env)]
    return Published(pointers=placed, waiting=[(each, runs) for each, runs in pairs if not is_done(each, runs)])
