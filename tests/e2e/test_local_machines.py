"""Two machines with one state folder: each leaves the other's runs alone, and no number that it reads is believed."""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.e2e.local_machines import SYMPH, Machine, start_machine, why_no_machines
from tests.local.runs import until

pytestmark = pytest.mark.slow

SPEC = """
name: rl
volumes: {scratch: {type: empty_dir}}
configs: {c.txt: {text: conf}}
local: {tty: false}
processes:
  a:
    cmds: ["echo kept >/mnt/kept", "while :; do sleep 1; cat /mnt/kept /etc/symph/config/c.txt; done"]
    mounts: [{volume: scratch, at: /mnt}]
    grace_period: 1
"""
LOOKING = (
    ("ls",),
    ("ls", "-a"),
    ("p", "rl"),
    ("p", "rl", "-o", "wide"),
    ("describe", "rl"),
    ("logs", "a", "rl", "--tail", "1"),
    ("events", "rl"),
    ("wait", "rl", "--for", "failed", "--timeout", "1"),
    ("top", "rl", "--once"),
    ("local", "history", "rl"),
)


@pytest.fixture
def world(private_places: Path, need_tool: Callable[[str], str]) -> Iterator[Callable[..., Machine]]:
    """Starts machines that share a state folder; they are gone afterwards with all that runs there."""
    need_tool("tmux")
    reason = why_no_machines()
    if reason:
        pytest.skip(reason)
    (private_places / "rl.yaml").write_text(SPEC)
    machines: list[Machine] = []

    def start(name: str, canaries: int = 0) -> Machine:
        machines.append(start_machine(name, private_places, canaries))
        return machines[-1]

    yield start
    for machine in machines:
        machine.kill()


def files_of(folder: Path) -> Mapping[str, tuple[int, int]]:
    """Every file below a folder with its inode and, for what does not grow by itself, the time of its last change."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_ino,
            0 if path.suffix in ("", ".idx") else path.lstat().st_mtime_ns,
        )
        for path in sorted(folder.rglob("*"))
    }


def test_a_machine_that_only_looks_leaves_a_run_of_another_alone(
    world: Callable[..., Machine], private_places: Path
) -> None:
    here, there = world("here"), world("there", canaries=60)
    assert here.symph("up", "rl.yaml").returncode == 0
    until(lambda: "kept" in here.symph("logs", "a", "rl").stdout)
    before = files_of(private_places / "state")
    for words in LOOKING:
        done = there.symph(*words)
        assert done.returncode in (0, 2, 6), (words, done.stdout, done.stderr)
    assert "runs in another container of this machine (here)" in there.symph("ls").stdout
    assert files_of(private_places / "state") == before
    for words in (
        ("down", "rl"),
        ("restart", "-e", "rl"),
        ("up", "rl.yaml"),
        ("up", "rl.yaml", "--force"),
        ("delete", "rl", "--yes"),
    ):
        refused = there.symph(*words)
        assert (refused.returncode, "another container" in refused.stderr) == (7, True), (words, refused.stderr)
    assert there.dead_canaries == 0
    assert here.symph("exec", "a", "rl", "--", "cat", "/mnt/kept").stdout == "kept\n"
    assert here.symph("down", "rl").returncode == 0
    assert json.loads(there.symph("p", "rl", "-o", "json").stdout)["items"][0]["phase"] == "stopped"


def test_after_a_loss_of_power_nobody_is_signalled_and_the_run_is_lost(
    world: Callable[..., Machine], private_places: Path
) -> None:
    first = world("first")
    assert first.symph("up", "rl.yaml").returncode == 0
    [state] = (private_places / "state" / "local" / "rl").glob("*/state.json")
    until(lambda: "running" in first.symph("p", "rl").stdout)
    numbers = {int(number) for number in re.findall(r'"pid": (\d+)', state.read_text())}
    first.kill()
    second = world("second", canaries=max(numbers) + 20)
    listed = json.loads(second.symph("ls", "-o", "json").stdout)["items"]
    assert [(item["phase"], item["note"]) for item in listed] == [
        ("lost", "its container is gone; symph down rl tidies up")
    ]
    assert "lost" in second.symph("p", "rl").stdout
    told = second.symph("status", "rl", "-o", "json")
    assert (told.returncode, json.loads(told.stdout)["items"][0]["why"]["cause"]) == (1, "lost")
    waited = second.symph("wait", "rl")
    assert (waited.returncode, "is lost" in waited.stderr) == (1, True)
    assert second.symph("down", "rl").returncode == 0
    assert second.symph("up", "rl.yaml").returncode == 0
    assert second.symph("down", "rl").returncode == 0
    assert second.dead_canaries == 0


VERBS = (
    ("up", "rl.yaml"),
    ("up", "rl.yaml", "--force"),
    ("down", "rl"),
    ("restart", "-e", "rl"),
    ("delete", "rl", "--yes"),
    ("local", "gc", "--keep", "0", "--yes"),
    ("p", "rl"),
)
# Says of which runs there are processes, by what these have in their environment, and how many supervisors.
COUNT = """
import pathlib
runs, supervisors = set(), 0
for place in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        env, argv = (place / "environ").read_bytes().split(b"\\0"), (place / "cmdline").read_bytes().split(b"\\0")
    except OSError:
        continue
    runs |= {entry[10:].decode() for entry in env if entry.startswith(b"SYMPH_RUN=")}
    supervisors += b"symphony_charts.local.supervisor.supervisor" in argv
print(*sorted(runs)), print(supervisors)
"""


@pytest.mark.parametrize("seed", range(3))
def test_verbs_in_any_mixture_leave_no_run_that_ls_does_not_see(
    world: Callable[..., Machine], seed: int, private_places: Path
) -> None:
    machine, chance = world("only"), random.Random(seed)
    for _ in range(4):
        chosen = [chance.choice(VERBS) for _ in range(8)]
        # One of them is killed at some moment.
        words = [" ".join((SYMPH, *verb)) for verb in chosen]
        words[0] = f"timeout -s KILL {chance.random():.2f} {words[0]}"
        done = machine.run("sh", "-c", f"{' & '.join(words)} & wait")
        assert "Traceback" not in done.stderr, done.stderr
        assert "bug in symph" not in done.stderr, done.stderr
    listed = json.loads(machine.symph("ls", "-o", "json").stdout)["items"]
    runs, supervisors = machine.run(sys.executable, "-c", COUNT).stdout.splitlines()
    assert (runs.split(), int(supervisors)) == ([item["run"] for item in listed], len(listed))
    assert machine.symph("down", "--all").returncode == 0
    assert machine.run(sys.executable, "-c", COUNT).stdout.split() == ["0"]
