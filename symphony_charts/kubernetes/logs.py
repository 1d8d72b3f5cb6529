"""Merge the logs of containers by time, and follow them over restarts, new pods and new runs."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

from urllib3.exceptions import HTTPError

from symphony_charts.backend.status import ExperimentStatus, InstanceStatus, LogLine, LogQuery, time_text
from symphony_charts.errors import NotFound, SpecError, ToolFailed
from symphony_charts.kubernetes.connection import Response
from symphony_charts.kubernetes.container_phase import moment_of
from symphony_charts.kubernetes.experiments import KubeExperiments

# Interval in seconds for checking `until` while no line arrives.
_POLL_S = 0.2


@dataclass(kw_only=True)
class _Source:
    """One container of one pod, and the read position: the time of the last line, and the number of lines at that time.

    A restarted container continues in the same source; `is_again`: it has restarted.
    """

    namespace: str
    pod: str
    container: str
    name: str
    is_again: bool = False
    last: str = ""
    repeated: int = 0


def read_lines(experiments: KubeExperiments, status: ExperimentStatus, query: LogQuery) -> Iterator[LogLine]:
    """Yield the lines of an experiment for `query`; see `Watcher.logs`."""
    chosen = [instance for instance in status.instances if not query.instances or instance.path in query.instances]
    if query.previous:
        yield from _wanted(_previous(experiments, status.namespace, chosen, query), query)
        return
    sources = {_key(instance): _source(status.namespace, instance) for instance in chosen if instance.pod}
    history = [
        line
        for source in sources.values()
        for line in _read(experiments, source, query, is_again=source.is_again or query.follow)
    ]
    yield from _wanted(history, query)
    if query.follow:
        yield from (line for line in _Follower(experiments, status.name, query, sources).lines() if query.wants(line))


def _wanted(lines: list[LogLine], query: LogQuery) -> list[LogLine]:
    """Return the last wanted lines in order of time."""
    found = [line for line in sorted(lines, key=lambda line: line.time) if query.wants(line)]
    return found[-query.tail :] if query.tail > 0 else found if query.tail else []


class _Follower:
    """A thread per writing container, one for the cluster's changes, and one queue for all lines."""

    def __init__(
        self, experiments: KubeExperiments, name: str, query: LogQuery, sources: dict[tuple[str, str], _Source]
    ) -> None:
        self._experiments, self._name, self._query, self._sources = experiments, name, query, sources
        self._queue: queue.Queue[LogLine | Exception | None] = queue.Queue()
        self._readers: dict[tuple[str, str], tuple[int, threading.Thread]] = {}
        self._over = threading.Event()

    def lines(self) -> Iterator[LogLine]:
        """Yield lines as they arrive, until the experiment has reached a final state (or `until` has passed)."""
        threading.Thread(target=self._watch, daemon=True).start()
        try:
            while True:
                try:
                    item = self._queue.get(timeout=_POLL_S)
                except queue.Empty:
                    if self._query.until is not None and time.time() > self._query.until:
                        return
                    continue
                if item is None:
                    return
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self._over.set()

    def _watch(self) -> None:
        try:
            for status in self._experiments.changes(self._name):
                if self._over.is_set():
                    return
                if status is None:
                    break
                for instance in status.instances:
                    self._begin(status.namespace, instance)
                if status.is_final:
                    break
        except Exception as error:
            self._queue.put(error)
            return
        for _, reader in self._readers.values():
            reader.join(timeout=30)
        self._queue.put(None)

    def _begin(self, namespace: str, instance: InstanceStatus) -> None:
        if self._query.instances and instance.path not in self._query.instances:
            return
        if not instance.pod or instance.started is None:
            return
        key = _key(instance)
        restarts, before = self._readers.get(key, (-1, None))
        if instance.restarts <= restarts:
            return
        source = self._sources.setdefault(key, _source(namespace, instance))
        reader = threading.Thread(target=self._tail, args=(source, before), daemon=True)
        self._readers[key] = instance.restarts, reader
        reader.start()

    def _tail(self, source: _Source, before: threading.Thread | None) -> None:
        """Read one container to its end, after `before` has ended; a broken connection resumes at the same position."""
        if before is not None:
            before.join()
        while not self._over.is_set():
            try:
                for line in _read(self._experiments, source, self._query, is_again=True, follow=True):
                    if self._over.is_set():
                        return
                    self._queue.put(line)
                return
            except ToolFailed:
                self._over.wait(0.5)


def _read(
    experiments: KubeExperiments, source: _Source, query: LogQuery, *, is_again: bool, follow: bool = False
) -> Iterator[LogLine]:
    """Yield the unread lines of a container; none if it has not started or is gone.

    `is_again`: it may have restarted since it was last read; lines from before the restart come first.
    """
    with suppress(NotFound, SpecError), _opened(experiments, source, query, follow=follow) as response:
        if is_again:
            # Opened only now: otherwise a restart before the current log was opened would lose lines.
            with suppress(NotFound, SpecError), _opened(experiments, source, query, previous=True) as earlier:
                yield from _unread(source, earlier)
        yield from _unread(source, response)


@contextmanager
def _opened(
    experiments: KubeExperiments, source: _Source, query: LogQuery, *, follow: bool = False, previous: bool = False
) -> Iterator[Response]:
    """Yield the log of a container from its unread lines on. Raises ToolFailed if it breaks off."""
    asked = {"container": source.container, "timestamps": "true"}
    asked |= {"follow": "true"} if follow else {}
    asked |= {"previous": "true"} if previous else {}
    if source.last:
        asked["sinceTime"] = source.last
    elif query.since is not None:
        # The server accepts whole seconds.
        asked["sinceTime"] = time_text(query.since)
    elif query.tail > 0 and not (query.regex or query.until or follow):
        asked["tailLines"] = str(query.tail)
    log = experiments.api.log(source.namespace, source.pod, asked, read_s=None if follow else 60)
    try:
        with closing(log):
            yield log
    except HTTPError as error:
        raise ToolFailed(f"the log of {source.name} broke off: {error}") from error


def _unread(source: _Source, response: Response) -> Iterator[LogLine]:
    to_skip, last = source.repeated, source.last
    for stamp, text in _stamped(response):
        if last and (stamp < last or (stamp == last and to_skip > 0)):
            to_skip -= stamp == last
            continue
        source.repeated = source.repeated + 1 if stamp == source.last else 1
        source.last = stamp
        yield LogLine(time=moment_of(stamp), process=source.name, text=text)


def _stamped(response: Response) -> Iterator[tuple[str, str]]:
    """Yield time and text of each line; padded times sort as text."""
    rest = b""
    for piece in response.stream(decode_content=False):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield _parted(line + b"\n")
    if rest:
        yield _parted(rest)


def _parted(line: bytes) -> tuple[str, str]:
    stamp, _, text = line.partition(b" ")
    whole, _, fraction = stamp.decode("ascii", "replace").removesuffix("Z").partition(".")
    return f"{whole}.{fraction:0<9}Z", text.decode("utf-8", "replace")


def _previous(
    experiments: KubeExperiments, namespace: str, chosen: Sequence[InstanceStatus], query: LogQuery
) -> list[LogLine]:
    lines: list[LogLine] = []
    is_any = False
    for instance in chosen:
        source = _source(namespace, instance)
        with suppress(NotFound, SpecError), _opened(experiments, source, query, previous=True) as response:
            is_any = True
            lines += _unread(source, response)
    if not is_any:
        names = ", ".join(instance.path for instance in chosen)
        raise NotFound(f"these containers have no earlier run: {names}", next="remove --previous")
    return lines


def _source(namespace: str, instance: InstanceStatus) -> _Source:
    container = instance.container or instance.process
    is_again = instance.restarts > 0
    return _Source(namespace=namespace, pod=instance.pod, container=container, name=instance.path, is_again=is_again)


def _key(instance: InstanceStatus) -> tuple[str, str]:
    return instance.pod, instance.process
