"""The world of a walk, and each machine in it: programs that read one JSON request per line and answer with one.

``python -I -S inside.py world`` is the first process of a pid namespace, in a mount namespace where the real
machine's files are read-only. It boots machines: each has its own processes, mounts, network and name, and shares
/home with the others. The first process of a machine (``inside.py machine``) runs commands there, inspects its
processes, and holds canaries: processes that no program may signal.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_RDONLY, _RECURSIVE, _MOUNT_SETATTR = 1, 0x8000, 442
_PYTHON = [sys.executable, "-I", "-S", __file__]
_UNSHARE = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]


# The world


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def _build_world(user: int, size: str, shown: list[str]) -> None:
    """Make everything read-only, and mount private folders over those that may be written to."""
    _mount("-t", "proc", "proc", "/proc")
    attributes = struct.pack("QQQQ", _RDONLY, 0, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_MOUNT_SETATTR, -100, b"/", _RECURSIVE, attributes, len(attributes)):
        raise OSError(ctypes.get_errno(), "mount_setattr")
    _cover("/tmp", "mode=1777", shown)
    _cover("/home", "mode=0755,size=64m", shown)
    # A separate disk, so that it can be full.
    state = Path("/home/me/.local/state")
    state.mkdir(parents=True)
    _mount("-t", "tmpfs", "-o", f"mode=0755,size={size}", "walk", str(state))
    for place in (state, *list(state.parents)[:2]):
        os.chown(place, user, user)
    _open(shown)


def _cover(folder: str, options: str, shown: list[str]) -> None:
    """Mount an empty tmpfs over `folder`, in which only the folders of `shown` stay visible."""
    _mount("-t", "tmpfs", "-o", options, "walk", "/mnt")
    for place in shown:
        if Path(place).is_relative_to(folder):
            inside = Path("/mnt") / Path(place).relative_to(folder)
            inside.mkdir(parents=True, exist_ok=True)
            _mount("--rbind", place, str(inside))
    _mount("-n", "--move", "/mnt", folder)


def _open(shown: list[str]) -> None:
    """Let ordinary users enter the program's folders, though the folders above are closed to them."""
    closed = {above for place in shown for above in Path(place).parents if not above.stat().st_mode & 1}
    for top in sorted(closed)[:1]:
        stage = Path("/tmp/stage")
        stage.mkdir()
        inner = sorted({place for place in shown if Path(place).is_relative_to(top)})
        for number, place in enumerate(inner):
            (stage / str(number)).mkdir()
            _mount("--rbind", place, str(stage / str(number)))
        _mount("-t", "tmpfs", "-o", "mode=0755", "walk", str(top))
        for number, place in enumerate(inner):
            Path(place).mkdir(parents=True, exist_ok=True)
            _mount("--rbind", str(stage / str(number)), place)


class World:
    """Boots machines, ends them, and forwards requests to them."""

    def __init__(self, shown: list[str]) -> None:
        self._shown = shown
        self._machines: dict[str, subprocess.Popen[str]] = {}

    def answer(self, request: dict[str, Any]) -> Any:
        name, verb = request["machine"], request["do"]
        if verb == "boot":
            argv = [*_UNSHARE, "--uts", "--net", "--mount-proc", "--", *_PYTHON, "machine", *self._shown]
            self._machines[name] = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if verb == "halt":
            machine = self._machines.pop(name)
            children = Path(f"/proc/{machine.pid}/task/{machine.pid}/children").read_text()
            # Killing its first process ends the whole machine at once, like a power cut.
            for child in children.split():
                os.kill(int(child), signal.SIGKILL)
            machine.wait()
            return None
        machine = self._machines[name]
        assert machine.stdin
        assert machine.stdout
        machine.stdin.write(json.dumps(request) + "\n")
        machine.stdin.flush()
        return json.loads(machine.stdout.readline())


# A machine


class Machine:
    """Runs commands, and knows the canaries among the processes here."""

    def __init__(self, shown: list[str]) -> None:
        self._shown = shown
        self._ended: dict[int, int] = {}
        self._canaries: set[int] = set()
        self._reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writer)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def answer(self, request: dict[str, Any]) -> Any:
        match request["do"]:
            case "boot":
                return self._boot(request)
            case "run":
                return self._run(request["commands"], request["timeout_s"])
            case "look":
                return {"processes": self._processes(), "dead": self._dead(), "files": _files(request["folders"])}
            case "signal":
                # It may have ended since the look.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(request["pid"], request["number"])
        return None

    def _boot(self, request: dict[str, Any]) -> None:
        socket.sethostname(request["host"])
        _cover("/tmp", "mode=1777", self._shown)
        _mount("-t", "tmpfs", "-o", "mode=0755", "walk", "/run")
        for name, path in (("boot_id", "/proc/sys/kernel/random/boot_id"), ("machine_id", "/etc/machine-id")):
            if Path(path).exists():
                own = Path("/run") / name
                own.write_text(request[name] + "\n")
                _mount("--bind", str(own), path)
        own = Path(f"/run/user/{request['uid']}")
        own.mkdir(parents=True)
        own.chmod(0o700)
        os.chown(own, request["uid"], request["uid"])
        _raise_loopback()
        for pid in sorted(request["pids"]):
            self._add_canary(request["uid"], pid)
        for _ in range(request["canaries"]):
            self._add_canary(request["uid"])

    def _add_canary(self, uid: int, pid: int = 0) -> None:
        """Start a process that has the number `pid`, in its own session."""
        if pid:
            if Path(f"/proc/{pid}").exists():
                return
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        child = os.fork()
        if child == 0:
            os.setsid()
            os.setgid(uid)
            os.setuid(uid)
            for number in (signal.SIGCHLD, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            os.execvp("sleep", ["canary", "1000000"])  # noqa: S606 - no input from outside
        self._canaries.add(child)

    def _run(self, commands: list[dict[str, Any]], timeout_s: float) -> list[dict[str, Any]]:
        """Run commands in parallel; one with `kill_after_s` gets KILL then, and only it."""
        began = time.monotonic()
        running, kills = {}, []
        for number, command in enumerate(commands):
            out = [os.open(f"/run/{number}.{name}", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600) for name in "oe"]
            null = os.open(os.devnull, os.O_RDONLY)
            actions = [(os.POSIX_SPAWN_DUP2, descriptor, at) for at, descriptor in enumerate((null, *out))]
            pid = os.posix_spawnp(
                command["argv"][0], command["argv"], command["env"], file_actions=actions, setsid=True
            )
            for descriptor in (null, *out):
                os.close(descriptor)
            # An earlier process of this number is none of ours.
            self._ended.pop(pid, None)
            running[pid] = number
            if command.get("kill_after_s") is not None:
                kills.append((began + command["kill_after_s"], pid))
        left, hung = set(running), set()
        while left:
            self._reap()
            left -= set(self._ended)
            now = time.monotonic()
            due = [pid for at, pid in kills if at <= now]
            if now - began > timeout_s:
                hung |= left
                due += left
            for pid in left & set(due):
                os.kill(pid, signal.SIGKILL)
            if left:
                next_kill = min([began + timeout_s, *(at for at, pid in kills if pid in left and at > now)])
                select.select([self._reader], [], [], max(0.001, min(0.5, next_kill - now)))
        return [
            {
                "status": os.waitstatus_to_exitcode(self._ended.pop(pid)),
                "out": Path(f"/run/{number}.o").read_text(errors="replace"),
                "err": Path(f"/run/{number}.e").read_text(errors="replace"),
                "is_hung": pid in hung,
            }
            for pid, number in running.items()
        ]

    def _reap(self) -> None:
        """Reap all ended children, including orphans of other processes."""
        try:
            while os.read(self._reader, 64):
                pass
        except BlockingIOError:
            pass
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._ended[pid] = status

    def _dead(self) -> list[list[int]]:
        self._reap()
        return [[pid, os.waitstatus_to_exitcode(self._ended[pid])] for pid in sorted(self._canaries & set(self._ended))]

    def _processes(self) -> list[dict[str, Any]]:
        found = []
        for entry in os.scandir("/proc"):
            pid = int(entry.name) if entry.name.isdigit() else 1
            if pid == 1 or pid in self._canaries:
                continue
            try:
                fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
                env = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if fields[0] in "ZX":
                continue
            told = dict(entry.split("=", 1) for entry in env if entry.startswith(("SYMPH_RUN=", "T=", "SYMPH_EXPER")))
            found.append({"pid": pid, "session": int(fields[3]), "argv": words, "env": told})
        return found

    def serve_until(self, source: int) -> None:
        """Wait for the next request, reaping children meanwhile."""
        while True:
            ready, _, _ = select.select([source, self._reader], [], [])
            if source in ready:
                return
            self._reap()


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
        fcntl.ioctl(plain, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))


def _files(folders: list[str]) -> dict[str, str]:
    """Return the content of each file and link below `folders`; links are not followed."""
    found = {}
    for top in folders:
        for folder, names, files in os.walk(top):
            for name in [*files, *(name for name in names if Path(folder, name).is_symlink())]:
                path = Path(folder, name)
                try:
                    if path.is_symlink():
                        found[str(path)] = f"-> {path.readlink()}"
                    elif path.is_file():
                        found[str(path)] = path.read_text(errors="replace") if path.stat().st_size < 4096 else "long"
                except OSError as error:
                    found[str(path)] = f"cannot be read: {error.strerror}"
    return found


def main(role: str, words: list[str]) -> None:
    machine = Machine(words) if role == "machine" else None
    world = World(words[2:]) if role == "world" else None
    if world:
        _build_world(int(words[0]), words[1], words[2:])
    buffer = b""
    while True:
        while b"\n" not in buffer:
            if machine:
                machine.serve_until(0)
            more = os.read(0, 1 << 16)
            if not more:
                return
            buffer += more
        line, buffer = buffer.split(b"\n", 1)
        request = json.loads(line)
        answer = (machine or world).answer(request)  # type: ignore[union-attr]  # one of them is there
        # Buffered: it goes on with a write that a signal, such as the end of a child, has cut short.
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
