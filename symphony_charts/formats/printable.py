"""Make foreign text safe to print, and format ages, sizes and lists of names."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Sequences that begin with ESC, or with the one character of C1 that means the same. Source: ECMA-48, 5.3 to 5.6.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)


_COLOR = re.compile(r"\x1b\[[0-9;:]*m")


def printable_line(text: str) -> str:
    """Return the text on one line, without escape sequences; other control characters become U+FFFD."""
    if text.isprintable():
        return text
    plain = _ESCAPE.sub("", text)
    return "".join(c if c.isprintable() else " " if c in "\t\n\r" else "\ufffd" for c in plain)


def printable_lines(text: str) -> str:
    """Return the printable lines of the text; tabs stay, and a carriage return ends a line."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join("\t".join(printable_line(part) for part in line.split("\t")) for line in lines)


def terminal_line(text: str) -> str:
    """Return a line as a terminal shows it: colours stay, and end with the line.

    If a carriage return rewrites the line, as in progress bars, return its last state.
    """
    if text.isprintable():
        return text
    text = text.rstrip("\r").rpartition("\r")[2]
    colors = _COLOR.findall(text)
    plain = [printable_line(part.expandtabs()) for part in _COLOR.split(text)]
    if not colors:
        return plain[0]
    return "".join(part + color for part, color in zip(plain, [*colors, "\x1b[0m"], strict=True))


def age(seconds: float) -> str:
    """Return an age in Symphony's units (`75` -> ``1m``): seconds, minutes, hours with a decimal, days and hours."""
    if seconds < 60:
        return f"{max(0, int(seconds))}s"
    if seconds < 3600:
        return f"{int(seconds // 60)}m"
    if seconds < 86400:
        return f"{seconds / 3600:.1f}h"
    return f"{int(seconds // 86400)}d{int(seconds % 86400 // 3600)}h"


def size(count: float) -> str:
    """Return a number of bytes as ``12 B``, ``3.4 KiB``, ``1.2 GiB``."""
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        # 1024.0 after rounding belongs to the next unit.
        if round(count, 1) < 1024:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} TiB"


def with_gpus(process: str, count: int) -> str:
    """Return a process with the number of its GPUs: ``replay (2 GPUs)``, or ``replay`` without any."""
    return f"{process} ({count} GPU{'s' if count > 1 else ''})" if count else process


def several(names: Sequence[str], most: int = 3) -> str:
    """Return the first names and the number of the others: ``a, b, c and 4 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
