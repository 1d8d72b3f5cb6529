"""Persistent volumes: a folder for each claim and NFS mount of an experiment, kept until the user removes it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from symphony_charts.errors import Conflict, NotFound, SymphError, ToolFailed
from symphony_charts.formats.printable import size
from symphony_charts.local.plan.mounts import DATA
from symphony_charts.local.runs import Run, live_runs, runs_of
from symphony_charts.system import remover
from symphony_charts.system.user_folders import state_dir

# In a volume with more files than this only part of them is counted.
_MOST_FILES = 50_000


class Volume(Struct, frozen=True, kw_only=True):
    """A volume: `bytes` are the counted ones (there are more with `is_more`), `used_by` the experiments that use it."""

    experiment: str
    name: str
    folder: Path
    bytes: int
    is_more: bool
    last_used: float
    used_by: tuple[str, ...]

    @property
    def full_name(self) -> str:
        """The unique name of the volume on this machine."""
        return f"{self.experiment}/{self.name}"

    @property
    def size(self) -> str:
        return f"{'more than ' if self.is_more else ''}{size(self.bytes)}"


def all_volumes(experiment: str | None = None) -> list[Volume]:
    users = [(run.experiment, path) for run in live_runs() for path in _sources(run)]
    return [
        _volume(above.name, folder.name, users)
        for above in _folders(home())
        if experiment in (None, above.name)
        for folder in _folders(above)
        if (folder / remover.MARKER).is_file()
    ]


def choose(volumes: Sequence[Volume], names: Sequence[str]) -> list[Volume]:
    """Return the volumes of these names: ``EXPERIMENT/VOLUME``, or ``VOLUME`` if only one experiment has it.

    Raises NotFound with all names that match none or several, and Conflict with all volumes in use.
    """
    fitting = {name: [one for one in volumes if name in (one.name, one.full_name)] for name in names}
    known = ", ".join(one.full_name for one in volumes) or "none"
    if missing := [name for name, ones in fitting.items() if not ones]:
        raise NotFound(f"unknown volumes: {', '.join(missing)}", next=f"volumes of this machine: {known}")
    if several := [name for name, ones in fitting.items() if len(ones) > 1]:
        what = f"several experiments have a volume {', '.join(several)}"
        raise NotFound(what, next=f"give EXPERIMENT/VOLUME: {known}")
    chosen = list({ones[0].full_name: ones[0] for ones in fitting.values()}.values())
    used = [f"{one.full_name} (by {', '.join(one.used_by)})" for one in chosen if one.used_by]
    if used:
        users = sorted({user for one in chosen for user in one.used_by})
        raise Conflict(f"volumes are in use: {', '.join(used)}", next=f"symph down {users[0]}")
    return chosen


def remove_volumes(volumes: Sequence[Volume]) -> list[str]:
    """Remove volumes with everything in them; return the failures as text."""
    left = []
    for volume in volumes:
        try:
            left += remover.remove(home(), volume.experiment, volume.name)
        except SymphError as error:
            left.append(str(error))
    return left


def volumes_of(run: Run) -> list[Volume]:
    names = {path.relative_to(home()).parts[1] for path in _sources(run) if path.is_relative_to(home())}
    return [volume for volume in all_volumes(run.experiment) if volume.name in names]


def home() -> Path:
    """Return the folder of all persistent volumes; may be absent."""
    return state_dir() / "claims"


def _folders(above: Path) -> list[Path]:
    return sorted(path for path in above.glob("*") if path.is_dir() and not path.is_symlink())


def _sources(run: Run) -> set[Path]:
    """Return what the processes of `run` mount; with a damaged plan, all volumes of its experiment."""
    try:
        return {Path(bind.source) for process in run.plan().processes for bind in process.binds}
    except (NotFound, ToolFailed):
        return set(_folders(home() / run.experiment))


def _volume(experiment: str, name: str, users: Sequence[tuple[str, Path]]) -> Volume:
    whole = home() / experiment / name
    total, newest, is_more = _measure(whole / DATA)
    return Volume(
        experiment=experiment,
        name=name,
        folder=whole / DATA,
        bytes=total,
        is_more=is_more,
        last_used=max(newest, _last_end(experiment, whole)),
        used_by=tuple(sorted({user for user, path in users if path.is_relative_to(whole)})),
    )


def _last_end(experiment: str, whole: Path) -> float:
    """Return the time when the last run that used a volume ended or started; 0 if none is recorded."""
    for run in reversed(runs_of(experiment)):
        # A damaged run has no times; use those of the files.
        with contextlib.suppress(SymphError):
            if any(path.is_relative_to(whole) for path in _sources(run)):
                state = run.state()
                return state.ended or state.started
    return 0.0


def _measure(folder: Path) -> tuple[int, float, bool]:
    """Return the bytes in a folder, its newest time, and True if there were too many files to count."""
    total, newest, files = 0, 0.0, 0
    for top, _, names in os.walk(folder):
        for path in (top, *(f"{top}/{name}" for name in names)):
            with contextlib.suppress(OSError):
                facts = os.lstat(path)
                total += facts.st_size if path != top else 0
                newest = max(newest, facts.st_mtime)
        files += len(names)
        if files > _MOST_FILES:
            return total, newest, True
    return total, newest, False
