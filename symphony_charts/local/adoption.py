"""Runs of an older version bear no marker, so that nothing removes them; adopting them gives them one."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from symphony_charts.errors import Conflict, NotFound
from symphony_charts.local.history import home
from symphony_charts.local.runs import Run
from symphony_charts.system import remover

__all__ = ["adopt", "find_unmarked"]

# What ids of runs have looked like in every version.
_RUN_ID = re.compile(r"\d{8}-\d{6}-\d{6}")


def find_unmarked() -> tuple[list[Run], list[Path]]:
    """The runs that an older version made, and what else stands among the runs without a marker."""
    old: list[Run] = []
    others: list[Path] = []
    for experiment in _entries(home()):
        folders = _entries(experiment)
        if not folders and not experiment.is_dir():
            others.append(experiment)
        for folder in folders:
            try:
                remover.check(home(), experiment.name, folder.name)
            except NotFound:
                is_run = _RUN_ID.fullmatch(folder.name) and _is_plan_of(experiment.name, folder / "plan.json")
                if is_run:
                    old.append(Run(folder))
                else:
                    others.append(folder)
            except Conflict:
                continue
    return old, others


def adopt(runs: Sequence[Run], others: Sequence[Path]) -> None:
    """Give `runs`, and the folder that they are in, the markers by which they can be removed.

    Raises Conflict where that folder has none and holds `others`, too: then it is not ours alone.
    """
    try:
        remover.check(home())
    except NotFound:
        if others:
            names = ", ".join(str(path) for path in others)
            what = f"symph's folder of runs also holds what symph did not make: {names}"
            raise Conflict(what, str(home()), "move that, or the runs, elsewhere (SYMPH_STATE_DIR)") from None
        names_of_runs = {run.experiment for run in runs}
        remover.adopt(home(), proof=lambda folder: names_of_runs <= {entry.name for entry in os.scandir(folder)})
    for run in runs:
        remover.adopt(home(), run.experiment, run.run_id, proof=partial(_has_plan, run.experiment))


def _has_plan(experiment: str, folder: int) -> bool:
    return _is_plan_of(experiment, Path(f"/proc/self/fd/{folder}/plan.json"))


def _is_plan_of(experiment: str, path: Path) -> bool:
    """Whether this is the plan of a run of `experiment`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            plan = json.load(file)
    except (OSError, ValueError):
        return False
    return isinstance(plan, dict) and plan.get("experiment") == experiment and "processes" in plan


def _entries(folder: Path) -> list[Path]:
    """What stands in a folder, but for what we keep there ourselves; nothing where it is none."""
    try:
        return sorted(path for path in folder.iterdir() if path.name not in (remover.MARKER, ".trash"))
    except OSError:
        return []
