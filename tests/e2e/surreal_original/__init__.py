"""Surreal itself, from the registry, without the libraries that its learners need and its launchers do not."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.e2e.symphony_original import kept, pip, symphony_folder

VERSION = "0.2.1"
_STAND_INS = Path(__file__).with_name("stand_ins.py")


def surreal_folder(place: Path) -> Path | None:
    """Fill `place`, the folder to go first on PYTHONPATH, and return it; None if the registry is out of reach."""
    surreal = kept(
        f"surreal-{VERSION}", lambda to: pip("install", "--no-deps", "--target", str(to), f"surreal=={VERSION}")
    )
    beside = symphony_folder()
    if surreal is None or beside is None:
        return None
    place.mkdir()
    (place / "surreal").symlink_to(surreal / "surreal")
    (place / "benedict").symlink_to(beside / "benedict")
    shutil.copy(_STAND_INS, place / "sitecustomize.py")
    return place
