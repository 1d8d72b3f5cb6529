"""What a run shows to all of its processes is mounted once; the rest each process mounts for itself.

A process has a mount namespace of its own only where it sees something that others do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from symphony_charts.local.plan.records import Bind, LocalPlan, PlannedProcess

__all__ = ["MountSets", "helper_plan", "is_for_mount", "mount_sets"]

# tmux itself runs where these are seen, and starts its programs from them: a volume there is for the processes alone.
_OF_TMUX = ("/bin", "/dev", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/tmp", "/usr", "/var/run")  # noqa: S108


@dataclass(frozen=True, slots=True, kw_only=True)
class MountSets:
    """`shared` is mounted for the whole run, `own` by each slot itself."""

    shared: tuple[Bind, ...]
    own: Mapping[int, tuple[Bind, ...]]


def mount_sets(plan: LocalPlan, run_dir: str, socket_dir: str) -> MountSets:
    """Divide the mounts of `plan` between the run, with files in `run_dir` and `socket_dir`, and its processes."""
    if not plan.has_namespace:
        return MountSets(shared=(), own={})
    needed = (run_dir, socket_dir, *_OF_TMUX)
    sees = [process.binds for process in plan.processes]
    common = [bind for bind in (sees[0] if sees else ()) if all(bind in binds for binds in sees)]
    while blocked := [bind for bind in common if _is_blocked(bind, common, sees, needed)]:
        common = [bind for bind in common if bind not in blocked]
    replaced = {_path(bind) for bind in common}
    shared = (*(bind for bind in plan.binds if _path(bind) not in replaced), *common)
    own = {process.slot: _own(process, shared) for process in plan.processes}
    return MountSets(shared=shared, own={slot: binds for slot, binds in own.items() if binds})


def _is_blocked(bind: Bind, common: Sequence[Bind], sees: Sequence[Sequence[Bind]], needed: Sequence[str]) -> bool:
    """Return True if `bind` would hide paths that tmux or other volumes need, or lies in a volume of some processes."""
    own = [other for binds in sees for other in binds if other not in common]
    if any(_holds(bind, path) for path in needed):
        return True
    return any(_holds(other, _path(bind)) or _holds(bind, other.source) for other in own)


def _own(process: PlannedProcess, shared: Sequence[Bind]) -> tuple[Bind, ...]:
    own = [bind for bind in process.binds if bind not in shared]
    targets = {_path(bind) for bind in own}
    # What the run shows below a volume of the process would be hidden by that: it is shown once more.
    hidden = [
        bind for bind in shared if _path(bind) not in targets and any(_holds(other, _path(bind)) for other in own)
    ]
    return tuple(sorted([*hidden, *own], key=lambda bind: _path(bind).count("/")))


def is_for_mount(binds: Sequence[Bind], run_dir: str) -> bool:
    """Return True if the program mount can show `binds`, which costs a fraction of what our own helper does.

    It cannot reach a source that is covered, keep a path inside of a volume, or make mounts below a source read-only.
    """
    return not any(
        bind.sub_path
        or (bind.read_only and not bind.source.startswith(f"{run_dir}/"))
        or any(_holds(other, bind.source) or (other != bind and _holds(other, _path(bind))) for other in binds)
        for bind in binds
    )


def helper_plan(
    targets: Sequence[Bind],
    run_dir: str,
    *,
    journal: str | None,
    prepare: Sequence[Sequence[Bind]] = (),
    paths: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the input of `local.mounts.enter`; `paths` maps targets to their places in the experiment."""

    def rows(binds: Sequence[Bind]) -> list[dict[str, object]]:
        return [
            {
                "source": bind.volume,
                "sub_path": bind.sub_path,
                "at": _path(bind),
                "read_only": bind.read_only,
                "path": paths.get(bind.target, ""),
            }
            for bind in binds
        ]

    return {
        "scratch": f"{run_dir}/scratch",
        "journal": journal,
        "targets": rows(targets),
        "prepare": [rows(binds) for binds in prepare],
    }


def _path(bind: Bind) -> str:
    return bind.target.rstrip("/") or "/"


def _holds(bind: Bind, path: str) -> bool:
    target = _path(bind)
    return path == target or path.startswith(f"{target.rstrip('/')}/")
