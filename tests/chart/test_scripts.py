"""The shell that the chart puts into containers, run."""

from __future__ import annotations

import socket
import subprocess
from contextlib import ExitStack

from symphony_charts.chart.render.scripts import hold_script
from tests.waiting import eventually


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_held_process_goes_on_answering_its_probes() -> None:
    port = _free_port()

    def is_answered() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), 2).close()
        except ConnectionRefusedError:
            return False
        return True

    script = ["/bin/sh", "-c", hold_script([port]), "symph-hold", "true"]
    with subprocess.Popen(script, stdout=subprocess.DEVNULL) as held, ExitStack() as stack:
        stack.callback(held.terminate)
        eventually(is_answered)
        # The kernel keeps 128 connections that nobody accepts, closed ones too: a probe each 10 s fills that in 21 min.
        assert all(is_answered() for _ in range(300))
        held.terminate()
        assert held.wait(10) == 143
