"""A process names the shell that runs its lines: `sh`, `bash`, or an argument list before the script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from symphony_charts.errors import Problem
from symphony_charts.spec.variable_names import is_shell_name

__all__ = [
    "DEFAULT_SHELL",
    "Shell",
    "named_shell",
    "not_handed_on",
    "shell_argv",
    "shell_faults",
    "shell_script",
]

# msgspec reads this alias; a list is what stands before the script, its last argument.
Shell: TypeAlias = Literal["sh", "bash"] | list[str]

DEFAULT_SHELL: Literal["sh"] = "sh"
_ARGV = {"sh": ("/bin/sh", "-e", "-c"), "bash": ("bash", "-eo", "pipefail", "-c")}


def shell_argv(shell: Shell | None) -> list[str]:
    """Return the words in front of a script that `shell` runs; None is the usual shell."""
    if isinstance(shell, list):
        return list(shell)
    return list(_ARGV[shell or DEFAULT_SHELL])


def named_shell(argv: Sequence[str]) -> Shell:
    """Return the shell whose `shell_argv` is `argv`, by its name if it has one."""
    return "sh" if tuple(argv) == _ARGV["sh"] else "bash" if tuple(argv) == _ARGV["bash"] else list(argv)


def shell_script(command: Sequence[str]) -> str | None:
    """Return the script of a `command` that one of the named shells runs; None of any other command."""
    *shell, script = command or ("",)
    return script if tuple(shell) in _ARGV.values() else None


def not_handed_on(argv: Sequence[str], names: Iterable[str]) -> list[str]:
    """The variables of `names` that the lines do not see which `argv` runs, where that `sh` is dash or busybox's."""
    is_sh = bool(argv) and argv[0].rpartition("/")[2] in ("sh", "dash", "ash")
    return sorted(name for name in names if not is_shell_name(name)) if is_sh else []


def shell_faults(shell: Shell | None, path: str, *, has_lines: bool) -> Iterator[Problem]:
    """What is wrong with `shell` at `path`, where `has_lines` says whether there is anything for it to run."""
    if isinstance(shell, list) and (not shell or not shell[0]):
        what = "`shell` names no program"
        yield Problem(what=what, path=path, next="write sh, bash, or a list such as [/bin/bash, -c]")
    if shell not in (None, DEFAULT_SHELL) and not has_lines:
        what = "`shell` runs the lines of `cmds` and `preamble`, and there are none"
        yield Problem(what=what, path=path, next="drop it, or say the lines")
