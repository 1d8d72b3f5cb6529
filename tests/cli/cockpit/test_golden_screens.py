"""The cockpit's screens compared with text files in `golden/`: main states at two sizes, at a fixed moment.

The colours of cells, except those of plain text, follow each screen. `test_screen.py` uses a real terminal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from rich.style import Style
from textual._compositor import LayoutUpdate
from textual.pilot import Pilot

from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import ExperimentStatus, InstanceStatus, LogLine, LogQuery, ServiceStatus, Usage
from symphony_charts.cli import cockpit_rows
from symphony_charts.cli.cockpit import Cockpit, Table
from symphony_charts.errors import NotFound
from tests.golden import check_golden
from tests.pages.blocks import ROOT, blocks_of

GOLDEN = Path(__file__).parent / "golden"
NOW = 10_000.0
SIZES = ((80, 24), (120, 40))


def instance(name: str, process: str = "", **fields: object) -> InstanceStatus:
    given: dict[str, object] = {"phase": "running", "state": "running 3m", "ready": True, "started": NOW - 192}
    return InstanceStatus(name=name, process=process or name, **{**given, **fields})  # type: ignore[arg-type] # by name


def experiment(name: str, *instances: InstanceStatus, phase: str = "running", age_s: float = 192.0) -> ExperimentStatus:
    return ExperimentStatus(
        name=name,
        experiment=name,
        backend="tmux",
        phase=phase,  # type: ignore[arg-type] # one of the phases
        started=NOW - age_s,
        instances=instances,
        services=(ServiceStatus(name="board", address="127.83.4.1:6006"),),
    )


ENDED = {"phase": "failed", "state": "failed 1 after 2s", "status": 1, "ended": NOW - 190}
MISSING = "exit status 1 after 2s: ModuleNotFoundError: No module named 'gym'"
FAILED = instance("agent-1", "agent", ready=False, restarts=3, reason=MISSING, **ENDED)
WAITS = "waits for learner:7004 of learner, 12s"
WAITING = instance("eval", phase="pending", state=f"pending: {WAITS}", ready=False, started=None, reason=WAITS)
RL = experiment("rl", instance("learner"), instance("agent-0", "agent"), FAILED, WAITING)
SWEEP = experiment("sweep-3", instance("trial", started=NOW - 7200), age_s=7200)
MANY = experiment("many", *(instance(f"agent-{index}", "agent") for index in range(500)))
FULL = experiment("full", *(instance(f"a-{index}", "a") for index in range(60)), FAILED)
EMPTY = experiment("empty", phase="pending", age_s=5)
LOGS = {
    "learner": [f"14:02:{second:02} step {1000 + second} \x1b[31mred" for second in range(60)],
    "agent-1": ["Traceback (most recent call last):", "ModuleNotFoundError: No module named 'gym'"],
    "agent-497": ["no more agents"],
    "a-0": [f"a long line {'x' * 150} and its end"],
}


class Moment:
    """A `Watcher` with fixed answers."""

    backend = "tmux"

    def __init__(self, *experiments: ExperimentStatus) -> None:
        self._experiments = {each.name: each for each in experiments}

    def names(self) -> list[str]:
        return sorted(self._experiments)

    def describe(self, name: str, *, events: bool = True) -> ExperimentStatus:
        assert not events
        if name not in self._experiments:
            raise NotFound(f'there is no experiment "{name}"')
        return self._experiments[name]

    def usage(self, name: str) -> Mapping[str, Usage]:
        running = [each for each in self._experiments[name].instances if each.phase == "running"]
        return {each.path: Usage(cpu=0.98, memory=2_252_341_248) for each in running}

    def last_lines(self, name: str) -> Mapping[str, str]:
        return {path: lines[-1] for path, lines in LOGS.items()} if name != "sweep-3" else {}

    def logs(self, _name: str, query: LogQuery) -> Iterator[LogLine]:
        for path in query.instances:
            lines = (LogLine(time=NOW, process=path, text=f"{text}\n") for text in LOGS.get(path, ()))
            yield from filter(query.wants, lines)


async def settle(pilot: Pilot[None]) -> None:
    """Wait until the screen shows the wanted picture and all key presses have taken effect."""
    app = cast(Cockpit, pilot.app)
    for _ in range(500):
        await pilot.pause()
        picture, table = app._picture, app.screen_stack[0].query_one(Table)
        is_there = picture is not None and picture.wish is app._wish
        if is_there and (picture is None or picture.status is None or table.chosen == app._wish.path):
            await pilot.pause()
            return
        await asyncio.sleep(0.01)
    pytest.fail("the screen does not come to rest")


def screen_of(app: Cockpit) -> str:
    """Return the screen's text, followed by the cells that have one of the terminal's 16 colours or are marked."""
    update = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens, simplify=True)
    assert isinstance(update, LayoutUpdate)
    rows = [[segment for strip in line for segment in strip] for line in update.strips]
    texts = ["".join(segment.text for segment in row).rstrip() for row in rows]
    colours = [
        f"line {number}, {colour}: {segment.text.strip()[:20]}"
        for number, row in enumerate(rows, start=1)
        for segment in row
        if (colour := colour_of(segment.style)) and segment.text.strip()
    ]
    return "\n".join([*texts, "-" * app.size.width, *colours, ""])


def colour_of(style: Style | None) -> str:
    """Return a colour such as ``reverse green``; empty for plain text and the colours of textual's own widgets."""
    if style is None or (style.color and style.color.triplet):
        return ""
    name = "" if style.color is None or style.color.is_default else style.color.name
    return f"{'reverse ' if style.reverse else ''}{name}".strip()


async def shots(watcher: Moment, name: str, keys: Sequence[str]) -> dict[str, str]:
    """Return the screens of a state by size; the terminal is resized between them."""
    app, screens = Cockpit(cast(Watcher, watcher), name, [], 3600.0), {}
    async with app.run_test(size=SIZES[0]) as pilot:
        await settle(pilot)
        await pilot.press(*keys)
        for width, height in SIZES:
            await pilot.resize_terminal(width, height)
            await settle(pilot)
            screens[f"{width}x{height}"] = screen_of(app)
    return screens


STATES: dict[str, tuple[Moment, str, list[str]]] = {
    "table": (Moment(RL), "rl", ["down"]),
    "another-experiment": (Moment(RL, SWEEP), "rl", ["tab"]),
    "search": (Moment(RL), "rl", ["down", "l", *"104", "full_stop", "space", "r", "enter", "n"]),
    "filter": (Moment(RL), "rl", ["down", "f", *"10", "full_stop", "3", "enter"]),
    "help": (Moment(RL), "rl", ["question_mark"]),
    "services": (Moment(RL), "rl", ["c"]),
    "failed": (Moment(RL), "rl", []),
    "waiting": (Moment(RL), "rl", ["end"]),
    "empty": (Moment(EMPTY), "empty", []),
    "gone": (Moment(RL), "nobody", []),
    "rows": (Moment(RL), "rl", ["slash", *"agent", "enter", "S"]),
    "wrapped": (Moment(FULL), "full", ["down"]),
    "last-row": (Moment(FULL), "full", ["S", "end"]),
    "five-hundred": (Moment(MANY), "many", ["end", "up", "up"]),
    "five-hundred-in-between": (Moment(MANY), "many", ["down"] * 12),
}


@pytest.mark.parametrize("state", STATES)
def test_a_screen_is_as_its_golden_file(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cockpit_rows, "time", SimpleNamespace(time=lambda: NOW))
    for size, text in asyncio.run(shots(*STATES[state])).items():
        check_golden(GOLDEN / f"{state}-{size}.txt", text)


def test_the_screen_that_the_page_shows_is_one_of_these() -> None:
    (block,) = (block for block in blocks_of(ROOT / "docs/watching.md") if block.rest.endswith(Path(__file__).name))
    screen = (GOLDEN / "failed-80x24.txt").read_text().partition("-" * 80)[0]
    assert block.text.splitlines() == [line for line in screen.splitlines() if line]


def test_each_golden_file_is_of_a_state() -> None:
    expected = {f"{state}-{width}x{height}.txt" for state in STATES for width, height in SIZES}
    assert {path.name for path in GOLDEN.iterdir()} == expected
