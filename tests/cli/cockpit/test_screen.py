"""The cockpit in a real terminal: send keys, read the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from symphony_charts.local.runs import find_run, live_runs
from tests.cli.own_tmux import Own, own_tmux
from tests.local.runs import start, until

_LOOP = "i=0; while :; do i=$((i+1)); printf 'step %d \\033[31m%s\\n' $i $SYMPHONY_ROLE; sleep 0.2; done"
TWO = {
    "learner": {"cmds": [_LOOP]},
    "replay": {"cmds": ["echo ready; exec sleep 300"], "binds": "board", "ready": {"exec": ["true"]}},
}


@pytest.fixture
def own(private_places: Path, need_tool: Callable[[str], str]) -> Iterator[Own]:
    with own_tmux(private_places, need_tool) as one:
        yield one


def press(own: Own, *keys: str) -> None:
    for key in keys:
        own.tmux("send-keys", "-t", "mine", *(("-l", key) if len(key) > 1 and key.islower() else (key,)))


def test_one_sees_chooses_searches_restarts_copies_and_leaves_it_running(own: Own, tmp_path: Path) -> None:
    start(tmp_path, processes=TWO)
    own.type("symph top exp")
    own.seen("exp  running", "learner 1/1", ">learner", "step", "q leave")
    assert "\x1b[31m" not in own.screen()

    press(own, "j")
    own.seen(">replay", "── replay", "ready")
    press(own, "k", "l")
    own.seen("search: a regular expression")
    press(own, "step 1 ", "Enter")
    own.seen(">learner", "/step 1 /", "stays")
    press(own, "l")
    press(own, "ste[", "Enter")
    own.seen("no regular expression")

    press(own, "c")
    address = find_run("exp").plan().base_address.rpartition(".")[0]
    own.seen(f"board  {address}.")
    press(own, "Enter")
    own.seen("copied ")

    press(own, "r")
    own.seen("restart: done")
    press(own, "s")
    own.seen("leave exp running", "end exp")
    press(own, "Escape")
    until(lambda: "leave exp running" not in own.tmux("capture-pane", "-p", "-t", "mine"))
    press(own, "q")
    own.seen("symph top exp")
    assert [run.experiment for run in live_runs()] == ["exp"]


def test_text_after_a_search_key_is_searched_and_not_read_as_keys(own: Own, tmp_path: Path) -> None:
    start(tmp_path, processes=TWO)
    own.type("symph top exp")
    own.seen("exp  running", ">learner", "step", "q leave")
    for typed, told in (("lr/sq", "/r/sq/"), ("frsfq", "only /rsfq/"), ("/rSsq", "rows /rSsq/")):
        own.tmux("send-keys", "-t", "mine", "-l", typed)
        own.seen(typed[1:])
        press(own, "Enter")
        own.seen(told)
    assert "restart:" not in own.screen()
    assert "leave exp running" not in own.screen()


def test_keys_are_taken_in_the_order_in_which_they_are_typed(own: Own, tmp_path: Path) -> None:
    start(tmp_path, processes=TWO)
    own.type("symph top exp")
    own.seen("exp  running", ">learner", "step", "q leave")
    for typed, chosen in (("jkjl", "replay"), ("kl", "learner")):
        own.tmux("send-keys", "-t", "mine", "-l", typed)
        own.seen(f">{chosen}", "search: a regular expression")
        press(own, "x", "Enter")
        own.seen(f"── {chosen}  /x/")


def test_an_end_stays_on_the_screen_and_an_experiment_is_ended_after_asking(own: Own, tmp_path: Path) -> None:
    start(tmp_path, processes={"p": {"cmds": ["echo up; exec sleep 300"]}})
    own.type("symph top exp")
    own.seen("exp  running", ">p")
    press(own, "s")
    own.seen("end exp")
    press(own, "Down", "Enter")
    own.seen("exp  stopped")
    assert not live_runs()
    press(own, "q")


def test_without_keys_the_table_is_plain(own: Own, tmp_path: Path) -> None:
    start(tmp_path, processes={"p": {"cmds": ["printf 'up\\033[2J'; exec sleep 300"]}})
    own.type("symph top exp --plain --interval 1s")
    own.seen("exp   running", "LAST LINE", " up")
