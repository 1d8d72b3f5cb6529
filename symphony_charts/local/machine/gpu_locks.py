"""GPUs that runs of this person hold: a lock per GPU, kept by the supervisor of the run, by name of the holder.

The lock goes with the last process that has it open, so nothing has to be tidied up after a kill -9. This module is
imported by the supervisor and must stay light.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from symphony_charts.local.plan.records import LocalPlan
from symphony_charts.local.runs import Run
from symphony_charts.system import file_locks

__all__ = ["claim_gpu", "exclusive", "holders_of", "note_holder", "restore_gpu_locks"]

# In the runtime folder.
_FOLDER = "gpus"


def exclusive() -> contextlib.AbstractContextManager[None]:
    """Hold the lock for taking and listing GPUs."""
    return file_locks.exclusive(_FOLDER)


def claim_gpu(gpu: str, *, shared: bool) -> int | None:
    """Return a descriptor that holds a GPU, None when a run has it; call it inside of `exclusive`."""
    return file_locks.claim(_FOLDER, _file_of(gpu), shared=shared)


def note_holder(gpu: str, run: Path, processes: Sequence[str]) -> None:
    """Record which processes of which run hold a GPU."""
    file_locks.note(_FOLDER, _file_of(gpu), json.dumps({"run": str(run), "processes": list(processes)}))


def holders_of(gpu: str) -> list[str]:
    """Return the holders of a GPU as text: ``experiment "rl" (learner)``."""
    holders = [
        f'experiment "{run.experiment}" ({", ".join(processes)})' for run, processes in _holders(gpu) if _lives(run)
    ]
    return list(dict.fromkeys(holders))


def restore_gpu_locks(run: Run, plan: LocalPlan) -> list[int]:
    """Return the descriptors by which a supervisor keeps the GPUs of its run, where it has not inherited them.

    One that takes over after another was killed finds them free, unless somebody was quicker; that is said on stderr.
    """
    wanted: dict[str, list[str]] = {}
    for process in plan.processes:
        for gpu in process.gpus:
            wanted.setdefault(gpu, []).append(f"{process.pod}/{process.process}")
    if not wanted:
        return []
    descriptors = []
    with exclusive():
        for gpu, processes in wanted.items():
            descriptor = claim_gpu(gpu, shared=plan.is_sharing_gpus)
            if descriptor is not None:
                descriptors.append(descriptor)
                note_holder(gpu, run.folder, processes)
            elif all(holder.folder != run.folder for holder, _ in _holders(gpu)):
                sys.stderr.write(f"{gpu} was taken meanwhile: {'; '.join(holders_of(gpu))}\n")
    return descriptors


def _holders(gpu: str) -> Iterator[tuple[Run, list[str]]]:
    for line in file_locks.claimants(_FOLDER, _file_of(gpu)):
        with contextlib.suppress(ValueError, KeyError):
            data = json.loads(line)
            yield Run(Path(data["run"])), [str(name) for name in data["processes"]]


def _lives(run: Run) -> bool:
    """Return True if a run has not ended; one that is being started has no state yet."""
    return run.is_live or not (run.folder / "state.json").exists()


def _file_of(gpu: str) -> str:
    return f"{gpu.replace(os.sep, '_')}.held"
