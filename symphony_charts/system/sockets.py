"""Find the taken TCP addresses of this machine and their holders (holders on Linux only, from /proc)."""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
import sys
from collections.abc import Iterator

from symphony_charts.system.processes import PROC, command_line, environment, openers

if sys.platform != "win32":
    import pwd

_LISTENING = "0A"
_COMMAND_LENGTH = 70


def has_address(address: str) -> bool:
    """Return True if programs can listen at `address`."""
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError as error:
            return error.errno != errno.EADDRNOTAVAIL
    return True


def is_free(address: str, port: int) -> bool:
    """Return True if a program of ours could listen at `address`:`port` now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def holder_of(address: str, port: int) -> str:
    """Return the process that listens at `address`:`port`, in words; empty if there is none, or it is unknown.

    It has a pid only if we may see the process, and its experiment if a run of ours started it.
    """
    for where, number, uid, inode in _listeners():
        if number == port and where in (address, "0.0.0.0", "::"):  # noqa: S104 - compared, not listened at
            pid = _owner(f"socket:[{inode}]")
            who = f"pid {pid} ({_command(pid)}){_experiment(pid)}" if pid else f"a process of {_user(uid)}"
            return f"{who}, listening on {f'[{where}]' if ':' in where else where}:{port}"
    return ""


def _listeners() -> Iterator[tuple[str, int, int, str]]:
    """Yield address, port, user id and socket inode of all listening sockets; format: proc(5), /proc/net/tcp."""
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (PROC / "net" / name).read_text(encoding="utf-8").splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING:
                    address, _, port = fields[1].partition(":")
                    yield _address(address), int(port, 16), int(fields[7]), fields[9]


def _address(text: str) -> str:
    """Decode an address: `0100007F` is 127.0.0.1, in words of the machine's byte order."""
    words = [int(text[start : start + 8], 16) for start in range(0, len(text), 8)]
    family = socket.AF_INET if len(words) == 1 else socket.AF_INET6
    return socket.inet_ntop(family, struct.pack(f"={len(words)}I", *words)).removeprefix("::ffff:")


def _owner(link: str) -> int:
    return next(openers(lambda descriptor: str(descriptor.readlink()) == link), 0)


def _command(pid: int) -> str:
    text = " ".join(filter(None, command_line(pid))) or "?"
    text = "".join(char if char.isprintable() else " " for char in text)
    return text if len(text) <= _COMMAND_LENGTH else f"{text[:_COMMAND_LENGTH]}..."


def _experiment(pid: int) -> str:
    with contextlib.suppress(OSError):
        env = environment(pid)
        if "SYMPH_RUN" in env and env.get("SYMPH_EXPERIMENT"):
            return f' of experiment "{env["SYMPH_EXPERIMENT"]}"'
    return ""


def _user(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"
