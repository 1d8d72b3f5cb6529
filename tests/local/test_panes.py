"""Panes and events of a supervisor in states that last only for an instant."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from symphony_charts.local import tmux_client
from symphony_charts.local.runs import Run
from symphony_charts.local.supervisor.loop import Loop
from symphony_charts.local.supervisor.panes import Panes
from symphony_charts.system.processes import ProcessRecord, open_identified
from tests.local.records import process_state


def ignore(_slot: int) -> None:
    """Do nothing about an event."""


@pytest.fixture
def dead() -> Iterator[ProcessRecord]:
    """Yield a zombie: a program that has ended and was not yet waited for."""
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        program.stdout.read()
        opened = open_identified(program.pid)
        assert opened is not None
        os.close(opened[0])
        yield opened[1]


@pytest.mark.parametrize(("phase", "is_followed"), [("backoff", False), ("running", True)])
def test_an_end_that_is_known_is_not_taken_for_that_of_the_next_start(
    phase: str, is_followed: bool, dead: ProcessRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane = tmux_client.Pane(
        slot=0, id="%0", pid=dead.pid, is_dead=False, is_piped=True, terminal="", server=os.getpid()
    )
    monkeypatch.setattr(tmux_client, "list_panes", lambda _socket: [pane])
    panes = Panes(Run(tmp_path), [process_state(phase, wrapper=dead)], Loop(), ignore, ignore)
    assert panes.adopt() == 1
    assert (0 in panes) is is_followed


def test_what_was_started_again_meanwhile_is_followed(
    dead: ProcessRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane = tmux_client.Pane(
        slot=0, id="%0", pid=dead.pid, is_dead=False, is_piped=True, terminal="", server=os.getpid()
    )
    monkeypatch.setattr(tmux_client, "list_panes", lambda _socket: [pane])
    other = ProcessRecord(pid=dead.pid - 1, start=dead.start)
    panes = Panes(Run(tmp_path), [process_state("backoff", wrapper=other)], Loop(), ignore, ignore)
    panes.adopt()
    assert 0 in panes


def test_a_foreign_program_with_the_number_of_one_that_has_ended_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen(["sleep", "60"]) as foreign, subprocess.Popen(["sleep", "60"]) as server:
        pane = tmux_client.Pane(0, "%0", foreign.pid, is_dead=False, is_piped=True, terminal="", server=server.pid)
        monkeypatch.setattr(tmux_client, "list_panes", lambda _socket: [pane])
        panes = Panes(Run(tmp_path), [process_state()], Loop(), ignore, ignore)
        panes.adopt()
        assert 0 not in panes
        foreign.kill()
        server.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="select.poll")
def test_a_number_that_is_used_again_within_a_turn_calls_nobody_new() -> None:
    loop, called = Loop(), []
    (first, first_end), (second, second_end) = os.pipe(), os.pipe()

    def replace_second() -> None:
        called.append("first")
        loop.forget(first)
        loop.forget(second)
        # Another program may reuse the number at once, as here.
        os.dup2(first, second)
        loop.watch(second, lambda: called.append("the new one"))

    loop.watch(first, replace_second)
    loop.watch(second, lambda: called.append("second"))
    for end in (first_end, second_end):
        os.write(end, b"x")
    loop.turn()
    assert called == ["first"]
    # The second waiter gets its own turn: its event has come as well.
    loop.turn()
    assert called == ["first", "the new one"]
    for descriptor in (first, first_end, second, second_end):
        os.close(descriptor)
