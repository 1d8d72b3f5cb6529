"""Views of a process: in the local plan, in rendered manifests, or while it runs.

Two views of one process are equal but for a closed list: see `ALLOWED` and `differences`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from symphony_charts.local.plan.records import Bind, LocalPlan, PlannedProcess
from symphony_charts.spec.variable_names import ATTEMPT, DI_JOB_ID, DI_JOB_NAMESPACE, RUN

# Variables that a pod has from its image or kubelet, or that name the run itself; they may differ or be absent. The
# number of earlier tries is known here when a process starts, and not under every kind. The node assigns GPUs to a
# container, and a process outside of containers reads them from CUDA's variables.
ALLOWED = frozenset(
    (
        *("PATH", "HOME", "LANG", "TERM", "HOSTNAME"),
        *(RUN, ATTEMPT, DI_JOB_ID, DI_JOB_NAMESPACE),
        *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessView:
    """One process: `name` as ``pod/process``, argument list, environment, folder (None: the image's), files.

    `files` maps absolute paths to a digest with mode. `hosts` are all names and addresses of the experiment as this
    side writes them; comparing treats them as equal. `unknown` are the variables that only a cluster can set.
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None
    files: Mapping[str, str]
    hosts: frozenset[str]
    unknown: frozenset[str] = frozenset()


def file_mark(content: bytes, mode: int) -> str:
    """Return the content digest and the permission bits of a file, for comparisons."""
    return f"{hashlib.sha256(content).hexdigest()[:16]} {mode:o}"


def view_of_plan(plan: LocalPlan) -> dict[str, ProcessView]:
    """Return the view of every process of a local plan but steps, by ``pod/process``."""
    hosts = frozenset(process.address for process in plan.processes)
    return {
        f"{process.pod}/{process.process}": _planned(plan, process, hosts)
        for process in plan.processes
        if not process.is_step
    }


def differences(local: ProcessView, pod: ProcessView, allowed: Iterable[str] = ()) -> list[str]:
    """Return the differences between two views beyond the closed list and the variables in `allowed`.

    The closed list: `ALLOWED`, values that only a cluster has (a Secret's value, the name of the node), host parts of
    addresses, and the working folder if the pod leaves it to the image. `view_of_plan` reverts moved ports, and paths
    of files that cannot be shown in place.
    """
    skipped = ALLOWED | pod.unknown | set(allowed)
    lines = []
    ours, theirs = _hostless(local), _hostless(pod)
    if ours(" \0".join(local.argv)) != theirs(" \0".join(pod.argv)):
        lines.append(f"argv: {list(local.argv)} here, {list(pod.argv)} in the pod")
    for name in sorted({*local.env, *pod.env} - skipped):
        mine, other = local.env.get(name), pod.env.get(name)
        if mine is None or other is None or ours(mine) != theirs(other):
            lines.append(f"env {name}: {mine!r} here, {other!r} in the pod")
    if pod.cwd is not None and local.cwd != pod.cwd:
        lines.append(f"folder: {local.cwd} here, {pod.cwd} in the pod")
    for path in sorted({*local.files, *pod.files}):
        if local.files.get(path) != pod.files.get(path):
            lines.append(f"file {path}: {local.files.get(path)} here, {pod.files.get(path)} in the pod")
    return lines


class _hostless:  # noqa: N801 - a function with a memory: the hosts in the order in which to look for them
    def __init__(self, view: ProcessView) -> None:
        self._hosts = sorted(view.hosts, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for host in self._hosts:
            text = text.replace(host, "<host>")
        return text


def as_in_pod(text: str, binds: Iterable[Bind], ports: Mapping[str, int], moved: Mapping[str, Sequence[int]]) -> str:
    """Return `text` with the pod's numbers of `moved` ports and the pod's paths of `binds` without a place here."""
    text = _original(text, binds)
    for name, others in moved.items():
        for port in set(others) - {ports[name]}:
            text = re.sub(rf"(?<!\d){port}(?!\d)", str(ports[name]), text)
    return text


def _original(text: str, binds: Iterable[Bind]) -> str:
    """Return `text` with the pod's paths in place of the local ones."""
    targets = {bind.source: bind.target for bind in binds}
    if not targets:
        return text
    # The longest first, or a folder would match as one above it.
    choices = "|".join(re.escape(source) for source in sorted(targets, key=len, reverse=True))
    return re.sub(rf"(?<![\w./-])(?:{choices})(?![\w.-])", lambda match: targets[match[0]], text)


def _planned(plan: LocalPlan, process: PlannedProcess, hosts: frozenset[str]) -> ProcessView:
    files: dict[str, str] = {}
    binds = (*plan.binds, *process.binds)

    def back(text: str) -> str:
        return as_in_pod(text, () if plan.has_namespace else binds, plan.ports, plan.moved)

    for bind in binds:
        run_dir, has_files, _ = bind.source.partition("/files/")
        for file in plan.files if has_files else ():
            # `files/config/a.py` of the run's folder, seen below the bind's target.
            whole = f"{run_dir}/{file.path}"
            if bind.source.startswith("/") and whole.startswith(f"{bind.source}/"):
                files[f"{bind.target}/{whole[len(bind.source) + 1 :]}"] = file_mark(file.content, file.mode)
    return ProcessView(
        name=f"{process.pod}/{process.process}",
        argv=tuple(back(argument) for argument in process.argv),
        env={name: back(value) for name, value in process.env.items()},
        cwd=back(process.cwd),
        files=files,
        hosts=hosts,
    )
