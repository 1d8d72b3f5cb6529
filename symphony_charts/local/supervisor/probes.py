"""Run the checks of processes when they are due, as the kubelet does, in steps that never block.

A check passes as it does for the kubelet: an accepted connection, a command that exits with 0, or an HTTP status from
200 to 399 after redirects on the same host. Certificates are not verified, and at most 10 KiB are read. Startup checks
delay the others until they have passed. Source: kubernetes/kubernetes pkg/probe, pkg/kubelet/prober.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar
from urllib.parse import urljoin, urlsplit

from symphony_charts.local.plan.records import Check, PlannedProcess
from symphony_charts.local.runs import Run
from symphony_charts.local.supervisor.events import Loop
from symphony_charts.system import processes

_T = TypeVar("_T")
_MOST_BYTES = 10 << 10
_MOST_REDIRECTS = 10
# Each step is a descriptor and the events that it waits for.
Steps: TypeAlias = Generator[tuple[int, int], None, str]


class Attempt:
    """A running attempt; calls `done` once with its outcome, unless it is cancelled before."""

    def __init__(self, loop: Loop, steps: Steps, timeout_s: float, done: Callable[[str], None]) -> None:
        self._loop, self._steps, self._done = loop, steps, done
        self._descriptor = -1
        self._is_over = False
        loop.later(timeout_s, lambda: self._finish(f"no answer within {timeout_s:g} s"))
        self._step()

    def cancel(self) -> None:
        """Stop without calling `done`."""
        if not self._is_over:
            self._is_over = True
            self._loop.forget(self._descriptor)
            self._steps.close()

    def _step(self) -> None:
        self._loop.forget(self._descriptor)
        try:
            self._descriptor, events = next(self._steps)
        except StopIteration as end:
            self._finish(end.value)
        except (OSError, ValueError) as error:
            self._finish(getattr(error, "strerror", None) or str(error))
        else:
            self._loop.watch(self._descriptor, self._step, events)

    def _finish(self, outcome: str) -> None:
        if not self._is_over:
            self.cancel()
            self._done(outcome)


def steps_of(check: Check, folder: Path) -> Steps:
    """Return the steps of one attempt of `check`; `folder` is the folder of the process."""
    if check.kind == "tcp":
        return _connect(check)
    if check.kind == "exec":
        return _run(check, folder)
    return _get(check)


def _connect(check: Check) -> Steps:
    with _new_socket() as connection:
        yield from _connected(connection, check.host, check.port)
    return ""


def _connected(connection: socket.socket, host: str, port: int) -> Generator[tuple[int, int], None, None]:
    """Connect step by step. Raises OSError."""
    error = connection.connect_ex((host, port))
    if error == errno.EINPROGRESS:
        yield connection.fileno(), select.POLLOUT
        error = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if error:
        raise OSError(error, os.strerror(error))


def _new_socket() -> socket.socket:
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.setblocking(False)
    return connection


def _run(check: Check, folder: Path) -> Steps:
    """Run the command in the environment, folder and mounts of the process; report its last line if it fails."""
    try:
        pid = int((folder / "pid").read_text(encoding="ascii"))
        argv, env = processes.inside(pid, check.command)
    except (OSError, ValueError):
        return "the process does not run"
    with (folder / "probe").open("w+b") as output:
        program = subprocess.Popen(
            argv, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        try:
            descriptor = os.pidfd_open(program.pid)
            try:
                yield descriptor, select.POLLIN
            finally:
                os.close(descriptor)
        finally:
            # After a timeout, also kill the command and all its children.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(program.pid, signal.SIGKILL)
            status = program.wait()
        output.seek(max(0, output.seek(0, os.SEEK_END) - 400))
        lines = output.read().decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return "" if status == 0 else f"exit status {status}{f': {last}' if last else ''}"


def _get(check: Check) -> Steps:
    """Send a GET and follow redirects to the same host."""
    scheme = "https" if check.is_tls else "http"
    url = f"{scheme}://{check.host}:{check.port}{check.path if check.path.startswith('/') else '/' + check.path}"
    for _ in range(_MOST_REDIRECTS):
        status, location = yield from _ask(url, check.headers)
        target = urljoin(url, location) if location else ""
        if not target or not 300 <= status < 400 or urlsplit(target).hostname != urlsplit(url).hostname:
            return "" if 200 <= status < 400 else f"HTTP status {status}"
        url = target
    return f"stopped after {_MOST_REDIRECTS} redirects"


def _ask(url: str, headers: tuple[tuple[str, str], ...]) -> Generator[tuple[int, int], None, tuple[int, str]]:
    parts = urlsplit(url)
    is_secure = parts.scheme == "https"
    sending: Mapping[type[OSError], int] = {BlockingIOError: select.POLLOUT}
    receiving: Mapping[type[OSError], int] = {BlockingIOError: select.POLLIN}
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(_new_socket())
        yield from _connected(connection, parts.hostname or "", parts.port or (443 if is_secure else 80))
        if is_secure:
            # Importing TLS takes 7 ms and 1.4 MB, which supervisors without such a check must not spend.
            import ssl

            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            secure = stack.enter_context(context.wrap_socket(connection, do_handshake_on_connect=False))
            sending = receiving = {ssl.SSLWantReadError: select.POLLIN, ssl.SSLWantWriteError: select.POLLOUT}
            yield from _unblocked(secure, secure.do_handshake, receiving)
            connection = secure
        request = _request(url, headers)
        while request:
            sent = yield from _unblocked(connection, partial(connection.send, request), sending)
            request = request[sent:]
        answer = b""
        while len(answer) < _MOST_BYTES and not _is_whole(answer):
            data = yield from _unblocked(connection, partial(connection.recv, 1 << 14), receiving)
            if not data:
                break
            answer += data
    return _status_and_location(answer)


def _unblocked(
    connection: socket.socket, call: Callable[[], _T], events: Mapping[type[OSError], int]
) -> Generator[tuple[int, int], None, _T]:
    """Repeat `call` until it does not block; `events` maps each blocking error to the event to wait for."""
    while True:
        try:
            return call()
        except tuple(events) as error:
            awaited = events[type(error)]
        yield connection.fileno(), awaited


def _request(url: str, headers: tuple[tuple[str, str], ...]) -> bytes:
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    ours = {"Host": parts.netloc, "User-Agent": "kube-probe/symph", "Accept": "*/*"}
    own = {name.lower() for name, _ in headers}
    lines = [f"{name}: {value}" for name, value in ours.items() if name.lower() not in own]
    lines += [f"{name}: {value}" for name, value in headers]
    text = "\r\n".join([f"GET {path} HTTP/1.1", *lines, "Connection: close", "", ""])
    return text.encode("latin-1", "replace")


def _is_whole(answer: bytes) -> bool:
    """Return True if the headers show that the answer is complete; otherwise the end of the connection completes it."""
    head, separator, body = answer.partition(b"\r\n\r\n")
    fields = _fields(head)
    if not separator:
        return False
    if fields.get("transfer-encoding", "").lower() == "chunked":
        return body.endswith(b"0\r\n\r\n")
    length = fields.get("content-length", "")
    return length.isdecimal() and len(body) >= int(length)


def _status_and_location(answer: bytes) -> tuple[int, str]:
    head, separator, _ = answer.partition(b"\r\n\r\n")
    words = head.split(b"\r\n", 1)[0].split()
    if not separator or len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise ValueError("the answer is not HTTP")
    return int(words[1]), _fields(head).get("location", "")


def _fields(head: bytes) -> dict[str, str]:
    rows = [line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:]]
    return {name.strip().lower(): value.strip() for name, _, value in rows}


# Retry an automatic check soon at first, then with 1.5 times the pause each time, at most once a second.
_SOON_S, _NEXT_S, _LATEST_S = 0.01, 0.03, 1.0


class Probing:
    """The checks of one start of a process.

    Calls `changed` with its readiness and the reason, `dead` with the reason to end it.
    """

    def __init__(
        self,
        loop: Loop,
        checks: Sequence[Check],
        folder: Path,
        *,
        started: float,
        changed: Callable[[bool, str], None],
        dead: Callable[[Check, str], None],
    ) -> None:
        self._loop, self._folder, self._started = loop, folder, started
        self._changed, self._dead = changed, dead
        self._all = [Health(check) for check in checks]
        self._under_way: dict[int, Attempt] = {}
        self._is_over = False
        self._announced: tuple[bool, str] | None = None
        first = self._of("started")
        for health in first or self._all:
            self._begin(health)

    def stop(self) -> None:
        self._is_over = True
        for attempt in self._under_way.values():
            attempt.cancel()

    def _of(self, role: str) -> list[Health]:
        return [health for health in self._all if health.check.role == role]

    def _begin(self, health: Health) -> None:
        check = health.check
        if check.automatic:
            self._later(_SOON_S, health, _NEXT_S)
        else:
            self._later(self._started + check.initial_delay_s - time.time(), health, check.period_s)

    def _later(self, delay_s: float, health: Health, pause_s: float) -> None:
        self._loop.later(max(0.0, delay_s), lambda: self._try(health, pause_s))

    def _try(self, health: Health, pause_s: float) -> None:
        if not self._is_over:
            began = time.monotonic()
            done = partial(self._tried, health, pause_s, began)
            attempt = Attempt(self._loop, steps_of(health.check, self._folder), health.check.timeout_s, done)
            self._under_way[id(health)] = attempt

    def _tried(self, health: Health, pause_s: float, began: float, why: str) -> None:
        check, passed = health.check, not why
        if check.automatic:
            health.passes = passed
            if not passed:
                self._later(pause_s, health, min(pause_s * 1.5, _LATEST_S))
            self._announce(why)
            return
        is_settled = health.note(passed)
        if is_settled and not passed and check.role != "ready":
            self.stop()
            self._dead(check, why)
            return
        if is_settled and check.role == "started":
            self._go_on()
            return
        # The next attempt is due one period after the start of this one, however long this one took.
        self._later(began + pause_s - time.monotonic(), health, pause_s)
        if is_settled:
            self._announce(why)

    def _go_on(self) -> None:
        if all(health.passes for health in self._of("started")):
            for health in [*self._of("ready"), *self._of("alive")]:
                self._begin(health)
            self._announce("")

    def _announce(self, why: str) -> None:
        is_ready = all(health.passes for health in [*self._of("started"), *self._of("ready")])
        news = (is_ready, "" if is_ready else why)
        if news != self._announced:
            self._announced = news
            self._changed(*news)


class Checks:
    """The current checks of all processes of a run.

    Calls `changed` with slot, readiness and the reason; `dead` with the slot, the check and the reason to end the
    process.
    """

    def __init__(
        self,
        run: Run,
        loop: Loop,
        changed: Callable[[int, bool, str], None],
        dead: Callable[[int, Check, str], None],
    ) -> None:
        self._run, self._loop, self._changed, self._dead = run, loop, changed, dead
        self._attended: dict[int, Probing] = {}

    def attend(self, planned: PlannedProcess, *, started: float, is_ready: bool) -> None:
        """Start the checks of a process that runs since `started` (seconds since 1970)."""
        slot = planned.slot
        wanted = [check for check in (*planned.health, *planned.checks) if not (check.automatic and is_ready)]
        if wanted:
            self._attended[slot] = Probing(
                self._loop,
                wanted,
                self._run.process_dir(slot),
                started=started,
                changed=partial(self._changed, slot),
                dead=partial(self._dead, slot),
            )

    def leave(self, slot: int) -> None:
        if slot in self._attended:
            self._attended.pop(slot).stop()


@dataclass(slots=True)
class Health:
    """The result of one check so far: at first not ready, alive, and not yet started."""

    check: Check
    passes: bool | None = None
    _last: bool | None = None
    _row: int = 0

    def __post_init__(self) -> None:
        if self.passes is None and self.check.role != "started":
            self.passes = self.check.role == "alive"

    def note(self, passed: bool) -> bool:
        """Count one attempt; return True if it confirms a result, False below the threshold."""
        self._row = self._row + 1 if passed == self._last else 1
        self._last = passed
        if self._row < (self.check.successes if passed else self.check.failures):
            return False
        self.passes = passed
        return True
