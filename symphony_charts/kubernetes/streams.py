"""Run a command in a container and forward a port of a pod, over WebSockets."""

from __future__ import annotations

import io
import json
import selectors
import shutil
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from websocket import ABNF, WebSocketException

from symphony_charts.errors import ToolFailed
from symphony_charts.kubernetes.client import KubeApi

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
    query = [("container", container), *(("command", argument) for argument in command)]
    wanted = {"stdin": stdin is not None, "stdout": True, "stderr": not tty, "tty": tty}
    query += [(name, str(is_wanted).lower()) for name, is_wanted in wanted.items()]
    path = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(pod)}/exec"
    with closing(api.connection.websocket(path, query, _EXEC_PROTOCOLS)) as connection:
        if stdin is not None:
            threading.Thread(target=_feed, args=(connection, stdin), daemon=True).start()
        return _drain(connection, stdout, stderr, tty, f"{pod}/{container}")


def _drain(connection: Any, stdout: Writer, stderr: Writer, tty: bool, where: str) -> int:
    ended = b""
    window = _window() if tty else b""
    try:
        if tty:
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
    raise ToolFailed(f"cannot run the command in {where}: {status.get('message')}")


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
    to = _Port(api, namespace, pod, container, host, port)
    to.open().close()
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_accept, args=(server, to), daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)


def _accept(server: socket.socket, to: _Port) -> None:
    with suppress(OSError):
        while True:
            caller, _ = server.accept()
            threading.Thread(target=to.carry, args=(caller,), daemon=True).start()


@dataclass(frozen=True)
class _Port:
    """A port of a pod, and the container with a relay for programs that listen only on the pod's address `host`."""

    api: KubeApi
    namespace: str
    pod: str
    container: str
    host: str
    port: int

    def open(self) -> Any:
        path = f"/api/v1/namespaces/{quote(self.namespace)}/pods/{quote(self.pod)}/portforward"
        return self.api.connection.websocket(path, [("ports", str(self.port))], [_FORWARD_PROTOCOL])

    def carry(self, caller: socket.socket) -> None:
        """Carry one connection until either side ends."""
        try:
            connection = self.open()
        except ToolFailed as error:
            _warn_and_end(caller, str(error))
            return
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
            self._relay(caller, held)
        else:
            _warn_and_end(caller, answers.refusal and f"the pod refused the connection: {answers.refusal}")

    def _relay(self, caller: socket.socket, sent: bytes) -> None:
        """Carry one connection through a program in the container; `sent` is the caller's data so far."""
        given, stderr = io.BytesIO(sent), io.BytesIO()
        try:
            code = run_in_pod(
                self.api,
                self.namespace,
                self.pod,
                self.container,
                [*_RELAY, self.host, str(self.port)],
                stdin=lambda size: given.read(size) or caller.recv(size),
                stdout=caller.sendall,
                stderr=stderr.write,
            )
            problem = stderr.getvalue().decode("utf-8", "replace").strip() if code else ""
        except (ToolFailed, OSError) as error:
            problem = str(error)
        _warn_and_end(caller, problem)


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
