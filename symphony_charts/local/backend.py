"""The backend of this machine: experiments from the files of their runs, and the files that processes see."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from symphony_charts.backend.status import Event, ExperimentStatus, InstanceStatus, LogLine, LogQuery, Usage
from symphony_charts.errors import Conflict, NotFound
from symphony_charts.local.logs import read_lines, tail_of, unfinished_line
from symphony_charts.local.runs import Run, find_run, live_runs, newest_runs, runs_of
from symphony_charts.local.status import run_events, run_status
from symphony_charts.system import processes, remover
from symphony_charts.system.files import copy_over, refuse_left, refused
from symphony_charts.system.inotify import Changes
from symphony_charts.system.processes import verified

if TYPE_CHECKING:
    from symphony_charts.local.machine.gpus import GpuMeter

# The kernel's limit of links in one path.
_MOST_LINKS = 40


class ProcessFiles:
    """The files that the process `name` sees: `root` is its root on this machine, `cwd` its folder.

    `shown` maps the paths of an ended process to the places of this machine that were mounted there.
    """

    def __init__(self, name: str, root: str, cwd: str, shown: Mapping[str, str]) -> None:
        self._name, self._root, self._cwd, self._shown = name, root, cwd, shown

    def copy_out(self, path: str, to: Path) -> None:
        """Copy the file or folder at `path`. Raises NotFound, and Conflict if it cannot be written."""
        source = self.place_of(path)
        if not source.exists():
            raise NotFound(f'"{self._name}" has no {path}')
        target = to / (PurePosixPath(path).name or "root") if to.is_dir() else to
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            left = copy_over(source, target)
        except OSError as error:
            raise refused(target, error) from error
        refuse_left(f"{self._name}:{path}", left)

    def copy_in(self, source: Path, to: str) -> None:
        """Copy a file or folder of this machine to `to`. Raises NotFound, and Conflict if it cannot be written."""
        if not source.exists():
            raise NotFound(f"{source} does not exist on this machine")
        try:
            self._copy_in(source, f"{to}/{source.name}" if self.place_of(to).is_dir() else to)
        except OSError as error:
            raise refused(to, error) from error

    def _copy_in(self, source: Path, to: str) -> None:
        # Resolve each path separately: an existing link may lead elsewhere for the process than for us.
        target = self.place_of(to)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not source.is_dir():
            shutil.copy2(source, target)
            return
        target.mkdir(exist_ok=True)
        for entry in sorted(source.iterdir()):
            if entry.is_symlink():
                (target / entry.name).symlink_to(entry.readlink())
            else:
                self._copy_in(entry, f"{to}/{entry.name}")
        shutil.copystat(source, target)

    def place_of(self, path: str) -> Path:
        """Return the place on this machine, without links, of the process's `path`."""
        names = (path if path.startswith("/") else f"{self._cwd}/{path}").split("/")[::-1]
        done, links = "", 0
        while names:
            name = names.pop()
            if name == "..":
                done = os.path.dirname(done)  # noqa: PTH120 - purely textual: the path belongs to another root
            elif name not in ("", "."):
                try:
                    link = os.readlink(self._here(f"{done}/{name}"))  # noqa: PTH115 - for each name of each path
                except OSError:
                    done = f"{done}/{name}"
                    continue
                links += 1
                if links > _MOST_LINKS:
                    what = f'"{self._name}" has a loop of symbolic links at {path}'
                    raise Conflict(what, next="inspect it: symph exec")
                done = "" if link.startswith("/") else done
                names += reversed(link.split("/"))
        return Path(self._here(done or "/"))

    def _here(self, path: str) -> str:
        holding = [target for target in self._shown if path == target or path.startswith(f"{target}/")]
        if holding:
            target = max(holding, key=len)
            return self._shown[target] + path[len(target) :]
        return self._root + path


# Polling interval for a run that does not notify this machine of changes, in seconds.
_LOOK_S = 2.0


class LocalWatcher:
    """The backend of this machine; `backend.protocol.Watcher` describes its methods."""

    backend = "tmux"
    place = "tmux"

    def __init__(self) -> None:
        self._cpu_seen: dict[str, tuple[float, float]] = {}

    def names(self) -> list[str]:
        return [run.experiment for run in live_runs()]

    def experiments(self, *, ended: bool = False) -> list[ExperimentStatus]:
        # One run per experiment: the last one, which is on this machine if any is.
        live = {run.experiment: run for run in live_runs()}
        return list(map(run_status, newest_runs() if ended else live.values()))

    def describe(self, name: str, *, events: bool = True) -> ExperimentStatus:
        return run_status(find_run(name), events=events)

    def changes(self, name: str, timeout_s: float | None = None) -> Iterator[ExperimentStatus | None]:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with Changes([find_run(name).folder.parent]) as watched:
            while True:
                runs = runs_of(name)
                if not runs:
                    yield None
                    return
                watched.watch(runs[-1].folder)
                newest = find_run(name)
                yield run_status(newest, events=False)
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                if left == 0.0 or not _has_changed(newest, watched, left):
                    return

    def logs(self, name: str, query: LogQuery) -> Iterator[LogLine]:
        return read_lines(name, query)

    def events(self, name: str, *, follow: bool = False) -> Iterator[Event]:
        seen: set[Event] = set()
        for status in self.changes(name):
            new = [event for event in run_events(find_run(name)) if event not in seen] if status else []
            seen.update(new)
            yield from new
            if not follow or status is None or status.is_final:
                return

    def usage(self, name: str) -> Mapping[str, Usage]:
        """Return CPU since the last call (the first time: since the start) and resident memory, children included.

        GPU usage covers the GPUs assigned to the process, including use by other programs.
        """
        usage: dict[str, Usage] = {}
        run = find_run(name)
        if not run.is_active or run.location.verdict != "here":
            return usage
        running = [process for process in run.state().processes if process.phase == "running"]
        used, now = processes.used_by(process.wrapper for process in running if process.wrapper), time.time()
        for process in running:
            if process.wrapper not in used:
                continue
            path, seconds = process.path, used[process.wrapper].seconds
            before, moment = self._cpu_seen.get(path, (0.0, process.started or now))
            self._cpu_seen[path] = (seconds, now)
            cpu = max(0.0, seconds - before) / (now - moment) if now > moment else None
            usage[path] = Usage(cpu=cpu, memory=used[process.wrapper].memory)
        return self._with_gpus(usage, run)

    @cached_property
    def _gpu_meter(self) -> GpuMeter:
        # This import takes 20 ms, which processes without GPUs need not spend.
        from symphony_charts.local.machine.gpus import GpuMeter

        return GpuMeter()

    def _with_gpus(self, usage: dict[str, Usage], run: Run) -> dict[str, Usage]:
        given = {process.path: process.gpus for process in run.plan().processes if process.gpus}
        if not given:
            return usage
        for path in given.keys() & usage.keys():
            busy, memory = self._gpu_meter.use_of(given[path])
            usage[path] = replace(usage[path], gpu=busy, gpu_memory=memory)
        return usage

    def last_lines(self, name: str) -> Mapping[str, str]:
        run = find_run(name)
        last = {process.path: tail_of(run.process_dir(process.slot) / "log", 1) for process in run.state().processes}
        return {path: lines[0] for path, lines in last.items() if lines}

    def unfinished_lines(self, name: str) -> Mapping[str, str]:
        run = find_run(name)
        running = [process for process in run.state().processes if process.phase == "running"]
        texts = {process.path: unfinished_line(run.process_dir(process.slot) / "log") for process in running}
        return {path: text for path, text in texts.items() if text}

    def exec(
        self, name: str, instance: InstanceStatus, command: Sequence[str], *, tty: bool, stdin: bool = True
    ) -> int:
        del tty  # the command inherits this terminal
        return self._run(name, instance, command, stdin=stdin, capture_output=False)[0]

    def output_of(self, name: str, instance: InstanceStatus, command: Sequence[str]) -> tuple[int, bytes, bytes]:
        """Run a command with the environment, folder and files of the process, without a terminal."""
        return self._run(name, instance, command, stdin=False, capture_output=True, timeout=600)

    def copy_out(self, name: str, instance: InstanceStatus, path: str, to: Path) -> None:
        """Copy the file or folder at the process's `path`; after its end, as far as it still exists."""
        _files_of(name, instance).copy_out(path, to)

    def copy_in(self, name: str, instance: InstanceStatus, source: Path, to: str) -> None:
        _files_of(name, instance).copy_in(source, to)

    @contextlib.contextmanager
    def visit(self, name: str, service: str) -> Iterator[str]:
        services = self.describe(name, events=False).services
        addresses = [status.address for status in services if status.name == service]
        if not addresses:
            names = ", ".join(status.name for status in services) or "none"
            raise NotFound(f'experiment "{name}" has no service "{service}"', next=f"its services: {names}")
        yield addresses[0]

    def delete(self, name: str, *, dry_run: bool = False) -> list[str]:
        find_run(name)
        runs = runs_of(name)
        # Check all folders first, as on a cluster: end nothing before all of them are known to be ours.
        for past_run in runs:
            remover.check(past_run.home, name, past_run.run_id)
        if not dry_run:
            from symphony_charts.local.up import delete

            delete(name, runs)
        return [run.run_id for run in runs]

    def _run(
        self, name: str, instance: InstanceStatus, command: Sequence[str], *, stdin: bool, **options: Any
    ) -> tuple[int, bytes, bytes]:
        """Run `command` beside a process; return its exit status, stdout and stderr. Raises Conflict unless it runs."""
        pid = _main_pid(name, instance)
        if pid == 0:
            where = find_run(name).location if find_run(name).is_live else None
            elsewhere = where.words if where and where.verdict in ("elsewhere", "unknown") else ""
            what = f'"{instance.path}" does not run here: {elsewhere or instance.state}'
            raise Conflict(what, next=f"symph ps {name}")
        argv, env = processes.inside(pid, command)
        ended = subprocess.run(argv, env=env, stdin=None if stdin else subprocess.DEVNULL, check=False, **options)
        # A signal number is negative.
        code = ended.returncode if ended.returncode >= 0 else 128 - ended.returncode
        return code, ended.stdout, ended.stderr


def _has_changed(run: Run, watched: Changes, left_s: float | None) -> bool:
    """Wait for a possible change of the status of `run`; return False after `left_s` seconds without one."""
    if not run.is_live or run.is_supervised:
        # The supervisor writes all changes to the state file, but not its own end.
        with verified(run.supervisor) as supervisor:
            return watched.wait(left_s, supervisor)
    # No supervisor writes changes here, and a network file system does not report writes of other machines.
    watched.wait(_LOOK_S if left_s is None else min(_LOOK_S, left_s))
    return left_s is None or left_s > _LOOK_S


def _main_pid(name: str, instance: InstanceStatus) -> int:
    """Return the main process of an instance, 0 if it does not run here."""
    run = find_run(name)
    if not run.is_live or run.location.verdict != "here":
        return 0
    for process in run.state().processes:
        if process.path == instance.path and process.phase == "running":
            record = run.main_process(process)
            return record.pid if record else 0
    return 0


def _files_of(name: str, instance: InstanceStatus) -> ProcessFiles:
    pid = _main_pid(name, instance)
    if pid:
        with contextlib.suppress(OSError):
            return ProcessFiles(instance.path, f"/proc/{pid}/root", str(Path(f"/proc/{pid}/cwd").readlink()), {})
    # An ended process leaves this machine's files, and its volumes that still exist.
    plan = find_run(name).plan()
    planned = next(process for process in plan.processes if process.path == instance.path)
    binds = (*plan.binds, *planned.binds) if plan.has_namespace else ()
    return ProcessFiles(instance.path, "", planned.cwd, {bind.target.rstrip("/"): bind.source for bind in binds})
