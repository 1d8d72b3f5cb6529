"""Members of a session; ending it leaves no process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from symphony_charts.system.processes import Session, identify, members, signal_all

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc")


def test_a_leader_that_has_not_opened_its_session_yet_is_in_it() -> None:
    # As tmux starts a pane: for a moment its program is a child in the session of tmux.
    with subprocess.Popen(["sleep", "60"]) as child:
        leader = identify(child.pid)
        assert leader is not None
        assert os.getsid(child.pid) != child.pid
        found = members("", [Session(leader=leader, until=leader.start)], b"\0")
        signal_all(found, signal.SIGKILL)
        assert [record.pid for record in found] == [child.pid]
        assert child.wait(timeout=20) == -signal.SIGKILL


def test_who_is_becoming_another_program_is_found() -> None:
    again = 'exec sh -c "$0" "$0"'
    env = {"PATH": os.environ["PATH"], "OF_RUN": f"r{os.getpid()}"}
    with subprocess.Popen(["sh", "-c", again, again], env=env) as restless:
        try:
            cookie = f"OF_RUN=r{os.getpid()}".encode()
            found = [[record.pid for record in members("", [], cookie)] for _ in range(300)]
        finally:
            restless.kill()
    assert found == [[restless.pid]] * 300
