"""Locks on GPUs by runs of this person, and the load of GPUs.

The supervisor of a run keeps a lock per GPU. It goes with the last process that has it open, so nothing has to be
tidied up after a kill -9. Imported by the supervisor: stay light.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from symphony_charts.errors import SymphError
from symphony_charts.formats.quantity import MIB
from symphony_charts.local.plan.records import LocalPlan
from symphony_charts.local.runs import Run
from symphony_charts.system import file_locks, subprocess_runner

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


_QUERY = ("nvidia-smi", "--query-gpu=uuid,utilization.gpu,memory.used", "--format=csv,noheader,nounits")
# nvidia-smi measures over up to a second, and takes a good part of one to answer.
_EVERY_S = 2.0


class GpuUse(NamedTuple):
    """The load of GPUs (1.0: all the time) and their used bytes; None if nvidia-smi does not report it."""

    busy: float | None
    memory: int | None


class GpuMeter:
    """Asks nvidia-smi at most every two seconds; if it is missing or fails, nothing is known."""

    def __init__(self) -> None:
        self._asked = -_EVERY_S
        self._seen: Mapping[str, GpuUse] = {}

    def use_of(self, gpus: Iterable[str]) -> GpuUse:
        """Return the mean load and the total memory of these GPUs. Instances of a GPU are not measured apart."""
        if time.monotonic() - self._asked >= _EVERY_S:
            self._seen, self._asked = _ask(), time.monotonic()
        uses = [self._seen.get(gpu, GpuUse(busy=None, memory=None)) for gpu in gpus]
        busy = [use.busy for use in uses if use.busy is not None]
        memory = [use.memory for use in uses if use.memory is not None]
        return GpuUse(
            busy=sum(busy) / len(busy) if busy and len(busy) == len(uses) else None,
            memory=sum(memory) if memory and len(memory) == len(uses) else None,
        )


def _ask() -> Mapping[str, GpuUse]:
    try:
        return parse_use(subprocess_runner.run(_QUERY, timeout_s=10).text)
    except SymphError:
        return {}


def parse_use(text: str) -> dict[str, GpuUse]:
    """Return the uses by UUID, of lines as ``GPU-1a9f..., 74, 12288``; what is no number is not known."""
    rows = (line.split(", ") for line in text.splitlines())
    return {row[0].strip(): GpuUse(busy=_share(row[1]), memory=_bytes(row[2])) for row in rows if len(row) == 3}


def _share(text: str) -> float | None:
    return int(text) / 100 if text.strip().isdigit() else None


def _bytes(text: str) -> int | None:
    return int(text) * MIB if text.strip().isdigit() else None
