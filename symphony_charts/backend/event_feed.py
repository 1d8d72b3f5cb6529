"""`Teller` says what has changed in an experiment since it was looked at last, as people would. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from symphony_charts.backend.diagnosis import diagnose_instance
from symphony_charts.backend.status import FINAL, ExperimentStatus, InstanceStatus
from symphony_charts.formats.printable import age

# A wait that is shorter is nothing to speak of; whoever waits longer is told of as a warning. In seconds.
SHORT_S, LONG_S = 3.0, 30.0
# How long a wait goes on already, as backends write it behind what is waited for.
_SO_FAR = re.compile(r", \d[\d.]*[smhd](\d+h)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusChange:
    """One change: the paths of its instances, its text, and whether it is bad.

    `follows_lines` says that they wrote what brought it about, or their last lines, before it.
    """

    paths: tuple[str, ...]
    text: str
    is_bad: bool = False
    follows_lines: bool = False

    @property
    def name(self) -> str:
        """The first of the instances, and how many more there are."""
        return f"{self.paths[0]} +{len(self.paths) - 1}" if len(self.paths) > 1 else self.paths[0]


class EventFeed:
    """Compares each status with the one before it: restarts, readiness, ends, and long waits."""

    def __init__(self) -> None:
        self._before: dict[str, InstanceStatus] = {}
        self._waits: dict[str, tuple[str, float, float]] = {}

    @property
    def is_somebody_waiting(self) -> bool:
        """True if a text may follow although nothing changes."""
        return bool(self._waits)

    def tell(self, status: ExperimentStatus, now: float) -> list[StatusChange]:
        """Return the changes in `status` at `now` (seconds since 1970); equal changes of several instances are one."""
        said = [told for instance in status.instances for told in self._of(status, instance, now)]
        self._before = {instance.path: instance for instance in status.instances}
        return list(_gather(said))

    def _of(self, status: ExperimentStatus, now_is: InstanceStatus, now: float) -> Iterator[StatusChange]:
        before = self._before.get(now_is.path)
        path = (now_is.path,)
        if before is None or before.phase != now_is.phase or before.restarts != now_is.restarts:
            yield from _turn(before, now_is)
        if now_is.ready and before is not None and before.phase == now_is.phase == "running" and not before.ready:
            took = f" after {age(now - now_is.started)}" if now_is.started else ""
            yield StatusChange(paths=path, text=f"ready{took}", follows_lines=True)
        yield from self._wait_of(status, now_is, now)

    def _wait_of(self, status: ExperimentStatus, instance: InstanceStatus, now: float) -> Iterator[StatusChange]:
        """Report a wait that has become long, and again, with the next step, when it is very long."""
        why = diagnose_instance(status, instance) if instance.phase in ("pending", "queued") else None
        words = _SO_FAR.sub("", why.text) if why else ""
        if not why or instance.status is not None:
            # Who is to start again after a failure has been told of as that.
            self._waits.pop(instance.path, None)
            return
        known, since, limit = self._waits.get(instance.path, ("", now, SHORT_S))
        if known != words:
            since, limit = now, SHORT_S
        if now - since >= limit:
            is_long = limit == LONG_S
            step = f"   next: {why.next}" if is_long and why.next else ""
            yield StatusChange(paths=(instance.path,), text=f"{words}, {age(now - since)}{step}", is_bad=is_long)
            limit = float("inf") if is_long else LONG_S
        self._waits[instance.path] = (words, since, limit)


def _turn(before: InstanceStatus | None, now_is: InstanceStatus) -> Iterator[StatusChange]:
    path, took = (now_is.path,), ""
    if now_is.started is not None and now_is.ended is not None:
        took = f" after {age(now_is.ended - now_is.started)}"
    if now_is.phase == "succeeded":
        yield StatusChange(paths=path, text=f"succeeded{took}", follows_lines=True)
    elif now_is.phase in FINAL:
        text = now_is.reason or now_is.state
        yield StatusChange(paths=path, text=text, is_bad=now_is.phase != "stopped", follows_lines=True)
    elif before is not None and now_is.phase in ("pending", "queued") and before.phase == "running":
        yield StatusChange(paths=path, text=now_is.reason or now_is.state, is_bad=True, follows_lines=True)
    elif before is not None and now_is.phase == "running" and now_is.restarts > before.restarts:
        yield StatusChange(paths=path, text=f"started again, restart {now_is.restarts}")


def _gather(said: Iterable[StatusChange]) -> Iterator[StatusChange]:
    together: dict[tuple[str, bool, bool], list[str]] = {}
    for told in said:
        together.setdefault((told.text, told.is_bad, told.follows_lines), []).extend(told.paths)
    for (text, is_bad, follows_lines), paths in together.items():
        yield StatusChange(paths=tuple(paths), text=text, is_bad=is_bad, follows_lines=follows_lines)
