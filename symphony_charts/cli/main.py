"""The `symph` command."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Sequence

from symphony_charts.cli.failures import INTERRUPTED, status_of
from symphony_charts.cli.plugins import with_plugins
from symphony_charts.cli.verbs import DESCRIPTION, VERBS, page_of

# Rendering creates many objects and frees few: with Python's default of 700, a third of the time is garbage collection.
GARBAGE_AFTER = 50_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (by default the process's own) and return its exit status."""
    # Skip the garbage collection at exit, which takes longer than some verbs.
    atexit.register(gc.freeze)
    gc.set_threshold(GARBAGE_AFTER)
    if list(sys.argv[1:] if argv is None else argv) in (["-h"], ["--help"]):
        return status_of(_print_help)
    try:
        # The parser takes 20 ms to import, as long as the page of all verbs takes without it.
        from symphony_charts.cli.parser import Symph
    except KeyboardInterrupt:  # Ctrl-C prints no traceback here either.
        return INTERRUPTED
    return Symph().main(argv)


def _print_help() -> int:
    sys.stdout.write(page_of("symph", DESCRIPTION, with_plugins(VERBS)))
    return 0
