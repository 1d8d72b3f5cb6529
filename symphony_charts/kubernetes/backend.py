"""Watch and control experiments on Kubernetes; only objects with our labels are used."""

from __future__ import annotations

import io
import os
import shlex
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from symphony_charts.backend.status import Event, InstanceStatus, LogLine, LogQuery, Usage
from symphony_charts.errors import Conflict, NotFound, SymphError, ToolFailed
from symphony_charts.formats.quantity import quantity
from symphony_charts.kinds.base import is_pod_ready
from symphony_charts.kubernetes.client import KubeApi, Object
from symphony_charts.kubernetes.experiments import KubeExperiments, remove
from symphony_charts.kubernetes.logs import read_lines
from symphony_charts.kubernetes.status import status_of
from symphony_charts.kubernetes.streams import forward, run_in_pod
from symphony_charts.system.files import copy_over, refuse_left, refused, unpack

if sys.platform != "win32":
    import termios
    import tty


class KubeWatcher(KubeExperiments):
    """The experiments of one cluster, to watch and control; see `KubeExperiments` for the selection."""

    backend = "kube"

    @property
    def place(self) -> str:
        """The context: the current experiment is remembered per context."""
        return f"kube/{self.api.context}"

    def logs(self, name: str, query: LogQuery) -> Iterator[LogLine]:
        """Yield the lines of the newest (or `previous`) containers, merged by the cluster's timestamps."""
        return read_lines(self, self.describe(name, events=False), query)

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
        status = self.describe(name, events=False)
        if not self.api.has_group("metrics.k8s.io"):
            return {}
        path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{status.namespace}/pods"
        measured = {
            (pod["metadata"]["name"], container["name"]): container["usage"]
            for pod in self.api.listed(path)
            for container in pod["containers"]
        }
        return {
            instance.path: Usage(cpu=float(quantity(used["cpu"])), memory=int(quantity(used["memory"])))
            for instance in status.instances
            if (used := measured.get((instance.pod, instance.container or instance.process)))
        }

    def unfinished_lines(self, name: str) -> Mapping[str, str]:
        """Return none: the API server sends whole lines."""
        del name
        return {}

    def last_lines(self, name: str) -> Mapping[str, str]:
        """Return the last line of each container."""
        status = self.describe(name, events=False)
        return {
            instance.path: line.text.rstrip()
            for instance in status.instances
            if instance.started
            for line in read_lines(self, status, LogQuery(instances=(instance.path,), tail=1))
        }

    def exec(
        self, name: str, instance: InstanceStatus, command: Sequence[str], *, tty: bool, stdin: bool = True
    ) -> int:
        """Run a command with the stdin, stdout and stderr of this program; return its exit status."""
        out, err = sys.stdout.buffer, sys.stderr.buffer
        with _raw_terminal() if tty else nullcontext():
            return self._run(
                name,
                instance,
                command,
                stdin=(lambda size: os.read(0, size)) if stdin else None,
                stdout=lambda data: (out.write(data), out.flush()),
                stderr=lambda data: (err.write(data), err.flush()),
                tty=tty,
            )

    def output_of(self, name: str, instance: InstanceStatus, command: Sequence[str]) -> tuple[int, bytes, bytes]:
        """Run a command without input; return its exit status, stdout and stderr."""
        out, err = io.BytesIO(), io.BytesIO()
        code = self._run(name, instance, command, stdout=out.write, stderr=err.write)
        return code, out.getvalue(), err.getvalue()

    def copy_out(self, name: str, instance: InstanceStatus, path: str, to: Path) -> None:
        """Copy a whole file or folder out of a container, or nothing.

        A link at `path` itself is followed (mounted Secrets, a trainer's `latest`); links inside a folder stay links.
        Raises NotFound, and Conflict unless the pod runs.
        """
        _require_running(instance)
        folder, base = _folder_and_name(path)
        target = to / (base or "root") if to.is_dir() else to
        target.parent.mkdir(parents=True, exist_ok=True)
        stderr = io.BytesIO()
        parent, entry = shlex.quote(folder), shlex.quote(f"./{base}")
        script = (
            f"cd {parent} && if [ -d {entry} ]; then cd {entry} && exec tar cf - .; else exec tar chf - {entry}; fi"
        )
        beside = tempfile.TemporaryDirectory(prefix=".symph-", dir=target.parent)
        with beside, tempfile.TemporaryFile(dir=beside.name) as archive:
            code = self._run(name, instance, ["sh", "-c", script], stdout=archive.write, stderr=stderr.write)
            if code:
                raise copy_failure(f"{instance.path}:{path}", stderr.getvalue())
            archive.seek(0)
            left = _put(archive, Path(beside.name) / "x", base, target)
        refuse_left(f"{instance.path}:{path}", left)

    def copy_in(self, name: str, instance: InstanceStatus, source: Path, to: str) -> None:
        """Copy a local file or folder to `to` in a container, or into `to` if that is a folder."""
        if not source.exists():
            raise NotFound(f"{source} does not exist on this machine")
        folder, base = _folder_and_name(to)
        parent, entry = shlex.quote(folder), shlex.quote(base or ".")
        # The archive holds one entry, `x`: moved into the target if that is a folder, else renamed.
        script = (
            f"mkdir -p {parent} && cd {parent} && d=.symph-$$ && mkdir $d && tar xmf - -C $d && "
            f"if [ -d {entry} ]; then mv $d/x {entry}/{shlex.quote(source.name)}; else mv $d/x {entry}; fi; "
            "r=$?; rm -rf $d; exit $r"
        )
        stderr = io.BytesIO()
        with tempfile.TemporaryFile() as archive:
            with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
                tar.add(source, arcname="x")
            archive.seek(0)
            command = ["sh", "-c", script]
            code = self._run(name, instance, command, stdin=archive.read, stdout=stderr.write, stderr=stderr.write)
        if code:
            raise copy_failure(f"{instance.path}:{to}", stderr.getvalue())

    @contextmanager
    def visit(self, name: str, service: str) -> Iterator[str]:
        """Yield ``host:port`` of a service: its load balancer, else a local port that is forwarded to a ready pod."""
        status, services = self.describe(name), self.services(name)
        matching = [item for item in services if item["metadata"]["labels"].get("symph.dev/service") == service]
        if not matching:
            names = ", ".join(sorted(item["metadata"]["labels"]["symph.dev/service"] for item in services)) or "none"
            raise NotFound(f'experiment "{name}" has no service "{service}"', next=f"its services: {names}")
        start = f"{matching[0]['metadata']['name']}:"
        outside = next(each.outside for each in status.services if each.address.startswith(start))
        if outside:
            yield outside
            return
        pod, container, port = _behind(self.api, matching[0])
        meta, host = pod["metadata"], pod["status"]["podIP"]
        with forward(self.api, meta["namespace"], meta["name"], container, host, port) as address:
            yield address

    def delete(self, name: str, *, dry_run: bool = False) -> list[str]:
        """Delete the experiment: its Helm release, or else its objects; never objects without our labels."""
        return remove(self, name, dry_run=dry_run)

    def _run(self, name: str, instance: InstanceStatus, command: Sequence[str], **options: Any) -> int:
        namespace = self.namespace_of(name, self.pods(name) or self.workloads(name))
        _require_running(instance)
        container = instance.container or instance.process
        return run_in_pod(self.api, namespace, instance.pod, container, command, **options)


def _require_running(instance: InstanceStatus) -> None:
    if instance.phase != "running":
        what = f'"{instance.path}" is not running: {instance.state}'
        raise Conflict(what, next=f"see its logs: symph logs {instance.path}")


def _folder_and_name(path: str) -> tuple[str, str]:
    """Return the folder and the name of a path in a container; the name of `/` and of an empty path is empty."""
    folder, _, name = path.rstrip("/").rpartition("/")
    return folder or ("/" if path.startswith("/") else "."), name


def _put(archive: IO[bytes], beside: Path, base: str, target: Path) -> list[str]:
    with tarfile.open(fileobj=archive, mode="r:") as tar:
        first = tar.next()
    archive.seek(0)
    try:
        left = unpack(archive, beside)
        unpacked = beside if first is not None and first.isdir() else beside / base
        if target.is_dir():
            return left + copy_over(unpacked, target)
        if unpacked.exists():
            unpacked.replace(target)
        return left
    except OSError as error:
        raise refused(target, error) from error


def _behind(api: KubeApi, service: Object) -> tuple[Object, str, int]:
    spec, namespace = service["spec"], service["metadata"]["namespace"]
    selector = ",".join(f"{key}={value}" for key, value in (spec.get("selector") or {}).items())
    pods = api.listed(api.collection("v1", "Pod", namespace), selector)
    running = [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Running"]
    running.sort(key=lambda pod: (not is_pod_ready(pod), "deletionTimestamp" in pod["metadata"]))
    if not running:
        title = service["metadata"]["name"]
        raise Conflict(f"no pod of the service {title} is running", namespace, "see what it waits for: symph ps")
    pod, port = running[0]["spec"], spec["ports"][0]
    target = str(port.get("targetPort", port["port"]))
    ports = [
        (container["name"], entry["containerPort"])
        for container in (*pod["containers"], *(pod.get("initContainers") or []))
        for entry in container.get("ports") or []
        if target in (entry.get("name"), str(entry["containerPort"]))
    ]
    usual = pod["containers"][0]["name"], target if target.isdigit() else port["port"]
    container, number = ports[0] if ports else usual
    return running[0], container, int(number)


def copy_failure(what: str, stderr: bytes) -> SymphError:
    """Return the error of a failed copy of `what`, from the messages of `sh` and `tar` in the container."""
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    # GNU tar's last line only reports that there were earlier errors.
    absent = next((line for line in lines if "o such file" in line or "can't cd" in line), None)
    if absent is not None:
        return NotFound(f"{what} does not exist: {absent}")
    last = lines[-1] if lines else "the copy failed"
    is_lacking = any(word in last for word in ("not found", "executable file"))
    return ToolFailed(f"{what}: {last}", next="the image needs `sh` and `tar`" if is_lacking else "")


@contextmanager
def _raw_terminal() -> Iterator[None]:
    """Switch off echo and line editing of this terminal; the one in the container does both."""
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
