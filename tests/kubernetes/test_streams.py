"""Forwarded ports when the node refuses a connection late."""

from __future__ import annotations

import queue
import socket
import threading
from typing import Any, NamedTuple, cast

import pytest
from websocket import ABNF, WebSocketTimeoutException

from symphony_charts.kubernetes import streams
from symphony_charts.kubernetes.client import KubeApi
from tests.waiting import eventually

REFUSAL = b"dial tcp4 127.0.0.1:80: connect: connection refused"


class Frame(NamedTuple):
    data: bytes


class Forwarding:
    """One forwarded connection, seen from the API server: `frames` are its messages, `sent` is the received data."""

    def __init__(self, refused_after_s: float | None) -> None:
        self.frames: queue.Queue[tuple[int, Frame]] = queue.Queue()
        self.sent = b""
        self.timeout_s: float | None = None
        for channel in (0, 1):
            self.say(channel, b"\x50\x00")
        if refused_after_s is not None:
            threading.Timer(refused_after_s, self.say, (1, REFUSAL)).start()

    def say(self, channel: int, data: bytes) -> None:
        self.frames.put((ABNF.OPCODE_BINARY, Frame(bytes([channel]) + data)))

    def settimeout(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s

    def recv_data_frame(self, _: bool) -> tuple[int, Frame]:
        try:
            return self.frames.get(timeout=self.timeout_s)
        except queue.Empty:
            raise WebSocketTimeoutException from None

    def send_binary(self, message: bytes) -> None:
        self.sent += message[1:]

    def close(self) -> None:
        self.frames.put((ABNF.OPCODE_CLOSE, Frame(b"")))


class Cluster:
    """A stub for the API: each WebSocket is a new `Forwarding`, which the node refuses after `refused_after_s`."""

    def __init__(self) -> None:
        self.refused_after_s: float | None = None
        self.opened: list[Forwarding] = []
        self.connection = self

    def carrier(self) -> Forwarding:
        (carrier,) = eventually(lambda: self.opened[1:])
        return carrier

    def websocket(self, *_: object) -> Forwarding:
        self.opened.append(Forwarding(self.refused_after_s))
        return self.opened[-1]


def echo(*_: object, stdin: streams.Reader, stdout: streams.Writer, **__: Any) -> int:
    while data := stdin(1 << 15):
        stdout(b"relayed " + data)
    return 0


def dialled(address: str) -> socket.socket:
    host, port = address.split(":")
    return socket.create_connection((host, int(port)), 30)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(streams, "run_in_pod", echo)
    return Cluster()


@pytest.mark.parametrize("late_s", [0.0, 1.2])
def test_a_refusal_however_late_leads_to_the_relay_with_what_was_sent(cluster: Cluster, late_s: float) -> None:
    cluster.refused_after_s = late_s
    with (
        streams.forward(cast("KubeApi", cluster), "ml", "web-0", "web", "10.0.0.7", 80) as address,
        dialled(address) as caller,
    ):
        caller.sendall(b"GET /")
        assert caller.recv(100) == b"relayed GET /"
        caller.sendall(b" more")
        assert caller.recv(100) == b"relayed  more"


def test_a_pod_that_speaks_first_is_heard_through_either_way(cluster: Cluster) -> None:
    with (
        streams.forward(cast("KubeApi", cluster), "ml", "web-0", "web", "10.0.0.7", 80) as address,
        dialled(address) as caller,
    ):
        through = cluster.carrier()
        through.say(0, b"220 ready")
        assert caller.recv(100) == b"220 ready"
        caller.sendall(b"QUIT")
        eventually(lambda: through.sent == b"QUIT")
        through.close()
        assert caller.recv(100) == b""


def test_what_breaks_off_after_an_answer_is_said_and_not_tried_again(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        streams.forward(cast("KubeApi", cluster), "ml", "web-0", "web", "10.0.0.7", 80) as address,
        dialled(address) as caller,
    ):
        through = cluster.carrier()
        through.say(0, b"half")
        through.say(1, b"lost connection to pod")
        assert caller.recv(100) == b"half"
        assert caller.recv(100) == b""
    assert "warning: the pod refused the connection: lost connection to pod" in capsys.readouterr().err
