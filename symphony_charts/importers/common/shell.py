"""Shell scripts in a container's command become the lines of a process's `cmds`, where that means the same.

`cmds` run as one ``sh -e`` script. A script that ran under another shell, or without ``-e``, keeps its meaning: bash
stays where the script speaks bash, and ``set +e`` is put in front where it went on after a failing line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from symphony_charts.spec.shells import DEFAULT_SHELL, shell_argv

__all__ = ["Script", "command_lines", "script_of"]

_SHELLS = {
    "sh": "sh",
    "/bin/sh": "sh",
    "/usr/bin/sh": "sh",
    "bash": "bash",
    "/bin/bash": "bash",
    "/usr/bin/bash": "bash",
    "/usr/local/bin/bash": "bash",
}
_FLAGS = {("-c",): False, ("-ec",): True, ("-ce",): True, ("-e", "-c"): True}
_BASH = re.compile(
    r"\[\[|<<<|\|&|&>|\$'|\$\"|\(\(|<\(|>\(|\+=|=\(|;;&|\{[^{}\s]{0,80}\.\.[^{}\s]{0,80}\}"
    r"|\$\{[A-Za-z_][A-Za-z0-9_]*(?:/|\^|,|:[^-=?+]|\[)|\$\{!|\$(?:RANDOM|SECONDS|UID|EUID|BASH|PIPESTATUS|LINENO)\b"
    r"|\{[^{}\s$]{1,80},[^{}\s]{0,80}\}"
    r"|(?:^|[;&|(]\s*|\bthen\s+|\bdo\s+)(?:source|function|shopt|pushd|popd|declare|typeset|let|mapfile|readarray|select"
    r"|time|coproc|disown|enable|builtin|complete)\b"
    r"|\bpipefail\b|\becho\s+-[neE]+\b|\bread\s+-[a-qs-z]|\btrap\b.*\bERR\b|\bexport\s+-f\b|\blocal\s+-|\bwait\s+-n",
    re.MULTILINE,
)
_NEEDS_SHELL = re.compile(r"\(\s*\)|\btrap\b|\balias\b")  # functions, traps and aliases end with their shell
_SIMPLE_WORD = re.compile(r"[A-Za-z0-9_./$\"'][^;&|<>()`#]*")
_KEYWORDS = frozenset(
    {
        "if",
        "for",
        "while",
        "until",
        "case",
        "then",
        "do",
        "done",
        "fi",
        "esac",
        "else",
        "elif",
        "exec",
        "exit",
        "cd",
        "export",
        "set",
        "unset",
        "wait",
        "trap",
        "return",
        "break",
        "continue",
        "{",
        "}",
        "!",
        ":",
        "eval",
        "source",
        ".",
        "true",
        "false",
        "test",
        "[",
        "echo",
        "printf",
        "read",
        "shift",
        "umask",
        "ulimit",
        "alias",
        "command",
        "type",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A shell script found in a command: its text, whether it stops at the first failing line, the words before it."""

    text: str
    stops_on_failure: bool
    shell: tuple[str, ...]

    @property
    def is_bash(self) -> bool:
        """Whether it runs under bash and says something that a plain shell would not understand."""
        return _SHELLS[self.shell[0]] == "bash" and _BASH.search(self.text) is not None


def script_of(command: list[str], args: list[str]) -> Script | None:
    """The script that `command` and `args` run with ``sh -c`` or ``bash -c``; None if they do anything else."""
    argv = [*command, *args]
    if len(argv) < 3 or argv[0] not in _SHELLS or not command:
        return None
    flags, text = tuple(argv[1:-1]), argv[-1]
    if flags not in _FLAGS:
        return None
    return Script(text=text, stops_on_failure=_FLAGS[flags], shell=tuple(argv[:-1]))


def command_lines(script: Script, *, may_exec: bool = True) -> list[str]:
    """The script as `cmds`: lines that belong together stay together, blank ones and comments go.

    The last line is exec'ed where it starts a program, so that signals reach that program and not the shell; a
    shell that runs one command does the same by itself. What was made of `cmds` before comes back as it was.
    """
    bare = "\n".join(line for line in script.text.split("\n") if not line.lstrip().startswith("#"))
    has_texts = "<<" in script.text or _has_open_quotes(bare)
    lines = _logical_lines(script.text if has_texts else bare, keep_all=has_texts)
    if list(script.shell) == shell_argv(DEFAULT_SHELL):
        return lines
    is_sequence = len(lines) > 1 or any(";" in line for line in lines)
    if may_exec and lines and not has_texts and _is_simple(lines[-1]) and not _NEEDS_SHELL.search(script.text):
        lines[-1] = f"exec {lines[-1].lstrip()}"
    if is_sequence and not script.stops_on_failure:
        lines.insert(0, "set +e")
    return lines


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
    """Whether a quoted text may reach over the end of a line."""
    return any(line.count("'") % 2 or line.replace('\\"', "").count('"') % 2 for line in text.split("\n"))


def _is_simple(line: str) -> bool:
    """Whether `line` is one plain command, which may take the shell's place."""
    line = line.strip().replace("\\\n", " ")
    if not _SIMPLE_WORD.fullmatch(line) or "\n" in line:
        return False
    first = line.split()[0]
    return first not in _KEYWORDS and "=" not in first
