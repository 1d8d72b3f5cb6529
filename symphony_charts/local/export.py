"""Export a plan for other runners: plain files, process-compose and tmuxp.

The runner's own file contains no user values, since runners expand variables, templates and formats in different ways.
It contains paths to our scripts, which hold the values inside quotes of `sh`. Sources of the formats:
F1bonacc1/process-compose, its documentation and schema; tmuxp's documentation, "Configuration".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from msgspec import Struct

from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_write import dump
from symphony_charts.local.plan.records import Check, LocalPlan, PlannedProcess
from symphony_charts.local.plan.scripts import check_path, quote, start_script


class Export(Struct, frozen=True, kw_only=True):
    """The file `main` for another runner, the content and mode of all `files`, and the command line that starts it."""

    main: str
    files: Mapping[str, tuple[bytes, int]]
    notes: tuple[str, ...]
    start: str

    @property
    def text(self) -> str:
        return self.files[self.main][0].decode()


def label_of(process: PlannedProcess) -> str:
    """Return a name of letters, digits, ``-`` and one ``_`` at most, unique in the plan."""
    return process.pod if process.pod == process.process else f"{process.pod}_{process.process}"


def command_of(process: PlannedProcess, folder: str) -> str:
    """Return the command line that runs one process in an environment without the runner's own variables."""
    return f"/usr/bin/env -i /bin/sh {check_path(folder)}/p/{process.slot}/run"


def plain_files(plan: LocalPlan, folder: str, *, waits: bool) -> dict[str, tuple[bytes, int]]:
    """Return the scripts of all processes and the files they see, for the absolute path `folder`.

    With `waits` each process itself waits for those it depends on, for runners without a start order.
    """
    files = {file.path: (file.content, file.mode) for file in plan.files}
    for process in plan.processes:
        awaited = any(wait.slot == process.slot for other in plan.processes for wait in other.waits)
        script = _run_script(plan, process, folder, keeps_status=waits and awaited, waits=waits)
        files[f"p/{process.slot}/run"] = (script.encode(), 0o700)
        files[f"p/{process.slot}/start"] = (start_script(process).encode(), 0o600)
    return files


def _run_script(plan: LocalPlan, process: PlannedProcess, folder: str, *, keeps_status: bool, waits: bool) -> str:
    """Return the script that a runner starts for one process: wait for others if necessary, then become the process.

    With `keeps_status` the script keeps running beside the process and writes its status to ``exit``.
    """
    lines = [
        f"cd -- {quote(f'{folder}/p/{process.slot}')} || exit 125",
        # So that a stop finds the process while it still waits; `start` writes its own pid or its child's.
        "read -r pid _ </proc/self/stat",
        "echo $pid >pid",
        "rm -f exit",
    ]
    for wait in process.waits if waits else ():
        lines += _wait_lines(plan.processes[wait.slot], wait.until)
    if not keeps_status:
        return "\n".join([*lines, ". ./start"]) + "\n"
    # Unlike an ignored signal, an empty handler is not inherited by the process.
    lines += ["trap : HUP INT TERM", "(. ./start)", "status=$?", "echo $status >exit.new && mv exit.new exit"]
    return "\n".join([*lines, "exit $status"]) + "\n"


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
    """Return a shell command that succeeds if the check would."""
    if check.kind == "exec":
        return f"({' '.join(map(quote, check.command))}) >/dev/null 2>&1"
    if not check.host.replace(".", "").isdigit():
        raise SpecError.one(f"{check.host!r} is not an address of this machine")
    # An HTTP client is not always installed; here an open port counts as ready.
    return f"bash -c ': </dev/tcp/{check.host}/{check.port}' 2>/dev/null"


def mount_notes(plan: LocalPlan) -> tuple[str, ...]:
    """Return notes on volumes that other runners cannot show: they need a private mount."""
    lost = {f"{bind.target} of {process.name}" for process in plan.processes for bind in process.binds}
    return tuple(f"other runners do not mount {name}" for name in sorted(lost))


_RESTARTS = {"always": "always", "on-failure": "on_failure", "never": "no"}


def to_process_compose(plan: LocalPlan, folder: str) -> Export:
    """Return the files that `process-compose up` runs from the absolute path `folder`."""
    document = {
        "version": "0.5",
        "is_strict": True,
        "disable_env_expansion": True,
        "shell": {"shell_command": "/bin/sh", "shell_argument": "-c"},
        "processes": {label_of(process): _process(plan, process, folder) for process in plan.processes},
    }
    main = "process-compose.yaml"
    files = {**plain_files(plan, folder, waits=False), main: (dump(document).encode(), 0o600)}
    start = f"process-compose up -f {check_path(folder)}/{main}"
    return Export(main=main, files=files, notes=mount_notes(plan), start=start)


def _process(plan: LocalPlan, process: PlannedProcess, folder: str) -> dict[str, object]:
    availability: dict[str, object] = {"restart": _RESTARTS[process.restart]}
    if process.restart != "never":
        availability["backoff_seconds"] = 1
    if process.restart == "on-failure":
        availability["max_restarts"] = process.retries
    if process.slot in plan.done_when and len(plan.done_when) == 1:
        availability["exit_on_end"] = True
    entry: dict[str, object] = {
        "command": f"exec {command_of(process, folder)}",
        "availability": availability,
        "shutdown": {"signal": 15, "timeout_seconds": process.grace_s},
        "log_location": f"{folder}/p/{process.slot}/log",
    }
    if process.tty:
        entry["is_tty"] = True
    if process.waits:
        awaited = [(plan.processes[wait.slot], wait.until) for wait in process.waits]
        entry["depends_on"] = {label_of(other): {"condition": _condition(other, until)} for other, until in awaited}
    if process.checks:
        entry["readiness_probe"] = _probe(process.checks)
    return entry


def _condition(other: PlannedProcess, until: str) -> str:
    if until == "done":
        return "process_completed_successfully"
    return "process_healthy" if other.checks else "process_started"


def _probe(checks: tuple[Check, ...]) -> dict[str, object]:
    """Combine all checks of a process in one command: process-compose has one probe, with whole seconds."""
    first = checks[0]
    return {
        "exec": {"command": " && ".join(map(check_command, checks))},
        "initial_delay_seconds": math.ceil(first.initial_delay_s),
        "period_seconds": 1 if first.automatic else max(1, math.ceil(first.period_s)),
        "timeout_seconds": max(1, math.ceil(first.timeout_s)),
        "failure_threshold": 1000,
    }


def to_tmuxp(plan: LocalPlan, folder: str) -> Export:
    """Return the files that `tmuxp load` starts from the absolute path `folder`."""
    windows: dict[str, list[PlannedProcess]] = {}
    for process in plan.processes:
        windows.setdefault(process.pod, []).append(process)
    document = {
        "session_name": plan.experiment,
        # Remove status files of an earlier load, which waiting processes would otherwise read.
        "before_script": f"/bin/sh {check_path(folder)}/clean",
        # Set for all windows before the first one exists: a process that ends at once must not end the session.
        "global_options": {"remain-on-exit": "on", "default-shell": "/bin/sh"},
        "windows": [
            {
                "window_name": pod,
                "layout": "tiled",
                "window_shell": command_of(panes[0], folder),
                # `window_shell` is the first pane; the others are split off with a shell of their own.
                "panes": ["blank", *({"shell": command_of(process, folder)} for process in panes[1:])],
            }
            for pod, panes in windows.items()
        ],
    }
    main = "tmuxp.yaml"
    files = {**plain_files(plan, folder, waits=True), main: (dump(document).encode(), 0o600)}
    files["clean"] = (f"rm -f {check_path(folder)}/p/*/exit\n".encode(), 0o600)
    return Export(main=main, files=files, notes=mount_notes(plan), start=f"tmuxp load {check_path(folder)}/{main}")
