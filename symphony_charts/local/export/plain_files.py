"""Other runners start a plan from plain files: a script for each process, and what it reads.

No value of a user ever stands in a file of such a runner: those expand variables, templates and formats in what they
read, each in its own way. They are given paths to scripts of ours, which hold the values inside quotes of `sh`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from symphony_charts.errors import SpecError
from symphony_charts.local.plan.records import Check, LocalPlan, PlannedProcess
from symphony_charts.local.plan.scripts import check_path, quote, start_script

__all__ = ["Export", "check_command", "command_of", "label_of", "mount_notes", "plain_files"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """`main` is the file for the other runner, `files` maps relative paths to content and mode, `notes` is for people.

    `start` is the command line that starts it, to be shown.
    """

    main: str
    files: Mapping[str, tuple[bytes, int]]
    notes: tuple[str, ...]
    start: str

    @property
    def text(self) -> str:
        """The content of `main`."""
        return self.files[self.main][0].decode()


def label_of(process: PlannedProcess) -> str:
    """Return a name of letters, digits, ``-`` and one ``_`` at most, unlike that of any other process of the plan."""
    return process.pod if process.pod == process.process else f"{process.pod}_{process.process}"


def command_of(process: PlannedProcess, folder: str) -> str:
    """Return the command line that runs one process in an environment without the runner's own variables."""
    return f"/usr/bin/env -i /bin/sh {check_path(folder)}/p/{process.slot}/run"


def plain_files(plan: LocalPlan, folder: str, *, waits: bool) -> dict[str, tuple[bytes, int]]:
    """Return the scripts of all processes and the files they see, for the absolute path `folder`.

    With `waits` each process itself waits for those it depends on, for runners that know no order.
    """
    files = {file.path: (file.content, file.mode) for file in plan.files}
    for process in plan.processes:
        awaited = any(wait.slot == process.slot for other in plan.processes for wait in other.waits)
        script = _run_script(plan, process, folder, keeps_status=waits and awaited, waits=waits)
        files[f"p/{process.slot}/run"] = (script.encode(), 0o700)
        files[f"p/{process.slot}/start"] = (start_script(process).encode(), 0o600)
    return files


def _run_script(plan: LocalPlan, process: PlannedProcess, folder: str, *, keeps_status: bool, waits: bool) -> str:
    """What a runner starts for one process: wait for others if it must, then become the process.

    With `keeps_status` the script stays beside the process and leaves its status in ``exit``.
    """
    lines = [
        f"cd -- {quote(f'{folder}/p/{process.slot}')} || exit 125",
        # So that whoever stops it finds it while it still waits; `start` writes the same or its child's.
        "read -r pid _ </proc/self/stat",
        "echo $pid >pid",
        "rm -f exit",
    ]
    for wait in process.waits if waits else ():
        lines += _wait_lines(plan.processes[wait.slot], wait.until)
    if not keeps_status:
        return "\n".join([*lines, ". ./start"]) + "\n"
    lines += [
        # A handler that does nothing, unlike an ignored signal, is not inherited by the process.
        "trap : HUP INT TERM",
        "(. ./start)",
        "status=$?",
        "echo $status >exit.new && mv exit.new exit",
        "exit $status",
    ]
    return "\n".join(lines) + "\n"


def _wait_lines(other: PlannedProcess, until: str) -> Iterator[str]:
    done = f"../{other.slot}/exit"
    if until == "done":
        yield f"while [ ! -e {done} ]; do sleep 0.1; done"
        yield f"read -r status <{done}"
        yield '[ "$status" = 0 ] || { echo "symph: a process before this one failed" >&2; exit 125; }'
        return
    for check in other.checks:
        yield f"until {check_command(check)} || [ -e {done} ]; do sleep 0.1; done"


def check_command(check: Check) -> str:
    """Return a shell command that succeeds once the check would."""
    if check.kind == "exec":
        return f"({' '.join(map(quote, check.command))}) >/dev/null 2>&1"
    if not check.host.replace(".", "").isdigit():
        raise SpecError.one(f"{check.host!r} is no address of this machine")
    # A program for HTTP is not everywhere; whoever accepts connections is close enough to ready here.
    return f"bash -c ': </dev/tcp/{check.host}/{check.port}' 2>/dev/null"


def mount_notes(plan: LocalPlan) -> tuple[str, ...]:
    """Return notes on volumes that other runners cannot show: they need a private mount."""
    lost = {f"{bind.target} of {process.name}" for process in plan.processes for bind in process.binds}
    return tuple(f"not mounted by other runners: {name}" for name in sorted(lost))
