"""Run the checks of processes when they are due, as the kubelet does, in threads that report to the loop.

A check passes as it does for the kubelet: an accepted connection, a command that exits with 0, or an HTTP status from
200 to 399 after redirects on the same host. Certificates are not verified. Startup checks delay the others until they
have passed. Source: kubernetes/kubernetes pkg/probe, pkg/kubelet/prober.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from symphony_charts.local.plan.records import Check
from symphony_charts.local.supervisor.decisions import Event
from symphony_charts.local.supervisor.loop import Loop
from symphony_charts.system import processes

if TYPE_CHECKING:
    import http.client

_MOST_REDIRECTS = 10
_HEADERS = (("User-Agent", "kube-probe/symph"), ("Accept", "*/*"), ("Connection", "close"))


def _outcome(check: Check, folder: Path) -> str:
    late, deadline = f"no answer within {check.timeout_s:g} s", time.monotonic() + check.timeout_s
    try:
        outcome = _try_once(check, folder)
    except TimeoutError:
        outcome = late
    except (OSError, ValueError) as error:
        outcome = getattr(error, "strerror", None) or str(error)
    except Exception as error:  # of http.client
        outcome = f"the answer is not HTTP: {error}"
    # An answer that was cut off at the deadline fails in many ways.
    return late if outcome and time.monotonic() >= deadline else outcome


def _try_once(check: Check, folder: Path) -> str:
    """Return the reason of a failure. Raises TimeoutError, OSError, ValueError and errors of http.client."""
    if check.kind == "tcp":
        socket.create_connection((check.host, check.port), check.timeout_s).close()
        return ""
    return _run(check, folder) if check.kind == "exec" else _get(check)


def _run(check: Check, folder: Path) -> str:
    """Run the command in the environment, folder and mounts of the process; report its last line if it fails."""
    try:
        pid = int((folder / "pid").read_text(encoding="ascii"))
        argv, env = processes.inside(pid, check.command)
    except (OSError, ValueError):
        return "the process is not running"
    with (folder / "probe").open("w+b") as output:
        program = subprocess.Popen(
            argv, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        try:
            descriptor = os.pidfd_open(program.pid)
            is_over = processes.has_ended_within(descriptor, check.timeout_s)
            os.close(descriptor)
        finally:
            # After a timeout, also kill the command and all its children. The pid is not reused before the wait.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(program.pid, signal.SIGKILL)
            status = program.wait()
        if not is_over:
            raise TimeoutError
        output.seek(max(0, output.seek(0, os.SEEK_END) - 400))
        lines = output.read().decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return "" if status == 0 else f"exit status {status}{f': {last}' if last else ''}"


def _get(check: Check) -> str:
    """Send a GET, and follow redirects to the same host."""
    # These imports take 20 ms, which supervisors without such a check must not spend.
    import http.client
    import ssl

    deadline = time.monotonic() + check.timeout_s
    url = f"{'https' if check.is_tls else 'http'}://{check.host}:{check.port}/{check.path.removeprefix('/')}"
    given = {name.lower() for name, _ in check.headers}
    headers = [header for header in _HEADERS if header[0].lower() not in given]
    for _ in range(_MOST_REDIRECTS):
        parts = urlsplit(url)
        host = parts.hostname or ""
        left_s = max(0.001, deadline - time.monotonic())
        if parts.scheme == "https":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, parts.port, timeout=left_s, context=context
            )
        else:
            connection = http.client.HTTPConnection(host, parts.port, timeout=left_s)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        with contextlib.closing(connection), _cut_after(left_s, connection):
            connection.putrequest("GET", path, skip_host="host" in given, skip_accept_encoding=True)
            for name, value in (*headers, *check.headers):
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            location = answer.getheader("location", "")
        target = urljoin(url, location)
        if not location or not 300 <= answer.status < 400 or urlsplit(target).hostname != host:
            return "" if 200 <= answer.status < 400 else f"HTTP status {answer.status}"
        url = target
    return f"stopped after {_MOST_REDIRECTS} redirects"


@contextlib.contextmanager
def _cut_after(left_s: float, connection: http.client.HTTPConnection) -> Iterator[None]:
    """Shut the connection down after `left_s`: a server that sends slowly never reaches the timeout of a socket."""

    def cut() -> None:
        if connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(left_s, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


# Retry an automatic check soon at first, then with 1.5 times the pause each time, at most once a second.
_SOON_S, _NEXT_S, _LATEST_S = 0.01, 0.03, 1.0


@dataclass
class Probing:
    """The checks of one start of the process in `slot`; calls `report` with the event for what they find.

    After `is_over` the outcome of every attempt is ignored.
    """

    _loop: Loop
    _slot: int
    _checks: Sequence[Check]
    _folder: Path
    _started: float
    _report: Callable[[Event], None]
    is_over: bool = False
    _announced: tuple[bool, str] | None = None

    def __post_init__(self) -> None:
        self._all = [Health(check) for check in self._checks]
        for health in self._of("started") or self._all:
            self._begin(health)

    def _of(self, *roles: str) -> list[Health]:
        return [health for health in self._all if health.check.role in roles]

    def _begin(self, health: Health) -> None:
        check = health.check
        if check.automatic:
            self._later(_SOON_S, health, _NEXT_S)
        else:
            self._later(self._started + check.initial_delay_s - time.time(), health, check.period_s)

    def _later(self, delay_s: float, health: Health, pause_s: float) -> None:
        self._loop.later(max(0.0, delay_s), lambda: self._try(health, pause_s))

    def _try(self, health: Health, pause_s: float) -> None:
        if self.is_over:
            return
        done = partial(self._tried, health, pause_s, time.monotonic())

        def run() -> None:
            self._loop.call(partial(done, _outcome(health.check, self._folder)))

        try:
            threading.Thread(target=run, daemon=True).start()
        except RuntimeError as error:
            done(str(error))

    def _tried(self, health: Health, pause_s: float, began: float, why: str) -> None:
        if self.is_over:
            return
        check, passed = health.check, not why
        if check.automatic:
            health.passes = passed
            if not passed:
                self._later(pause_s, health, min(pause_s * 1.5, _LATEST_S))
            self._announce(why)
            return
        is_settled = health.note(passed)
        if is_settled and not passed and check.role != "ready":
            self.is_over = True
            probe = "startup" if check.role == "started" else "liveness"
            self._report(lambda step: step.probe_failed(self._slot, probe, why, check.grace_s))
            return
        if is_settled and check.role == "started":
            if all(other.passes for other in self._of("started")):
                for other in self._of("ready", "alive"):
                    self._begin(other)
                self._announce("")
            return
        # The next attempt is due one period after the start of this one, however long this one took.
        self._later(began + pause_s - time.monotonic(), health, pause_s)
        if is_settled:
            self._announce(why)

    def _announce(self, why: str) -> None:
        is_ready = all(health.passes for health in self._of("started", "ready"))
        news = (is_ready, "" if is_ready else why)
        if news != self._announced:
            self._announced = news
            self._report(lambda step: step.readiness(self._slot, *news))


@dataclass(slots=True)
class Health:
    """The result of one check so far: at first not ready, alive, and not yet started."""

    check: Check
    passes: bool = field(init=False)
    _last: bool | None = None
    _row: int = 0

    def __post_init__(self) -> None:
        self.passes = self.check.role == "alive"

    def note(self, passed: bool) -> bool:
        """Count one attempt; return True if it confirms a result, False below the threshold."""
        self._row = self._row + 1 if passed == self._last else 1
        self._last = passed
        if self._row < (self.check.successes if passed else self.check.failures):
            return False
        self.passes = passed
        return True
