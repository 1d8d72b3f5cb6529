"""One try of a readiness check."""

from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

__all__ = ["is_ready_now"]


def is_ready_now(check: dict[str, Any], folder: Path) -> bool:
    """Whether `check` (a plan's Check as JSON) passes now; `folder` is that of the process, for `exec` checks."""
    timeout_s = min(float(check["timeout_s"]), 5.0)
    if check["kind"] == "tcp":
        return _accepts(check["host"], check["port"], timeout_s)
    if check["kind"] == "http":
        return _answers(check, timeout_s)
    return _succeeds(check["command"], folder, timeout_s)


def _accepts(host: str, port: int, timeout_s: float) -> bool:
    try:
        socket.create_connection((host, port), timeout_s).close()
    except OSError:
        return False
    return True


def _answers(check: dict[str, Any], timeout_s: float) -> bool:
    connection: http.client.HTTPConnection
    if check["is_tls"]:
        # Like the kubelet, which does not verify certificates of probes either.
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(check["host"], check["port"], timeout=timeout_s, context=context)
    else:
        connection = http.client.HTTPConnection(check["host"], check["port"], timeout=timeout_s)
    try:
        connection.request("GET", check["path"])
        return 200 <= connection.getresponse().status < 400
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _succeeds(command: list[str], folder: Path, timeout_s: float) -> bool:
    """Run `command` in the environment, folder and mounts of the process."""
    try:
        pid = int((folder / "pid").read_text(encoding="ascii"))
        environ = Path(f"/proc/{pid}/environ").read_bytes()
        env = dict(
            entry.split("=", 1) for entry in environ.decode("utf-8", "surrogateescape").split("\0") if "=" in entry
        )
        argv = ["nsenter", f"--mount=/proc/{pid}/ns/mnt", f"--wd=/proc/{pid}/cwd", "--", *command]
        done = subprocess.run(
            argv,
            env=env,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
