"""`FileWatch` waits for changes of files, and `slots_using` maps them to the processes of a run."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial
from itertools import product
from pathlib import Path, PurePath

from symphony_charts.errors import NotFound
from symphony_charts.local.plan.records import LocalPlan
from symphony_charts.local.runs import Run, find_slots
from symphony_charts.system.processes import has_ended_within, verified

# Files saved together are handled together: wait for this long without a change, and at most that long.
_QUIET_S, _MOST_S = 0.2, 3.0
# Pause between two looks at all files, in seconds; longer in large trees, so that looking takes a tenth of the time.
_PAUSE_S, _LOOKING = 0.2, 10


class FileWatch:
    """The files of `watched`, and the experiment file `spec`; `ignored` are patterns besides the usual ones.

    Polls, so that it also sees the saves of other machines in a shared folder, which the kernel does not report.
    """

    def __init__(self, watched: Sequence[Watched], spec: Path, ignored: Sequence[str] = ()) -> None:
        self.watched, self.spec = tuple(watched), spec.resolve()
        self._roots = [*(Path(entry.path) for entry in watched), self.spec]
        # Comparing a path with all patterns takes longer than everything else.
        self._is_ignored = cache(partial(is_ignored, roots=self._roots, patterns=(*IGNORED, *ignored)))
        self._seen = self._look()

    def wait(self, run: Run) -> set[Path]:
        """Return the changed files once they have settled; empty if the run ended or lost its supervisor instead."""
        # Files that are made and removed for the run are no changes.
        mounts = run.plan().mounts
        points = {Path(at) for at in (*mounts.targets, *(bind.target for bind in mounts.shared))}
        is_live = run.is_live
        with verified(run.supervisor if is_live else None) as supervisor:
            while not is_live or supervisor is not None:
                began = time.monotonic()
                if changed := self._settled() - points:
                    return changed
                pause_s = max(_PAUSE_S, _LOOKING * (time.monotonic() - began))
                if supervisor is None:
                    time.sleep(pause_s)
                elif has_ended_within(supervisor, pause_s):
                    break
        return set()

    def _settled(self) -> set[Path]:
        changed, deadline = self.changed(), time.monotonic() + _MOST_S
        while changed and time.monotonic() < deadline:
            time.sleep(_QUIET_S)
            if not (more := self.changed()):
                break
            changed |= more
        return changed

    def changed(self) -> set[Path]:
        """Return the files that have changed since the last call, removed ones included."""
        before, self._seen = self._seen, self._look()
        return {path for path in before.keys() | self._seen.keys() if before.get(path) != self._seen.get(path)}

    def _look(self) -> dict[Path, tuple[int, ...]]:
        seen: dict[Path, tuple[int, ...]] = {}
        for root in self._roots:
            with contextlib.suppress(OSError):
                facts = root.stat()
                seen |= self._files_in(root) if stat.S_ISDIR(facts.st_mode) else {root: _version(facts)}
        return seen

    def _files_in(self, folder: Path) -> Iterator[tuple[Path, tuple[int, ...]]]:
        # A folder may be removed meanwhile.
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                path = Path(entry.path)
                if self._is_ignored(path):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    yield from self._files_in(path)
                else:
                    with contextlib.suppress(FileNotFoundError):
                        yield path, _version(entry.stat(follow_symlinks=False))


def _version(facts: os.stat_result) -> tuple[int, ...]:
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


def parse_watched(text: str) -> Watched:
    """Parse ``PATH`` or ``PATH:PROCESS,...``; an existing path with a colon is taken whole. Raises NotFound."""
    path, colon, names = text.rpartition(":")
    if Path(text).exists() or not colon:
        path, names = text, ""
    if not Path(path).exists():
        step = "give a path: --watch PATH or --watch PATH:PROCESS,..."
        raise NotFound(f'cannot watch "{path}": it does not exist', next=step)
    return Watched(path=Path(path).resolve(), processes=tuple(name for name in names.split(",") if name))


def slots_using(plan: LocalPlan, changed: Iterable[PurePath], watched: Sequence[Watched]) -> Mapping[int, str]:
    """Return the slots of `plan` that use changed files, with these files as text; steps only if they are named."""
    touched: dict[int, list[str]] = {}
    for path, entry in product(sorted(changed), watched):
        if path != entry.path and entry.path not in path.parents:
            continue
        shown = path.name if path == entry.path else str(path.relative_to(entry.path))
        named = {slot for name in entry.processes for slot in find_slots(plan, name)}
        for slot in named or [process.slot for process in plan.processes if not process.is_step]:
            touched.setdefault(slot, []).append(shown)
    shown_once = {slot: list(dict.fromkeys(paths)) for slot, paths in sorted(touched.items())}
    return {
        slot: ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
        for slot, paths in shown_once.items()
    }


# Temporary files of editors, version control and Python, as patterns of single names.
IGNORED = (
    *(".git", ".hg", ".svn", ".jj", "__pycache__", "*.py[co]", "*.egg-info", ".*_cache", ".ipynb_checkpoints"),
    *(".venv", ".tox", ".nox", "node_modules", ".idea", ".vscode", ".DS_Store", "*~", ".*.sw?", "4913", "#*#", ".#*"),
    *(".goutputstream-*", "*___jb_???___", "*.tmp"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A file, or all files below a folder, that `processes` use, by the users' names; empty: all processes."""

    path: PurePath
    processes: tuple[str, ...] = ()


def is_ignored(path: PurePath, roots: Iterable[PurePath], patterns: Sequence[str]) -> bool:
    """Return True if a pattern matches a name in `path`, or all of it, below every one of `roots` that contains it."""
    below = [path.relative_to(root) for root in roots if root in path.parents]
    return bool(below) and all(
        any(fnmatchcase(name, pattern) for pattern in patterns for name in (*part.parts, str(part))) for part in below
    )
