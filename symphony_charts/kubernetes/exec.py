"""Run commands in containers, copy files, and forward ports."""

from __future__ import annotations

import contextlib
import io
import json
import os
import selectors
import shlex
import shutil
import socket
import sys
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from websocket import ABNF, WebSocketException

from symphony_charts.backend.status import ExperimentStatus, InstanceStatus, Usage
from symphony_charts.errors import Conflict, NotFound, SymphError, ToolFailed
from symphony_charts.formats.quantity import quantity
from symphony_charts.kinds.base import is_pod_ready
from symphony_charts.kubernetes.client import KubeApi, Object
from symphony_charts.kubernetes.experiments import KubeExperiments
from symphony_charts.system.files import copy_over, refuse_left, refused, unpack

# Source: k8s.io/streaming pkg/wsstream and remotecommand: the first byte of a message is its channel. Protocol v5 adds
# a message that closes one channel; without it a program never sees the end of its input.

_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_PIECE = 1 << 15
_EXEC_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_FORWARD_PROTOCOL = "v4.channel.k8s.io"
# Keep this many sent bytes until the pod answers, to send them through the relay if it refuses the connection.
_MOST_HELD = 1 << 20
_RELAY_PYTHON = (
    "import os, socket, sys, threading\n"
    "peer = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)\n"
    "peer.settimeout(None)\n"
    "def inward():\n"
    "    while data := os.read(0, 32768): peer.sendall(data)\n"
    "    peer.shutdown(socket.SHUT_WR)\n"
    "threading.Thread(target=inward, daemon=True).start()\n"
    "while data := peer.recv(32768): os.write(1, data)\n"
)
_RELAY_SHELL = (
    'if command -v python3 >/dev/null; then exec python3 -c "$1" "$2" "$3"; fi; '
    'if command -v nc >/dev/null; then exec nc "$2" "$3"; fi; '
    'exec bash -c \'exec 3<>/dev/tcp/$0/$1; cat <&3 & cat >&3; wait\' "$2" "$3"'
)
_RELAY = ("sh", "-c", _RELAY_SHELL, "relay", _RELAY_PYTHON)

Reader = Callable[[int], bytes]
Writer = Callable[[bytes], object]


def run_in_pod(
    api: KubeApi,
    namespace: str,
    pod: str,
    container: str,
    command: Sequence[str],
    *,
    stdin: Reader | None = None,
    stdout: Writer,
    stderr: Writer,
    tty: bool = False,
) -> int:
    """Run a command in a container until it ends; return its exit status.

    `stdin` returns the next bytes (empty: end of input) and is read in a separate thread. Raises ToolFailed if the
    command cannot be started or the connection breaks.
    """
    query = [("container", container), *(("command", argument) for argument in command), ("stdout", "true")]
    query += [("stderr", "false" if tty else "true"), ("stdin", "true" if stdin else "false")]
    query.append(("tty", "true" if tty else "false"))
    path = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(pod)}/exec"
    with contextlib.closing(api.connection.websocket(path, query, _EXEC_PROTOCOLS)) as connection:
        if stdin is not None:
            threading.Thread(target=_feed, args=(connection, stdin), daemon=True).start()
        return _drain(connection, stdout, stderr, tty, f"{pod}/{container}")


def _drain(connection: Any, stdout: Writer, stderr: Writer, tty: bool, where: str) -> int:
    ended = window = b""
    try:
        if tty:
            window = _window()
            _send(connection, _RESIZE, window)
        for channel, data in _messages(connection):
            if channel == _ERROR:
                ended += data
            elif channel in (_STDOUT, _STDERR):
                (stdout if channel == _STDOUT else stderr)(data)
            if tty and _window() != window:
                window = _window()
                _send(connection, _RESIZE, window)
    except (WebSocketException, OSError) as error:
        if not ended:
            raise ToolFailed(f"the connection to {where} broke: {error}") from error
    return _status_of(ended, where)


def _messages(connection: Any) -> Iterator[tuple[int, bytes]]:
    """Yield channel and data of each message, until the other side closes the connection."""
    while True:
        code, frame = connection.recv_data_frame(True)
        if code == ABNF.OPCODE_CLOSE:
            return
        if code in (ABNF.OPCODE_BINARY, ABNF.OPCODE_TEXT) and frame.data:
            yield frame.data[0], frame.data[1:]


def _status_of(ended: bytes, where: str) -> int:
    if not ended:
        raise ToolFailed(f"the connection to {where} ended before the command did")
    status = json.loads(ended)
    if status.get("status") == "Success":
        return 0
    for cause in (status.get("details") or {}).get("causes") or []:
        if cause.get("reason") == "ExitCode":
            return int(cause["message"])
    raise ToolFailed(f"the command cannot be run in {where}: {status.get('message')}")


def _feed(connection: Any, stdin: Reader) -> None:
    # The command may end and close the connection before its input ends.
    with suppress(OSError, WebSocketException):
        while data := stdin(_PIECE):
            _send(connection, _STDIN, data)
        connection.send_binary(bytes([_CLOSE, _STDIN]))


def _send(connection: Any, channel: int, data: bytes) -> None:
    connection.send_binary(bytes([channel]) + data)


def _window() -> bytes:
    size = shutil.get_terminal_size()
    return json.dumps({"Width": size.columns, "Height": size.lines}).encode()


@contextmanager
def forward(api: KubeApi, namespace: str, pod: str, container: str, host: str, port: int) -> Iterator[str]:
    """Yield ``127.0.0.1:port`` of this machine, which forwards every connection to `port` of the pod while open.

    Port forwarding reaches only the pod's loopback. If a program listens only on the pod's address `host`, a relay in
    `container` reaches it: python3, nc or bash of its image. Raises ToolFailed if the cluster cannot forward.
    """
    _open(api, namespace, pod, port).close()

    def way(caller: socket.socket) -> None:
        refused = _carry(api, namespace, pod, port, caller)
        if refused is not None:
            _relay(api, namespace, pod, container, [*_RELAY, host, str(port)], caller, refused)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_accept, args=(server, way), daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)


def _accept(server: socket.socket, way: Callable[[socket.socket], None]) -> None:
    with suppress(OSError):
        while True:
            caller, _ = server.accept()
            threading.Thread(target=way, args=(caller,), daemon=True).start()


def _open(api: KubeApi, namespace: str, pod: str, port: int) -> Any:
    path = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(pod)}/portforward"
    return api.connection.websocket(path, [("ports", str(port))], [_FORWARD_PROTOCOL])


def _relay(
    api: KubeApi,
    namespace: str,
    pod: str,
    container: str,
    command: Sequence[str],
    caller: socket.socket,
    sent: bytes,
) -> None:
    """Carry one connection, both ways, through a program in the container; `sent` is the caller's data so far."""
    given, stderr = io.BytesIO(sent), io.BytesIO()

    def stdin(size: int) -> bytes:
        return given.read(size) or caller.recv(size)

    try:
        code = run_in_pod(
            api, namespace, pod, container, command, stdin=stdin, stdout=caller.sendall, stderr=stderr.write
        )
        problem = stderr.getvalue().decode("utf-8", "replace").strip() if code else ""
    except (ToolFailed, OSError) as error:
        problem = str(error)
    _warn_and_end(caller, problem)


def _carry(api: KubeApi, namespace: str, pod: str, port: int, caller: socket.socket) -> bytes | None:
    """Carry one connection until either side ends; return the data sent so far if the pod refuses it, else None."""
    try:
        connection = _open(api, namespace, pod, port)
    except ToolFailed as error:
        _warn_and_end(caller, str(error))
        return None
    answers = _Answers(connection, caller)
    held = b""
    with suppress(OSError, WebSocketException), selectors.DefaultSelector() as selector:
        selector.register(caller, selectors.EVENT_READ)
        selector.register(answers.end, selectors.EVENT_READ)
        while answers.end not in {key.fileobj for key, _ in selector.select()} and (data := caller.recv(_PIECE)):
            held = held + data if len(held) < _MOST_HELD else held
            _send(connection, 0, data)
    # v4 cannot close one direction; wait for the remaining answers of the server.
    answers.reader.join(timeout=2)
    with suppress(OSError, WebSocketException):
        connection.close()
    answers.end.close()
    if answers.refusal and not answers.has_begun and len(held) < _MOST_HELD:
        return held
    _warn_and_end(caller, answers.refusal and f"the pod refuses: {answers.refusal}")
    return None


class _Answers:
    """Pass data from a forwarded port of a pod to `caller`, in a separate thread.

    The socket `end` becomes readable when the pod's side ends. `refusal` is then the node's error message, empty if it
    accepted the connection.
    """

    def __init__(self, connection: Any, caller: socket.socket) -> None:
        self.has_begun = False
        self.refusal = ""
        self.end, self._ended = socket.socketpair()
        self.reader = threading.Thread(target=self._carry, args=(connection, caller), daemon=True)
        self.reader.start()

    def _carry(self, connection: Any, caller: socket.socket) -> None:
        # Both channels (0 data, 1 error) begin with the port's number in two bytes.
        begun: set[int] = set()
        with suppress(OSError, WebSocketException):
            for channel, data in _messages(connection):
                if channel not in begun:
                    begun.add(channel)
                elif channel == 0:
                    self.has_begun = True
                    caller.sendall(data)
                else:
                    self.refusal = data.decode("utf-8", "replace").strip()
                    break
        self._ended.close()


def _warn_and_end(caller: socket.socket, problem: str) -> None:
    """End a connection with a warning: nothing can catch an exception here, and the caller sees the connection end."""
    if problem:
        sys.stderr.write(f"warning: {problem}\n")
    with suppress(OSError):
        caller.shutdown(socket.SHUT_RDWR)
    caller.close()


if sys.platform != "win32":
    import termios
    import tty


def run_here(
    api: KubeApi, namespace: str, instance: InstanceStatus, command: Sequence[str], *, tty: bool, stdin: bool
) -> int:
    """Run a command with the stdin, stdout and stderr of this program; return its exit status."""
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
    """Run a command without input; return its exit status, stdout and stderr."""
    out, err = io.BytesIO(), io.BytesIO()
    code = _run(api, namespace, instance, command, stdout=out.write, stderr=err.write)
    return code, out.getvalue(), err.getvalue()


def _run(api: KubeApi, namespace: str, instance: InstanceStatus, command: Sequence[str], **options: Any) -> int:
    _require_running(instance)
    container = instance.container or instance.process
    return run_in_pod(api, namespace, instance.pod, container, command, **options)


def _require_running(instance: InstanceStatus) -> None:
    if instance.phase != "running":
        what = f'"{instance.path}" does not run: {instance.state}'
        raise Conflict(what, next=f"symph logs {instance.path} shows what it wrote")


def copy_out(api: KubeApi, namespace: str, instance: InstanceStatus, path: str, to: Path) -> None:
    """Copy a file or folder out of a container, completely or not at all.

    A link at `path` itself is followed (mounted Secrets, a trainer's `latest`); links inside a folder stay links.
    Raises NotFound, and Conflict unless the pod runs.
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
    """Copy a local file or folder to `to` in a container, or into `to` if that is a folder."""
    if not source.exists():
        raise NotFound(f"there is no {source}")
    folder, _, base = to.rstrip("/").rpartition("/")
    parent, name = shlex.quote(folder or ("/" if to.startswith("/") else ".")), shlex.quote(base or ".")
    # The archive holds one entry, `x`: moved into the target if that is a folder, else renamed.
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
    """Yield ``host:port`` of a service: its load balancer, else a local port forwarded to a ready pod."""
    services = experiments.services(name)
    matching = [item for item in services if item["metadata"]["labels"].get("symph.dev/service") == service]
    if not matching:
        names = ", ".join(sorted(item["metadata"]["labels"]["symph.dev/service"] for item in services)) or "none"
        raise NotFound(f'experiment "{name}" has no service "{service}"', next=f"its services: {names}")
    start = f"{matching[0]['metadata']['name']}:"
    outside = next(each.outside for each in experiments.describe(name).services if each.address.startswith(start))
    if outside:
        yield outside
        return
    pod, container, port = _behind(experiments.api, matching[0])
    meta, host = pod["metadata"], pod["status"]["podIP"]
    with forward(experiments.api, meta["namespace"], meta["name"], container, host, port) as address:
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


def copy_failure(what: str, stderr: bytes) -> SymphError:
    """Return the error of a failed copy of `what`, from the messages of `sh` and `tar` in the container."""
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    # GNU tar's last line only reports that there were earlier errors.
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
