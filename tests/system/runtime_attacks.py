"""Attacks on the runtime folder, each beside a precious file; print the state of both as JSON.

Run it in private mount and pid namespaces (`tests.namespace`); it refuses to run elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from symphony_charts.errors import ToolFailed
from symphony_charts.system import file_locks
from symphony_charts.system.user_folders import make_runtime_dir

ATTACKS: dict[str, Callable[[Path, Path], object]] = {}


def attack(function: Callable[[Path, Path], object]) -> Callable[[Path, Path], object]:
    """Register `function`, which gets the place of the runtime folder and a precious file, under its name."""
    ATTACKS[function.__name__] = function
    return function


def made(place: Path) -> None:
    place.mkdir(mode=0o700)


def locked() -> object:
    """Return the result of taking a lock in the runtime folder."""
    make_runtime_dir()
    with file_locks.exclusive("gpus", timeout_s=1.0):
        return "held"


@attack
def absent(place: Path, precious: Path) -> object:
    return [locked(), place.stat().st_mode & 0o777]


@attack
def open_to_others(place: Path, precious: Path) -> object:
    """The folder is ours, but other users may read it."""
    place.mkdir()
    place.chmod(0o755)
    return locked()


@attack
def link_to_a_folder_of_ours(place: Path, precious: Path) -> object:
    """A link to a folder with files of ours."""
    place.symlink_to(precious.parent)
    return locked()


@attack
def a_file(place: Path, precious: Path) -> object:
    place.write_text("")
    return locked()


@attack
def somebody_elses(place: Path, precious: Path) -> object:
    """Another user created the folder first, and gave us access."""
    place.mkdir()
    place.chmod(0o777)
    os.chown(place, 12345, 12345)
    return locked()


@attack
def hard_linked_lock(place: Path, precious: Path) -> object:
    """The file of the lock has a second name."""
    made(place)
    os.link(precious, place / "gpus.lock")
    return locked()


@attack
def piped_lock(place: Path, precious: Path) -> object:
    """The file of the lock is a pipe, on which a writer would block forever."""
    made(place)
    os.mkfifo(place / "gpus.lock")
    return locked()


@attack
def linked_lock(place: Path, precious: Path) -> object:
    made(place)
    (place / "gpus.lock").symlink_to(precious)
    return locked()


def main(folder: Path) -> None:
    assert os.getpid() < 10, "only in a pid namespace of its own"
    told: dict[str, object] = {}
    for name, function in ATTACKS.items():
        top = folder / name
        (top / "mine").mkdir(parents=True)
        (top / "mine").chmod(0o700)
        (top / "mine" / "precious").write_text("precious")
        os.environ["SYMPH_RUNTIME_DIR"] = str(top / "run")
        said: object = None
        with contextlib.suppress(PermissionError):
            try:
                said = function(top / "run", top / "mine" / "precious")
            except ToolFailed as error:
                said = error.what
        precious = (top / "mine" / "precious").read_text(encoding="utf-8")
        told[name] = [said, sorted(path.name for path in (top / "mine").iterdir()), precious]
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
