"""Check what this machine offers to symphony-charts: programs, namespaces, limits, GPUs."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from symphony_charts.backend.status import Capability
from symphony_charts.errors import ToolFailed
from symphony_charts.local.logs import LogFile
from symphony_charts.local.machine.gpus import gpu_holders, gpus_seen
from symphony_charts.local.machine.machine import find_limiter, namespace_prefix
from symphony_charts.system import subprocess_runner
from symphony_charts.system.file_locks import is_locked_across_machines
from symphony_charts.system.files import existing
from symphony_charts.system.user_folders import (
    check_private,
    elsewhere,
    runs_experiments,
    runtime_dir,
    state_dir,
    system_name,
)

if sys.platform != "win32":
    import resource

# program, argv for its version, oldest version that works, purpose
_TOOLS = (
    ("tmux", ("tmux", "-V"), (3, 2), "symph up"),
    (
        "helm",
        ("helm", "version", "--template", "{{.Version}}"),
        (3, 14),
        "installing charts by hand, symph validate --helm",
    ),
    ("kubectl", ("kubectl", "version", "--client"), (1, 29), "symph secrets seal --cert cluster"),
    ("git", ("git", "--version"), (2, 30), "publishing to a repository"),
)


def examine() -> list[Capability]:
    """Return programs with their versions, then capabilities of the kernel and the file system."""
    version = ".".join(map(str, sys.version_info[:3]))
    always = [_system(), _ok("python", version)]
    if not runs_experiments():
        return [*always, *(_tool(*tool) for tool in _TOOLS if tool[0] != "tmux")]
    return [
        *always,
        *(_tool(*tool) for tool in _TOOLS),
        _namespaces(),
        _limits(),
        *_gpus(),
        _descriptors(),
        _folder("state", state_dir()),
        _runtime(),
        _locks(),
        *_logs(),
        *_linger(),
    ]


def _ok(name: str, detail: str) -> Capability:
    return Capability(name=name, status="ok", detail=detail)


def _warning(name: str, detail: str, next: str = "") -> Capability:
    return Capability(name=name, status="warning", detail=detail, next=next)


def _missing(name: str, detail: str, next: str) -> Capability:
    return Capability(name=name, status="missing", detail=detail, next=next)


def _system() -> Capability:
    if runs_experiments():
        return _ok("system", system_name())
    detail = f"{system_name()}: charts, plans, publishing and clusters work; local runs need Linux"
    return _warning("system", detail, elsewhere().next)


def _tool(name: str, argv: tuple[str, ...], oldest: tuple[int, int], use: str) -> Capability:
    if shutil.which(name) is None:
        return _missing(name, f"needed for: {use}", f"install {name}")
    try:
        text = subprocess_runner.run(argv, timeout_s=20).text
    except ToolFailed as error:
        return _missing(name, error.what, f"run: {' '.join(argv)}")
    version = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?\S*", text)
    if version is None:
        return _warning(name, f"prints no version: {text.strip()[:60]}")
    number = (int(version[1]), int(version[2]))
    if number < oldest:
        return _missing(name, f"{version[0]} is older than {'.'.join(map(str, oldest))}", f"update {name}")
    if name == "helm" and number == (3, 18):
        return _warning(name, f"{version[0]} turns numbers of values files into strings", "use 3.19 or 4.3")
    if name == "helm" and (4, 0) <= number <= (4, 2):
        return _warning(name, f"{version[0]} drops values of certain sizes that have no final newline", "use 4.3")
    return _ok(name, version[0])


def _namespaces() -> Capability:
    if namespace_prefix():
        return _ok("namespaces", "files and secrets have the same paths as in a pod")
    detail = "no private mounts: files and volumes have other paths than in a pod, in commands and variables as well"
    return _warning("namespaces", detail, "allow user namespaces (Linux 5.12)")


def _limits() -> Capability:
    limiter = find_limiter()
    if set(limiter.by.values()) == {"systemd"} and len(limiter.by) > 1:
        return _ok("limits", "by systemd scopes, if `local: {limits: true}` is set")
    detail = f"memory by rlimits, no CPU limits: {limiter.why}"
    return _warning("limits", detail, "log in with a systemd user session")


def _gpus() -> Iterator[Capability]:
    if shutil.which("nvidia-smi"):
        try:
            seen = gpus_seen()
        except ToolFailed as error:
            yield _warning("gpus", error.what, "run: nvidia-smi")
            return
        held = len(gpu_holders().keys() & {gpu.id for gpu in seen})
        yield _ok("gpus", f"{len(seen)} visible, {held} used by runs")


def _descriptors() -> Capability:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = (hard - 64) // 2 if hard != resource.RLIM_INFINITY else 10**6
    detail = f"{soft} open files, up to {hard}: about {room} processes in tmux"
    return _ok("open files", detail) if room >= 500 else _warning("open files", detail, "raise the limit: ulimit -Hn")


def _folder(name: str, path: Path) -> Capability:
    if os.access(existing(path), os.W_OK):
        return _ok(f"{name} folder", str(path))
    return _missing(f"{name} folder", f"{path}: not writable", f"set SYMPH_{name.upper()}_DIR")


def _runtime() -> Capability:
    try:
        check_private(runtime_dir())
    except ToolFailed as error:
        return _missing("runtime folder", f"{error.at}: {error.what}", error.next)
    return _folder("runtime", runtime_dir())


def _logs() -> Iterator[Capability]:
    try:
        with tempfile.NamedTemporaryFile(dir=existing(state_dir())) as file:
            file.write(b"\n" * 4096)
            file.flush()
            LogFile(Path(file.name)).cut(1)
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            detail = "logs grow without limit: the file system of the state folder cannot free the start of a file"
            yield _warning("logs", detail, "set SYMPH_STATE_DIR to a folder on another file system")
    else:
        yield _ok("logs", "limited in size (local.log_size)")


def _locks() -> Capability:
    if is_locked_across_machines():
        return _ok("locks", "only one symph command at a time changes an experiment")
    detail = "the state folder has no locks across machines: there, two commands may change an experiment at once"
    return _warning("locks", detail, "set SYMPH_STATE_DIR to a local folder")


def _linger() -> Iterator[Capability]:
    with contextlib.suppress(OSError):
        config = Path("/etc/systemd/logind.conf").read_text(encoding="utf-8")
        if re.search(r"^\s*KillUserProcesses\s*=\s*(yes|true|1)", config, re.M):
            yield _warning("logout", "logging out ends all your processes", "loginctl enable-linger")
