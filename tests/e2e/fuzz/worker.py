"""Runs cases, each as a child of an interpreter that has imported everything; the first process of its namespace.

`python -m tests.e2e.fuzz.worker FIRST COUNT STEP` expects to be alone in a process namespace, with nothing writable but
a temporary file system, as `tests.e2e.fuzz.run` starts it. All processes of a case end with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.e2e.fuzz import sandbox
from tests.e2e.fuzz.cases import Case, commands, make_case

_PATIENCE_S = 60.0
_STATUSES = {*range(9), 130, 141}
# These pass on the status of the program that they ran.
_FOREIGN = {"up", "exec", "x", "ssh", "replay", "wait", "sweep"}
# Root may read and do everything; a case must get the refusals that ordinary users get.
_CAPABILITIES = (0, 1, 2, 3, 21)
_PR_CAPBSET_DROP, _CAPSET_VERSION = 24, 0x20080522


def main(first: int, count: int, step: int, helm: str | None) -> int:
    """Print a line of JSON for each failed case, and one at the end."""
    if os.getpid() != 1:
        raise RuntimeError("a worker is alone in its process namespace; start it by tests.e2e.fuzz.run")
    _raise_loopback()
    sandbox.prepare(helm)
    known = commands()
    _warm()
    seen: dict[str, int] = {}
    for seed in range(first, first + count * step, step):
        case = make_case(seed, known)
        problem, status, said, seconds = run_case(case)
        seen[str(status)] = seen.get(str(status), 0) + 1
        if problem or count == 1:
            _tell({"seed": seed, "problem": problem, "status": status, "case": str(case), "said": said, "s": seconds})
    _tell({"done": count, "statuses": seen})
    return 0


def run_case(case: Case) -> tuple[str, int | None, str, float]:
    """Return the fault in how a case ended, its status (None: it was stopped), its output, and its seconds."""
    sandbox.lay_out()
    chance = random.Random(case.seed)
    for name, how in case.damages:
        with contextlib.suppress(OSError):
            sandbox.damage(name, how, chance)
    before = sandbox.digest(sandbox.BOX / "work")
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _become(case)
    status = _wait(child)
    _end_all()
    out, err = (_read(f"/tmp/{name}") for name in ("out", "err"))
    changed = sandbox.digest(sandbox.BOX / "work") != before
    return (
        _judge(case, status, err, changed),
        status,
        f"{out[-600:]}\n--\n{err[-1500:]}{_logged()}",
        time.monotonic() - began,
    )


def _judge(case: Case, status: int | None, err: str, changed: bool) -> str:
    words = set(case.words)
    is_verbose = bool(words & {"-v", "--verbose"})
    own = case.words[0] if case.words else ""
    if status is None:
        return "" if case.may_wait else "it took too long"
    if status == 70 or "this is a bug in symph" in err:
        return "a fault of ours"
    if not is_verbose and any(line.startswith("Traceback ") for line in err.splitlines()):
        return "a traceback"
    if status not in _STATUSES and not (words & _FOREIGN and status >= 0):
        return f"no status of the table: {status}"
    is_elsewhere = {"SYMPH_STATE_DIR", "SYMPH_RUNTIME_DIR", "HOME", "TMPDIR"} & set(case.variables)
    if changed and not is_elsewhere and (words & {"--dry-run", "-dr"} or status == 2):
        return f"the folder was changed, with status {status} of {own}"
    return ""


def _become(case: Case) -> None:
    """Become the command; does not return."""
    try:
        os.setsid()
        env = sandbox.variables() | {
            name: value and value.format(tools=sandbox.TOOLS, here=sandbox.BOX)
            for name, value in case.variables.items()
        }
        os.chdir(sandbox.BOX / "work")
        _streams(case.streams)
        own = {name: value for name, value in env.items() if value is not None}
        is_real = bool({"LC_ALL", "PYTHONIOENCODING", "PYTHONUTF8"} & set(case.variables)) or case.seed % 6 == 0
        _drop()
        if is_real:
            argv = [sys.executable, "-m", "symphony_charts", *case.words]
            os.execve(sys.executable, argv, own)  # noqa: S606 - the command itself
        os.environ.clear()
        os.environ.update(own)
        _status_of(case.words)
    except BaseException as error:
        os.write(2, f"Traceback of the child: {error!r}\n".encode())
    os._exit(71)


def _status_of(words: list[str]) -> None:
    from symphony_charts.cli.main import main as symph

    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream: Any = None
        with contextlib.suppress(OSError):
            os.fstat(number)
            stream = os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv = ["symph", *words]
    status = symph(words)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status & 0xFF)


def _streams(odd: list[str]) -> None:
    for name, flags, number in (
        ("/dev/null", os.O_RDONLY, 0),
        ("/tmp/out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 1),
        ("/tmp/err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 2),
    ):
        os.dup2(os.open(name, flags, 0o600), number)
    os.closerange(3, 64)
    for each in odd:
        name, _, how = each.partition(":")
        number = {"stdin": 0, "stdout": 1, "stderr": 2}.get(name, -1)
        if how == "closed":
            os.close(number)
        elif how == "full":
            os.dup2(os.open("/dev/full", os.O_WRONLY), number)
        elif how == "cut":
            reader, writer = os.pipe()
            os.close(reader)
            os.dup2(writer, number)
        elif how == "noise":
            os.dup2(os.open("noise", os.O_RDONLY), number)
        elif each == "cwd:gone":
            gone = sandbox.BOX / "gone"
            gone.mkdir()
            os.chdir(gone)
            gone.rmdir()
        elif each == "cwd:readonly":
            Path.cwd().chmod(0o555)
        elif name == "files":
            resource.setrlimit(resource.RLIMIT_NOFILE, (int(how), int(how)))
        elif name == "umask":
            os.umask(int(how, 8))


def _wait(child: int) -> int | None:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    return None


def _end_all() -> None:
    """Kill everything else in this process namespace, of which this is the first process: all of it is the case's."""
    if os.getpid() == 1:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)


def _drop() -> None:
    """Drop root's capabilities to read, write and act as other users."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in _CAPABILITIES:
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPSET_VERSION, 0)
    libc.capset(header, (ctypes.c_uint32 * 6)())


def _raise_loopback() -> None:
    """Bring the loopback of the network namespace up. Source: netdevice(7), SIOCSIFFLAGS."""
    import fcntl
    import socket
    import struct

    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 0x1))


def _warm() -> None:
    import importlib

    for name in ("rich.console", "jsonschema_rs", "kubernetes", "libtmux", "cookiecutter.main", "jinja2", "pyhelm3"):
        importlib.import_module(name)
    folder = Path(__file__).parents[3] / "symphony_charts"
    for path in sorted(folder.glob("[a-z]*/**/*.py")):
        name = ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")
        if not name.endswith("__main__") and "torchx" not in name and "_data" not in name:
            importlib.import_module(name)


def _logged() -> str:
    logs = [*Path("/tmp").glob("symph-*.log"), *sandbox.BOX.rglob("logs/symph-*.log")]
    texts = [_read(str(path)) for path in logs]
    for path in logs:
        path.unlink()
    return "".join(f"\n{text[-1800:]}" for text in texts)


def _read(path: str) -> str:
    return Path(path).read_bytes().decode("utf-8", "replace")


def _tell(record: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] or None))
