"""`GitopsCluster` publishes experiments into a Git repository, from which Argo CD or Flux starts them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from symphony_charts.backend.status import ExperimentStatus, time_text
from symphony_charts.clusters.base import Cluster
from symphony_charts.errors import NotFound, UsageError
from symphony_charts.gitops.operations import Retire
from symphony_charts.gitops.pointer import Pointer
from symphony_charts.gitops.prepare import prepare_publish, team_of
from symphony_charts.gitops.snapshot import check_folder
from symphony_charts.gitops.store.environments import pointers
from symphony_charts.gitops.store.store import PushResult, Store
from symphony_charts.package import template
from symphony_charts.secrets.files import guard_of
from symphony_charts.secrets.leaks import Guard
from symphony_charts.settings.project import Repository, find_settings
from symphony_charts.settings.user import save_experiment
from symphony_charts.spec.data import Lock
from symphony_charts.spec.files import SpecFile, lock_path_of
from symphony_charts.spec.model import Experiment
from symphony_charts.system.git.program import author_of_commits
from symphony_charts.system.user_folders import state_dir

__all__ = ["GitopsCluster"]

_TIME = "%Y-%m-%dT%H:%M:%SZ"


class GitopsCluster(Cluster):
    """One environment of a repository of charts: launch publishes, delete retires, list reads the pointers.

    `env`, `repo` (``URL`` or ``URL#BRANCH``) and `team` override ``.symph.yaml`` in `folder` (default: the current one)
    or above. Git has the desired state only; ask the cluster itself for the actual one.
    """

    def __init__(
        self,
        *,
        env: str | None = None,
        repo: str | None = None,
        team: str | None = None,
        folder: Path | None = None,
        preamble_cmds: str | Iterable[str] | None = None,
    ) -> None:
        super().__init__(preamble_cmds=preamble_cmds)
        settings = find_settings(folder or Path.cwd())
        if repo:
            url, _, branch = repo.partition("#")
            configured = settings.repository or Repository(url=url)
            given = msgspec.structs.replace(configured, url=url, branch=branch or "main")
            settings = msgspec.structs.replace(settings, repository=given)
        if settings.repository is None:
            raise UsageError("which repository holds the charts?", next="give repo=, or `repository:` in .symph.yaml")
        self._settings = settings
        self._repository = settings.repository
        self._env = settings.environment(env)
        self._team = team

    def start(
        self,
        experiment: Experiment,
        *,
        folder: Path,
        pins: Mapping[str, int],
        force: bool = False,
        dry_run: bool = False,
    ) -> PushResult | Sequence[str]:
        """Publish the experiment to the environment; with `dry_run` print and return the paths that would change.

        `force` replaces a saved experiment of the same name; the repository keeps every version anyway. Raises the
        errors of `symph publish`: PlacementError, CheckFailed, Conflict, SpecError, ToolFailed.
        """
        path = folder / f"{experiment.name}.yaml"
        spec = SpecFile(path=path, experiment=experiment, lock_path=lock_path_of(path), lock=Lock(ports=dict(pins)))
        now = int(time.time())
        candidate = prepare_publish(
            spec,
            template(),
            team=team_of(spec, self._team, self._settings.team),
            env=self._env,
            place=self._settings.environments.get(self._env),
            overrides={},
            pools=[] if experiment.placement.pools else self._settings.pools,
            at=time_text(now),
        )
        store = self._store(guard_of([spec], self._settings.allow_leaks))
        if dry_run:
            paths = sorted(path for change in store.preview([candidate.operation])[1] for path in change.edits)
            sys.stdout.write("".join(f"{path}\n" for path in paths))
            return paths
        save_experiment(experiment, force=force)
        return store.apply([candidate.operation], now=now)

    def list(self, *, ended: bool = False) -> list[ExperimentStatus]:
        """Return the experiments that should run, by name; `ended` has no effect: retired ones leave no pointer."""
        del ended
        statuses = [_status(pointer, self._repository.url) for pointer in self._pointers()]
        return sorted(statuses, key=lambda status: (status.name, status.held_by))

    def list_experiments(self) -> list[str]:  # type: ignore[valid-type]  # `list` is a method here
        """Return the names of the experiments that should run in the environment."""
        return sorted({pointer.name for pointer in self._pointers()})

    def describe(self, experiment_name: str) -> ExperimentStatus | None:
        """Return the desired experiment of the name, with its version in `run`; None if there is none.

        The phase is always ``pending``: Git does not know the actual state.
        """
        return next((status for status in self.list() if status.name == experiment_name), None)

    def delete(self, experiment_name: str) -> None:
        """Remove an experiment from the environment; its charts stay. Raises NotFound if it does not run there."""
        published = [pointer for pointer in self._pointers() if pointer.name == experiment_name]
        teams = sorted(pointer.team for pointer in published)
        if not teams:
            raise NotFound(f"{self._env} runs no {experiment_name}", next=f"symph status --env {self._env}")
        if len(teams) > 1:
            what = f"{experiment_name} is an experiment of {', '.join(teams)}"
            raise UsageError(what, next=f"Cluster.new('gitops', team='{teams[0]}')")
        retire = Retire(team=teams[0], name=experiment_name, env=self._env, expect=published[0].version)
        self._store().apply([retire], now=int(time.time()))

    def _pointers(self) -> Sequence[Pointer]:
        team = self._team
        placed = pointers(self._store().tip(), self._env)
        return [each.pointer for each in placed if each.pointer is not None and team in (None, each.team)]

    def _store(self, guard: Guard | None = None) -> Store:
        repository = self._repository
        return Store(
            repository.url,
            repository.branch,
            root=state_dir() / "git",
            folder=check_folder(repository.path),
            author=author_of_commits(repository.author),
            guard=(guard or Guard({}, allowed=self._settings.allow_leaks)).refuse,
        )


def _status(pointer: Pointer, url: str) -> ExperimentStatus:
    return ExperimentStatus(
        name=pointer.name,
        experiment=pointer.chart.split("/")[-2],
        backend="gitops",
        phase="pending",
        started=datetime.strptime(pointer.at, _TIME).replace(tzinfo=timezone.utc).timestamp() if pointer.at else 0.0,
        run=pointer.version,
        namespace=pointer.destination.namespace,
        held_by=(f"{pointer.env} of {url}, {pointer.team}/{pointer.name} {pointer.version}",),
    )
