"""Long-running processes of the rig: started, recorded by pid and start time, stopped by that record; free ports."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from symphony_charts.errors import ToolFailed
from symphony_charts.system.processes import read_stat

_STOP_GRACE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """A started process; `began` (its start by the kernel) tells it from a later one that got the same pid."""

    name: str
    pid: int
    began: int
    log: Path

    @classmethod
    def load(cls, record: Path) -> Daemon:
        data = json.loads(record.read_text())
        return cls(name=record.stem, pid=data["pid"], began=data["began"], log=Path(data["log"]))

    @property
    def is_alive(self) -> bool:
        found = read_stat(self.pid)
        return found is not None and found.start == self.began and not found.is_dead

    @property
    def memory_mib(self) -> float:
        found = read_stat(self.pid)
        return (found.pages if found else 0) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def last_words(self, lines: int = 8) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def stop(self) -> None:
        """Stop the process: TERM, then KILL after ten seconds. A finished one is fine."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if not self.is_alive:
                return
            os.kill(self.pid, sign)
            deadline = time.monotonic() + _STOP_GRACE_S
            while self.is_alive and time.monotonic() < deadline:
                _reap(self.pid)
                time.sleep(0.02)


def start(
    folder: Path, name: str, argv: Sequence[str], *, dies_with_us: bool = False, env: Mapping[str, str] | None = None
) -> Daemon:
    """Start `argv` in its own session, log to ``<folder>/log/<name>.log``, record it in ``<folder>/run``.

    With `dies_with_us` the kernel kills it when the calling process ends, for any reason.
    """
    log = folder / "log" / f"{name}.log"
    record = folder / "run" / f"{name}.json"
    for path in (log, record):
        path.parent.mkdir(parents=True, exist_ok=True)
    setpriv = shutil.which("setpriv") if dies_with_us else None
    argv = [setpriv, "--pdeathsig", "KILL", "--", *argv] if setpriv else list(argv)
    with log.open("ab") as output:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, env=env, cwd="/"
        )
    child.returncode = 0  # it outlives this object on purpose: without this, Popen warns when it is collected
    found = read_stat(child.pid)
    record.write_text(json.dumps({"pid": child.pid, "began": found.start if found else 0, "log": str(log)}))
    return Daemon.load(record)


def stop_all(folder: Path, last: Sequence[str] = ()) -> None:
    """Stop every process recorded below `folder`; those in `last` are stopped last, in that order."""
    records = {path.stem: path for path in (folder / "run").glob("*.json")}
    for name in [*(n for n in records if n not in last), *(n for n in last if n in records)]:
        Daemon.load(records[name]).stop()
        records[name].unlink()


def wait_for(daemon: Daemon, is_ready: Callable[[], bool], timeout_s: float) -> None:
    """Return when `is_ready` returns True; an OSError from it means "not yet".

    Raises ToolFailed with the end of the log if the process dies or on timeout.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            if is_ready():
                return
        except OSError:
            pass
        if not daemon.is_alive:
            raise ToolFailed(f"{daemon.name} died while starting:\n{daemon.last_words()}", at=str(daemon.log))
        if time.monotonic() > deadline:
            raise ToolFailed(f"{daemon.name} not ready in {timeout_s:g} s:\n{daemon.last_words()}", at=str(daemon.log))
        time.sleep(0.05)


def answers(url: str) -> bool:
    """Return True if a health endpoint answers 200; its self-signed certificate is accepted."""
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    with urllib.request.urlopen(url, timeout=5, context=tls) as answer:  # noqa: S310 - our own loopback URLs
        return bool(answer.status == 200)


def _reap(pid: int) -> None:
    """Collect the exit status of a child, so that it does not stay as a zombie."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


# Below the kernel's ephemeral range: a bind to port 0 or a connect() elsewhere never takes one of these meanwhile.
_PORTS = range(20000, 32768)


def free_ports(count: int) -> list[int]:
    """Return `count` different loopback ports, picked at random, without a listener at this moment."""
    ports: list[int] = []
    # The system's randomness: parallel tests may have seeded the usual one alike.
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        if len(ports) == count:
            break
        if _is_free(port):
            ports.append(port)
    return ports


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
