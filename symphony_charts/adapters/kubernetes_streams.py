"""Programs and ports inside pods, over the API server's WebSocket streams.

Source: k8s.io/streaming pkg/wsstream and remotecommand: the first byte of a message is its channel; protocol v5 adds
a message that closes one, without which a program never sees the end of its input.
"""

from __future__ import annotations

import json
import shutil
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote, urlencode

from symphony_charts.adapters.kubernetes_api import KubeApi
from symphony_charts.errors import ToolFailed

__all__ = ["forward", "run_in_pod"]

_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_PIECE = 1 << 15

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
    """Run a command in a container until it ends; its exit status.

    `stdin` gives the next bytes (empty: the end) and is read in a thread of its own. Raises ToolFailed where the
    command cannot be started or the connection breaks.
    """
    query = [("container", container), *(("command", word) for word in command), ("stdout", "true")]
    query += [("stderr", "false" if tty else "true"), ("stdin", "true" if stdin else "false")]
    query.append(("tty", "true" if tty else "false"))
    path = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(pod)}/exec"
    connection = _connect(api, path, query)
    try:
        if tty:
            _send(connection, _RESIZE, _window())
        if stdin is not None:
            threading.Thread(target=_feed, args=(connection, stdin), daemon=True).start()
        return _drain(connection, stdout, stderr, tty, f"{pod}/{container}")
    finally:
        connection.close()


def _drain(connection: Any, stdout: Writer, stderr: Writer, tty: bool, where: str) -> int:
    from websocket import ABNF, WebSocketException

    ended = b""
    window = _window() if tty else b""
    try:
        while True:
            code, frame = connection.recv_data_frame(True)
            if code == ABNF.OPCODE_CLOSE:
                break
            if code not in (ABNF.OPCODE_BINARY, ABNF.OPCODE_TEXT) or not frame.data:
                continue
            channel, data = frame.data[0], frame.data[1:]
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
    from websocket import WebSocketException

    # The command may end, and the connection with it, before its input does.
    with suppress(OSError, WebSocketException):
        while data := stdin(_PIECE):
            _send(connection, _STDIN, data)
        connection.send_binary(bytes([_CLOSE, _STDIN]))


def _send(connection: Any, channel: int, data: bytes) -> None:
    connection.send_binary(bytes([channel]) + data)


def _window() -> bytes:
    size = shutil.get_terminal_size()
    return json.dumps({"Width": size.columns, "Height": size.lines}).encode()


def _connect(api: KubeApi, path: str, query: Sequence[tuple[str, str]], protocol: str = "") -> Any:
    """An open WebSocket, or ToolFailed with what the server said."""
    from kubernetes.stream.ws_client import create_websocket, get_websocket_url
    from websocket import WebSocketException

    headers: dict[str, str] = {}
    api.client.update_params_for_auth(headers, [], ["BearerToken"])
    headers = {name.lower(): value for name, value in headers.items()}
    if protocol:
        headers["sec-websocket-protocol"] = protocol
    config = api.client.configuration
    url = get_websocket_url(config.host + path) + "?" + urlencode(query)
    try:
        return create_websocket(config, url, headers)
    except (WebSocketException, OSError) as error:
        what = f"the cluster opens no stream: {_refusal(error)}"
        raise ToolFailed(what, path.rpartition("/")[0], "the container must be running") from error


def _refusal(error: Exception) -> str:
    body = getattr(error, "resp_body", None)
    with suppress(TypeError, ValueError, KeyError):
        return str(json.loads(body)["message"])  # type: ignore[arg-type]  # None is one of the errors let through
    return str(error)


@contextmanager
def forward(api: KubeApi, namespace: str, pod: str, port: int) -> Iterator[str]:
    """``127.0.0.1:port`` of this machine, every connection to which goes on to `port` of the pod, while open."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepting = threading.Thread(target=_accept, args=(api, namespace, pod, port, server), daemon=True)
        accepting.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)


def _accept(api: KubeApi, namespace: str, pod: str, port: int, server: socket.socket) -> None:
    with suppress(OSError):
        while True:
            caller, _ = server.accept()
            threading.Thread(target=_carry, args=(api, namespace, pod, port, caller), daemon=True).start()


def _carry(api: KubeApi, namespace: str, pod: str, port: int, caller: socket.socket) -> None:
    """One connection, both ways, until either side ends."""
    from websocket import WebSocketException

    path = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(pod)}/portforward"
    try:
        connection = _connect(api, path, [("ports", str(port))], "v4.channel.k8s.io")
    except ToolFailed as error:
        # There is no caller to raise to; the one who waits for an answer sees the connection end.
        sys.stderr.write(f"warning: {error}\n")
        caller.close()
        return
    back = threading.Thread(target=_carry_back, args=(connection, caller), daemon=True)
    back.start()
    with suppress(OSError, WebSocketException):
        while data := caller.recv(_PIECE):
            _send(connection, 0, data)
        # v4 cannot close one direction; what the server still answers is waited for.
        back.join(timeout=2)
    with suppress(OSError, WebSocketException):
        connection.close()
    caller.close()


def _carry_back(connection: Any, caller: socket.socket) -> None:
    from websocket import ABNF, WebSocketException

    # Both channels (0 data, 1 error) begin with the port's number in two bytes.
    begun: set[int] = set()
    with suppress(OSError, WebSocketException):
        while True:
            code, frame = connection.recv_data_frame(True)
            if code == ABNF.OPCODE_CLOSE:
                break
            if code not in (ABNF.OPCODE_BINARY, ABNF.OPCODE_TEXT) or not frame.data:
                continue
            channel, data = frame.data[0], frame.data[1:]
            if channel not in begun:
                begun.add(channel)
            elif channel == 0:
                caller.sendall(data)
            else:
                sys.stderr.write(f"warning: the pod refuses: {data.decode('utf-8', 'replace')}\n")
                break
    with suppress(OSError):
        caller.shutdown(socket.SHUT_RDWR)
