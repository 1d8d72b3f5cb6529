"""Builds of the programs from their pinned Go modules, once per machine.

A built program is kept in a cache that all checkouts on the machine share, in a folder named after the hash of its
inputs; `.tools/` beside this package holds links into that cache. So a second call does nothing, a fresh clone is warm,
and an interrupted build resumes from Go's own cache.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from symphony_charts.errors import NotFound, ToolFailed, ToolMissing
from tests.e2e.tools.catalog import TOOLS, Tool
from tests.e2e.tools.go import Go, environment, find_go

FOLDER = Path(__file__).resolve().parent.parent / ".tools"
_MODULES = Path(__file__).resolve().parent
_BUILD_TIMEOUT_S = 3000


def cache_folder() -> Path:
    """Return the folder of built programs for all checkouts: below $XDG_CACHE_HOME or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "symphony-charts" / "e2e-tools"


def find_tool(name: str) -> Path:
    """Return the path of the program `name`, ready to run.

    Raises NotFound for a name the catalog lacks, ToolMissing if it has not been built.
    """
    if name not in TOOLS:
        raise NotFound(f"no end-to-end tool is called {name}", next=f"one of {', '.join(TOOLS)}")
    path = FOLDER / name
    if not path.exists():
        raise ToolMissing(f"{name} has not been built", at=str(FOLDER), next="make e2e-tools")
    return path


def key_of(tool: Tool, go: Go) -> str:
    """Return the hash of the build's inputs, in 16 hex digits: Go's version, the module's files, package and stamp."""
    folder = _MODULES / tool.group
    text = "\0".join([go.version, tool.package, repr(sorted(tool.stamp.items()))])
    parts = [text.encode(), (folder / "go.mod").read_bytes(), (folder / "go.sum").read_bytes()]
    parts += [path.read_bytes() for path in sorted(folder.rglob("*.go"))]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def build(names: Iterable[str] = ()) -> int:
    """Build the programs `names` (default: all but dear ones) into `FOLDER`; return the number of programs compiled."""
    wanted = [TOOLS[name] for name in names] or [tool for tool in TOOLS.values() if not tool.is_dear]
    FOLDER.mkdir(exist_ok=True)
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    go = find_go(cache)
    compiled = 0
    for number, tool in enumerate(wanted, 1):
        kept = cache / f"{tool.name}-{key_of(tool, go)}" / tool.name
        with _only_one(cache / f"{tool.name}.lock"):
            if not kept.exists():
                _compile(tool, go, kept, f"[{number}/{len(wanted)}] {tool.name}")
                compiled += 1
        _link(tool, kept)
    return compiled


def _link(tool: Tool, target: Path) -> None:
    """Point `FOLDER/<tool>` at `target` atomically, so that a running test never finds it absent."""
    link = FOLDER / tool.name
    if link.is_symlink() and link.readlink() == target:
        return
    fresh = link.with_name(f".{tool.name}.{os.getpid()}")
    fresh.symlink_to(target)
    fresh.replace(link)


def _compile(tool: Tool, go: Go, kept: Path, label: str) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    fresh = kept.with_name(f".{tool.name}.{os.getpid()}")
    flags = " ".join(["-s", "-w", *(f"-X={variable}={value}" for variable, value in sorted(tool.stamp.items()))])
    argv = [str(go.path), "build", "-p", "2", "-ldflags", flags, "-o", str(fresh), tool.package]
    nice = shutil.which("nice")
    argv = [nice, "-n", "15", *argv] if nice else argv
    started = time.monotonic()
    print(f"{label}: building, which may take minutes", file=sys.stderr, flush=True)
    where, env = _MODULES / tool.group, environment()
    done = subprocess.run(
        argv, cwd=where, env=env, capture_output=True, text=True, timeout=_BUILD_TIMEOUT_S, check=False
    )
    seconds = time.monotonic() - started
    if done.returncode != 0:
        raise ToolFailed(
            f"go could not build {tool.name}: {done.stderr.strip()[-1500:]}",
            at=f"tests/e2e/tools/{tool.group}/go.mod",
            argv=argv,
            status=done.returncode,
            stdout=done.stdout,
            stderr=done.stderr,
            seconds=seconds,
        )
    fresh.replace(kept)
    print(f"{label}: {kept.stat().st_size >> 20} MiB in {seconds:.0f} s", file=sys.stderr, flush=True)


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Hold an exclusive lock, so that two checkouts never build one program at the same time."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
