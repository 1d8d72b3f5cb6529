"""The state and the rows that the cockpit displays."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from symphony_charts.backend.diagnosis import diagnose_instance
from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import ExperimentStatus, InstanceStatus, LogQuery, Usage
from symphony_charts.errors import SymphError
from symphony_charts.formats.printable import age, printable_line

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


TITLES = ("PROCESS", "STATE", "READY", "RESTARTS", "AGE", "CPU", "MEM", "LAST LINE")
_WITH_GPUS = (*TITLES[:-1], "GPU", TITLES[-1])
# Maximum width of the state column.
_WIDEST_STATE = 24
_UNITS = ("", "K", "M", "G", "T")
_COUNTED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One instance: path, phase, and the texts of its cells in the order of `titles_of`."""

    path: str
    phase: str
    cells: tuple[str, ...]


def size(count: int) -> str:
    """Format bytes: `2252341248` -> ``2.1G``."""
    number, unit = float(count), 0
    while number >= 1000 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.1f}{_UNITS[unit]}" if unit and number < 10 else f"{number:.0f}{_UNITS[unit]}"


def rows_of(
    status: ExperimentStatus, usage: Mapping[str, Usage], last: Mapping[str, str], now: float
) -> tuple[Row, ...]:
    """Return a row per instance at `now`, in order of declaration, with a GPU cell if any usage is measured."""
    has_gpus = any(map(_gpu_of, usage.values()))
    return tuple(
        _row(instance, usage.get(instance.path, Usage()), last.get(instance.path, ""), now, has_gpus=has_gpus)
        for instance in status.instances
    )


def _gpu_of(usage: Usage) -> str:
    """Return ``74% 12G``, or the part that is known."""
    busy = "" if usage.gpu is None else f"{usage.gpu:.0%}"
    return f"{busy} {'' if usage.gpu_memory is None else size(usage.gpu_memory)}".strip()


def _row(instance: InstanceStatus, usage: Usage, last: str, now: float, *, has_gpus: bool) -> Row:
    until = instance.ended if instance.ended is not None else now
    cells = (
        instance.path,
        printable_line(instance.phase if instance.phase == "running" else instance.state),
        "yes" if instance.ready else "no",
        str(instance.restarts),
        age(until - instance.started) if instance.started is not None else "-",
        "-" if usage.cpu is None else f"{usage.cpu:.2f}",
        "-" if usage.memory is None else size(usage.memory),
        *([_gpu_of(usage) or "-"] if has_gpus else []),
        printable_line(last),
    )
    return Row(path=instance.path, phase=instance.phase, cells=cells)


def head_of(status: ExperimentStatus, usage: Mapping[str, Usage], now: float) -> str:
    """Return ``rl  running 3m   learner 2/2  agent 31/32   cpu 3.1  mem 6.2G``: counts per process, total usage."""
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


def titles_of(rows: Sequence[Row]) -> tuple[str, ...]:
    return _WITH_GPUS if rows and len(rows[0].cells) == len(_WITH_GPUS) else TITLES


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…" if width else ""


def layout(rows: Sequence[Row], width: int) -> tuple[int, ...]:
    """Return column widths for a screen of `width` cells: as wide as needed, and the rest for the last column."""
    titles = titles_of(rows)
    widest = [max([len(title), *(len(row.cells[place]) for row in rows)]) for place, title in enumerate(titles)]
    widest[1] = min(widest[1], _WIDEST_STATE)
    widest[0] = min(widest[0], max(len(TITLES[0]), width // 3))
    for place in (1, 0):
        # Shorten states first, then names.
        beyond = sum(widest[:-1]) + 2 * len(widest[:-1]) - width
        widest[place] = max(len(titles[place]), widest[place] - max(0, beyond))
    left = width - sum(widest[:-1]) - 2 * len(widest[:-1])
    return (*widest[:-1], max(left, 0))
