"""`Screen` redraws a text in place on a terminal, and prints it again after each change anywhere else."""

from __future__ import annotations

import sys

__all__ = ["Screen"]


class Screen:
    """Shows one text after the other where the first one stood."""

    def __init__(self) -> None:
        self._lines = 0
        self._shown: str | None = None
        self._is_terminal = sys.stdout.isatty()

    def show(self, text: str) -> None:
        """Show this text; the same text again changes nothing."""
        if text == self._shown:
            return
        if self._is_terminal and self._lines:
            sys.stdout.write(f"\x1b[{self._lines}F\x1b[J")
        elif self._shown is not None and not self._is_terminal:
            sys.stdout.write("\n")
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
        self._lines, self._shown = text.count("\n") + 1, text
