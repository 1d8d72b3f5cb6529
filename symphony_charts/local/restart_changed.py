"""`changes_of` says which processes of a live run changed and why; `rewrite` puts the new texts into its folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from symphony_charts.errors import Conflict
from symphony_charts.local.plan.limits import verdict_script
from symphony_charts.local.plan.records import LocalPlan, PlannedProcess
from symphony_charts.local.plan.scripts import TRIES, read_environment, start_script
from symphony_charts.local.run_folder import make_volumes, public, write_private, write_process_mounts
from symphony_charts.local.run_state import write_record
from symphony_charts.local.runs import Run, is_same_folder

__all__ = ["Change", "changes_of", "refuse_takeover", "rewrite"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A process that has to start again, and why; values of variables are not told."""

    slot: int
    name: str
    reason: str


def refuse_takeover(run: Run, folder: Path, *, is_new: bool) -> None:
    """Raise Conflict if `run` came from another folder, or if the caller wants a new run."""
    name, place = run.experiment, run.spec_folder
    ends = f"symph down {name} ends it, --force replaces it"
    if place and not is_same_folder(place, folder):
        what = f'experiment "{name}" runs already, from another folder: {place}'
        raise Conflict(what, next=f"{ends}, or give this one another `name`")
    if is_new:
        raise Conflict(f'experiment "{name}" runs already', next=f"symph logs -f {name} follows it, {ends}")


def changes_of(run: Run, plan: LocalPlan, touched: Mapping[int, str] = MappingProxyType({})) -> list[Change]:
    """Return the processes to restart for `run` to become `plan`; `touched` adds slots with their reasons.

    A changed configuration or secret file concerns the processes that see it. Raises Conflict when only a new run can.
    """
    old = run.plan()
    new = public(run, plan)
    before, after = ([_fixed(process) for process in both.processes] for both in (old, new))
    whole_before, whole_after = ((both.mounts, both.checkouts, both.has_namespace) for both in (old, new))
    if before != after or whole_before != whole_after:
        names = sorted({item[0] for item in before} ^ {item[0] for item in after})
        difference = f"other processes: {', '.join(names)}" if names else "other mounts, terminals or order"
        what = f'experiment "{run.experiment}" runs already, and the change needs a new run ({difference})'
        raise Conflict(what, next=f"symph up --force, or symph down {run.experiment} first")
    files = list(_changed_files(run, plan))
    return [
        Change(slot=process.slot, name=process.name, reason="; ".join(reasons))
        for process, item in zip(plan.processes, old.processes, strict=True)
        if (
            reasons := [
                *_reasons(run, process, item),
                *(f"file {path.name}" for path in files if _sees(process, plan, run.folder / path)),
                *([touched[process.slot]] if process.slot in touched else []),
            ]
        )
    ]


def _changed_files(run: Run, plan: LocalPlan) -> Iterator[Path]:
    """Yield files, relative to the run's folder, that are new, changed in content or mode, or gone."""
    for file in plan.files:
        path = run.folder / file.path
        if _read(path) != file.content or path.stat().st_mode & 0o777 != file.mode:
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
    """Replace the scripts, files and plan of `run` by those of `plan`."""
    for stale in _stale_files(run, plan):
        (run.folder / stale).unlink()
    for file in plan.files:
        path = run.folder / file.path
        if _read(path) == file.content:
            path.chmod(file.mode)
        elif path.exists():
            # In place: what is shown elsewhere is this very file.
            path.chmod(0o600)
            path.write_bytes(file.content)
            path.chmod(file.mode)
        else:
            write_private(path, file.content, file.mode)
    make_volumes(plan)
    for process in plan.processes:
        own = run.process_dir(process.slot)
        (own / "start").unlink(missing_ok=True)
        write_private(own / "start", start_script(process).encode())
        for name in ("mounts", "mounts.json", "limited"):
            (own / name).unlink(missing_ok=True)
        if process.counts_tries and not (own / TRIES).exists():
            write_private(own / TRIES, b"0\n")
        if process.limits:
            write_private(own / "limited", verdict_script(process.limits).encode())
    write_process_mounts(run, plan)
    write_record(run.folder / "plan.json", public(run, plan, folder, run.plan().started_in))


def _reasons(run: Run, process: PlannedProcess, old: PlannedProcess) -> Iterator[str]:
    if process.digest == old.digest:
        return
    if process.argv != old.argv:
        yield "command"
    if process.cwd != old.cwd:
        yield "cwd"
    script = (run.process_dir(process.slot) / "start").read_text(encoding="utf-8")
    env = read_environment(script)
    names = sorted(name for name in {**env, **process.env} if env.get(name) != process.env.get(name))
    if names:
        yield f"env {', '.join(names)}"
    elif process.argv == old.argv and process.cwd == old.cwd:
        yield "preamble, mounts or limits"


def _fixed(process: PlannedProcess) -> tuple[str, str, str, bool, tuple[str, ...]]:
    """Return the fields that are fixed when the pane is made: a difference needs a new run."""
    return process.name, process.group, process.pod, process.tty, process.scope


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
