"""Fill the folder of a run with scripts, files and pipes, and replace those of changed processes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from symphony_charts.errors import Conflict, Problem, SpecError
from symphony_charts.local.mounts.helper import helper_command, points_journal
from symphony_charts.local.mounts.mount_points import opened_beneath
from symphony_charts.local.plan.environment import HOSTS_FILE
from symphony_charts.local.plan.mounts import MountSets, helper_plan, is_for_mount, mount_sets
from symphony_charts.local.plan.records import LocalPlan, PlannedProcess, RunMounts
from symphony_charts.local.plan.scripts import (
    TRIES,
    helper_script,
    mounts_script,
    read_environment,
    start_script,
    tmux_commands,
    verdict_script,
)
from symphony_charts.local.run_files import NO_STATUS, write_json
from symphony_charts.local.run_state import write_record
from symphony_charts.local.runs import Run, current_folder, is_same_folder
from symphony_charts.local.supervisor.requests import Action
from symphony_charts.spec.variable_names import is_known_late
from symphony_charts.system import package_data, remover
from symphony_charts.system.user_folders import make_runtime_dir, state_dir


def lay_out_shared(run: Run, plan: LocalPlan) -> None:
    """Write the files that all processes see into the folder of the run, readable by its owner alone."""
    make_runtime_dir()
    for name, content in package_data.folder("local").items():
        if name.endswith(".sh"):
            write_private(run.folder / name, content)
    _write_files(run, plan)
    if plan.has_namespace:
        sets = _sets_of(run, plan)
        paths = {bind.target: f"{process.spec_path}.mounts" for process in plan.processes for bind in process.binds}
        own, journal = list(sets.own.values()), str(points_journal())
        shared = helper_plan(sets.shared, str(run.folder), journal=journal, prepare=own, paths=paths)
        write_json(run.folder / "mounts.json", shared)


def _write_files(run: Run, plan: LocalPlan) -> None:
    """Write the files that processes see, and make their volumes."""
    for file in plan.files:
        path = run.folder / file.path
        if not path.exists():
            write_private(path, file.content, file.mode)
        elif path.read_bytes() != file.content:
            # Overwrite in place: mounts elsewhere refer to this very file.
            path.chmod(0o600)
            path.write_bytes(file.content)
        path.chmod(file.mode)
    claims = state_dir() / "claims"
    for path in map(Path, plan.folders):
        if path.is_relative_to(claims):
            # This folder outlives the run: the remover must recognize it as ours.
            remover.make(claims, *path.relative_to(claims).parts[:-1], exist_ok=True)
        path.mkdir(parents=True, exist_ok=True, mode=0o700 if path.is_relative_to(state_dir()) else 0o755)
    make_sub_paths(plan)


def make_sub_paths(plan: LocalPlan) -> None:
    """Make the folders inside of volumes that are shown without a mount. Raises SpecError if a path leads out."""
    binds = {bind for process in plan.processes for bind in process.binds if bind.sub_path and not plan.has_namespace}
    problems = []
    for bind in sorted(binds, key=lambda bind: bind.source):
        try:
            with opened_beneath(bind.volume, bind.sub_path):
                pass
        except OSError as error:
            problems.append(Problem(what=f"cannot use {bind.source} for {bind.target}: {error.strerror}"))
    if problems:
        raise SpecError(problems)


def lay_out(run: Run, plan: LocalPlan, folder: Path) -> None:
    """Write all other files of the run except its state, which its supervisor writes."""
    (run.folder / "p").mkdir(mode=0o700)
    write_private(run.folder / "up.conf", tmux_commands(plan, str(run.folder)).encode())
    _lay_out_processes(run, plan, folder, current_folder())


def _lay_out_processes(run: Run, plan: LocalPlan, folder: Path, started_in: str) -> None:
    """Write the files of new processes, the scripts of the others again, and the plan.

    `folder` is the folder of the spec, `started_in` the current folder at the start of the run.
    """
    for process in plan.processes:
        own = run.process_dir(process.slot)
        if process.is_removed:
            continue
        if not own.exists():
            write_private(own / "log", b"")
            write_private(own / "exit", NO_STATUS)
            if not process.tty:
                write_private(own / "plain", b"")
            if process.waits:
                os.mkfifo(own / "go", 0o600)
        for name in ("start", "mounts", "mounts.json", "limited"):
            (own / name).unlink(missing_ok=True)
        write_private(own / "start", start_script(process).encode())
        if process.limits:
            write_private(own / "limited", verdict_script(process.limits).encode())
        if process.counts_tries and not (own / TRIES).exists():
            write_private(own / TRIES, b"0\n")
    _write_mounts(run, plan)
    # Any command may read this: it is without environment, files and start scripts.
    public = replace(
        plan,
        processes=tuple(replace(process, env={}, preamble=()) for process in plan.processes),
        files=(),
        mounts=_mounts_of(run, plan),
        folder=str(folder.absolute()),
        started_in=started_in,
    )
    write_record(run.folder / "plan.json", public)


def _sets_of(run: Run, plan: LocalPlan) -> MountSets:
    return mount_sets(plan, str(run.folder), str(run.socket.parent))


def _write_mounts(run: Run, plan: LocalPlan) -> None:
    for slot, binds in _sets_of(run, plan).own.items():
        folder = run.process_dir(slot)
        if is_for_mount(binds, str(run.folder)):
            script = mounts_script(binds)
        else:
            write_json(folder / "mounts.json", helper_plan(binds, str(run.folder), journal=None))
            script = helper_script(helper_command(folder / "mounts.json"))
        write_private(folder / "mounts", script.encode())


def _mounts_of(run: Run, plan: LocalPlan) -> RunMounts:
    sets = _sets_of(run, plan)
    targets = sorted({bind.target for binds in sets.own.values() for bind in binds})
    return RunMounts(shared=sets.shared, targets=tuple(targets))


def write_private(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a new file, and make the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    path.chmod(mode)


class Change(Struct, frozen=True, kw_only=True):
    """A process that must start, stop or restart, and the reason, without values of variables."""

    slot: int
    name: str
    reason: str
    action: Action = "restart"


def refuse_takeover(run: Run, folder: Path, *, is_new: bool) -> None:
    """Raise Conflict if `run` came from another folder, or if the caller wants a new run."""
    name, place = run.experiment, run.places[0]
    ends = f"end it: symph down {name}; replace it: --force"
    if place and not is_same_folder(place, folder):
        what = f'experiment "{name}" is already running from another folder: {place}'
        raise Conflict(what, next=f"{ends}; or give this one another `name`")
    if is_new:
        raise Conflict(f'experiment "{name}" is already running', next=f"follow it: symph logs -f {name}; {ends}")


def changes_of(run: Run, plan: LocalPlan, touched: Mapping[int, str], *, keeps_stopped: bool) -> list[Change]:
    """Return the processes to restart for `run` to become `plan`; `touched` adds slots with their reasons.

    `plan` has the slots of the run (`in_slots`). A changed configuration or secret file affects the processes that see
    it. Processes that a command stopped start again, unless `keeps_stopped`. Raises Conflict if only a new
    run can apply the change.
    """
    old, state = run.plan(), run.state()
    whole_before = old.mounts, old.checkouts, old.has_namespace
    whole_after = _mounts_of(run, plan), plan.checkouts, plan.has_namespace
    both = list(zip(plan.processes, old.processes, strict=False))
    is_other = whole_before != whole_after or any(_fixed(process) != _fixed(item) for process, item in both)
    # A spec that shares nothing with the run is probably another experiment of the same name.
    has_nothing = all(process.is_removed for process, _ in both)
    replicas = {(process.pod, process.address) for process in plan.processes}
    names = [pod for pod, _ in replicas]
    # A replica keeps its name, which a new process may have as well: `agent-1` beside replica 1 of `agent`.
    twice = sorted({name for name in names if names.count(name) > 1})
    if is_other or has_nothing or twice:
        difference = f"two replicas would be named {twice[0]}" if twice else "other mounts or terminals"
        difference = "it keeps none of the processes" if has_nothing else difference
        what = f'experiment "{run.experiment}" is running, and this change needs a new run ({difference})'
        raise Conflict(what, next=f"symph up --force, or symph down {run.experiment} first")
    files = [path for path in _changed_files(run, plan) if str(path) != HOSTS_FILE]
    before = dict(enumerate(old.processes))
    changes = []
    for process in plan.processes:
        slot, item = process.slot, before.get(process.slot)
        now = state.processes[slot] if slot < len(state.processes) else None
        if process.is_removed:
            if now and now.phase not in ("done", "failed", "stopped"):
                changes.append(Change(slot=slot, name=process.name, reason="removed", action="stop"))
        elif item is None or now is None or item.is_removed:
            changes.append(Change(slot=slot, name=process.name, reason="added", action="start"))
        elif now.is_stopped and keeps_stopped:
            continue
        elif now.is_stopped and not touched:
            changes.append(Change(slot=slot, name=process.name, reason="it was stopped", action="start"))
        elif reasons := [
            *_reasons(run, process, item),
            *(f"file {path.name}" for path in files if _sees(process, plan, run.folder / path)),
            *([touched[slot]] if slot in touched else []),
        ]:
            changes.append(Change(slot=slot, name=process.name, reason="; ".join(reasons)))
    return changes


def in_slots(plan: LocalPlan, old: LocalPlan) -> LocalPlan:
    """Return `plan` with its processes in the slots that they have in `old`, new ones last.

    Processes that `plan` does not have keep their slots as removed ones.
    """
    slots = {_identity(process): process.slot for process in old.processes}
    added = itertools.count(len(old.processes))
    moved = {process.slot: slots.get(_identity(process), -1) for process in plan.processes}
    moved = {slot: next(added) if other < 0 else other for slot, other in moved.items()}
    processes = {process.slot: replace(process, is_removed=True, waits=()) for process in old.processes}
    for process in plan.processes:
        waits = tuple(replace(wait, slot=moved[wait.slot]) for wait in process.waits)
        processes[moved[process.slot]] = replace(process, slot=moved[process.slot], waits=waits)
    in_order = tuple(processes[slot] for slot in sorted(processes))
    return replace(plan, processes=in_order, done_when=tuple(sorted(moved[slot] for slot in plan.done_when)))


def _identity(process: PlannedProcess) -> tuple[str, str, int, str]:
    return process.group, process.process, process.index, process.pod if process.is_step else ""


def _changed_files(run: Run, plan: LocalPlan) -> Iterator[Path]:
    for file in plan.files:
        path = run.folder / file.path
        if not path.exists() or path.read_bytes() != file.content or path.stat().st_mode & 0o777 != file.mode:
            yield Path(file.path)
    yield from _stale_files(run, plan)


def _stale_files(run: Run, plan: LocalPlan) -> Iterator[Path]:
    wanted = {file.path for file in plan.files}
    for path in sorted((run.folder / "files").rglob("*")):
        relative = path.relative_to(run.folder)
        if str(relative) not in wanted and path.is_file():
            yield relative


def _sees(process: PlannedProcess, plan: LocalPlan, path: Path) -> bool:
    """Return True if `path` is shown to a process; its own secrets replace the shared ones."""
    own = {bind.target for bind in process.binds}
    shown = [*process.binds, *(bind for bind in plan.binds if bind.target not in own)]
    return any(path.is_relative_to(bind.source) for bind in shown)


def rewrite(run: Run, plan: LocalPlan, folder: Path) -> None:
    for stale in _stale_files(run, plan):
        (run.folder / stale).unlink()
    _write_files(run, plan)
    _lay_out_processes(run, plan, folder, run.plan().started_in)


def _reasons(run: Run, process: PlannedProcess, old: PlannedProcess) -> Iterator[str]:
    if process.digest == old.digest:
        return
    if process.argv != old.argv:
        yield "command"
    if process.cwd != old.cwd:
        yield "cwd"
    script = (run.process_dir(process.slot) / "start").read_text(encoding="utf-8")
    env = read_environment(script)
    pairs = {name: (env.get(name), process.env.get(name)) for name in sorted({**env, **process.env})}
    names = [name for name, (then, now) in pairs.items() if then != now and not is_known_late(name, then, now)]
    if names:
        yield f"env {', '.join(names)}"
    if process.digest.partition(".")[2] != old.digest.partition(".")[2]:
        yield "preamble, mounts or limits"


def _fixed(process: PlannedProcess) -> tuple[str, bool, tuple[str, ...]]:
    """Return the fields of a process that are fixed when its pane is created: a difference requires a new run."""
    return process.pod, process.tty, process.scope
