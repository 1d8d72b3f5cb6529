"""A process starts the same entry point and arguments on every backend, its preamble in front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from symphony_charts.spec.model import Process, Step
from symphony_charts.spec.shells import shell_argv
from symphony_charts.spec.variable_names import beside_shells

__all__ = ["EntryPoint", "entry_point"]


class EntryPoint(NamedTuple):
    """Kubernetes' `command` and `args`; None leaves the image's own in place."""

    command: list[str] | None
    args: list[str] | None


def entry_point(process: Process | Step, preamble: Sequence[str] = ()) -> EntryPoint:
    """Return what `process` starts after the shell lines of `preamble` and its own.

    `cmds` become one script of the process's shell, the preamble's lines in front. In front of a `command` the preamble
    runs in the same shell, which is then replaced by the command, so signals reach it as they do without a preamble.
    Without `cmds` and preamble both lists go through untouched; a preamble alone cannot know the image's entry point.
    """
    lines = [*preamble, *(process.preamble if isinstance(process, Process) else ())]
    if process.cmds is not None:
        return EntryPoint([*shell_argv(process.shell), "\n".join([*lines, *process.cmds])], None)
    if lines and process.command:
        script = "\n".join([*lines, 'exec "$@"'])
        return EntryPoint(
            [*shell_argv(process.shell), script, "sh", *beside_shells(process.env), *process.command], process.args
        )
    return EntryPoint(process.command, process.args)
