"""Text of others is made fit to print: servers and log lines must not drive the terminal."""

from __future__ import annotations

import re

__all__ = ["printable_line", "printable_lines", "terminal_line"]

# Sequences that begin with ESC, or with the one character of C1 that means the same. Source: ECMA-48, 5.3 to 5.6.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_COLOR = re.compile(r"\x1b\[[0-9;:]*m")


def printable_line(text: str) -> str:
    """Return the text on one line, without escape sequences, other control characters as U+FFFD."""
    if text.isprintable():
        return text
    plain = _ESCAPE.sub("", text)
    return "".join(c if c.isprintable() else " " if c in "\t\n\r" else "\ufffd" for c in plain)


def printable_lines(text: str) -> str:
    """Return the text line by line: line ends and tabs stay, and a carriage return is a line end."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join("\t".join(printable_line(part) for part in line.split("\t")) for line in lines)


def terminal_line(text: str) -> str:
    """Return what a terminal shows of a line, on one line: colours stay, and end with it.

    Of a line that was written anew after a carriage return, as progress bars do, the last state is left.
    """
    if text.isprintable():
        return text
    text = text.rstrip("\r").rpartition("\r")[2]
    colors = _COLOR.findall(text)
    plain = [printable_line(part.expandtabs()) for part in _COLOR.split(text)]
    if not colors:
        return plain[0]
    return "".join(part + color for part, color in zip(plain, [*colors, "\x1b[0m"], strict=True))
