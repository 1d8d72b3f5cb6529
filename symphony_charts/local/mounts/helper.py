"""The command line of the helper that mounts files at the pod's paths (`enter`), and its refusals."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from symphony_charts.errors import Problem, SpecError, ToolFailed
from symphony_charts.system.user_folders import state_dir

# Its exit status if this machine cannot make the requested mounts.
REFUSED = 125


def helper_command(plan: Path) -> list[str]:
    """Return the command that mounts the targets in the file `plan` and becomes the program in its further arguments.

    It ignores the environment and does not need `site`: it is started before every run.
    """
    start = (
        "import sys; sys.path[:0] = [sys.argv.pop(1)]; from symphony_charts.local.mounts.mounter import main; main()"
    )
    return [sys.executable, "-I", "-S", "-c", start, str(Path(__file__).parents[3]), str(plan)]


def points_journal() -> Path:
    return state_dir().absolute() / "mount-points"


def refusals_in(error: ToolFailed) -> SpecError | None:
    """Return the refusals that the helper printed; None if another program failed."""
    if error.status != REFUSED or not error.stderr.startswith("["):
        return None
    rows = json.loads(error.stderr)
    return SpecError([Problem(what=row["what"], path=row["path"], next=row["next"]) for row in rows])
