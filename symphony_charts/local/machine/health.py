"""Check what this machine offers to symphony-charts: programs, namespaces, limits, GPUs."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Literal

from symphony_charts.backend.status import Capability
from symphony_charts.errors import ToolFailed
from symphony_charts.local.logs import LogFile
from symphony_charts.local.machine.gpus import gpus_seen, held_gpus
from symphony_charts.local.machine.machine import find_limiter, namespace_prefix
from symphony_charts.system import subprocess_runner
from symphony_charts.system.file_locks import is_locked_across_machines
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
    always = [_system(), Capability(name="python", status="ok", detail=version)]
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


def _system() -> Capability:
    if runs_experiments():
        return Capability(name="system", status="ok", detail=system_name())
    refusal = elsewhere()
    detail = f"{system_name()}: charts, plans, publishing and clusters work; local runs need Linux"
    return Capability(name="system", status="warning", detail=detail, next=refusal.next)


def _tool(name: str, argv: tuple[str, ...], oldest: tuple[int, int], use: str) -> Capability:
    if shutil.which(name) is None:
        return Capability(name=name, status="missing", detail=f"needed for: {use}", next=f"install {name}")
    try:
        text = subprocess_runner.run(argv, timeout_s=20).text
    except ToolFailed as error:
        return Capability(name=name, status="missing", detail=error.what, next=f"run: {' '.join(argv)}")
    version = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?\S*", text)
    if version is None:
        return Capability(name=name, status="warning", detail=f"prints no version: {text.strip()[:60]}")
    number = (int(version[1]), int(version[2]))
    if number < oldest:
        wanted = ".".join(map(str, oldest))
        return Capability(
            name=name, status="missing", detail=f"{version[0]} is older than {wanted}", next=f"update {name}"
        )
    return _known_faults(name, version[0], number)


def _known_faults(name: str, text: str, number: tuple[int, int]) -> Capability:
    if name == "helm" and number == (3, 18):
        return Capability(
            name=name,
            status="warning",
            detail=f"{text} turns numbers of values files into strings",
            next="use 3.19 or 4.3",
        )
    if name == "helm" and (4, 0) <= number <= (4, 2):
        detail = f"{text} drops values of certain sizes that have no final newline"
        return Capability(name=name, status="warning", detail=detail, next="use 4.3")
    return Capability(name=name, status="ok", detail=text)


def _namespaces() -> Capability:
    if namespace_prefix():
        detail = "files and secrets have the same paths as in a pod"
        return Capability(name="namespaces", status="ok", detail=detail)
    detail = "no private mounts: files and volumes have other paths than in a pod, in commands and variables as well"
    return Capability(name="namespaces", status="warning", detail=detail, next="allow user namespaces (Linux 5.12)")


def _limits() -> Capability:
    limiter = find_limiter()
    if set(limiter.by.values()) == {"systemd"} and len(limiter.by) > 1:
        return Capability(name="limits", status="ok", detail="by systemd scopes, if `local: {limits: true}` is set")
    detail = f"memory by rlimits, no CPU limits: {limiter.why}"
    return Capability(name="limits", status="warning", detail=detail, next="log in with a systemd user session")


def _gpus() -> list[Capability]:
    if shutil.which("nvidia-smi") is None:
        return []
    try:
        seen = gpus_seen()
    except ToolFailed as error:
        return [Capability(name="gpus", status="warning", detail=error.what, next="run: nvidia-smi")]
    held = len(held_gpus() & {gpu.id for gpu in seen})
    return [Capability(name="gpus", status="ok", detail=f"{len(seen)} visible, {held} used by runs")]


def _descriptors() -> Capability:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = (hard - 64) // 2 if hard != resource.RLIM_INFINITY else 10**6
    detail = f"{soft} open files, up to {hard}: about {room} processes in tmux"
    status: Literal["ok", "warning"] = "ok" if room >= 500 else "warning"
    return Capability(
        name="open files", status=status, detail=detail, next="" if status == "ok" else "raise the limit: ulimit -Hn"
    )


def _folder(name: str, path: Path) -> Capability:
    above = next(folder for folder in (path, *path.parents) if folder.exists())
    if os.access(above, os.W_OK):
        return Capability(name=f"{name} folder", status="ok", detail=str(path))
    variable = f"SYMPH_{name.upper()}_DIR"
    return Capability(name=f"{name} folder", status="missing", detail=f"{path}: not writable", next=f"set {variable}")


def _runtime() -> Capability:
    try:
        check_private(runtime_dir())
    except ToolFailed as error:
        return Capability(name="runtime folder", status="missing", detail=f"{error.at}: {error.what}", next=error.next)
    return _folder("runtime", runtime_dir())


def _logs() -> list[Capability]:
    try:
        folder = next(path for path in (state_dir(), *state_dir().parents) if path.exists())
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(b"\n" * 4096)
            file.flush()
            LogFile(Path(file.name)).cut(1)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            return []
        detail = "logs grow without limit: the file system of the state folder cannot free the start of a file"
        return [
            Capability(
                name="logs",
                status="warning",
                detail=detail,
                next="set SYMPH_STATE_DIR to a folder on another file system",
            )
        ]
    return [Capability(name="logs", status="ok", detail="limited in size (local.log_size)")]


def _locks() -> Capability:
    if is_locked_across_machines():
        return Capability(name="locks", status="ok", detail="only one symph command at a time changes an experiment")
    detail = "the state folder has no locks across machines: there, two commands may change an experiment at once"
    return Capability(name="locks", status="warning", detail=detail, next="set SYMPH_STATE_DIR to a local folder")


def _linger() -> list[Capability]:
    config = Path("/etc/systemd/logind.conf")
    try:
        kills = re.search(r"^\s*KillUserProcesses\s*=\s*(yes|true|1)", config.read_text(encoding="utf-8"), re.M)
    except OSError:
        return []
    if not kills:
        return []
    detail = "logging out ends all your processes"
    return [Capability(name="logout", status="warning", detail=detail, next="loginctl enable-linger")]
