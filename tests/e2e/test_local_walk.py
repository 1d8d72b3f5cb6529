"""Runs of several machines that share a home, under random verbs, kills and faults: no run is lost.

No foreign process or file is touched.

Each machine is a set of process, mount and network namespaces with real tmux in it, and a reboot ends all of it at
once; afterwards strangers have the process numbers of the earlier processes. The tests drive the command only:
SYMPH_COMMAND names another one, such as another version. SYMPH_SOAK sets the number of steps, SYMPH_SEED the first
seed.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.local_walk.walk import STATE, Walk, walked
from tests.e2e.local_walk.world import HOME, World, why_not

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]

_COMMAND = os.environ.get("SYMPH_COMMAND") or str(Path(sys.executable).with_name("symph"))
_STEPS = int(os.environ.get("SYMPH_SOAK") or 200)
_FIRST_SEED = int(os.environ.get("SYMPH_SEED") or 1)
_WALKS, _LENGTH = 4, 25
_SOMEBODY = 61001


# Regressions that walks have found.
_WHAT_WENT_WRONG = {
    "a look from another machine ended the run": "up A a plain 1; boot B machine; symph B p a",
    "a look from another container ended the run": "boot B container; up A a plain 1; symph B describe a",
    "ls says that runs of before the reboot run": "up A a plain 1; reboot A machine",
    "a volume below a folder swallows what is written to it": "up A a below 1",
    "a claim ends with the run": "up A a claim 1; symph A down a",
    "a folder of somebody else is taken for an old run": "foreign folder; up A a finite 1; gc A",
    "old runs are looked for behind a link": "foreign link; up A a finite 1; gc A",
    "runs that are started at once are not seen": "together A" + " 'up a plain 1'" * 6 + "; symph A down a",
    "one damaged file spoils ls": "up A a plain 1; up A b plain 1; damage a empty; symph A down a",
    "a supervisor that was stopped hears nothing": "up A a plain 1; kill A supervisor 0 19; symph A down a",
    "without tmux and supervisor nobody knows what runs": (
        "up A a pair 1; kill A supervisor 0 9; kill A tmux 0 9; symph A ls; symph A down a"
    ),
    "a start that is cut is not seen": "cut A 700 'up a pair 1'; up A a pair 1",
    "somebody else makes the runtime folder": "squat A; up A a gpu 1",
    "a link is followed on this machine, and not where the process is": "up A a linked 1; fetch A a",
    "of a run without a supervisor tmux alone is left": (
        "up A a claim 1; kill A supervisor 0 9; close A 0; kill A wrapper 0 9; symph A p a"
    ),
    "a run with a damaged identity cannot be ended": "up A a pair 1; damage a empty identity; symph A down a",
    "a second supervisor joins the first": (
        "up A a pair 1; damage a half supervisor; symph A restart p a; symph A down a"
    ),
    "a stopped tmux stops the supervisor": (
        "up A a plain 1; kill A tmux 0 19; kill A process 0 9; up A a plain 2; recover"
    ),
    "a restart on a full disk was waited for": "up A a below 1; fill; symph A restart -e a",
    "a start on an almost full disk lost output": (
        "up A a claim 1; reboot A container; symph A down a; up A b plain 1; symph A down b; up A c claim 2;"
        " up A b pair 3; up A c pair 2; reboot A container; fill; gc A; up A b pair 1"
    ),
    "a run that another container took for lost runs on": (
        "up A a claim 1; kill A supervisor 0 9; boot B container; kill A tmux 0 9; up B a pair 2; symph A p a"
    ),
    "a run that another container took for lost cannot be ended": (
        "up A a pair 1; kill A supervisor 0 9; boot B container; kill A tmux 0 9; up B a claim 2; symph B down a;"
        " symph A down a"
    ),
}
# After a reboot, other processes have the numbers of the run's.
_STRANGERS = {
    "down": "up A a plain 1; reboot A machine; symph A down a",
    "p": "up A a pair 1; reboot A container; symph A p a",
    "up": "up A a plain 1; reboot A machine; up A a plain 2",
}


@pytest.mark.parametrize("what", [*_WHAT_WENT_WRONG, *_STRANGERS])
def test_what_once_went_wrong_goes_right(what: str) -> None:
    steps = {**_WHAT_WENT_WRONG, **_STRANGERS}[what].split("; ")
    with World(_COMMAND) as world:
        walked(world, steps, is_looking=what in _WHAT_WENT_WRONG)


_LOOKING = ["ls", "ls -a", "p a", "p a -o wide", "describe a", "logs p a --tail 1", "events a", "top a --once"]
_LOOKING += ["wait a --for failed --timeout 1", "local history a"]
_CHANGING = ("down a", "restart -e a", "up {spec}", "up {spec} --force", "delete a --yes")


def test_a_container_that_only_looks_leaves_a_run_of_another_alone() -> None:
    with World(_COMMAND) as world:
        walk = Walk(world, is_looking=False)
        walk.begin()
        for step in ("reboot A container", "boot B container", "up A a claim 1"):
            walk.do(step)
        before = world.look("A", STATE).files
        for words in _LOOKING:
            walk.do(f"symph B {words}")
            assert walk.answers[-1].status in (0, 2, 6), walk.answers[-1]
        assert "runs on A, in another container" in world.symph("B", "ls").out
        assert world.look("A", STATE).files == before
        for words in _CHANGING:
            walk.do(f"symph B {words.format(spec=f'{HOME}/exp/a.claim.1.yaml')}")
            refused = walk.answers[-1]
            assert (refused.status, "another container" in refused.err) == (7, True), refused
        walk.do("up B b plain 1")
        ended = world.symph("B", "down", "--all", "-o", "name")
        assert (ended.status, ended.out.split()) == (0, ["b"]), ended
        walk.finish()


def test_a_run_whose_container_is_gone_is_lost_until_it_is_ended() -> None:
    with World(_COMMAND) as world:
        walk = Walk(world, is_looking=False)
        walk.begin()
        for step in ("reboot A container", "up A a plain 1", "reboot A container"):
            walk.do(step)
        (item,) = json.loads(world.symph("A", "ls", "-o", "json").out)["items"]
        assert (item["phase"], item["note"]) == ("lost", "it ran on A and has died; clean up: symph down a")
        assert "lost" in world.symph("A", "p", "a").out
        status = world.symph("A", "status", "a", "-o", "json")
        assert (status.status, json.loads(status.out)["items"][0]["why"]["cause"]) == (1, "lost")
        waited = world.symph("A", "wait", "a")
        assert (waited.status, "is lost" in waited.err) == (1, True)
        walk.do("symph A down a")
        walk.do("up A a plain 1")
        walk.finish()


_TEMPLATES = (
    *("up {machine} {name} {shape} {number}", "up {machine} {name} {shape} {number} {force}"),
    *("symph {machine} {end} {name}", "symph {machine} {look} {name}", "symph {machine} {look all}"),
    *("symph {machine} wait {name} --for=ready --timeout 1s", "symph {machine} exec p {name} -- true"),
    *("gc {machine}", "together {machine} {line} {line}", "together {machine} {line} {line} {line} {line}"),
    *("cut {machine} {ms} '{cut}'", "kill {machine} {kind} {index} {signal}", "close {machine} {index}"),
    *("damage {name} {how} {file}", "symph {machine} {one} p {name}", "symph {machine} scale p={number} {name}"),
    *(
        "kill {machine} tmux {index} 19",
        "fill",
        "recover",
        "shut {machine}",
        "boot B {boot}",
        "reboot {machine} {boot}",
    ),
    "foreign {foreign}",
)
_WORDS = {
    "name": "a b c",
    "shape": "plain pair claim below finite failing",
    "number": "1 2 3",
    "end": ["down", "down", "restart -e", "delete --yes"],
    "look": ["p", "describe", "logs", "events", "local history"],
    "look all": ["ls", "ls -a", "status", "doctor"],
    "force": ["", "--force"],
    "line": ["'up {name} plain 1 {force}'", "'up {name} claim 2'", "'down {name}'", "'p {name}'"],
    "cut": ["up {name} pair 1", "up {name} pair 1", "down {name}"],
    "ms": "50 200 400 600 800 1000 1200",
    "kind": "supervisor tmux wrapper process",
    "index": "0 1 2 3 4 5",
    "signal": "9 9 15",
    "how": "empty half list map",
    "file": "state plan identity supervisor",
    "one": "stop start restart",
    "boot": "machine container",
    "foreign": "folder link",
}


def drawn(world: World, chance: random.Random) -> Iterator[str]:
    """Yield the steps of a random walk; each begins with a run."""
    step = "up A a {shape} 1"
    for _ in range(_LENGTH):
        words = {**_WORDS, "machine": "A A A B" if "B" in world.booted else "A"}
        while found := re.search(r"\{([a-z ]+)\}", step):
            values = words[found[1]]
            step = step.replace(found[0], chance.choice(values.split() if isinstance(values, str) else values), 1)
        yield step
        step = chance.choice(_TEMPLATES)


@pytest.mark.parametrize("number", range(_WALKS))
def test_a_walk_loses_nothing_and_touches_nobody(number: int) -> None:
    for again in range(max(1, round(_STEPS / _WALKS / _LENGTH))):
        seed = _FIRST_SEED + number + again * 1000
        sys.stdout.write(f"seed {seed}\n")
        # Root, or a user who may mount only inside a user namespace.
        with World(_COMMAND, user=_SOMEBODY if number % 2 else 0) as world:
            walked(world, drawn(world, random.Random(seed)))
