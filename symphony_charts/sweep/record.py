"""Records of sweeps on the machine that ran them: their trials, and where they run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from symphony_charts.errors import NotFound, ToolFailed
from symphony_charts.formats.data import sub
from symphony_charts.local.run_files import read_json, write_json
from symphony_charts.system.file_locks import experiment_lock
from symphony_charts.system.user_folders import state_dir


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The trials of an experiment by name, in the order of their first request.

    `stopped` has the run and the reason of each trial whose release was removed early.
    """

    name: str
    backend: str
    trials: dict[str, dict[str, str]]
    namespace: str = ""
    stopped: dict[str, tuple[str, str]] = field(default_factory=dict)


def remember(sweep: Sweep, is_left: Callable[[str], bool]) -> Sweep:
    """Save `sweep`, with its earlier trials for which `is_left` is True. Raises ToolFailed."""
    path = _path(sweep.name, sweep.backend)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with experiment_lock(f".sweep-{sweep.backend}-{sweep.name}", "symph sweep"):
        before = _read(path)
        if before is not None and before.namespace == sweep.namespace:
            earlier = {name: settings for name, settings in before.trials.items() if is_left(name)}
            sweep = replace(sweep, trials=earlier | sweep.trials, stopped=before.stopped)
        write_json(path, asdict(sweep), is_safe=True)
    return sweep


def remember_end(name: str, backend: str, trial: str, run: str, why: str) -> None:
    """Record that a trial's release, in this `run`, was removed early and `why`; empty: it starts again."""
    path = _path(name, backend)
    with experiment_lock(f".sweep-{backend}-{name}", "symph sweep"):
        sweep = _read(path)
        if sweep is None or (not why and trial not in sweep.stopped):
            return
        stopped = {key: said for key, said in sweep.stopped.items() if key != trial}
        write_json(path, asdict(replace(sweep, stopped=stopped | ({trial: (run, why)} if why else {}))), is_safe=True)


def known_sweep(name: str, backend: str) -> Sweep | None:
    return _read(_path(name, backend)) if name and "/" not in name else None


def find_sweep(name: str, backend: str) -> Sweep:
    """Return the sweep of that name. Raises NotFound with the known names."""
    sweep = known_sweep(name, backend)
    if sweep is None:
        known = ", ".join(each.name for each in sweeps_of(backend)) or "none"
        raise NotFound(f'no sweep "{name}" was run from this machine', next=f"there are: {known}")
    return sweep


def sweeps_of(backend: str) -> list[Sweep]:
    """Return all sweeps that this machine ran on `backend`, by name."""
    files = sorted((state_dir() / "sweeps" / backend).glob("*.json"))
    return [sweep for sweep in map(_read, files) if sweep is not None]


def _path(name: str, backend: str) -> Path:
    return state_dir() / "sweeps" / backend / f"{name}.json"


def _read(path: Path) -> Sweep | None:
    """Return the content of a file; None if it is unusable."""
    # By hand: a validating decoder would take a third of the time of `symph ls`.
    with contextlib.suppress(NotFound, ToolFailed):
        data = read_json(path)
        trials, ends = data.get("trials"), sub(data, "stopped")
        if isinstance(trials, dict) and all(isinstance(settings, dict) for settings in trials.values()):
            return Sweep(
                name=str(data.get("name")),
                backend=str(data.get("backend")),
                trials={name: {key: str(text) for key, text in settings.items()} for name, settings in trials.items()},
                namespace=str(data.get("namespace") or ""),
                stopped={
                    name: (str(end[0]), str(end[1])) for name, end in ends.items() if isinstance(end, list) and end[1:]
                },
            )
    return None
