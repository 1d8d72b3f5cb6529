"""Run programs with a timeout in a clean environment, and inform users when an answer takes long."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from symphony_charts.errors import ToolFailed, ToolMissing
from symphony_charts.system.launching import launcher

# A hook or `git rebase --exec` exports GIT_DIR, GIT_INDEX_FILE and the like, which would redirect git to the wrong
# repository. Keep only the variables by which users set identity, transport and configuration.
_GIT_KEPT = ("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG_", "GIT_SSH", "GIT_SSL_", "GIT_HTTP_", "GIT_PROXY_")
_GIT_KEPT_NAMES = frozenset({"GIT_ASKPASS", "GIT_EXEC_PATH", "GIT_ALLOW_PROTOCOL", "GIT_TERMINAL_PROMPT"})
_SCRUBBED = frozenset({"GIT_CONFIG_PARAMETERS", "HELM_DEBUG", "HELM_NAMESPACE", "LANGUAGE", "LD_PRELOAD"})
# After this time, in seconds, `give_up` decides if waiting still makes sense.
_MOMENT_S = 2.0
# Wait this long for the last output of a killed program, in seconds.
_PIPES_S = 0.5
_SCRUBBED_PREFIXES = ("LC_", "PYTHON", "TMUX")


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A program that ended: its argv, exit status (negative: the signal), both streams and its duration in seconds."""

    argv: tuple[str, ...]
    status: int
    stdout: bytes
    stderr: bytes
    seconds: float

    @property
    def text(self) -> str:
        return self.stdout.decode("utf-8", "replace")

    @property
    def error_text(self) -> str:
        return self.stderr.decode("utf-8", "replace")

    def failure(self, what: str = "", at: str = "", next: str = "", kind: type[ToolFailed] = ToolFailed) -> ToolFailed:
        """Return the error for the failure of this program, for callers that judge the status themselves."""
        message = what or f"{Path(self.argv[0]).name} failed with exit status {self.status}"
        return kind(
            message,
            at,
            next,
            argv=self.argv,
            status=self.status,
            stdout=self.text,
            stderr=self.error_text,
            seconds=self.seconds,
        )


def base_env() -> dict[str, str]:
    """Return the environment of programs: the user's own, in English, without redirections of git, Python or tmux."""
    return {**{name: value for name, value in os.environ.items() if _passes(name)}, "LC_ALL": "C"}


def _passes(name: str) -> bool:
    if name in _SCRUBBED or name.startswith(_SCRUBBED_PREFIXES):
        return False
    return not name.startswith("GIT_") or name.startswith(_GIT_KEPT) or name in _GIT_KEPT_NAMES


def run(
    argv: Sequence[str],
    *,
    input: bytes | str | None = None,
    timeout_s: float = 60.0,
    env: Mapping[str, str | None] | None = None,
    cwd: Path | str | None = None,
    check: bool = True,
    grace_s: float = 0.0,
    keep: Sequence[int] = (),
    give_up: Callable[[], str] | None = None,
) -> Completed:
    """Start a program, feed it `input` (else nothing), and wait; never through a shell, never with a terminal.

    `env` is merged over `base_env`; None removes a variable. Raises ToolMissing if the program is missing, ToolFailed
    if it takes longer than `timeout_s` (it and its children are then killed), or exits with a status other than 0
    unless `check` is false. Before the kill it gets SIGTERM and `grace_s` seconds for its cleanup. It inherits the
    descriptors `keep`. If it takes longer than a moment, `give_up` is called once and may return a reason to stop
    waiting.
    """
    changes = env or {}
    full = {name: value for name, value in {**base_env(), **changes}.items() if value is not None}
    fed = input.encode() if isinstance(input, str) else input
    started = time.monotonic()
    process = _start(argv, full, cwd, keep, has_input=fed is not None)
    given_up = ""
    try:
        stdout, stderr = _wait(process, fed, timeout_s, give_up)
    except (_GivenUpError, subprocess.TimeoutExpired) as error:
        late = f"{Path(argv[0]).name} took longer than {timeout_s:g} s and was stopped"
        given_up = str(error) if isinstance(error, _GivenUpError) else late
        stdout, stderr = _kill(process, grace_s)
    except BaseException:
        _kill(process, grace_s)
        raise
    ended = Completed(
        argv=tuple(argv),
        status=process.returncode if process.returncode is not None else -signal.SIGKILL,
        stdout=stdout,
        stderr=stderr,
        seconds=time.monotonic() - started,
    )
    if given_up or (check and ended.status):
        raise ended.failure(given_up)
    return ended


class _GivenUpError(Exception):
    """The caller has given up waiting, for this reason."""


def _wait(
    process: subprocess.Popen[bytes], fed: bytes | None, timeout_s: float, give_up: Callable[[], str] | None
) -> tuple[bytes, bytes]:
    """Return both streams of a program that has ended. Raises TimeoutExpired or _GivenUpError before that."""
    if give_up is None or timeout_s <= _MOMENT_S:
        return process.communicate(fed, timeout_s)
    began = time.monotonic()
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.communicate(fed, _MOMENT_S)
    reason = give_up()
    if reason and process.poll() is None:
        raise _GivenUpError(reason)
    # Popen continues to write the remaining input.
    return process.communicate(timeout=max(0.0, began + timeout_s - time.monotonic()))


def _start(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path | str | None, keep: Sequence[int], *, has_input: bool
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=cwd,
            pass_fds=keep,
            # A new session, so that a timeout can also kill the helpers that the program started.
            start_new_session=True,
        )
    except FileNotFoundError as error:
        if cwd is not None and not Path(cwd).is_dir():
            raise ToolFailed(f"cannot start {argv[0]}: no such folder", str(cwd), argv=tuple(argv)) from error
        raise ToolMissing(f"{argv[0]} is not installed", "", f"install {argv[0]}, then: symph doctor") from error
    except OSError as error:
        raise ToolFailed(f"cannot start {argv[0]}: {error.strerror}", argv=tuple(argv)) from error


def _kill(process: subprocess.Popen[bytes], grace_s: float) -> tuple[bytes, bytes]:
    if grace_s:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=grace_s)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        # Popen includes the output that an earlier call has read.
        return process.communicate(timeout=_PIPES_S)
    except subprocess.TimeoutExpired as error:
        # The program is gone, but others hold its pipes: a helper that left the session, or a tmux server.
        process.poll()
        for stream in filter(None, (process.stdout, process.stderr)):
            stream.close()
        return error.stdout or b"", error.stderr or b""


_PATIENCE_S = 2.0


@contextmanager
def progress_notice(whom: str) -> Iterator[None]:
    """Print a notice if the block, which waits for an answer of `whom`, takes longer than two seconds."""
    tell = launcher().tell
    if tell is None:
        yield
        return
    timer = threading.Timer(_PATIENCE_S, tell, [f"waiting for {whom}"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
