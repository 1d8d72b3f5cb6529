"""`current_of` gives the experiment that verbs mean when they name none; a small file of ours remembers it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from symphony_charts.backend.protocol import Watcher
from symphony_charts.errors import NotFound
from symphony_charts.system.user_folders import state_dir

__all__ = ["absent_experiment", "chosen_at", "current_of", "set_current"]


def chosen_at(place: str) -> str | None:
    """Return the name that was chosen for a place (see `Watcher.place`), whether or not it still runs."""
    name = _read().get(place)
    return name if isinstance(name, str) else None


def set_current(place: str, name: str | None) -> None:
    """Choose an experiment for a place; None forgets the choice."""
    chosen = {**_read(), place: name}
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps({key: value for key, value in chosen.items() if value}), encoding="utf-8")
    beside.rename(path)


def current_of(watcher: Watcher) -> str:
    """Return the chosen experiment if it exists, else the only one. Raises NotFound, listing all."""
    names = watcher.names()
    chosen = chosen_at(watcher.place)
    if chosen in names:
        return chosen
    if len(names) == 1:
        return names[0]
    if names:
        raise NotFound(f"several experiments run here: {', '.join(names)}", next="name one, or symph use")
    if ended := [status.name for status in watcher.experiments(ended=True)]:
        what = f"no experiment runs here; ended: {', '.join(ended)}"
        raise NotFound(what, next=f"symph ps {ended[0]}, or start one: symph up SPEC")
    raise NotFound("no experiment runs here", next="start one: symph up SPEC")


def absent_experiment(name: str, running: Sequence[str]) -> NotFound:
    """Return the error for a name that does not run: a spec file is no name, and running ones are listed."""
    if name.endswith((".yaml", ".yml", ".json", ".py")):
        step = "give the `name` that stands in the file; symph ls lists what runs"
        return NotFound(f'"{name}" is a file, and experiments that run are known by name', next=step)
    known = f"running now: {', '.join(dict.fromkeys(running))}" if running else "nothing runs; symph up SPEC starts it"
    return NotFound(f'experiment "{name}" does not run here', next=known)


def _path() -> Path:
    return state_dir() / "current.json"


def _read() -> dict[str, object]:
    try:
        data = json.loads(_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
