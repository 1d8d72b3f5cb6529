"""Symphony itself, from the registry, in its own folder, to compare with our replacement of its names.

Once installed it stays in the user's cache, beside the tests' other builds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

VERSION = "0.10"
DRIVER = Path(__file__).with_name("driver.py")
CONFTEST = Path(__file__).with_name("conftest_of_tests.py")
# Its imports, in old versions where a later one has dropped functions that it calls.
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
    """Return the folder to go first on PYTHONPATH; None if the registry is out of reach."""

    def install(beside: Path) -> bool:
        argv = ["install", "--no-deps", "--target", str(beside), f"symphony=={VERSION}", *_NEEDS, *_COMMON]
        return pip(*argv)

    return kept(f"symphony-{VERSION}", install)


def symphony_tests() -> Path | None:
    """Return the folder of Symphony's own tests, from its source package; None if the registry is out of reach."""

    def unpack(beside: Path) -> bool:
        sources = beside.with_name("sources")
        if not pip("download", "--no-deps", "--no-binary", ":all:", "--dest", str(sources), f"symphony=={VERSION}"):
            return False
        (archive,) = sources.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(sources, filter="data")
        (sources / f"symphony-{VERSION}" / "test").rename(beside)
        return True

    return kept(f"symphony-{VERSION}-tests", unpack)


def pip(*words: str) -> bool:
    """Run pip; return True if it succeeded."""
    argv = [sys.executable, "-m", "pip", *words, "--quiet"]
    return subprocess.run(argv, capture_output=True, timeout=600, check=False).returncode == 0


def kept(name: str, make: Callable[[Path], bool]) -> Path | None:
    """Return the folder `name` of the cache, made if missing; None if it cannot be made."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "symphony-charts"
    place = cache / name
    if place.exists():
        return place
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="symphony-") as folder:
        beside = Path(folder) / "made"
        if not make(beside):
            return None
        try:
            beside.rename(place)
        except OSError:
            if not place.exists():  # a parallel test run was quicker
                raise
    return place
