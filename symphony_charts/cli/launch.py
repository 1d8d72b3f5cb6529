"""Start experiments on this machine for `symph up` and `symph run`, and follow them."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import ExperimentStatus, LogQuery
from symphony_charts.cli import error_report, experiments, output, specs
from symphony_charts.cli.failures import INTERRUPTED
from symphony_charts.cli.following import Follower, LinePrinter
from symphony_charts.cli.rm import say_what_is_kept
from symphony_charts.errors import CheckFailed, NotFound, SymphError, ToolFailed
from symphony_charts.formats.printable import age
from symphony_charts.kinds.registry import failure_difference
from symphony_charts.local import up, values
from symphony_charts.local.backend import LocalWatcher
from symphony_charts.local.logs import tail_of
from symphony_charts.local.plan.records import LocalPlan
from symphony_charts.local.reload import FileWatch, parse_watched, slots_using
from symphony_charts.local.runs import Run, find_slots, live_runs
from symphony_charts.local.status import missed_variables, still_running
from symphony_charts.local.supervisor.decisions import describe_status
from symphony_charts.local.supervisor.launcher import SupervisorProcess
from symphony_charts.placement import report
from symphony_charts.settings.project import settings_of_spec
from symphony_charts.spec import files as spec_files
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.pods import allocate

if TYPE_CHECKING:
    from symphony_charts.placement.plan import Plan

VALUE_OPTIONS = ("set", "set_json", "set_string", "set_file", "set_literal")


class FileLoop:
    """Restart changed processes of `run` and print their lines until interrupted; watched ones wait for the next save.

    A change after the end of the run starts `spec` again: `run` is then the new run. `note` is printed once changes are
    noticed.
    """

    def __init__(self, args: argparse.Namespace, run: Run, spec: Path, note: str) -> None:
        self.run = run
        self._note = note
        self._args, self._spec = args, spec
        self._watched = [parse_watched(text) for text in args.watch]
        self._followed: Run | None = None
        self._is_ending = False
        for name in filter(None, args.watched):
            find_slots(run.plan(), name)

    def wait(self) -> int:
        """Return 0 after `end`; raises KeyboardInterrupt as the user asks for it."""
        told = None
        files = FileWatch(self._watched, self._spec, self._args.ignore)
        if self._note:
            output.note(self._note)
            self._note = ""
        while not self._is_ending:
            self._follow()
            if told != self.run and up.is_over(self.run):
                told, failed = self.run, self.run.state().failed
                why = f": {failed.name} failed ({describe_status(failed.status)})" if failed else ""
                output.note(f"{self.run.experiment} has ended{why}; a change starts it again")
            changed = files.wait(self.run)
            if changed:
                self.run = _start_again(self._args, self.run, changed, files)
            else:
                up.ensure_supervised(self.run)
        return 0

    def end(self) -> None:
        self._is_ending = True
        up.down(self.run)

    def _follow(self) -> None:
        """Print the lines of a run from its start, or from now on if it ran before."""
        if self._followed != self.run:
            since = time.time() if self._followed is None and self._args.is_known else None
            follow(self._args, LocalWatcher(), self.run.experiment, run=self.run.run_id, since=since).start()
            self._followed = self.run


def follow_files(args: argparse.Namespace, run: Run, spec: Path) -> int:
    """Do the work of `up --watch`: the run continues after the interrupt."""
    note = f"watching {', '.join(args.watch)}; Ctrl-C stops watching, {run.experiment} keeps running"
    loop = FileLoop(args, run, spec, note)
    try:
        return loop.wait()
    except KeyboardInterrupt:
        left = f"{run.experiment} keeps running: symph attach {run.experiment} | symph down {run.experiment}"
        output.note(f"\nno longer watching; {left if loop.run.is_live else f'{run.experiment} has ended'}")
        return INTERRUPTED


def _start_again(args: argparse.Namespace, run: Run, changed: set[Path], files: FileWatch) -> Run:
    """Restart what `changed` affects, print it, and return the run; an invalid spec changes nothing."""
    began = time.monotonic()
    try:
        spec = _spec_here(args)
        for is_last in (False, True):
            touched = slots_using(run.plan(), changed, files.watched) if run.is_live else {}
            try:
                started = _up(args, spec, touched=touched)
                break
            except NotFound:
                # The run ended meanwhile: start it again.
                if is_last or run.is_live:
                    raise
    except SymphError as error:
        error_report.tell(error)
        return run
    assert started is not None  # noqa: S101 - only a dry run returns None
    output.note(f"{'again' if started == run else 'started'} in {time.monotonic() - began:.2f} s")
    return started


def _spec_here(args: argparse.Namespace) -> SpecFile:
    """Read the spec for this machine, with the command line's values. Raises SpecError."""
    spec = spec_files.read(args.spec, args.spec_set)
    # Without values the chart is not needed: its modules take 110 ms.
    has_values = any(getattr(args, key) for key in ("values", *VALUE_OPTIONS))
    return values.under_values(spec, specs.user_values_of(args)) if has_values else spec


def _up(args: argparse.Namespace, spec: SpecFile, **options: Any) -> Run | None:
    services, folder = allocate(spec.experiment, spec.pins), spec.path.parent
    options |= {"share_gpus": args.share_gpus, "watched": args.watched}
    return up.up(spec.experiment, services, folder=folder, **options)


# Number of log lines printed of a failed process.
_LAST_LINES = 5


def start(
    args: argparse.Namespace, spare: SupervisorProcess | None, *, is_new: bool = False
) -> tuple[SpecFile, Run | None]:
    """Return the spec, and its run under the supervisor `spare`; with `--dry-run` print the plan, and return no run.

    Raises Conflict if `is_new` and the experiment is already running.
    """
    spec = _spec_here(args)
    # Before the start: a run that is live now has earlier lines, and a watched file may be missing for a moment later.
    args.is_known = bool(args.watch and live_runs(spec.experiment.name))
    args.watched = list(dict.fromkeys(name for text in args.watch for name in parse_watched(text).processes or ("",)))
    started = _up(
        args,
        spec,
        force=args.force,
        dry_run=args.dry_run,
        is_new=is_new,
        spare=spare,
        show=output.plan_printer(args),
    )
    return spec, started


def follow_up(args: argparse.Namespace, spec: SpecFile, started: Run, began: float) -> int:
    """Print where the run is; with --wait wait for its end; with --watch follow its files until interrupted."""
    plan, name = started.plan(), started.experiment
    for text in plan.notes:
        output.warn(text)
    count = len(plan.processes)
    record = {
        "name": name,
        "run": started.run_id,
        "address": plan.base_address,
        "processes": count,
        "ports": {**plan.ports, **{service: ports[0] for service, ports in plan.moved.items()}},
    }
    limits = sorted({limit.by for process in plan.processes for limit in process.limits})
    record |= {"limits": limits, "commits": started.state().commits}
    took = time.monotonic() - began
    limited = f"   limits by {' and '.join(limits)}" if limits else ""
    text = f"{name}   {plan.base_address}   {output.counted(count, 'process')} up in {took:.2f} s{limited}"
    output.print_record(args, "Run", record, text)
    sys.stdout.flush()
    if args.watch:
        return follow_files(args, started, spec.path)
    if not args.wait:
        output.next_step(f"symph ps {name}", f"symph logs -f {name}", f"symph attach {name}", f"symph down {name}")
        return 0
    try:
        names = [process.path for process in plan.processes]
        printer = LinePrinter(names)
        follower = Follower(LocalWatcher(), name, printer, run=started.run_id)
        follower.start()
        status = up.wait(started)
        follower.wait()
    except KeyboardInterrupt:
        args.backend = "tmux"
        left_running(args, name)
        return INTERRUPTED
    say_what_is_kept(started)
    if started.is_live:
        output.note(f"still runs: {', '.join(still_running(started))}   symph down {name}")
    fail_if_failed(spec, started, plan)
    return status


def fail_if_failed(spec: SpecFile, run: Run, plan: LocalPlan, *, has_shown_lines: bool = False) -> None:
    """Print the last lines of the failed process; raise CheckFailed with its exit status and place in the spec."""
    state = run.state()
    if state.reason == "stopped":
        raise CheckFailed("the run was stopped before its end")
    if state.cause:
        step = f"symph logs {run.experiment} --tail 50, then symph up {spec.path}"
        raise ToolFailed(f"the run failed: {state.cause}, so that its processes had no terminals any more", next=step)
    failed = state.failed
    if failed is None:
        return
    process, planned = state.processes[failed.slot], plan.processes[failed.slot]
    for line in () if has_shown_lines else tail_of(run.process_dir(failed.slot) / "log", _LAST_LINES):
        output.note(f"{process.path} | {line}")
    if names := missed_variables(run, failed.slot):
        output.note(f"note: set in this shell and not passed to processes: {names}; `local.pass_env` passes them")
    if planned.on_failure == "stop" and (text := failure_difference(spec.experiment)):
        output.note(f"note: {text}")
    again = f" after {process.restarts} restarts" if process.restarts else ""
    why = f": {process.cause}" if process.cause else ""
    what = f'process "{failed.name}" failed ({describe_status(failed.status)}){again}{why}'
    step, words = f"symph logs {failed.name} {run.experiment} --tail 50", planned.argv[0].split()
    if failed.status == 127 and len(words) > 1:
        step = f"write its words apart: command: {json.dumps(words)}"
    error = CheckFailed(what, f"{spec.path}, {planned.spec_path}", step)
    error.exit_code = failed.status or 1
    raise error


if sys.platform != "win32":
    import termios
    import tty

_KEYS = "d: leave it running   ctrl-c: end it   any other key: keep watching"


class _Terminated(KeyboardInterrupt):
    """SIGTERM: stop the experiment together with the command, like any program in the foreground."""


class _HungUp(KeyboardInterrupt):
    """SIGHUP: the terminal is gone; keep the experiment running so that no hours of work are lost."""


def stay(name: str, begin: Callable[[], None], wait: Callable[[], int], end: Callable[[], object]) -> tuple[int, bool]:
    """Call `begin`, then `wait`; return the exit status, and True if the experiment has ended.

    On an interrupt in a terminal, ask: leave the experiment running (0), stop it with `end` (130), or keep waiting.
    Without a terminal an interrupt stops it. SIGTERM stops it (143); SIGHUP leaves it running (129).
    """
    with _signals():
        is_begun = False
        while True:
            try:
                if not is_begun:
                    is_begun = True
                    _whole(begin)
                return wait(), True
            except _HungUp:
                return 128 + signal.SIGHUP, False
            except _Terminated:
                return _end(name, wait, end, 128 + signal.SIGTERM)
            except KeyboardInterrupt:
                choice = _ask(name)
            if choice == "leave":
                return 0, False
            if choice == "end":
                return _end(name, wait, end, INTERRUPTED)
            output.note("looking on")


def _whole(begin: Callable[[], None]) -> None:
    """Run `begin` with signals blocked until it returns, so that either all or none of its threads start."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    try:
        begin()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(name: str, wait: Callable[[], int], end: Callable[[], object], status: int) -> tuple[int, bool]:
    output.note(f"ending {name}")
    end()
    wait()
    return status, True


def _ask(name: str) -> Literal["leave", "end", "on"]:
    if not output.can_ask():
        return "end"
    output.note(f"\n{name} runs on   {_KEYS}")
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        key = os.read(descriptor, 1)
    except _HungUp:
        return "leave"
    except KeyboardInterrupt:
        return "end"
    except OSError:
        key = b""
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
    return "leave" if key in (b"d", b"D", b"") else "on"


@contextmanager
def _signals() -> Iterator[None]:
    """Raise exceptions for SIGTERM and SIGHUP inside the context, as for SIGINT; ignored signals stay ignored."""

    def terminated(*_: object) -> None:
        raise _Terminated

    def hung_up(*_: object) -> None:
        raise _HungUp

    handlers = {signal.SIGTERM: terminated, signal.SIGHUP: hung_up}
    before = {number: signal.getsignal(number) for number in handlers}
    for number, handler in handlers.items():
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def follow(
    args: argparse.Namespace, watcher: Watcher, name: str, *, run: str = "", since: float | None = None
) -> Follower:
    """Return a follower, not yet started, of the processes that `-p` names (default: all)."""
    status = watcher.describe(name, events=False)
    chosen = [one.path for word in args.process for one in experiments.some_instances(status, word)]
    paths = tuple(dict.fromkeys(chosen))
    printer = LinePrinter(
        paths or tuple(instance.path for instance in status.instances),
        form=args.output,
        has_times=args.timestamps,
        is_live=True,
    )
    query = LogQuery(instances=paths, since=since, follow=True, is_one_run=bool(run))
    return Follower(watcher, name, printer, query, run)


def say_end(
    args: argparse.Namespace, status: ExperimentStatus | None, name: str, code: int, began: float, plan: Plan | None
) -> None:
    """Print one line: result, duration, the price of the plan's nodes per hour, and the command for the logs.

    `plan` is None if no node pools are known.
    """
    took = (status.ended if status and status.ended else time.time()) - (status.started if status else began)
    phase = status.phase if status else "deleted"
    price = report.price_per_hour(plan) if plan else None
    if args.output == "json":
        record: dict[str, object] = {"time": time.time(), "name": name, "phase": phase, "status": code}
        record |= {"seconds": round(took, 3), "pricePerHour": price}
        output.line(json.dumps(record, ensure_ascii=False))
        return
    logs = f"   logs: symph logs {name}{_place_of(args)}" if status else ""
    rate = f"   ${price:.2f}/h as planned on {plan.source}" if plan and price else ""
    span = f"{took:.1f} s"
    if took >= 60:
        span = age(took) if took >= 3600 else f"{int(took) // 60} m {int(took) % 60} s"
    output.note(f"{name} {phase} after {span}{rate}{logs}")


def left_running(args: argparse.Namespace, name: str) -> None:
    output.note(f"{name} runs on")
    end = "down" if args.backend == "tmux" else "rm"
    output.next_step(f"symph logs -f {name}{_place_of(args)}", f"symph {end} {name}{_place_of(args)}")


def _place_of(args: argparse.Namespace) -> str:
    return "" if args.backend == "tmux" else " --on kube"


def run_here(args: argparse.Namespace, spare: SupervisorProcess | None, began: float) -> int:
    """Run the experiment under the supervisor `spare`; return its exit status, or 0 if it is left running."""
    args.backend, args.wait = "tmux", False
    spec, started = start(args, spare, is_new=True)
    if started is None:
        return 0
    if args.detach:
        return follow_up(args, spec, started, time.monotonic() - (time.time() - began))
    plan, name = started.plan(), started.experiment
    for text in plan.notes:
        output.warn(text)
    if args.watch:
        return _run_watching(args, spec, started)
    took = f"{output.counted(len(plan.processes), 'process')} up in {time.time() - began:.2f} s"
    follower = follow(args, LocalWatcher(), name, run=started.run_id)
    priced: Plan | None = None

    def wait() -> int:
        # Planning takes a moment; the follower prints lines meanwhile.
        nonlocal priced
        priced = _plan_of(args, spec)
        status = up.wait(started)
        if started.is_live:
            # Nothing goes on after a run in the foreground.
            up.down(started)
        return status

    def begin() -> None:
        output.note(f"{name}   {took}   ctrl-c: leave or end it   symph attach {name}")
        follower.start()

    status, is_over = stay(name, begin, wait, lambda: up.down(started))
    if not is_over:
        left_running(args, name)
        return status
    last = follower.wait()
    say_end(args, last, name, status, began, priced)
    say_what_is_kept(started)
    if status < 128 or last is None or last.phase == "failed":
        fail_if_failed(spec, started, plan, has_shown_lines=True)
    return status


def _run_watching(args: argparse.Namespace, spec: SpecFile, started: Run) -> int:
    """Do the work of `run --watch`: it ends when the user ends it."""
    name = started.experiment
    note = f"{name}   watching {', '.join(args.watch)}   ctrl-c: leave or end it   symph attach {name}"
    loop = FileLoop(args, started, spec.path, note)

    def wait() -> int:
        try:
            return loop.wait()
        except KeyboardInterrupt:
            if loop.run.is_live:
                raise
            return INTERRUPTED

    status, is_over = stay(name, lambda: None, wait, loop.end)
    if not is_over:
        left_running(args, name)
    return status


def _plan_of(args: argparse.Namespace, spec: SpecFile) -> Plan | None:
    """Return the plan on the node pools of the options, the spec or the project; None without pools.

    The plan is only used for the price, so an error is printed as a note.
    """
    try:
        if args.pools or spec.experiment.placement.pools or settings_of_spec(spec.path).pools:
            return specs.prepared_of(args, spec, force=True).plan
    except SymphError as error:
        output.note(f"note: the price of {spec.experiment.name} is unknown: {error.what}")
    return None


def run_there(args: argparse.Namespace) -> int:
    """Start the experiment on a plugin's backend, which reports its state itself."""
    spec = _spec_here(args)
    cluster = args.symphony.cluster_for(args)
    cluster.start(spec.experiment, folder=spec.path.parent, pins=spec.pins, force=args.force, dry_run=args.dry_run)
    return 0
