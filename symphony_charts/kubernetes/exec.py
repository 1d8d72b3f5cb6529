"""Commands run, and files are copied, in containers; ports are forwarded to them, and what they use is read."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import sys
import tarfile
import tempfile
import termios
import tty
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from symphony_charts.backend.status import ExperimentStatus, InstanceStatus, Usage
from symphony_charts.errors import Conflict, NotFound, SymphError, ToolFailed
from symphony_charts.formats.quantity import quantity
from symphony_charts.kubernetes import streams
from symphony_charts.kubernetes.client import KubeApi, Object
from symphony_charts.kubernetes.experiments import KubeExperiments

__all__ = ["copy_in", "copy_out", "run_captured", "run_here", "usage_of", "visit"]


def run_here(
    api: KubeApi, namespace: str, instance: InstanceStatus, command: Sequence[str], *, tty: bool, stdin: bool
) -> int:
    """Run a command with the input and output of this program; its exit status."""
    _require_running(instance)
    out, err = sys.stdout.buffer, sys.stderr.buffer
    reader = (lambda size: os.read(0, size)) if stdin else None
    with _raw_terminal() if tty else contextlib.nullcontext():
        return streams.run_in_pod(
            api,
            namespace,
            instance.pod,
            instance.container or instance.process,
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
    code = streams.run_in_pod(
        api,
        namespace,
        instance.pod,
        instance.container or instance.process,
        command,
        stdout=out.write,
        stderr=err.write,
    )
    return code, out.getvalue(), err.getvalue()


def copy_out(api: KubeApi, namespace: str, instance: InstanceStatus, path: str, to: Path) -> None:
    """Copy a file or folder; it appears whole or not at all. Raises NotFound, and Conflict unless the pod runs."""
    _require_running(instance)
    folder, _, base = path.rstrip("/").rpartition("/")
    target = to / base if to.is_dir() else to
    target.parent.mkdir(parents=True, exist_ok=True)
    stderr = io.BytesIO()
    parent = shlex.quote(folder or ("/" if path.startswith("/") else "."))
    # A mounted Secret's file is a link: what is named is followed, links inside of a folder are not.
    name = shlex.quote(base)
    script = f"cd {parent} && if [ -L {name} ]; then exec tar chf - -- {name}; else exec tar cf - -- {name}; fi"
    command = ["sh", "-c", script]
    with tempfile.TemporaryDirectory(prefix=".symph-", dir=target.parent) as beside:
        with tempfile.TemporaryFile(dir=beside) as archive:
            code = streams.run_in_pod(
                api,
                namespace,
                instance.pod,
                instance.container or instance.process,
                command,
                stdout=archive.write,
                stderr=stderr.write,
            )
            if code:
                raise _copy_failure(f"{instance.path}:{path}", stderr.getvalue())
            archive.seek(0)
            _unpack(archive, Path(beside))
        _put(Path(beside) / base, target)


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
        code = streams.run_in_pod(
            api,
            namespace,
            instance.pod,
            instance.container or instance.process,
            ["sh", "-c", script],
            stdin=archive.read,
            stdout=stderr.write,
            stderr=stderr.write,
        )
    if code:
        raise _copy_failure(f"{instance.path}:{to}", stderr.getvalue())


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
    pod, port = _behind(experiments.api, matching[0])
    meta, container = pod["metadata"], pod["spec"]["containers"][0]["name"]
    host = pod["status"]["podIP"]
    with streams.forward(experiments.api, meta["namespace"], meta["name"], container, host, port) as address:
        yield address


def usage_of(api: KubeApi, status: ExperimentStatus) -> Mapping[str, Usage]:
    """What the metrics server says of each instance; empty without one."""
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


def _behind(api: KubeApi, service: Object) -> tuple[Object, int]:
    """A pod that serves, the ready ones first, and its port."""
    spec, namespace = service["spec"], service["metadata"]["namespace"]
    selector = ",".join(f"{key}={value}" for key, value in (spec.get("selector") or {}).items())
    pods = api.listed(api.collection("v1", "Pod", namespace), selector)
    running = [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Running"]
    running.sort(key=lambda pod: not _is_ready(pod))
    if not running:
        title = service["metadata"]["name"]
        raise Conflict(f"no pod of the service {title} runs", namespace, "symph process shows what holds it up")
    port = spec["ports"][0]
    target = port.get("targetPort", port["port"])
    if isinstance(target, str) and not target.isdigit():
        named = [
            entry["containerPort"]
            for container in running[0]["spec"]["containers"]
            for entry in container.get("ports") or []
            if entry.get("name") == target
        ]
        target = named[0] if named else port["port"]
    return running[0], int(target)


def _is_ready(pod: Mapping[str, Any]) -> bool:
    return any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in pod["status"].get("conditions") or []
    )


def _require_running(instance: InstanceStatus) -> None:
    if instance.phase != "running":
        what = f'"{instance.path}" does not run: {instance.state}'
        raise Conflict(what, next=f"symph logs {instance.path} shows what it wrote")


def _copy_failure(what: str, stderr: bytes) -> SymphError:
    text = stderr.decode("utf-8", "replace").strip().splitlines()
    last = text[-1] if text else "the copy failed"
    if "o such file" in last or "can't cd" in last:
        return NotFound(f"{what}: {last}")
    return ToolFailed(f"{what}: {last}", next="the image needs `sh` and `tar`")


def _unpack(archive: Any, folder: Path) -> None:
    """Unpack what a container sent; nothing may lead out of `folder`."""
    with tarfile.open(fileobj=archive, mode="r:") as tar:
        for member in tar:
            parts = Path(member.name).parts
            if (
                member.name.startswith("/")
                or ".." in parts
                or not (member.isfile() or member.isdir() or member.issym())
            ):
                continue
            if member.issym() and (member.linkname.startswith("/") or ".." in Path(member.linkname).parts):
                continue
            member.mode = (member.mode & 0o777) | 0o600
            tar.extract(member, folder, set_attrs=not member.isdir(), **_FILTER)


# Pythons that know filters warn without one.
_FILTER: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


def _put(unpacked: Path, target: Path) -> None:
    if unpacked.is_dir():
        shutil.copytree(unpacked, target, symlinks=True, dirs_exist_ok=True)
    else:
        unpacked.replace(target)


@contextlib.contextmanager
def _raw_terminal() -> Iterator[None]:
    """This terminal without echo and line editing, which the one in the container does."""
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
