"""Commands run, and files are copied, in containers; ports are forwarded to them, and what they use is read."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from symphony_charts.backend.status import ExperimentStatus, InstanceStatus, Usage
from symphony_charts.errors import Conflict, NotFound, SymphError, ToolFailed
from symphony_charts.formats.quantity import quantity
from symphony_charts.kinds.base import is_pod_ready
from symphony_charts.kubernetes import streams
from symphony_charts.kubernetes.client import KubeApi, Object
from symphony_charts.kubernetes.experiments import KubeExperiments
from symphony_charts.system.copying import copy_over, refuse_left, refused, unpack

__all__ = ["copy_failure", "copy_in", "copy_out", "run_captured", "run_here", "usage_of", "visit"]

if sys.platform != "win32":
    import termios
    import tty


def run_here(
    api: KubeApi, namespace: str, instance: InstanceStatus, command: Sequence[str], *, tty: bool, stdin: bool
) -> int:
    """Run a command with the input and output of this program; its exit status."""
    _require_running(instance)
    out, err = sys.stdout.buffer, sys.stderr.buffer
    reader = (lambda size: os.read(0, size)) if stdin else None
    with _raw_terminal() if tty else contextlib.nullcontext():
        return _run(
            api,
            namespace,
            instance,
            command,
            stdin=reader,
            stdout=lambda data: (out.write(data), out.flush()),
            stderr=lambda data: (err.write(data), err.flush()),
            tty=tty,
        )


def run_captured(
    api: KubeApi, namespace: str, instance: InstanceStatus, command: Sequence[str]
) -> tuple[int, bytes, bytes]:
    """Run a command without input: its exit status, stdout and stderr."""
    _require_running(instance)
    out, err = io.BytesIO(), io.BytesIO()
    code = _run(api, namespace, instance, command, stdout=out.write, stderr=err.write)
    return code, out.getvalue(), err.getvalue()


def _run(api: KubeApi, namespace: str, instance: InstanceStatus, command: Sequence[str], **options: Any) -> int:
    """Run a command in the container of an instance; `options` are those of `streams.run_in_pod`."""
    container = instance.container or instance.process
    return streams.run_in_pod(api, namespace, instance.pod, container, command, **options)


def copy_out(api: KubeApi, namespace: str, instance: InstanceStatus, path: str, to: Path) -> None:
    """Copy a file or folder; it appears whole or not at all. Raises NotFound, and Conflict unless the pod runs.

    What is named is followed, as a mounted Secret's file and a trainer's `latest` must be; links inside of a folder
    stay links.
    """
    _require_running(instance)
    folder, _, base = path.rstrip("/").rpartition("/")
    target = to / (base or "root") if to.is_dir() else to
    target.parent.mkdir(parents=True, exist_ok=True)
    stderr = io.BytesIO()
    parent, name = shlex.quote(folder or ("/" if path.startswith("/") else ".")), shlex.quote(f"./{base}")
    script = f"cd {parent} && if [ -d {name} ]; then cd {name} && exec tar cf - .; else exec tar chf - {name}; fi"
    beside = tempfile.TemporaryDirectory(prefix=".symph-", dir=target.parent)
    with beside, tempfile.TemporaryFile(dir=beside.name) as archive:
        code = _run(api, namespace, instance, ["sh", "-c", script], stdout=archive.write, stderr=stderr.write)
        if code:
            raise copy_failure(f"{instance.path}:{path}", stderr.getvalue())
        archive.seek(0)
        left = _put(archive, Path(beside.name) / "x", base, target)
    refuse_left(f"{instance.path}:{path}", left)


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


def copy_in(api: KubeApi, namespace: str, instance: InstanceStatus, source: Path, to: str) -> None:
    """Copy a file or folder of this machine; into `to` where that is a folder of the container."""
    _require_running(instance)
    if not source.exists():
        raise NotFound(f"there is no {source}")
    folder, _, base = to.rstrip("/").rpartition("/")
    parent, name = shlex.quote(folder or ("/" if to.startswith("/") else ".")), shlex.quote(base or ".")
    # The archive holds one entry, `x`: moved into the target where that is a folder, else renamed.
    script = (
        f"mkdir -p {parent} && cd {parent} && d=.symph-$$ && mkdir $d && tar xmf - -C $d && "
        f"if [ -d {name} ]; then mv $d/x {name}/{shlex.quote(source.name)}; else mv $d/x {name}; fi; "
        "r=$?; rm -rf $d; exit $r"
    )
    stderr = io.BytesIO()
    with tempfile.TemporaryFile() as archive:
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
            tar.add(source, arcname="x")
        archive.seek(0)
        command = ["sh", "-c", script]
        code = _run(api, namespace, instance, command, stdin=archive.read, stdout=stderr.write, stderr=stderr.write)
    if code:
        raise copy_failure(f"{instance.path}:{to}", stderr.getvalue())


@contextlib.contextmanager
def visit(experiments: KubeExperiments, name: str, service: str) -> Iterator[str]:
    """``host:port`` of a service: its load balancer's, else one here, forwarded to a pod that is ready."""
    services = experiments.services(name)
    matching = [item for item in services if item["metadata"]["labels"].get("symph.dev/service") == service]
    if not matching:
        names = ", ".join(sorted(item["metadata"]["labels"]["symph.dev/service"] for item in services)) or "none"
        raise NotFound(f'experiment "{name}" has no service "{service}"', next=f"its services: {names}")
    status = next(
        item
        for item in experiments.describe(name).services
        if item.address.startswith(f"{matching[0]['metadata']['name']}:")
    )
    if status.outside:
        yield status.outside
        return
    pod, container, port = _behind(experiments.api, matching[0])
    meta, host = pod["metadata"], pod["status"]["podIP"]
    with streams.forward(experiments.api, meta["namespace"], meta["name"], container, host, port) as address:
        yield address


def usage_of(api: KubeApi, status: ExperimentStatus) -> Mapping[str, Usage]:
    """Return the usage of each instance from the metrics server; empty without one."""
    if not api.has_group("metrics.k8s.io"):
        return {}
    path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{status.namespace}/pods"
    measured = {
        (pod["metadata"]["name"], container["name"]): container["usage"]
        for pod in api.listed(path)
        for container in pod["containers"]
    }
    return {
        instance.path: Usage(cpu=float(quantity(used["cpu"])), memory=int(quantity(used["memory"])))
        for instance in status.instances
        if (used := measured.get((instance.pod, instance.container or instance.process)))
    }


def _behind(api: KubeApi, service: Object) -> tuple[Object, str, int]:
    spec, namespace = service["spec"], service["metadata"]["namespace"]
    selector = ",".join(f"{key}={value}" for key, value in (spec.get("selector") or {}).items())
    pods = api.listed(api.collection("v1", "Pod", namespace), selector)
    running = [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Running"]
    running.sort(key=lambda pod: (not is_pod_ready(pod), "deletionTimestamp" in pod["metadata"]))
    if not running:
        title = service["metadata"]["name"]
        raise Conflict(f"no pod of the service {title} runs", namespace, "symph ps shows what holds it up")
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


def _require_running(instance: InstanceStatus) -> None:
    if instance.phase != "running":
        what = f'"{instance.path}" does not run: {instance.state}'
        raise Conflict(what, next=f"symph logs {instance.path} shows what it wrote")


def copy_failure(what: str, stderr: bytes) -> SymphError:
    """Return the error of a copy of `what`, by what `sh` and `tar` said in the container."""
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    # GNU tar's last line says no more than that there were others.
    absent = next((line for line in lines if "o such file" in line or "can't cd" in line), None)
    if absent is not None:
        return NotFound(f"{what} is not there: {absent}")
    last = lines[-1] if lines else "the copy failed"
    is_lacking = any(word in last for word in ("not found", "executable file"))
    return ToolFailed(f"{what}: {last}", next="the image needs `sh` and `tar`" if is_lacking else "")


@contextlib.contextmanager
def _raw_terminal() -> Iterator[None]:
    """Switch off echo and line editing of this terminal; the one in the container does both."""
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
