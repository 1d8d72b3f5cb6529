# ruff: noqa: PTH101, PTH102, PTH103, PTH106, PTH108, PTH110, PTH112, PTH113, PTH114, PTH116, PTH118, PTH120, PTH123, PTH211
# (it changes its own root between two system calls: plain paths are the strings that the kernel gets)
"""The program that becomes a container: started by the kubelet once per sandbox, container and exec.

It runs alone, with the standard library only (``python -I -S launcher.py FD``). FD is a socket to the kubelet: the
first line of JSON sets the role, later lines are names of signals to send; lines of JSON go out. When the socket
closes, because the kubelet closed it or died, the kernel kills everything that was started here.

A sandbox holds the namespaces of a pod (network, host name, IPC, mounts of shared memory). A container joins them and
adds a process namespace, in which its command is process 1, and its own root: the machine's file system, with every
write kept in memory and dropped at the end. An exec joins a running container.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import select
import signal
import socket
import stat
import sys
import time
from collections.abc import Iterable
from typing import Any

_NEWNS, _NEWUTS, _NEWIPC, _NEWPID, _NEWNET = 0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = (
    1, 2, 4, 8, 32, 4096, 16384, 1 << 18,
)  # fmt: skip
_MNT_DETACH = 2
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 24, 38
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINE_LIMIT = 16384  # the longest line that a container runtime keeps in one piece
_LAST_CAPABILITY = 40

_libc = ctypes.CDLL(None, use_errno=True)

Spec = dict[str, Any]


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    spec = _read_spec(control)
    _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if spec["mode"] == "sandbox":
        _hold_sandbox(spec, control)
    elif spec["mode"] == "container":
        _run_container(spec, control)
    else:
        _run_exec(spec, control)


# --- the three modes -------------------------------------------------------------------------------------------------


def _hold_sandbox(spec: Spec, control: socket.socket) -> None:
    _call("unshare", _NEWNET | _NEWUTS | _NEWIPC | _NEWNS)
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    socket.sethostname(spec["hostname"])
    for name, value in spec["sysctls"].items():
        with open(f"/proc/sys/{name}", "w") as file:
            file.write(value)
    for path, size in spec["memory"].items():
        os.makedirs(path, exist_ok=True)
        _mount("tmpfs", path, "tmpfs", _MS_NOSUID | _MS_NODEV, f"mode=1777,size={size}" if size else "mode=1777")
    _say(control, ready=True)
    control.recv(1)  # a KILL, or the end of the kubelet


def _run_container(spec: Spec, control: socket.socket) -> None:
    log = os.open(spec["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
    _join(spec["sandbox"], ("ipc", "uts", "net", "mnt"))
    _call("unshare", _NEWPID)
    out, err, failure = os.pipe(), os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        null = os.open("/dev/null", os.O_RDONLY)
        _become(spec, (null, out[1], err[1]), failure[1], is_new=True)
    for end in (out[1], err[1], failure[1]):
        os.close(end)
    if _report_start(control, child, failure[0]):
        _tend(control, child, {out[0]: _Lines(log, "stdout"), err[0]: _Lines(log, "stderr")})


def _run_exec(spec: Spec, control: socket.socket) -> None:
    _join(spec["target"], ("ipc", "uts", "net", "pid", "mnt"))
    failure = os.pipe()
    child = os.fork()
    if child == 0:
        _become(spec, (0, 1, 2), failure[1], is_new=False)
    os.close(failure[1])
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)  # else the other ends never see the command close its own
    if _report_start(control, child, failure[0]):
        _tend(control, child, {})


# --- supervision of the command --------------------------------------------------------------------------------------


class _Lines:
    """Output of one stream, written to the log line by line in the format of container runtimes."""

    def __init__(self, log: int, name: str) -> None:
        self._log, self._name, self._rest = log, name.encode(), b""

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._write(line, b"F")
        while len(self._rest) > _LINE_LIMIT:
            self._write(self._rest[:_LINE_LIMIT], b"P")
            self._rest = self._rest[_LINE_LIMIT:]

    def close(self) -> None:
        if self._rest:
            self._write(self._rest, b"P")

    def _write(self, line: bytes, flag: bytes) -> None:
        seconds, nanos = divmod(time.time_ns(), 1_000_000_000)
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)).encode()
        os.write(self._log, b"%s.%09dZ %s %s %s\n" % (moment, nanos, self._name, flag, line))


def _tend(control: socket.socket, child: int, streams: dict[int, _Lines]) -> None:
    """Forward output and signals until the command has ended, then report how it ended."""
    pidfd = os.pidfd_open(child)
    poll = select.poll()
    for descriptor in (control.fileno(), pidfd, *streams):
        poll.register(descriptor, select.POLLIN)
    ended = None
    while ended is None or streams:
        for descriptor, _ in poll.poll():
            if descriptor == pidfd:
                _, ended = os.waitpid(child, 0)
                poll.unregister(pidfd)
            elif descriptor == control.fileno():
                if not _obey(control, child, ended):
                    poll.unregister(control.fileno())
            else:
                data = os.read(descriptor, 65536)
                if data:
                    streams[descriptor].feed(data)
                else:
                    poll.unregister(descriptor)
                    streams.pop(descriptor).close()
    code = os.waitstatus_to_exitcode(ended)
    _say(control, exited=code if code >= 0 else 128 - code, signal=max(0, -code))


def _obey(control: socket.socket, child: int, ended: int | None) -> bool:
    """Send the requested signals; return False, after a KILL, once the kubelet has closed the socket."""
    names = control.recv(4096).decode().split()
    for name in names or ["KILL"]:
        if ended is None:
            os.kill(child, getattr(signal, f"SIG{name}"))
    return bool(names)


def _report_start(control: socket.socket, child: int, failure: int) -> bool:
    """Wait until the command runs or has failed to start; report it to the kubelet."""
    said = b""
    while chunk := os.read(failure, 4096):
        said += chunk
    if said:
        os.waitpid(child, 0)
        _say(control, error=said.decode(errors="replace"))
        return False
    _say(control, started=child)
    return True


# --- becoming the command --------------------------------------------------------------------------------------------


def _become(spec: Spec, streams: tuple[int, int, int], failure: int, *, is_new: bool) -> None:
    """Turn into the command; write any earlier error to `failure`."""
    try:
        _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        for target, descriptor in enumerate(streams):
            os.dup2(descriptor, target)
        os.setsid()
        if is_new:
            _call("unshare", _NEWNS)
            _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
            _build_root(spec)
        _enter_workdir(spec["cwd"], is_new=is_new)
        _drop_privileges(spec)
        _execute(spec["argv"], dict(spec["env"]))
    except BaseException as error:  # every error belongs in the pod's status
        os.write(failure, (str(error) or repr(error)).encode())
    finally:
        os._exit(127)


def _build_root(spec: Spec) -> None:
    base = spec["root"]
    os.makedirs(base, exist_ok=True)
    _mount("tmpfs", base, "tmpfs", 0, "mode=0755")
    new = f"{base}/root"
    for name in ("upper", "work", "root"):
        os.mkdir(f"{base}/{name}")
    _mount("overlay", new, "overlay", 0, f"lowerdir=/,upperdir={base}/upper,workdir={base}/work")
    sources = [os.path.realpath(mount["source"]) for mount in spec["mounts"]]
    os.makedirs(f"{new}/.old", exist_ok=True)
    _pivot(new, f"{new}/.old")
    _mount_system(spec)
    for source, mount in zip(sources, spec["mounts"], strict=True):
        _bind(f"/.old{source}", mount["target"], read_only=mount["read_only"])
    for path in spec["open_paths"]:
        _let_all_pass(path)
    _call("umount2", b"/.old", _MNT_DETACH)
    os.rmdir("/.old")
    if spec["read_only_root"]:
        volumes = {mount["target"].rstrip("/") for mount in spec["mounts"]}
        for path in {"/tmp", "/run", "/"} - volumes:  # private to the container
            _mount("none", path, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY)


def _mount_system(spec: Spec) -> None:
    """Mount a container's defaults: /proc of its processes, read-only /sys, a minimal /dev, empty /tmp and /run."""
    _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    _bind("/.old/sys", "/sys", read_only=True)
    _mount("tmpfs", "/dev", "tmpfs", _MS_NOSUID, "mode=0755,size=64k")
    for name in _DEVICES:
        _bind(f"/.old/dev/{name}", f"/dev/{name}", read_only=False)
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink(f"/proc/self/fd{target}", f"/dev/{name}")
    os.mkdir("/dev/pts")
    _mount("devpts", "/dev/pts", "devpts", _MS_NOSUID | _MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
    os.symlink("pts/ptmx", "/dev/ptmx")
    _bind(f"/.old{spec['shm']}", "/dev/shm", read_only=False)  # private to the pod
    for path, mode in (("/tmp", "1777"), ("/run", "0755")):  # private to the container
        _mount("tmpfs", path, "tmpfs", _MS_NOSUID | _MS_NODEV, f"mode={mode}")
    startup = os.path.join(dict(spec["env"]).get("HOME", "/"), ".bashrc")
    if os.path.exists(startup):
        # The machine's own: an image has none, and this one may be slow or wait for a lock.
        _mount("/dev/null", startup, None, _MS_BIND)
    for path in spec["keep"]:
        # A checkout or a cache below the machine's own /tmp; the cache may be missing.
        if path.startswith(("/tmp/", "/run/")) and os.path.isdir(f"/.old{path}"):
            _bind(f"/.old{path}", path, read_only=True)


def _bind(source: str, target: str, *, read_only: bool) -> None:
    """Bind `source` to `target`, which is created if missing."""
    if os.path.islink(target):
        os.unlink(target)
    if stat.S_ISDIR(os.stat(source).st_mode):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    _mount(source, target, None, _MS_BIND | _MS_REC)
    if read_only:
        _mount("none", target, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY)


def _let_all_pass(path: str) -> None:
    """Let every user walk down to `path`, in this container: interpreters may be in root's home."""
    while len(path) > 1:
        if os.path.isdir(path):
            mode = stat.S_IMODE(os.stat(path).st_mode)
            if mode & 0o005 != 0o005:
                os.chmod(path, mode | 0o055)  # noqa: S103 - only in this container's copy
        path = os.path.dirname(path)


def _enter_workdir(path: str, *, is_new: bool) -> None:
    if is_new:
        os.makedirs(path, exist_ok=True)  # as a runtime does for a missing working directory
    os.chdir(path)


def _drop_privileges(spec: Spec) -> None:
    for capability in range(_LAST_CAPABILITY + 1):
        if capability not in spec["capabilities"]:
            _call("prctl", _PR_CAPBSET_DROP, capability, 0, 0, 0, ignored=(errno.EINVAL,))
    if spec["no_new_privileges"]:
        _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    os.setgroups(spec["groups"])
    os.setgid(spec["group"])
    os.setuid(spec["user"])
    os.umask(0o022)
    # A change of user clears it.
    _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _execute(argv: list[str], env: dict[str, str]) -> None:
    """Replace this process, looking up `argv[0]` on the container's own PATH."""
    for sign in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(sign, signal.SIG_DFL)
    program = argv[0]
    if "/" in program:
        os.execve(program, argv, env)  # noqa: S606 - becoming it is the point
    for place in env.get("PATH", "").split(":"):
        path = os.path.join(place or ".", program)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            os.execve(path, argv, env)  # noqa: S606
    raise FileNotFoundError(f'exec: "{program}": executable file not found in $PATH')


# --- system calls that the standard library lacks in Python 3.10 -----------------------------------------------------


def _join(pid: int, kinds: Iterable[str]) -> None:
    handles = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in kinds]
    for handle in handles:
        _call("setns", handle, 0)
        os.close(handle)


def _mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    text = options.encode() if options else None
    _call("mount", source.encode(), target.encode(), kind.encode() if kind else None, flags, text)


def _pivot(new: str, old: str) -> None:
    number = _PIVOT_ROOT[os.uname().machine]
    _call("syscall", number, new.encode(), old.encode())
    os.chdir("/")


def _call(name: str, *arguments: object, ignored: tuple[int, ...] = ()) -> None:
    converted = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments]
    if getattr(_libc, name)(*converted) == -1:
        code = ctypes.get_errno()
        if code not in ignored:
            raise OSError(code, f"{name}{arguments}: {os.strerror(code)}")


def _read_spec(control: socket.socket) -> Spec:
    """Read the first line, byte by byte and never past its newline: commands follow it."""
    data = b""
    while not data.endswith(b"\n"):
        chunk = control.recv(1 << 16, socket.MSG_PEEK)
        if not chunk:
            sys.exit(0)
        line, newline, _ = chunk.partition(b"\n")
        data += control.recv(len(line) + len(newline))
    spec: Spec = json.loads(data)
    return spec


def _say(control: socket.socket, **event: object) -> None:
    try:
        control.sendall(json.dumps(event).encode() + b"\n")
    except BrokenPipeError:
        return  # the kubelet is gone


if __name__ == "__main__":
    main()
