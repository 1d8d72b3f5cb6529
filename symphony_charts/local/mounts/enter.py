"""`main` mounts the files and volumes of a run or a process, and then becomes the program that uses them.

It is started in a new mount namespace with a PLAN and the PROGRAM's argument list: once for a run, before tmux, and for
a process whose mounts mount(8) cannot do. PLAN is a JSON file: `targets` lists the mounts; `scratch` is the mount that
marks the namespace of a run; `journal` records mount points that had to be made (null for a process, whose points the
run has prepared); `prepare` lists for each process the targets that it will mount itself. Unsupported mounts are
reported before any is made, as JSON on stderr, with status 125.
"""

from __future__ import annotations

import glob
import json
import os
import stat
import sys
from typing import Any

from symphony_charts.local.mounts import mount_points
from symphony_charts.local.mounts.mount_points import Journal
from symphony_charts.local.mounts.mounter import Mounter, Target

# A tmux built with utempter starts this helper twice for each pane, so that `who` shows it as a login.
_UTEMPTER = ("/usr/lib/*/utempter/utempter", "/usr/lib/utempter/utempter", "/usr/libexec/utempter/utempter")


def main() -> None:
    """Mount the targets of the plan and become the program, or print all refusals of this machine."""
    with open(sys.argv[1], encoding="utf-8") as file:
        plan: dict[str, Any] = json.load(file)
    journal = Journal(plan["journal"]) if plan["journal"] else None
    if journal is not None:
        _mark(plan["scratch"])
    mounter = Mounter(plan["scratch"], journal, classic=plan.get("classic", False) or _is_old_kernel())
    mounter.mount_all(_targets(plan["targets"]), [_targets(rows) for rows in plan["prepare"]])
    if mounter.refusals:
        sys.stderr.write(json.dumps(list({(row["what"], row["path"]): row for row in mounter.refusals}.values())))
        raise SystemExit(125)
    # Python itself adds this without a locale; our callers never set it.
    os.environ.pop("LC_CTYPE", None)
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 - there is no shell


def _targets(rows: list[dict[str, Any]]) -> list[Target]:
    return [Target(**row) for row in rows]


def _mark(scratch: str) -> None:
    """Mount a tmpfs of the run that identifies every process in this namespace as its member."""
    os.makedirs(scratch, exist_ok=True)
    mount_points.mount("symph", scratch, "tmpfs", options="mode=0755")
    for helper in {path for pattern in _UTEMPTER for path in glob.glob(pattern)}:
        if stat.S_ISREG(os.stat(helper).st_mode):
            mount_points.mount("/dev/null", helper, flags=mount_points.MS_BIND)


def _is_old_kernel() -> bool:
    """Return True if the calls for detached mounts are missing or forbidden."""
    try:
        tree = mount_points.open_tree("/dev/null", flags=0)
        try:
            mount_points.set_read_only(tree, is_recursive=False)
        finally:
            os.close(tree)
    except OSError:
        return True
    return False
