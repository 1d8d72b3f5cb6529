"""A sweep is remembered on the machine that ran it: which trials it has, and where they run.

How they are is nobody's to remember: runs, releases and workflows say that themselves.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from symphony_charts.errors import NotFound, ToolFailed
from symphony_charts.local.run_files import read_json, write_json
from symphony_charts.sweep.trials import Trial
from symphony_charts.system.file_locks import experiment_lock
from symphony_charts.system.user_folders import state_dir

__all__ = ["Sweep", "find_sweep", "remember", "sweeps_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The trials of an experiment by name, in the order in which they were first asked for."""

    name: str
    backend: str
    trials: dict[str, dict[str, str]]
    namespace: str = ""

    def all_trials(self) -> list[Trial]:
        """The trials."""
        return [Trial(name=name, settings=settings) for name, settings in self.trials.items()]


def remember(sweep: Sweep, is_left: Callable[[str], bool]) -> Sweep:
    """Write `sweep` down, with those earlier trials of it of which something `is_left`; raises ToolFailed."""
    path = _path(sweep.name, sweep.backend)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with experiment_lock(f".sweep-{sweep.backend}-{sweep.name}", "symph sweep"):
        before = _read(path)
        earlier = before.trials if before is not None and before.namespace == sweep.namespace else {}
        trials = {name: settings for name, settings in earlier.items() if is_left(name)} | sweep.trials
        whole = Sweep(name=sweep.name, backend=sweep.backend, trials=trials, namespace=sweep.namespace)
        write_json(path, asdict(whole), is_safe=True)
    return whole


def find_sweep(name: str, backend: str) -> Sweep:
    """The sweep of that name; raises NotFound with those there are."""
    sweep = _read(_path(name, backend)) if name and "/" not in name else None
    if sweep is None:
        known = ", ".join(each.name for each in sweeps_of(backend)) or "none"
        raise NotFound(f'no sweep "{name}" was run from here', next=f"there are: {known}")
    return sweep


def sweeps_of(backend: str) -> list[Sweep]:
    """All sweeps that ran there from this machine, by name."""
    files = sorted((state_dir() / "sweeps" / backend).glob("*.json"))
    return [sweep for sweep in map(_read, files) if sweep is not None]


def _path(name: str, backend: str) -> Path:
    return state_dir() / "sweeps" / backend / f"{name}.json"


def _read(path: Path) -> Sweep | None:
    """What a file says; None for one that says nothing that could be used."""
    with contextlib.suppress(NotFound, ToolFailed, msgspec.ValidationError):
        return msgspec.convert(read_json(path), Sweep)
    return None
