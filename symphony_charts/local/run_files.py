"""JSON files of a run, written atomically, and the place where a run lives.

A state folder may be visible to several machines and containers, and outlives them. So a run has beside its state

- ``identity.json``, written once: its names, its folder, and the boot, machine and pid namespace of its processes;
- ``supervisor.json``, written by each supervisor: its process;
- ``life``, a file that its supervisors and its tmux server hold locked. It is free exactly when all of them are gone,
  which can be tested from everywhere without taking or writing anything.

Imported by `symph ps`: keep it light.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from symphony_charts.backend.status import Try
from symphony_charts.errors import NotFound, ToolFailed
from symphony_charts.spec import variable_names
from symphony_charts.system.file_locks import is_liveness_lock_held
from symphony_charts.system.files import file_system_of, flush_folder, replace_file
from symphony_charts.system.processes import (
    Machine,
    ProcessRecord,
    command_line,
    holders,
    identify,
    members,
    this_machine,
)

NO_STATUS = b"?  \n"
"""The content of the file `exit` of a process until it ends: as long as any status, which overwrites it."""


def write_json(path: Path, data: object, *, is_safe: bool = False) -> None:
    """Write a file of a run with `replace_file`. Raises ToolFailed if the file system refuses."""
    try:
        replace_file(path, json.dumps(data).encode(), is_safe=is_safe)
    except OSError as error:
        raise ToolFailed(f"cannot write {path.name} of a run: {error.strerror}", str(path)) from error


def read_json(path: Path) -> dict[str, Any]:
    """Return the map in a file of a run. Raises NotFound if it is missing, ToolFailed if it is damaged."""
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise NotFound(f"the run has no {path.name}", str(path.parent)) from None
    except OSError as error:
        raise damaged(path, error.strerror or "it cannot be read") from error
    except (ValueError, RecursionError) as error:
        raise damaged(path, str(error) if path.stat().st_size else "it is empty") from error
    if not isinstance(data, dict):
        raise damaged(path, "it is not a map")
    return data


def damaged(path: Path, why: str) -> ToolFailed:
    """Return the error for an unusable file of a run."""
    name = path.parent.parent.name
    step = f"end what is left of it: symph down {name}; then remove it: symph local gc"
    return ToolFailed(f'{path.name} of a run of "{name}" is damaged: {why}', at=str(path), next=step)


_TRIES = "tries.jsonl"
# Read at most this much of the record of tries, from its end, in bytes: several hundred tries.
_MOST_TRIES = 1 << 16


def note_try(folder: Path, one: Try) -> None:
    """Add a try to the record in the folder of a process; on a full disk it is lost."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    with contextlib.suppress(OSError), os.fdopen(os.open(folder / _TRIES, flags, 0o600), "ab") as file:
        file.write(json.dumps(asdict(one)).encode() + b"\n")


def tries_of(folder: Path) -> tuple[Try, ...]:
    """Return the last tries of a process, oldest first, without damaged lines."""
    tries: dict[float | None, Try] = {}
    with contextlib.suppress(OSError), (folder / _TRIES).open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _MOST_TRIES))
        for line in file:
            with contextlib.suppress(ValueError, TypeError):
                one = Try(**json.loads(line))
                # A supervisor that was killed may not have noted that it noted this one.
                tries[one.started] = one
    return tuple(tries.values())


LIVENESS_LOCK = "life"
SUPERVISOR = "symphony_charts.local.supervisor.supervisor"
"""The module that a supervisor runs."""
_IDENTITY, _SUPERVISOR = "identity.json", "supervisor.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLocation:
    """The place of a run that has not ended; `words` describes it.

    ``here``: its processes are on this machine, in this pid namespace. ``elsewhere``: it is live, but its processes are
    not visible from here. ``lost``: it is not live anywhere, and with `is_other_boot` no process of it can be left.
    ``unknown``: this cannot be determined from here.
    """

    verdict: Literal["here", "elsewhere", "lost", "unknown"]
    words: str = ""
    is_other_boot: bool = False


def write_identity(folder: Path) -> None:
    """Write the identity and place of a new run into its folder. Raises OSError, also if there is one already.

    From then on the liveness lock of the run can be held.
    """
    data = {"names": [folder.parent.name, folder.name], "folder": str(folder), "machine": asdict(this_machine())}
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    os.close(os.open(folder / LIVENESS_LOCK, flags, 0o600))
    with os.fdopen(os.open(folder / _IDENTITY, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(json.dumps(data))
        file.flush()
        os.fsync(file.fileno())
    flush_folder(folder)


def write_supervisor(folder: Path) -> None:
    """Record this program as the supervisor of the run in `folder`."""
    record = identify(os.getpid())
    assert record is not None  # noqa: S101 - it runs
    # After a power loss no process of the run is left, so this need not survive one.
    write_json(folder / _SUPERVISOR, asdict(record))


def supervisor_of(folder: Path) -> ProcessRecord | None:
    """Return the last supervisor of the run in `folder`; None if it is unknown.

    If its file is unusable, find it by its liveness lock: a second supervisor must not join it.
    """
    with contextlib.suppress(NotFound, ToolFailed, TypeError, ValueError):
        return ProcessRecord(**read_json(folder / _SUPERVISOR))
    others = holders(folder / LIVENESS_LOCK)
    return next((identify(pid) for pid in others if SUPERVISOR in command_line(pid)), None)


def clear_liveness(folder: Path) -> None:
    """Remove the liveness lock of a run whose state is final."""
    for name in (_SUPERVISOR, LIVENESS_LOCK):
        (folder / name).unlink(missing_ok=True)


def run_location(folder: Path) -> RunLocation:
    """Return the place of the run in `folder`, which has not ended by its state. Locks and writes nothing."""
    held = is_liveness_lock_held(folder / LIVENESS_LOCK)
    try:
        identity = read_json(folder / _IDENTITY)
        if identity["names"] != [folder.parent.name, folder.name]:
            raise ValueError("it belongs to another run")
        then, place = Machine(**identity["machine"]), str(identity["folder"])
    except (NotFound, ToolFailed, KeyError, TypeError, ValueError):
        words = "its identity.json does not name its machine"
        if _lives_here(folder):
            return RunLocation(verdict="here", words=words)
        # Without working locks the run may be live.
        return RunLocation(verdict="unknown" if held is None else "elsewhere" if held else "lost", words=words)
    now = this_machine()
    is_same_boot = now.boot_id == then.boot_id and bool(now.boot_id)
    is_same_namespace = is_same_boot and (now.pid_namespace, now.init_start) == (then.pid_namespace, then.init_start)
    if is_same_namespace and place == str(folder):
        return RunLocation(verdict="here")
    if held:
        where = "here, from the folder " + place if is_same_namespace else f"on {then.host}"
        container = ", in another container" if is_same_boot and not is_same_namespace else ""
        return RunLocation(verdict="elsewhere", words=f"runs {where}{container}")
    is_same_machine = bool(now.machine_id) and (now.host, now.machine_id) == (then.host, then.machine_id)
    if held is False and (is_same_boot or is_same_machine or _is_local(folder)):
        return RunLocation(verdict="lost", words=f"it ran on {then.host} and has died", is_other_boot=not is_same_boot)
    return RunLocation(verdict="unknown", words=f"it ran on {then.host} and may still run; this machine cannot see it")


def _lives_here(folder: Path) -> bool:
    """Return True if a supervisor, tmux server or program of the run is a process here; ignore its files."""
    lock = folder / LIVENESS_LOCK
    return bool(holders(lock) or members("", [], f"{variable_names.RUN}={folder.name}".encode()))


def _is_local(folder: Path) -> bool:
    """Return True if no other machine sees the files of `folder`."""
    with contextlib.suppress(OSError):
        return file_system_of(folder).is_local
    return False
