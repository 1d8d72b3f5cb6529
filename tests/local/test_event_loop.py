"""Dispatch of ready descriptors to their waiters."""

from __future__ import annotations

import os
import sys

import pytest

from symphony_charts.local.supervisor.events import Loop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="select.poll")


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
