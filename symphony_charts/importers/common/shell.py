"""Shell scripts in a container's command become the lines of a process's `cmds`, under the shell that ran them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from symphony_charts.spec.shells import named_shell

__all__ = ["Script", "script_of"]

_SHELLS = frozenset(("ash", "bash", "dash", "ksh", "sh", "zsh"))
# The options of a shell up to the one that takes a script; any other word would be the name of a file.
_OPTIONS = re.compile(r"(?:(?:--[a-z]+|[-+][A-Zabd-np-z]+|[-+][A-Zabd-np-z]*o [a-z]+) )*-[A-Zabd-np-z]*c(?:o [a-z]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A shell script found in a command: its text, and the words before it."""

    text: str
    shell: tuple[str, ...]

    @property
    def shell_field(self) -> str | list[str]:
        """The field `shell` of a process that runs the script as it ran: a name where there is one."""
        return named_shell(self.shell)

    @property
    def lines(self) -> list[str]:
        """The script as `cmds`: lines that belong together stay together, blank ones and comments go."""
        bare = "\n".join(line for line in self.text.split("\n") if not line.lstrip().startswith("#"))
        has_texts = "<<" in self.text or _has_open_quotes(bare)
        return _logical_lines(self.text if has_texts else bare, keep_all=has_texts)


def script_of(command: list[str], args: list[str]) -> Script | None:
    """The script that `command` and `args` run as the last word of a shell; None if they do anything else."""
    argv = [*command, *args]
    if len(argv) < 3 or not command or argv[0].rpartition("/")[2] not in _SHELLS:
        return None
    if not _OPTIONS.fullmatch(" ".join(argv[1:-1])):
        return None
    return Script(text=argv[-1], shell=tuple(argv[:-1]))


def _logical_lines(text: str, *, keep_all: bool) -> list[str]:
    """Lines, continued ones together; blank ones go unless `keep_all`, since texts may reach over lines."""
    lines: list[str] = []
    pending = ""
    for line in text.strip("\n").split("\n"):
        pending = f"{pending}\n{line}" if pending else line
        if line.endswith("\\") and not line.endswith("\\\\"):
            continue
        if pending.strip() or keep_all:
            lines.append(pending if keep_all else pending.rstrip())
        pending = ""
    if pending:
        lines.append(pending)
    return lines


def _has_open_quotes(text: str) -> bool:
    return any(line.count("'") % 2 or line.replace('\\"', "").count('"') % 2 for line in text.split("\n"))
