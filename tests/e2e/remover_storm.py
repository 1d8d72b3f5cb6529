"""Removes 3,000 levels, 20,000 files, and a tree in which another process swaps folders and links to a canary.

Prints JSON. It must be started in its own mount and pid namespaces (`tests.namespace`) and refuses to run elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from pathlib import Path

from symphony_charts.system import remover

SECONDS = 6.0


def deep(home: Path) -> list[str]:
    """Return the leftovers of 3,000 levels, whose path exceeds the limit of system calls."""
    folder = os.open(remover.make(home, "rl", "deep"), os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    return remover.remove(home, "rl", "deep")


def many(home: Path) -> list[str]:
    run = remover.make(home, "rl", "many")
    for number in range(200):
        (run / "v" / str(number)).mkdir(parents=True)
        for name in range(100):
            (run / "v" / str(number) / str(name)).touch()
    return remover.remove(home, "rl", "many")


def storm(home: Path, canary: Path) -> int:
    """Return how often `v` was removed while it and its content alternated between folders and links."""
    run = remover.make(home, "rl", "storm")
    top, inner, aside = run / "v", run / "v" / "a", run / "v" / "b"
    is_over = threading.Event()

    def swap() -> None:
        while not is_over.is_set():
            for place, other in ((inner, aside), (top, run / "w")):
                with contextlib.suppress(OSError):
                    place.mkdir(parents=True, exist_ok=True)
                    (place / "file").touch()
                    place.rename(other)
                    place.symlink_to(canary)
                    place.unlink()
                    other.rename(place)

    swapper = threading.Thread(target=swap)
    swapper.start()
    removals, until = 0, time.monotonic() + SECONDS
    while time.monotonic() < until:
        remover.remove_parts(home, ("rl", "storm"), ["v"])
        removals += 1
    is_over.set()
    swapper.join()
    return removals


def main(folder: Path) -> None:
    assert os.getpid() < 10, "only in a pid namespace of its own"
    canary, home = folder / "canary", folder / "local"
    (canary / "deep").mkdir(parents=True)
    (canary / "keep").touch()
    (canary / "deep" / "keep").touch()
    told = {"deep": deep(home), "many": many(home), "removals": storm(home, canary)}
    sys.stdout.write(json.dumps({**told, "canary": len(list(canary.rglob("keep")))}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
