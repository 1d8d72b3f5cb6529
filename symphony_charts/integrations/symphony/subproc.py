"""Symphony's `symphony.subproc`: run an experiment in the foreground; its processes end with the script.

`SubprocCluster` runs it in the local mode, with the same files, addresses and exit behaviour as `symph up`.
`SubprocManager` is Symphony's manager of plain child processes, for scripts that used it directly.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import msgspec

from symphony_charts.errors import CheckFailed, UsageError
from symphony_charts.integrations.symphony.errors import symphonys
from symphony_charts.integrations.symphony.local_spec import (
    LocalExperimentSpec,
    LocalProcessGroupSpec,
    LocalProcessSpec,
    WrittenNames,
)
from symphony_charts.integrations.symphony.tmux import TmuxBackend
from symphony_charts.local import up as local_run
from symphony_charts.local.run_state import ProcessState
from symphony_charts.local.runs import Run, runs_of
from symphony_charts.spec.model import Experiment

__all__ = [
    "SubprocCluster",
    "SubprocExperimentSpec",
    "SubprocManager",
    "SubprocProcessGroupSpec",
    "SubprocProcessSpec",
]

_MODES = ("print", "file", "none")
_POLL_S = 0.1
# Time for a child to end after TERM.
_GRACE_S = 1.0
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class SubprocProcessSpec(LocalProcessSpec):
    """A process; `cmd` is its shell line."""

    backend = "subproc"

    def __init__(self, name: str, cmd: str | Iterable[str] | None = None, **fields: Any) -> None:
        lines = fields.pop("cmds", None)
        super().__init__(name, lines if cmd is None else cmd, **fields)

    @property
    def cmd(self) -> str:
        """The shell line, or lines."""
        return "\n".join(self.cmds)

    @cmd.setter
    def cmd(self, line: str) -> None:
        self.set_cmds(line)


class SubprocProcessGroupSpec(LocalProcessGroupSpec):
    """A process group; on one machine it only records which processes belong together."""

    backend = "subproc"
    process_class = SubprocProcessSpec


class SubprocExperimentSpec(LocalExperimentSpec):
    """An experiment in the foreground."""

    backend = "subproc"
    process_class = SubprocProcessSpec
    group_class = SubprocProcessGroupSpec


class SubprocBackend(TmuxBackend):
    """This machine, in the foreground: `launch` returns when the experiment has ended.

    Both streams of a process are merged. They are printed if `stdout_mode` or `stderr_mode` is `print`, written to
    `<log_dir>/<name>.out` if one is `file`, and dropped if both are `none`.
    """

    experiment_class = SubprocExperimentSpec
    is_kept = False

    def __init__(
        self,
        stdout_mode: str = "print",
        stderr_mode: str = "print",
        log_dir: str | Path | None = None,
        *,
        preamble_cmds: str | Iterable[str] | None = None,
    ) -> None:
        super().__init__(preamble_cmds=preamble_cmds)
        _check_modes(stdout_mode, stderr_mode, log_dir)
        modes = {stdout_mode, stderr_mode}
        self._prints = "print" in modes
        self._log_dir = Path(log_dir).expanduser() if log_dir is not None and "file" in modes else None

    def start(
        self,
        experiment: Experiment,
        *,
        folder: Path,
        pins: Mapping[str, int],
        force: bool = False,
        dry_run: bool = False,
    ) -> object:
        """Start, follow and wait; raise CheckFailed with the status of the first process that failed."""
        plain = msgspec.structs.replace(experiment, local=msgspec.structs.replace(experiment.local, tty=False))
        before = {run.folder for run in runs_of(plain.name)}
        with _ending_with_signals():
            try:
                with symphonys():
                    run = super().start(plain, folder=folder, pins=pins, force=force, dry_run=dry_run)
                if not isinstance(run, Run):
                    return None
                status = self._follow(run)
            except BaseException:
                # Ctrl-C, a closed terminal, or any other end of the script ends all that it started.
                with _deaf():
                    for started in runs_of(plain.name):
                        if started.folder not in before and started.is_live:
                            local_run.down(started)
                raise
        if status:
            failed = run.state().failed
            assert failed is not None  # noqa: S101 - the status is that of a process that failed
            error = CheckFailed(f'process "{failed.name}" of {run.experiment} failed with {status}')
            error.exit_code = status
            raise error
        return run

    def _follow(self, run: Run) -> int:
        """Forward the output of the processes until the run is over, and return its exit status."""
        streams = [_Stream(run, process, self._log_dir, prints=self._prints) for process in run.state().processes]
        with contextlib.ExitStack() as stack:
            for stream in streams:
                stack.enter_context(contextlib.closing(stream))
            while not local_run.is_over(run):
                local_run.ensure_supervised(run)
                for stream in streams:
                    stream.hand_on()
                time.sleep(_POLL_S)
            if run.is_live:
                local_run.down(run)
            for stream in streams:
                stream.hand_on(is_last=True)
        return local_run.wait(run)


SubprocCluster = SubprocBackend


class Ended(SystemExit):
    """A signal ends the script; the exit status contains its number."""


@contextlib.contextmanager
def _ending_with_signals() -> Iterator[None]:
    """Raise `Ended` for signals that would end the script; signals that `nohup` ignores stay ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _frame: object) -> None:
        raise Ended(128 + number)

    handlers = {
        number: signal.signal(number, leave) for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Block the signals that end a script, so that a cleanup is not interrupted."""
    held = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


class _Stream:
    """The output of one process, for the terminal and a file."""

    def __init__(self, run: Run, process: ProcessState, log_dir: Path | None, *, prints: bool) -> None:
        self._log = run.process_dir(process.slot) / "log"
        names = WrittenNames.of(run)
        name = names.process(process.group, process.name)
        self._name = f"{names.group(process.group)}:{name}" if process.group else name
        self._prints = prints
        self._offset = 0
        self._rest = b""
        self._file: IO[bytes] | None = None
        if log_dir is not None:
            log_dir.mkdir(parents=True, exist_ok=True)
            self._file = (log_dir / f"{self._name.replace(':', '--')}.out").open("wb")

    def hand_on(self, *, is_last: bool = False) -> None:
        """Write new output to its file and print complete lines; an incomplete line waits for its end."""
        new = self._read()
        if self._file is not None and new:
            self._file.write(new)
            self._file.flush()
        if not self._prints:
            return
        *lines, self._rest = (self._rest + new).split(b"\n")
        if is_last and self._rest:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            sys.stdout.write(f"{self._name} | {line.decode('utf-8', 'replace').rstrip()}\n")
        sys.stdout.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _read(self) -> bytes:
        try:
            with self._log.open("rb") as log:
                log.seek(self._offset)
                new = log.read()
        except FileNotFoundError:
            return b""
        self._offset += len(new)
        return new


class SubprocManager:
    """Child processes by name, each in its own session, so that ending one also ends its children."""

    def __init__(
        self, stdout_mode: str = "print", stderr_mode: str = "print", log_dir: str | Path | None = None
    ) -> None:
        _check_modes(stdout_mode, "none" if stderr_mode == "stdout" else stderr_mode, log_dir)
        self.stdout_mode, self.stderr_mode = stdout_mode, stderr_mode
        self.log_dir = Path(log_dir).expanduser() if log_dir is not None else None
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._handlers: dict[signal.Signals, Any] = {}

    def launch(self, name: str, cmd: str, env: Mapping[str, object] | None = None) -> None:
        """Start the shell line `cmd`; `env` overrides the script's environment. Raises ValueError for a duplicate."""
        if name in self.processes:
            raise ValueError(f'the process "{name}" is already running')
        declared = {key: str(value) for key, value in (env or {}).items()}
        self._catch_signals()
        with contextlib.ExitStack() as files:
            out = self._sink(name, "out", files)
            err = subprocess.STDOUT if self.stderr_mode == "stdout" else self._sink(name, "err", files)
            self.processes[name] = subprocess.Popen(
                ["bash", "-c", cmd], env={**os.environ, **declared}, stdout=out, stderr=err, start_new_session=True
            )

    def poll(self, name: str) -> int | None:
        """Return the exit status (negative: the signal), None while it runs. Raises KeyError for an unknown name."""
        return self.processes[name].poll()

    def poll_all(self) -> dict[str, int | None]:
        """Return the exit status of every process by name, None while it runs."""
        return {name: child.poll() for name, child in self.processes.items()}

    def kill(self, name: str, signal: int = signal.SIGTERM, verbose: bool = False) -> None:
        """Send a signal to a process and all that it started; with `verbose`, print it."""
        if verbose:
            sys.stdout.write(f"signal {signal} to {name}\n")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.processes[name].pid, signal)

    def kill_all(self, verbose: bool = False) -> None:
        """End everything: TERM, a second of grace in total, then KILL to all sessions."""
        for name in self.processes:
            self.kill(name, signal.SIGTERM, verbose)
        deadline = time.monotonic() + _GRACE_S
        for child in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, deadline - time.monotonic()))
        for name, child in self.processes.items():
            # The session may outlive its first process.
            self.kill(name, signal.SIGKILL)
            child.wait()
        self._let_signals_be()

    def join(self, kill_on_error: bool = True, poll_interval: float = _POLL_S) -> int:
        """Wait for all; return the first nonzero status, or 0. With `kill_on_error` one failure ends the others."""
        while None in (statuses := self.poll_all()).values():
            if kill_on_error and any(statuses.values()):
                break
            time.sleep(poll_interval)
        failed = [status for status in statuses.values() if status]
        if failed and kill_on_error:
            self.kill_all()
        self._let_signals_be()
        return failed[0] if failed else 0

    def _catch_signals(self) -> None:
        """Install signal handlers that end the children before the script; they are installed with the first child."""
        if self._handlers or threading.current_thread() is not threading.main_thread():
            return

        def end(number: int, _frame: object) -> None:
            self.kill_all()
            # Report the signal in the script's exit status.
            raise SystemExit(128 + number)

        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
        self._handlers = {number: signal.signal(number, end) for number in numbers}

    def _let_signals_be(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers = {}

    def _sink(self, name: str, stream: str, files: contextlib.ExitStack) -> IO[bytes] | int | None:
        mode = self.stdout_mode if stream == "out" else self.stderr_mode
        if mode == "none":
            return subprocess.DEVNULL
        if mode == "print" or self.log_dir is None:
            return None
        self.log_dir.mkdir(parents=True, exist_ok=True)
        return files.enter_context((self.log_dir / f"{name}.{stream}").open("wb"))


def _check_modes(stdout_mode: str, stderr_mode: str, log_dir: object) -> None:
    for mode in (stdout_mode, "none" if stderr_mode == "stdout" else stderr_mode):
        if mode not in _MODES:
            raise UsageError(f'unknown output mode "{mode}"', next=f"use one of {', '.join(_MODES)}")
        if mode == "file" and log_dir is None:
            raise UsageError("the output mode file needs a log_dir", next="log_dir='~/logs'")
