"""Pods are found by names of their own: processes see a file of host names in place of the machine's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from symphony_charts.local.plan.mounts import Layout
from symphony_charts.local.plan.records import Bind, File, Machine
from symphony_charts.local.plan.replicas import Replica

__all__ = ["HOSTS", "HOSTS_FILE", "host_names", "of_machine"]

HOSTS = "/etc/hosts"
# Where a run has what its processes see there.
HOSTS_FILE = "files/hosts"
_MARK = "# What the machine itself knows:\n"


def host_names(replicas: Sequence[Replica], machine: Machine) -> Layout:
    """Return the files and mounts that make the `names` of pods known; nothing if no pod has any.

    Every replica of a pod bears its names, as behind a Service. What the machine says of these names does not count.
    """
    lines = [f"{replica.address} {name}" for replica in replicas for name in replica.pod.settings.names]
    if not lines:
        return Layout(files=(), binds=(), notes=())
    names = {line.split()[1] for line in lines}
    if not machine.has_namespace:
        return Layout(files=(), binds=(), notes=tuple(_notes(lines, machine)))
    kept = [kept for line in machine.hosts.splitlines() if (kept := _without(names, line))]
    content = "".join(f"{line}\n" for line in lines) + _MARK + "".join(f"{line}\n" for line in kept)
    source = f"{machine.run_dir}/{HOSTS_FILE}"
    return Layout(
        files=(File(path=HOSTS_FILE, content=content.encode(), mode=0o644),),
        binds=(Bind(source=source, target=HOSTS, read_only=True),),
        notes=tuple(_notes([], machine)),
    )


def of_machine(hosts: str) -> str:
    """Return the lines of a hosts file that the machine itself wrote."""
    return hosts.rpartition(_MARK)[2]


def _notes(lines: Sequence[str], machine: Machine) -> Iterator[str]:
    known = {(words[0], name) for line in machine.hosts.splitlines() if (words := _words(line)) for name in words[1:]}
    if missing := [line for line in lines if tuple(line.split()) not in known]:
        names = ", ".join(dict.fromkeys(line.split()[1] for line in missing))
        text = f"no private mounts on this machine, so programs here do not find {names} by name"
        yield f"{text}; to change that, add to {HOSTS}: {'; '.join(missing)}"
    if machine.moved:
        moved = ", ".join(sorted(machine.moved))
        yield f"{moved} listen on other ports here; who dials the name of a pod and the usual number does not find them"


def _words(line: str) -> list[str]:
    return line.partition("#")[0].split()


def _without(names: set[str], line: str) -> str:
    words = _words(line)
    if not names & set(words[1:]):
        return line
    kept = [word for word in words if word not in names]
    return " ".join(kept) if len(kept) > 1 else ""
