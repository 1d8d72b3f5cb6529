"""Processes are limited in CPU and memory by systemd scopes or, for memory alone, by rlimits.

A scope is what a container has: a control group for everything that a process starts, in which the kernel kills when
memory is used up. RLIMIT_DATA counts what one process alone has asked for and makes the request fail; RLIMIT_AS would
also count what is only reserved, of which CUDA, Go and Java reserve more than a machine has. Sources:
systemd.resource-control(5), getrlimit(2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from symphony_charts.formats.quantity import amount_of
from symphony_charts.local.plan.records import Limit, Limiter
from symphony_charts.spec.model import Experiment, Process, Step
from symphony_charts.spec.pods import processes_of
from symphony_charts.spec.resources import resources_of

__all__ = ["limits_note", "limits_of", "rlimit_lines", "scope_words", "verdict_script"]

_EVERYTHING = Limiter(by={"memory": "systemd", "cpu": "systemd"})
# What was killed for memory is known from the control group, in the words of its version 2 or 1, while the shell that
# started it is still in there.
_OOM_SCRIPT = """\
while IFS=: read -r _ kinds path; do
    case ,$kinds, in
    *,memory,*) events=/sys/fs/cgroup/memory$path/memory.oom_control ;;
    ,,) events=/sys/fs/cgroup$path/memory.events ;;
    *) continue ;;
    esac
    if [ -r "$events" ]; then
        while read -r key count; do
            if [ "$key" = oom_kill ] && [ "$count" != 0 ]; then echo "out of memory, limit @" >limit; fi
        done <"$events"
    fi
done </proc/self/cgroup
"""
_RLIMIT_SCRIPT = """\
if [ "$status" != 0 ]; then echo "memory limited to @ by rlimit" >limit; fi
"""


def limits_of(process: Process | Step, limiter: Limiter) -> tuple[Limit, ...]:
    """Return the limits of a process that `limiter` can hold it to."""
    limits = resources_of(process)[1] if isinstance(process, Process) else dict(process.limits)
    return tuple(
        Limit(resource=name, amount=amount_of(name, limits[name]), said=limits[name], by=by)
        for name in ("memory", "cpu")
        if name in limits and (by := limiter.by.get(name))
    )


def scope_words(limits: Sequence[Limit], limiter: Limiter) -> tuple[str, ...]:
    """Return the command that starts another one in a scope with `limits`; empty when systemd holds none of them."""
    properties = list(_properties([limit for limit in limits if limit.by == "systemd"]))
    if not properties:
        return ()
    return (
        *limiter.scope,
        *(word for text in properties for word in ("-p", text)),
        "--",
        "/usr/bin/env",
        "-u",
        "XDG_RUNTIME_DIR",
    )


def _properties(limits: Sequence[Limit]) -> Iterator[str]:
    for limit in limits:
        if limit.resource == "memory":
            yield f"MemoryMax={limit.amount}"
            # A node has no swap.
            yield "MemorySwapMax=0"
        else:
            yield f"CPUQuota={max(1, limit.amount) / 10:g}%"


def rlimit_lines(limits: Sequence[Limit]) -> list[str]:
    """Return lines of `sh` that bind what it becomes to those of `limits` that are rlimits."""
    return [f"ulimit -d {max(1, limit.amount // 1024)} || exit 125" for limit in limits if limit.by == "rlimit"]


def verdict_script(limits: Sequence[Limit]) -> str:
    """Return lines of `sh` that write to ``limit`` whether a limit ended a process with ``$status``."""
    scripts = {"systemd": _OOM_SCRIPT, "rlimit": _RLIMIT_SCRIPT}
    return "".join(scripts[limit.by].replace("@", limit.said) for limit in limits if limit.resource == "memory")


def limits_note(experiment: Experiment, limiter: Limiter) -> tuple[str, ...]:
    """Return notes on limits that are not as strict as in a pod."""
    asked = [limit for _, process in processes_of(experiment) for limit in limits_of(process, _EVERYTHING)]
    asked += [limit for step in experiment.prepare.values() for limit in limits_of(step, _EVERYTHING)]
    rlimits = [limit for limit in asked if limiter.by.get(limit.resource) == "rlimit"]
    lost = [limit for limit in asked if limit.resource not in limiter.by]
    parts = ["memory limits are rlimits, which bind each process of a program alone"] if rlimits else []
    parts += [f"{' and '.join(sorted({limit.resource for limit in lost}))} limits have no effect"] if lost else []
    return (f"{'; '.join(parts)}: {limiter.why}",) if parts else ()
