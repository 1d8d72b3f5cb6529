"""Run `symph` in a process of its own: a fork of one that has already imported the package.

Most commands need 0.5 s, of which Python's start and imports are 0.4 s. Tests of these imports, of the terminal or of
signals start `python -m symphony_charts` themselves.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
_MAX_REQUEST_BYTES = 1 << 20


def symph(
    *words: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    timeout_s: float = 120,
    check: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Return the result of a command line; `env` replaces this process's variables.

    Raises:
        subprocess.TimeoutExpired: The command took longer than `timeout_s`, and was killed.
        subprocess.CalledProcessError: `check` is set, and the command failed.
    """
    request = {"argv": words, "cwd": str(cwd or Path.cwd()), "env": dict(os.environ if env is None else env)}
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        # Packets: pid and status stay apart even if the command has ended before the pid is read.
        answers, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with answers, theirs:
            files = [theirs.fileno(), given.fileno(), out.fileno(), err.fileno()]
            socket.send_fds(_server(), [json.dumps(request).encode()], files)
            theirs.close()
            pid = int(answers.recv(32))
            answers.settimeout(timeout_s)
            try:
                status = int(answers.recv(32))
            except TimeoutError as error:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(["symph", *words], timeout_s) from error
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="surrogateescape"))
    done = subprocess.CompletedProcess(["symph", *words], status, *texts)
    if check:
        done.check_returncode()
    return done


@functools.cache
def _server() -> socket.socket:
    """Return the socket that sends requests to this process's server."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MAX_REQUEST_BYTES)
    with theirs:
        argv = [sys.executable, "-m", "tests.symph", str(theirs.fileno())]
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(_ROOT)}
        server = subprocess.Popen(argv, pass_fds=[theirs.fileno()], env=env, cwd=_ROOT, stdin=subprocess.DEVNULL)
    # The server ends when its requests do.
    atexit.register(server.wait)
    atexit.register(ours.close)
    return ours


def _serve(requests: socket.socket) -> None:
    from symphony_charts.cli.verbs import VERBS

    for verb in VERBS:
        # Verbs of extras that are not installed.
        with contextlib.suppress(ImportError):
            importlib.import_module(f"symphony_charts.cli.{verb.module}")
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        data, files, _, _ = socket.recv_fds(requests, _MAX_REQUEST_BYTES, 4)
        if not data:
            return
        if os.fork() == 0:
            requests.close()
            _answer(json.loads(data), socket.socket(fileno=files[0]), files[1:])
        for descriptor in files:
            os.close(descriptor)


def _answer(request: Mapping[str, Any], answers: socket.socket, streams: list[int]) -> None:
    """Run the command in a child; send its pid and its exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        answers.close()
        os._exit(_run(request, streams))
    with contextlib.suppress(BrokenPipeError):
        answers.send(str(pid).encode())
        answers.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
    os._exit(0)


def _run(request: Mapping[str, Any], streams: list[int]) -> int:
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.argv = ["symph", *request["argv"]]
    sys.path[0] = request["cwd"]
    status = 1
    try:
        runpy.run_module("symphony_charts", run_name="__main__", alter_sys=True)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # as Python does at its own end
        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
