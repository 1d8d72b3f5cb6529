"""Past runs: their origin and result, starting them again, and removing old ones."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from msgspec import Struct

from symphony_charts.errors import Conflict, NotFound, ToolFailed
from symphony_charts.local.machine.machine import with_commits
from symphony_charts.local.plan.environment import with_secrets, without_secrets
from symphony_charts.local.run_files import LIVENESS_LOCK, read_json, tries_of, write_json
from symphony_charts.local.runs import LIVE, Run, runs_of, runs_of_all
from symphony_charts.spec.data import from_data, to_data
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.sources import SecretFile, key_of
from symphony_charts.system import remover
from symphony_charts.system.file_locks import experiment_lock, is_liveness_lock_held
from symphony_charts.system.records import convert

_SPEC = "spec.json"
# A folder without a state belongs to a run that is being started (up to this long), or to a failed start.
_STARTING_S = 3600.0


class SavedRun(Struct, frozen=True, kw_only=True):
    """The origin of a run: the experiment, its ports by service, and the base folder of relative paths."""

    experiment: Experiment
    ports: dict[str, int]
    folder: Path


def save_spec(run: Run, experiment: Experiment, folder: Path) -> None:
    """Save the experiment in the run's folder; the texts of its secret files are replaced by their names."""
    write_json(run.folder / _SPEC, _without_secrets(experiment, folder))


def is_run_of(run: Run, experiment: Experiment, folder: Path) -> bool:
    """Return True if `run` was started from the current `experiment`, with paths relative to `folder`.

    Secret files are compared by name only. Content outside of the spec is not compared: code, data, a branch that has
    moved.
    """
    try:
        saved, place = read_json(run.folder / _SPEC), run.plan().folder
    except (NotFound, ToolFailed):
        return False
    wanted = json.loads(json.dumps(_without_secrets(experiment, folder)))
    return bool(saved == wanted and place == str(folder))


def _without_secrets(experiment: Experiment, folder: Path) -> dict[str, object]:
    # The list of secret files contains no secret and is needed to restore them.
    texts = read_secrets(experiment.secrets, folder)
    data = to_data(experiment)
    return {key: value if key == "secrets" else without_secrets(value, texts) for key, value in data.items()}


def load_saved(run: Run, *, is_pinned: bool = True) -> SavedRun:
    """Return the origin of `run`: its secrets from their current files, and its Git volumes, at their commits then.

    Without `is_pinned` the volumes have the revisions of the experiment file. Raises NotFound for runs without it.
    """
    try:
        data = read_json(run.folder / _SPEC)
    except NotFound:
        raise NotFound("the run has no saved spec", str(run.folder), "start it from its file: symph up SPEC") from None
    plan = run.plan()
    folder = Path(plan.folder)
    secrets = read_secrets(convert(data.get("secrets", []), list[SecretFile]), folder)
    experiment = from_data(with_secrets(data, secrets))
    if is_pinned:
        experiment = with_commits(experiment, run.state().commits)
    return SavedRun(experiment=experiment, ports=plan.ports, folder=folder)


def all_runs(experiment: str | None = None) -> list[Run]:
    """Return the runs of one experiment, or of all of them, the oldest first. Raises NotFound if it has none."""
    if experiment is not None:
        find_past(experiment)
    return [run for runs in (runs_of_all() if experiment is None else [runs_of(experiment)]) for run in runs]


def find_past(experiment: str, run_id: str | None = None) -> Run:
    """Return the run with that id or id prefix, or the newest one. Raises NotFound listing all runs."""
    runs = runs_of(experiment)
    fitting = [run for run in runs if run_id is None or run.run_id.startswith(run_id)]
    if run_id is None and fitting:
        return fitting[-1]
    if len(fitting) == 1:
        return fitting[0]
    if not runs:
        raise NotFound(f'experiment "{experiment}" has no runs here', next="symph local history")
    ids, begin = ("several run ids", "begin") if fitting else ("no run id", "begins")
    raise NotFound(f'{ids} of "{experiment}" {begin} with "{run_id}"', next=f"symph local history {experiment}")


def past_run(run: Run) -> dict[str, Any]:
    """Return the result of a run as JSON types; its phase is ``broken`` for a folder without a finished start."""
    state, phase = None, "broken"
    try:
        state = run.state()
        phase = state.reason if state.has_result else state.phase
        phase = "lost" if phase in LIVE and run.location.verdict == "lost" else phase
    except NotFound:
        pass
    except ToolFailed:
        phase = "damaged"
    failed, processes = (state.failed, state.processes) if state else (None, [])
    return {
        "name": run.experiment,
        "run": run.run_id,
        "phase": phase,
        "started": state.started if state else None,
        "ended": state.ended if state else None,
        "processes": len(processes),
        "tries": {one.path: list(map(asdict, tries_of(run.process_dir(one.slot)))) for one in processes},
        "failed": failed.name if failed else "",
        "status": failed.status if failed else 0 if phase == "finished" else None,
        "bytes": _disk_usage(run.folder),
        "replay": (run.folder / _SPEC).exists(),
        "folder": str(run.folder),
    }


def removable(runs: Sequence[Run], *, keep: int, older_than_s: float = 0.0) -> list[Run]:
    """Return the runs beyond the newest `keep` ended ones of each experiment that ended longer ago than `older_than_s`.

    Never includes runs that are live or may be starting.
    """
    now = time.time()
    by_name: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.run_id):
        if not _may_live(run, now):
            by_name.setdefault(run.experiment, []).append(run)
    beyond = [run for ended in by_name.values() for run in ended[: max(0, len(ended) - keep)]]
    return [run for run in beyond if now - _last_change(run) >= older_than_s]


def remove(run: Run) -> list[str]:
    """Remove a run and all its logs; return the failures as text.

    Raises Conflict if it is live after all or something is mounted there, and NotOurs for a foreign folder, before
    anything is touched.
    """
    with experiment_lock(run.experiment, "symph local gc"):
        if _may_live(run, time.time()):
            raise Conflict("the run is live", str(run.folder), f"symph down {run.experiment}")
        return remover.remove(run.home, run.experiment, run.run_id)


def _may_live(run: Run, now: float) -> bool:
    if run.is_live or run.is_supervised:
        return True
    if (run.folder / "state.json").exists():
        return False
    return bool(is_liveness_lock_held(run.folder / LIVENESS_LOCK)) or now - run.folder.stat().st_mtime < _STARTING_S


def _last_change(run: Run) -> float:
    try:
        ended = run.state().ended
    except (NotFound, ToolFailed):
        ended = None
    return ended or run.folder.stat().st_mtime


def _disk_usage(folder: Path) -> int:
    total = 0
    for top, _, names in os.walk(folder):
        for name in names:
            # The supervisor of a run that has just ended still removes files.
            with contextlib.suppress(FileNotFoundError):
                # The beginning of a long log may be a hole.
                total += os.lstat(os.path.join(top, name)).st_blocks * 512  # noqa: PTH118 - many files
    return total


def read_secrets(secrets: Sequence[SecretFile], folder: Path) -> dict[str, bytes]:
    """Return the contents of secret files by their keys, without those that cannot be read."""
    found = {}
    for secret in secrets:
        try:
            found[key_of(secret)] = (folder / Path(secret.file).expanduser()).read_bytes()
        except OSError:
            # Starting the run reports the error; here nothing needs to be hidden.
            continue
    return found
