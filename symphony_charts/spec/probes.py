"""Probes say when a process counts as ready."""

from __future__ import annotations

from typing import Literal

from symphony_charts.spec.record import Record

__all__ = ["ExecProbe", "HttpProbe", "Probe", "TcpProbe"]


class TcpProbe(Record, frozen=True, kw_only=True):
    """The process is ready when `port` accepts a connection.

    Attributes:
        port: The number, or the name of a service that it binds or exposes.
    """

    port: int | str


class HttpProbe(Record, frozen=True, kw_only=True):
    """The process is ready when GET `path` on `port` answers 200-399.

    Attributes:
        port: The number, or the name of a service that it binds or exposes.
        path: What is asked for, from the slash on.
        scheme: By which protocol.
    """

    port: int | str
    path: str = "/"
    scheme: Literal["HTTP", "HTTPS"] = "HTTP"


class ExecProbe(Record, frozen=True, kw_only=True):
    """The process is ready when `command` exits 0.

    Attributes:
        command: Program and arguments, run where the process runs.
    """

    command: list[str]


class Probe(Record, frozen=True, kw_only=True):
    """When a process counts as ready; exactly one of `tcp`, `http`, `exec`. Times are in seconds, as in Kubernetes.

    Attributes:
        tcp: A port that accepts connections.
        http: An address that answers 200-399.
        exec: A command that exits 0.
        initial_delay: Seconds from its start until it is asked for the first time.
        period: Seconds between two questions.
        timeout: Seconds that an answer may take.
        failures: So many bad answers in a row, and it is no longer ready.
        successes: So many good answers in a row, and it is ready.
    """

    tcp: TcpProbe | None = None
    http: HttpProbe | None = None
    exec: ExecProbe | None = None
    initial_delay: int = 0
    period: int = 10
    timeout: int = 1
    failures: int = 3
    successes: int = 1
