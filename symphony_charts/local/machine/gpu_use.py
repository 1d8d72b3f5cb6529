"""`GpuMeter` says how busy GPUs of this machine are, and how much of their memory is taken, by nvidia-smi."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from symphony_charts.errors import SymphError
from symphony_charts.formats.quantity import MIB
from symphony_charts.system import subprocess_runner

__all__ = ["GpuMeter", "GpuUse", "parse_use"]

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
