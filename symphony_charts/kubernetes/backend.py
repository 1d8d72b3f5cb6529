"""Watch and control experiments on Kubernetes; only objects with our labels are used."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from symphony_charts.backend.status import Event, InstanceStatus, LogLine, LogQuery, Usage
from symphony_charts.kubernetes.exec import copy_in, copy_out, run_captured, run_here, usage_of, visit
from symphony_charts.kubernetes.experiments import KubeExperiments, remove
from symphony_charts.kubernetes.logs import read_lines
from symphony_charts.kubernetes.status import status_of


class KubeWatcher(KubeExperiments):
    """The experiments of one cluster, to watch and control; see `KubeExperiments` for the selection."""

    backend = "kube"

    @property
    def place(self) -> str:
        """The context: the current experiment is remembered per context."""
        return f"kube/{self.api.context}"

    def logs(self, name: str, query: LogQuery) -> Iterator[LogLine]:
        """Yield the lines of the newest (or `previous`) containers, merged by the cluster's timestamps."""
        self.describe(name, events=False)
        return read_lines(self, name, query)

    def events(self, name: str, *, follow: bool = False) -> Iterator[Event]:
        """Yield the cluster's events about the experiment's objects, oldest first."""
        seen: set[Event] = set()
        namespace = self.describe(name, events=False).namespace
        for _ in self.object_changes(name, events_in=namespace) if follow else (None,):
            workloads, pods = self.workloads(name), self.pods(name)
            objects = [*workloads, *pods, *self.services(name)]
            new = [event for event in self.events_of(namespace, objects) if event not in seen]
            seen.update(new)
            yield from new
            if follow and (not objects or status_of(name, workloads, pods, now=time.time()).is_final):
                return

    def usage(self, name: str) -> Mapping[str, Usage]:
        """Return the last usage from the metrics server by instance; empty on a cluster without one."""
        return usage_of(self.api, self.describe(name, events=False))

    def last_lines(self, name: str) -> Mapping[str, str]:
        """Return the last line of each container."""
        return {
            instance.path: line.text.rstrip()
            for instance in self.describe(name, events=False).instances
            if instance.started
            for line in self.logs(name, LogQuery(instances=(instance.path,), tail=1))
        }

    def exec(
        self, name: str, instance: InstanceStatus, command: Sequence[str], *, tty: bool, stdin: bool = True
    ) -> int:
        return run_here(self.api, self._namespace_now(name), instance, command, tty=tty, stdin=stdin)

    def output_of(self, name: str, instance: InstanceStatus, command: Sequence[str]) -> tuple[int, bytes, bytes]:
        return run_captured(self.api, self._namespace_now(name), instance, command)

    def copy_out(self, name: str, instance: InstanceStatus, path: str, to: Path) -> None:
        copy_out(self.api, self._namespace_now(name), instance, path, to)

    def copy_in(self, name: str, instance: InstanceStatus, source: Path, to: str) -> None:
        copy_in(self.api, self._namespace_now(name), instance, source, to)

    def visit(self, name: str, service: str) -> AbstractContextManager[str]:
        """Yield the load balancer's address, else a local port that is forwarded to a pod of the service."""
        self._namespace_now(name)
        return visit(self, name, service)

    def delete(self, name: str, *, dry_run: bool = False) -> list[str]:
        """Delete the experiment: its Helm release, or else its objects; never objects without our labels."""
        return remove(self, name, dry_run=dry_run)

    def _namespace_now(self, name: str) -> str:
        return self.namespace_of(name, self.pods(name) or self.workloads(name))
