"""Ask this machine, clusters and Git for the rows of `symph status`, all at once."""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from symphony_charts.backend.diagnosis import Diagnosis, diagnose_status, to_data
from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import FINAL, ExperimentStatus, age_since
from symphony_charts.cli import git_repository
from symphony_charts.cli.experiments import diagnose, meant_here, watcher_of_cluster
from symphony_charts.errors import NotFound, SymphError, ToolFailed, UsageError
from symphony_charts.formats.data import sub
from symphony_charts.gitops.store.environments import Placed, pointers
from symphony_charts.local.backend import LocalWatcher
from symphony_charts.settings.project import Settings

T = TypeVar("T")
_ARGO = ("argoproj.io/v1alpha1", "Application")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in a cluster: context (None: the current one), namespace (None: all), and the environment there."""

    context: str | None = None
    namespace: str | None = None
    env: str = ""
    kubeconfig: Path | None = None

    @property
    def name(self) -> str:
        return self.env or self.context or "cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Experiments running in a place, each with a diagnosis, and Argo CD's Applications."""

    found: Sequence[tuple[ExperimentStatus, Diagnosis | None]]
    applications: Sequence[Mapping[str, Any]] = ()
    context: str | None = None

    def application(self, placed: Placed, url: str) -> Mapping[str, Any] | None:
        """Return the Application of a pointer; if several repositories have one, that of the repository at `url`."""
        labels = {"symph.dev/env": placed.env, "symph.dev/team": placed.team, "symph.dev/experiment": placed.name}
        named = [item for item in self.applications if labels.items() <= sub(item, "metadata", "labels").items()]
        ours = [item for item in named if sub(item, "spec", "source").get("repoURL") == url]
        # A single one may be ours under another URL of the repository, such as ssh instead of https.
        return next(iter(named if len(named) == 1 else ours), None)


def ask_here(name: str) -> Live:
    """Return the running experiments of this machine, and the ended one that the name or the current folder means."""
    watcher = LocalWatcher()
    asked, statuses = name, [] if name else list(watcher.experiments())
    with contextlib.suppress(NotFound):
        name = asked or meant_here()[0]
        if all(status.name != name for status in statuses):
            statuses.append(watcher.describe(name, events=bool(asked)))
    return Live(found=[(status, diagnose_status(status)) for status in statuses])


def ask_cluster(place: Place, name: str) -> Live:
    """Return the experiments of a place. Raises ToolFailed if there is no cluster."""
    watcher = watcher_of_cluster(place.namespace, place.context, place.kubeconfig)
    try:
        # Reading the logs of each of many experiments takes too long.
        found = (
            [_diagnosed(watcher, name)] if name else [(each, diagnose_status(each)) for each in watcher.experiments()]
        )
    except NotFound:
        found = []
    except UsageError:
        # Several namespaces have an experiment of this name.
        spaces = [each.namespace for each in watcher.experiments() if each.name == name]
        found = []
        for space in spaces:
            # One of them may end between the two calls.
            with contextlib.suppress(NotFound):
                there = watcher_of_cluster(space, place.context, place.kubeconfig)
                found.append(_diagnosed(there, name))
    api, applications = watcher.api, []
    if place.env and api.serves(*_ARGO):
        try:
            applications = api.listed(api.collection(*_ARGO, None))
        except SymphError:
            # Without permission to read Applications, show the running experiments only.
            applications = []
    return Live(found=found, applications=applications, context=api.context)


def _diagnosed(watcher: Watcher, name: str) -> tuple[ExperimentStatus, Diagnosis | None]:
    status = watcher.describe(name)
    return status, diagnose(watcher, status)


def ask_git(args: argparse.Namespace, settings: Settings, env: str | None) -> Sequence[Placed]:
    return pointers(git_repository.open_store(args, settings, reads_only=True).tip(), env)


_VERSION = re.compile(r"-(\d+\.\d+\.\d+.*)$")
_BAD_PHASES = ("failed", "lost", "damaged")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A place of an experiment: its state in Git (`placed`) or its live state (`live`).

    `where` is ``here``, an environment, or the context of a cluster.
    """

    where: str
    name: str
    team: str = ""
    context: str | None = None
    placed: Placed | None = None
    live: ExperimentStatus | None = None
    why: Diagnosis | None = None

    @property
    def is_bad(self) -> bool:
        """True if something has failed, or needs an action."""
        return bool((self.why and self.why.is_bad) or (self.live and self.live.phase in _BAD_PHASES))

    @property
    def is_settled(self) -> bool:
        """True if nothing will change by itself."""
        return self.live is None or self.live.is_final

    @property
    def running(self) -> str | None:
        """The chart version of the live objects."""
        match = _VERSION.search(self.live.chart) if self.live else None
        return match[1] if match else None

    @property
    def version(self) -> str | None:
        """The version in Git, else the live one."""
        return self.placed.pointer.version if self.placed and self.placed.pointer else self.running

    @property
    def phase(self) -> str:
        """The state in one word that programs may rely on: a phase of `ls` and `ps`, else the state in Git."""
        if self.live is not None:
            return self.live.phase
        is_whole = self.placed is None or (self.placed.pointer is not None and self.placed.has_chart)
        return "published" if is_whole else "damaged"

    @property
    def state(self) -> str:
        """The state in a few words."""
        if self.placed and not self.placed.pointer:
            return "cannot be read"
        if self.placed and not self.placed.has_chart:
            return "chart missing"
        if self.live is None:
            return "published"
        if self.live.phase not in FINAL:
            return f"{self.live.phase_text} {age_since(self.live.started)}"
        ago = f" {age_since(self.live.ended)} ago" if self.live.ended else ""
        return f"{self.live.phase}{ago}"

    @property
    def color(self) -> str:
        if self.is_bad:
            return "bad"
        return "good" if self.state == "published" or (self.live and not self.why) else "busy"

    @property
    def counts(self) -> tuple[int, int] | None:
        """The number of processes that are ready or have succeeded, and their total; None if nothing runs."""
        if self.live is None:
            return None
        counted = [each for each in self.live.instances if not each.is_step]
        return sum(each.ready or each.phase == "succeeded" for each in counted), len(counted)

    def item(self) -> dict[str, object]:
        """Return the row as JSON types; every key is always present."""
        pointer, live = (self.placed.pointer if self.placed else None), self.live
        ready, wanted = self.counts or (None, None)
        return {
            **{key: getattr(self, key) for key in ("name", "where", "context", "version", "running", "state", "phase")},
            **{key: getattr(live, key, None) for key in ("started", "ended", "seconds")},
            **{key: getattr(pointer, key, None) for key in ("at", "digest", "chart", "values")},
            "team": self.team or None,
            "env": self.placed.env if self.placed else None,
            "namespace": live.namespace or None if live else pointer.destination.namespace if pointer else None,
            "ready": ready,
            "processes": wanted,
            "run": live.run or None if live else None,
            "heldBy": list(live.held_by) if live else [],
            "why": to_data(self.why),
            "was": pointer.history[0].version if pointer and pointer.history else None,
            "op": pointer.op if pointer else None,
            "by": (pointer.by or None) if pointer else None,
        }


# Timeout for all answers in seconds.
ANSWER_S = 60.0


@dataclass(kw_only=True)
class Part(Generic[T]):
    """A query: its name and its function. After `ask_all` it has an `answer` or an `error`.

    The error is raised if the answer `is_needed`.
    """

    name: str
    ask: Callable[[], T]
    is_needed: bool = False
    answer: T | None = None
    error: SymphError | None = None


def ask_all(parts: Sequence[Part[Any]]) -> None:
    """Ask all parts at once. Raises the error of a needed one, and errors that are no SymphErrors."""
    began = time.monotonic()
    futures = [_asked(part.ask) for part in parts]
    for part, future in zip(parts, futures, strict=True):
        try:
            part.answer = future.result(max(0.0, began + ANSWER_S - time.monotonic()))
        except concurrent.futures.TimeoutError:
            part.error = ToolFailed(f"{part.name} does not answer within {ANSWER_S:g} s")
        except SymphError as error:
            part.error = error
        if part.error and part.is_needed:
            raise part.error


def _asked(ask: Callable[[], T]) -> Future[T]:
    """Call `ask` in a daemon thread, which does not keep the program when it hangs."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(ask())
        except Exception as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
