"""Apply what an experiment declares under `local:` to a process and to the replicas of a pod."""

from __future__ import annotations

import msgspec

from symphony_charts.spec.model import Process
from symphony_charts.spec.pods import Pod

__all__ = ["local_process", "replicas_here"]


def local_process(process: Process) -> Process:
    """Return `process` with its `local:` overrides in place."""
    if process.local is None:
        return process
    local = process.local
    changes: dict[str, object] = {}
    if local.cmds is not None:
        changes = {"command": None, "args": None}
    elif local.command is not None:
        changes = {"cmds": None}
    own = {name: getattr(local, name) for name in ("command", "args", "cmds", "shell", "cwd")}
    changes.update({key: value for key, value in own.items() if value is not None})
    return msgspec.structs.replace(process, **changes)


def replicas_here(pod: Pod) -> int:
    """Return the number of replicas of `pod` run on one machine."""
    own = [process.local.replicas for process in pod.processes.values() if process.local is not None]
    chosen = [count for count in own if count is not None]
    return chosen[0] if chosen else pod.settings.replicas
