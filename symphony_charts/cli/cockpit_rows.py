"""The state of an experiment that `symph top` displays, and the items of its table."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symphony_charts.backend.diagnosis import diagnose_instance
from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import ExperimentStatus, LogQuery, Usage
from symphony_charts.cli.experiments import phase_color
from symphony_charts.cli.output import Column
from symphony_charts.errors import SymphError
from symphony_charts.formats.printable import age, printable_line, size

_TAIL = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The selection on the screen: an experiment, an instance (its path), and a filter for its lines (empty: all)."""

    name: str
    path: str = ""
    regex: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The data for a wish; `status` is None if it could not be read, with the reason in `fault`."""

    wish: Wish
    names: tuple[str, ...] = ()
    status: ExperimentStatus | None = None
    usage: Mapping[str, Usage]
    last: Mapping[str, str]
    lines: tuple[str, ...] = ()
    now: float
    fault: str = ""


class Looker:
    """A thread that passes `show` a new picture every `interval_s` and whenever the wish changes."""

    def __init__(self, watcher: Watcher, wish: Wish, show: Callable[[Picture], None], interval_s: float) -> None:
        self._watcher, self._show, self._interval_s = watcher, show, interval_s
        self._wish = wish
        self._is_over, self._is_new = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wish(self, wish: Wish) -> None:
        self._wish = wish
        self._is_new.set()

    def stop(self) -> None:
        self._is_over.set()
        self._is_new.set()

    def _look(self) -> None:
        while not self._is_over.is_set():
            self._is_new.clear()
            self._show(self._picture(self._wish))
            self._is_new.wait(self._interval_s)

    def _picture(self, wish: Wish) -> Picture:
        watcher, now = self._watcher, time.time()
        try:
            status = watcher.describe(wish.name, events=False)
            paths = [instance.path for instance in status.instances]
            path = wish.path if wish.path in paths else next(iter(paths), "")
            query = LogQuery(instances=(path,), tail=_TAIL, regex=wish.regex)
            return Picture(
                wish=wish,
                names=tuple(sorted({*watcher.names(), wish.name})),
                status=status,
                usage=watcher.usage(wish.name),
                last=watcher.last_lines(wish.name),
                lines=tuple(line.text.removesuffix("\n") for line in watcher.logs(wish.name, query)) if path else (),
                now=now,
            )
        except SymphError as error:
            return Picture(wish=wish, usage={}, last={}, now=now, fault=str(error.what))


# Maximum number of processes in the head.
_COUNTED = 6


def items_of(
    status: ExperimentStatus, usage: Mapping[str, Usage], last: Mapping[str, str], now: float
) -> list[dict[str, Any]]:
    """Return the item of each instance at `now`, in order of declaration."""
    items = []
    for one in status.instances:
        used = usage.get(one.path, Usage())
        until = one.ended if one.ended is not None else now
        items.append(
            {
                "name": one.path,
                **{name: getattr(one, name) for name in ("phase", "state", "ready", "restarts")},
                "seconds": None if one.started is None else until - one.started,
                "cpu": used.cpu,
                "memory": used.memory,
                "gpu": used.gpu,
                "gpuMemory": used.gpu_memory,
                "lastLine": last.get(one.path, ""),
            }
        )
    return items


def columns_of(items: Sequence[Mapping[str, Any]]) -> list[Column]:
    """Return the columns of the items, with GPUs if any are measured."""
    return [
        Column("PROCESS", "name"),
        Column("STATE", lambda item: item["phase" if item["phase"] == "running" else "state"], state=phase_color),
        Column("READY", lambda item: "yes" if item["ready"] else "no"),
        Column("RESTARTS", "restarts"),
        Column("AGE", lambda item: _text(age, item["seconds"])),
        Column("CPU", lambda item: _text("{:.2f}".format, item["cpu"])),
        Column("MEMORY", lambda item: _text(size, item["memory"])),
        *([Column("GPU", _gpu)] if any(map(_gpu, items)) else []),
        Column("LAST LINE", "lastLine"),
    ]


def _gpu(item: Mapping[str, Any]) -> str:
    """Return ``74% 12.0 GiB``, or the part that is known."""
    return f"{_text('{:.0%}'.format, item['gpu'])} {_text(size, item['gpuMemory'])}".strip()


def _text(form: Callable[[Any], str], value: object) -> str:
    return "" if value is None else form(value)


def head_of(status: ExperimentStatus, usage: Mapping[str, Usage], now: float) -> str:
    """Return ``rl  running 3m   learner 2/2  agent 31/32   cpu 3.1  mem 6.2 GiB``: processes and total usage."""
    until = status.ended if status.ended is not None else now
    counted = [
        f"{process.name} {process.ready + process.succeeded}/{len(process.instances)}" for process in status.processes
    ]
    more = f"  +{len(counted) - _COUNTED}" if len(counted) > _COUNTED else ""
    parts = [f"{status.name}  {status.phase} {age(until - status.started)}", "  ".join(counted[:_COUNTED]) + more]
    cpus = [used.cpu for used in usage.values() if used.cpu is not None]
    memories = [used.memory for used in usage.values() if used.memory is not None]
    if cpus or memories:
        parts.append(f"cpu {sum(cpus):.1f}  mem {size(sum(memories))}")
    gpus = [used.gpu for used in usage.values() if used.gpu is not None]
    if gpus:
        parts[-1] += f"  gpu {sum(gpus) / len(gpus):.0%}"
    return "   ".join(part for part in parts if part)


def why_text(status: ExperimentStatus, path: str) -> str:
    """Return the reason why the instance at `path` is not ready, and the next step; empty if it needs none."""
    why = next((diagnose_instance(status, instance) for instance in status.instances if instance.path == path), None)
    if why is None or why.cause == "start":
        return ""
    return f" why:  {printable_line(why.text)}" + (f"\n next: {why.next}" if why.next else "")
