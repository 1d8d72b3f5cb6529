"""The `symph` command."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Sequence

try:
    from symphony_charts.cli.parser import SymphonyParser
except KeyboardInterrupt:  # Whoever changed their mind in the first 30 ms wants no traceback either.
    raise SystemExit(130) from None


# A render makes many objects and drops few: Python's own 700 spend a third of a large one on looking for garbage.
GARBAGE_AFTER = 50_000


class Symph(SymphonyParser):
    """The installed command: SymphonyParser as it is, under one name however it was started."""

    prog = "symph"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (the process's own without `argv`) and return its exit status."""
    # At exit Python looks for garbage among all objects, which takes longer than some verbs: the process ends anyway.
    atexit.register(gc.freeze)
    gc.set_threshold(GARBAGE_AFTER)
    return Symph().main(argv)
