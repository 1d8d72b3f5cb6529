"""The `symph` command."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Sequence

try:
    from symphony_charts.cli.parser import SymphonyParser
except KeyboardInterrupt:  # Ctrl-C in the first 30 ms prints no traceback either.
    raise SystemExit(130) from None


# Rendering creates many objects and frees few: with Python's default of 700, a third of the time is garbage collection.
GARBAGE_AFTER = 50_000


class Symph(SymphonyParser):
    """The installed command: SymphonyParser under the fixed name `symph`."""

    prog = "symph"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (by default the process's own) and return its exit status."""
    # Skip the garbage collection at exit, which takes longer than some verbs.
    atexit.register(gc.freeze)
    gc.set_threshold(GARBAGE_AFTER)
    return Symph().main(argv)
