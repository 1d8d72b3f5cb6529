"""Symphony itself, of the registry, in a folder of its own: beside it stands what answers to its names here.

Once installed it stays in the user's cache, beside the other things that the tests build.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["DRIVER", "VERSION", "symphony_folder"]

VERSION = "0.10"
DRIVER = Path(__file__).with_name("driver.py")
# What it imports, as of its time where a later version no longer has what it calls.
_NEEDS = (
    "libtmux==0.8.5",
    "benedict==0.3.2",
    "nanolog==0.1.3",
    "prettyprinter==0.18.0",
    "colorful==0.5.6",
    "docker==7.1.0",
)
_COMMON = ("pygments", "pyyaml", "requests", "urllib3", "idna", "certifi", "charset-normalizer")


def symphony_folder() -> Path | None:
    """The folder to go first on PYTHONPATH; None where the registry is out of reach."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "symphony-charts"
    place = cache / f"symphony-{VERSION}"
    if place.exists():
        return place
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="symphony-") as folder:
        beside = Path(folder) / "symphony"
        argv = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(beside)]
        done = subprocess.run(
            [*argv, f"symphony=={VERSION}", *_NEEDS, *_COMMON], capture_output=True, timeout=600, check=False
        )
        if done.returncode:
            return None
        try:
            beside.rename(place)
        except OSError:
            if not place.exists():  # another test run was quicker
                raise
    return place
