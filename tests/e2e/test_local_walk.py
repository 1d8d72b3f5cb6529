"""Runs of several machines that share a home, under random verbs, kills and faults: no run is lost.

No foreign process or file is touched.

Each machine is a set of process, mount and network namespaces with real tmux in it, and a reboot ends all of it at
once; afterwards strangers have the process numbers of the earlier processes. The tests drive the command only:
SYMPH_COMMAND names another one, such as another version. SYMPH_SOAK sets the number of steps, SYMPH_SEED the first
seed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.e2e.local_walk.inside import write_whole
from tests.e2e.local_walk.walk import STATE, Step, Walk, walked
from tests.e2e.local_walk.world import HOME, World, why_not

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]

_COMMAND = os.environ.get("SYMPH_COMMAND") or str(Path(sys.executable).with_name("symph"))
_STEPS = int(os.environ.get("SYMPH_SOAK") or 500)
_FIRST_SEED = int(os.environ.get("SYMPH_SEED") or 1)
_WALKS, _LENGTH = 4, 25
_SOMEBODY = 61001


# Regressions that walks have found.
_WHAT_WENT_WRONG: dict[str, list[Step]] = {
    "a look from another machine ended the run": [
        ("up", "A", "a", "plain", 1),
        ("boot", "B", "machine"),
        ("symph", "B", "p", "a"),
    ],
    "a look from another container ended the run": [
        ("boot", "B", "container"),
        ("up", "A", "a", "plain", 1),
        ("symph", "B", "describe", "a"),
    ],
    "ls says that runs of before the reboot run": [("up", "A", "a", "plain", 1), ("reboot", "A", "machine")],
    "a volume below a folder swallows what is written to it": [("up", "A", "a", "below", 1)],
    "a claim ends with the run": [("up", "A", "a", "claim", 1), ("symph", "A", "down", "a")],
    "a folder of somebody else is taken for an old run": [
        ("foreign", "folder"),
        ("up", "A", "a", "finite", 1, "--wait"),
        ("gc", "A"),
    ],
    "old runs are looked for behind a link": [
        ("foreign", "link"),
        ("up", "A", "a", "finite", 1, "--wait"),
        ("gc", "A"),
    ],
    "runs that are started at once are not seen": [
        ("together", "A", *["up a plain 1"] * 6),
        ("symph", "A", "down", "a"),
    ],
    "one damaged file spoils ls": [
        ("up", "A", "a", "plain", 1),
        ("up", "A", "b", "plain", 1),
        ("damage", "a", "empty"),
        ("symph", "A", "down", "a"),
    ],
    "a supervisor that was stopped hears nothing": [
        ("up", "A", "a", "plain", 1),
        ("kill", "A", "supervisor", 0, 19),
        ("symph", "A", "down", "a"),
    ],
    "without tmux and supervisor nobody knows what runs": [
        ("up", "A", "a", "pair", 1),
        ("kill", "A", "supervisor", 0, 9),
        ("kill", "A", "tmux", 0, 9),
        ("symph", "A", "ls"),
        ("symph", "A", "down", "a"),
    ],
    "a start that is cut is not seen": [("cut", "A", 700, "up a pair 1"), ("up", "A", "a", "pair", 1)],
    "somebody else makes the runtime folder": [("squat", "A"), ("up", "A", "a", "gpu", 1)],
    "a link is followed on this machine, and not where the process is": [
        ("up", "A", "a", "linked", 1),
        ("fetch", "A", "a"),
    ],
    "of a run without a supervisor tmux alone is left": [
        ("up", "A", "a", "claim", 1),
        ("kill", "A", "supervisor", 0, 9),
        ("close", "A", 0),
        ("kill", "A", "wrapper", 0, 9),
        ("symph", "A", "p", "a"),
    ],
    "a restart on a full disk was waited for": [
        ("up", "A", "a", "below", 1),
        ("fill",),
        ("symph", "A", "restart", "-e", "a"),
    ],
}
_STRANGERS: dict[str, list[Step]] = {
    "down": [("up", "A", "a", "plain", 1), ("reboot", "A", "machine"), ("symph", "A", "down", "a")],
    "p": [("up", "A", "a", "pair", 1), ("reboot", "A", "container"), ("symph", "A", "p", "a")],
    "up": [("up", "A", "a", "plain", 1), ("reboot", "A", "machine"), ("up", "A", "a", "plain", 2)],
}


@pytest.mark.parametrize("what", _WHAT_WENT_WRONG)
def test_what_once_went_wrong_goes_right(what: str) -> None:
    with World(_COMMAND) as world:
        walked(world, _WHAT_WENT_WRONG[what])


@pytest.mark.parametrize("verb", _STRANGERS)
def test_after_a_reboot_nobody_is_taken_for_a_process_of_the_run(verb: str) -> None:
    with World(_COMMAND) as world:
        walked(world, _STRANGERS[verb], is_looking=False)


_LOOKING = ["ls", "ls -a", "p a", "p a -o wide", "describe a", "logs p a --tail 1", "events a", "top a --once"]
_LOOKING += ["wait a --for failed --timeout 1", "local history a"]
_CHANGING = ("down a", "restart -e a", "up {spec}", "up {spec} --force", "delete a --yes")


def test_a_container_that_only_looks_leaves_a_run_of_another_alone() -> None:
    with World(_COMMAND) as world:
        walk = Walk(world)
        walk.begin()
        for step in (("reboot", "A", "container"), ("boot", "B", "container"), ("up", "A", "a", "claim", 1)):
            walk.do(step)
        before = world.look("A", STATE).files
        for words in _LOOKING:
            walk.do(("symph", "B", *words.split()))
            assert walk.answers[-1].status in (0, 2, 6), walk.answers[-1]
        assert "runs in another container of this machine (A)" in world.symph("B", "ls").out
        assert world.look("A", STATE).files == before
        for words in _CHANGING:
            walk.do(("symph", "B", *words.format(spec=f"{HOME}/exp/a.claim.1.yaml").split()))
            refused = walk.answers[-1]
            assert (refused.status, "another container" in refused.err) == (7, True), refused
        walk.finish()


def test_a_run_whose_container_is_gone_is_lost_until_it_is_ended() -> None:
    with World(_COMMAND) as world:
        walk = Walk(world, is_looking=False)
        walk.begin()
        for step in (("reboot", "A", "container"), ("up", "A", "a", "plain", 1), ("reboot", "A", "container")):
            walk.do(step)
        (item,) = json.loads(world.symph("A", "ls", "-o", "json").out)["items"]
        assert (item["phase"], item["note"]) == ("lost", "its container is gone; symph down a tidies up")
        assert "lost" in world.symph("A", "p", "a").out
        status = world.symph("A", "status", "a", "-o", "json")
        assert (status.status, json.loads(status.out)["items"][0]["why"]["cause"]) == (1, "lost")
        waited = world.symph("A", "wait", "a")
        assert (waited.status, "is lost" in waited.err) == (1, True)
        walk.do(("symph", "A", "down", "a"))
        walk.do(("up", "A", "a", "plain", 1))
        walk.finish()


_MACHINES = st.sampled_from(["A", "A", "A", "B"])
_NAMES = st.sampled_from(["a", "b", "c"])
_SHAPES = st.sampled_from(["plain", "pair", "claim", "below", "finite", "failing"])
_NUMBERS = st.integers(1, 3)
_LOOKS = st.sampled_from(["ls", "ls -a", "p", "describe", "logs", "events", "status", "local history", "doctor"])


class Steps(RuleBasedStateMachine):
    """Draws the steps of a walk.

    `wrong` holds the first fault, after which no step is taken: processes run in parallel, so no walk is the same
    twice, but the drawing must be.
    """

    number = 0
    wrong: ClassVar[list[BaseException]] = []
    taken: ClassVar[list[Step]] = []

    def __init__(self) -> None:
        super().__init__()
        # Root, or a user who may mount only inside a user namespace.
        self._world = World(_COMMAND, user=_SOMEBODY if self.number % 2 else 0)
        self._walk = Walk(self._world)
        self._stack = contextlib.ExitStack()
        with self._noting():
            self._stack.enter_context(self._world)
            self._walk.begin()

    @contextlib.contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except (AssertionError, OSError, ValueError) as error:
            self.wrong.append(error)

    def _do(self, *step: str | int) -> None:
        if step[1:2] == ("B",) and step[0] != "boot" and "B" not in self._world.booted:
            step = (step[0], "A", *step[2:])
        if not self.wrong:
            self.taken.append(step)
            with self._noting():
                self._walk.do(step)

    @initialize(shape=_SHAPES)
    def begin(self, shape: str) -> None:
        self.up("A", "a", shape, 1, [])

    @rule(machine=_MACHINES, name=_NAMES, shape=_SHAPES, number=_NUMBERS)
    def start(self, machine: str, name: str, shape: str, number: int) -> None:
        self.up(machine, name, shape, number, [])

    @rule(machine=_MACHINES, name=_NAMES, shape=_SHAPES, number=_NUMBERS, options=st.sampled_from([[], ["--force"]]))
    def up(self, machine: str, name: str, shape: str, number: int, options: list[str]) -> None:
        wait = ["--wait"] if shape in ("finite", "failing") else []
        self._do("up", machine, name, shape, number, *options, *wait)

    @rule(machine=_MACHINES, verb=st.sampled_from(["down", "down", "restart -e", "delete --yes"]), name=_NAMES)
    def end(self, machine: str, verb: str, name: str) -> None:
        self._do("symph", machine, *verb.split(), name)

    @rule(machine=_MACHINES, words=_LOOKS, name=_NAMES)
    def look(self, machine: str, words: str, name: str) -> None:
        of_one = [] if words.split()[0] in ("ls", "status", "doctor") else [name]
        self._do("symph", machine, *words.split(), *of_one)

    @rule(machine=_MACHINES, name=_NAMES)
    def wait(self, machine: str, name: str) -> None:
        self._do("symph", machine, "wait", name, "--for=ready", "--timeout", "1s")

    @rule(machine=_MACHINES, name=_NAMES)
    def exec(self, machine: str, name: str) -> None:
        self._do("symph", machine, "exec", "p", name, "--", "true")

    @rule(machine=_MACHINES)
    def gc(self, machine: str) -> None:
        self._do("gc", machine)

    @rule(machine=_MACHINES, name=_NAMES, data=st.data())
    def together(self, machine: str, name: str, data: Any) -> None:
        one = st.sampled_from(
            [f"up {name} plain 1", f"up {name} claim 2", f"up {name} plain 1 --force", f"down {name}", f"p {name}"]
        )
        self._do("together", machine, *data.draw(st.lists(one, min_size=2, max_size=4)))

    @rule(
        machine=_MACHINES, name=_NAMES, milliseconds=st.integers(50, 1200), verb=st.sampled_from(["up", "up", "down"])
    )
    def cut(self, machine: str, name: str, milliseconds: int, verb: str) -> None:
        self._do("cut", machine, milliseconds, f"up {name} pair 1" if verb == "up" else f"down {name}")

    @rule(
        machine=_MACHINES,
        kind=st.sampled_from(["supervisor", "tmux", "wrapper", "process"]),
        index=st.integers(0, 5),
        number=st.sampled_from([9, 9, 15]),
    )
    def kill(self, machine: str, kind: str, index: int, number: int) -> None:
        self._do("kill", machine, kind, index, number)

    @rule(machine=_MACHINES, index=st.integers(0, 2))
    def close(self, machine: str, index: int) -> None:
        self._do("close", machine, index)

    @rule(name=_NAMES, how=st.sampled_from(["empty", "half", "list", "map"]))
    def damage(self, name: str, how: str) -> None:
        self._do("damage", name, how)

    @rule()
    def fill(self) -> None:
        self._do("fill")

    @rule()
    def end_troubles(self) -> None:
        if self._walk.is_troubled:
            self._do("recover")

    @rule(machine=_MACHINES)
    def shut(self, machine: str) -> None:
        self._do("shut", machine)

    @rule(kind=st.sampled_from(["machine", "container"]))
    def boot(self, kind: str) -> None:
        self._do("boot", "B", kind)

    @rule(machine=_MACHINES, kind=st.sampled_from(["machine", "container"]))
    def reboot(self, machine: str, kind: str) -> None:
        self._do("reboot", machine, kind)

    @rule(kind=st.sampled_from(["folder", "link"]))
    def foreign(self, kind: str) -> None:
        self._do("foreign", kind)

    def teardown(self) -> None:
        """Finish the walk, unless a step failed."""
        with self._stack, self._noting():
            if not self.wrong:
                self._walk.finish()


def test_an_answer_of_a_machine_is_whole_though_children_end_while_it_is_written() -> None:
    reader, writer = os.pipe()
    data, heard = os.urandom(1 << 22), bytearray()

    def hear() -> None:
        while more := os.read(reader, 1 << 12):
            heard.extend(more)
            time.sleep(0)

    listener = threading.Thread(target=hear)
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    listener.start()
    try:
        write_whole(writer, data)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        os.close(writer)
        listener.join()
        os.close(reader)
    assert heard == data


@pytest.mark.parametrize("number", range(_WALKS))
def test_a_walk_loses_nothing_and_touches_nobody(number: int) -> None:
    class Numbered(Steps):
        wrong: ClassVar[list[BaseException]] = []
        taken: ClassVar[list[Step]] = []

    Numbered.number = number
    options = settings(
        max_examples=max(1, round(_STEPS / _WALKS / _LENGTH)),
        stateful_step_count=_LENGTH,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    first, wanted = _FIRST_SEED + number, _STEPS / _WALKS
    # Some drawn steps do nothing, since there is nothing to repair; then more are drawn.
    for again in range(100):
        run_state_machine_as_test(seed(first + again * 1000)(Numbered), settings=options)
        if Numbered.wrong or len(Numbered.taken) >= wanted:
            break
    sys.stdout.write(f"seed {first}: {len(Numbered.taken)} steps\n")
    if Numbered.wrong:
        raise Numbered.wrong[0]
