"""Draws the pictures of `run`, `top`, `attach --tile` and `status` from a terminal in which they are really run.

    python scripts/screens.py [--check] [NAME ...]

Each is typed into a tmux of its own, waited for, and read back. Beside each picture stands its text; as long as only
times, amounts and addresses of a new one differ from that, the picture stays as it is. `--check` draws nothing, and
fails then.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pictures import PICTURES, draw
from rich.text import Text

from tests.pages.reader import differences

WIDTH, HEIGHT = 104, 22
_WAIT_S = 60
# Drawing in parts is complete within this time, or the screen differs.
_SETTLED_S = 20.0
_POOLS = "pools: [{name: std8, machine_type: e2-standard-8, zones: [us-central1-a], max_nodes: 4}]\n"
# Resource usage and durations, which differ every time.
_AMOUNT = re.compile(r"\b\d+\.\d+[KMG]?\b|\b\d+[KMG]\b|\b\d+s\b")
# A line of `symph run` about the state of a process, and the number of others in that state.
_CHANGE = re.compile(r"\S+ +(?:\+(?P<more>\d+) +)?\* (?P<words>.*)")
_SPEC = """\
name: rl
image: python:3.12-slim
processes:
  replay:
    cmds: ["echo listening on $SYMPH_BOARD_ADDR; exec sleep 600"]
    binds: board
    ready: {exec: ["true"]}
    lifecycle: service
  learner:
    connects: board
    after: [replay]
    cmds: ["sleep 0.6; for i in 1 2 3; do echo step $i loss 0.$((9 - i))1; sleep 0.4; done; LAST"]
  agent:
    replicas: 2
    after: [replay]
    cmds: ["sleep 0.$((SYMPH_INDEX * 2 + 1)); echo 8 environments; exec sleep 600"]
    lifecycle: service
"""
ENDS, STAYS = _SPEC.replace("LAST", "echo saved"), _SPEC.replace("LAST", "exec sleep 600")
FAILS = ENDS.replace("0.$((9 - i))1; sleep 0.4; done", "0.$((9 - i))1; done; echo 'CUDA out of memory'; exit 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """A picture: the spec, the commands before it, the typed input, and texts that show that it is complete."""

    spec: str
    before: tuple[str, ...] = ()
    typed: str
    shows: tuple[str, ...]
    height: int = HEIGHT


SCREENS = {
    "run": Screen(
        spec=ENDS, typed="symph run rl.yaml --pools pools.yaml", shows=("rl succeeded after", "logs: symph logs rl")
    ),
    "top": Screen(
        spec=STAYS,
        before=("symph up rl.yaml",),
        typed="symph top rl",
        shows=("step 3", "learner 1/1", "agent 2/2", "q leave", "0.00"),
    ),
    "tiles": Screen(
        spec=STAYS,
        before=("symph up rl.yaml",),
        typed="env -u TMUX symph attach rl --tile",
        shows=("step 3", "8 environments", "agent 2/2", "q: leave"),
    ),
    "status": Screen(
        spec=FAILS,
        before=(
            "git init --quiet --bare -b main charts.git",
            "symph gitops init --repo charts.git --destination dev=rl-dev --ci none",
            "symph publish rl.yaml --env dev",
            "symph run rl.yaml || true",
        ),
        typed="symph status rl",
        shows=("here: ", "next: ", "dev "),
        height=9,
    ),
}


def main() -> None:
    """Play the named screens, or all, and draw those that differ from their picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*SCREENS, []], default=[])
    parser.add_argument("--check", action="store_true", help="draw nothing; fail where something would be drawn")
    args = parser.parse_args()
    for name in args.names or SCREENS:
        beside = PICTURES / f"{name}.txt"
        shown = beside.read_text(encoding="utf-8") if beside.exists() else ""

        def differing_from(screen: str, shown: str = shown) -> str:
            return differences(general(shown).splitlines(), general(Text.from_ansi(screen).plain.rstrip()))

        screen = play(SCREENS[name], lambda screen: not differing_from(screen))
        text = Text.from_ansi(screen).plain.rstrip()
        differing = differing_from(screen)
        if differing and args.check:
            raise SystemExit(f"the picture of {name} is not what it prints:\n{differing}")
        if differing:
            beside.write_text(text + "\n", encoding="utf-8")
            draw(name, [Text.from_ansi(screen.rstrip("\n"))], WIDTH)
        print(f"{name}: {'a new picture' if differing else 'the picture shows what it prints'}")


def general(text: str) -> str:
    """Return a screen without its variable parts: amounts, widths that depend on them, waits of a slow machine.

    Consecutive lines with the same change, as on a slow machine, are added up.
    """
    lines: list[str] = []
    alike, count = "", 0
    for line in _AMOUNT.sub("N", text).splitlines():
        change = _CHANGE.match(line)
        if change and change["words"].startswith(("ready", "waits")):
            continue
        count = (count if change and change["words"] == alike else 0) + (int(change["more"] or 0) + 1 if change else 0)
        if change and change["words"] == alike:
            lines.pop()
        alike = change["words"] if change else ""
        lines.append(f"{count} * {alike}" if change else line)
    return re.sub(r"─+", "─", "\n".join(lines))


def play(screen: Screen, is_right: Callable[[str], bool]) -> str:
    """Return the screen with its colours once it is right, or after a timeout."""
    with _places() as (folder, env):
        (folder / "rl.yaml").write_text(screen.spec)
        (folder / "pools.yaml").write_text(_POOLS)
        for command in screen.before:
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=folder,
                env=env,
                capture_output=True,
                text=True,
                timeout=_WAIT_S,
                check=False,
            )
            if done.returncode:
                raise SystemExit(f"{command}: {done.returncode}\n{done.stderr}")

        def tmux(*words: str) -> str:
            argv = ["tmux", "-S", str(folder / "screen.sock"), "-f", "/dev/null", *words]
            return subprocess.run(
                argv, env=env, cwd=folder, capture_output=True, text=True, timeout=30, check=False
            ).stdout

        def wait_for(*texts: str) -> None:
            deadline = time.monotonic() + _WAIT_S
            while not all(text in tmux("capture-pane", "-p", "-t", "s") for text in texts):
                if time.monotonic() > deadline:
                    raise SystemExit(f"not all of {texts} came:\n{tmux('capture-pane', '-p', '-t', 's')}")
                time.sleep(0.2)

        size = ("-x", str(WIDTH), "-y", str(screen.height))
        tmux("new-session", "-d", *size, "-s", "s", "sh", ";", "set-option", "-g", "status", "off")
        try:
            # The terminal echoes early input before the prompt.
            wait_for("$")
            tmux("send-keys", "-t", "s", "-l", screen.typed)
            tmux("send-keys", "-t", "s", "Enter")
            wait_for(*screen.shows)
            deadline = time.monotonic() + _SETTLED_S
            while True:
                seen = _without_prompt(tmux("capture-pane", "-p", "-e", "-t", "s")).replace(env["HOME"], "~")
                if is_right(seen) or time.monotonic() > deadline:
                    return seen
                time.sleep(0.2)
        finally:
            tmux("kill-server")
            subprocess.run(["symph", "down", "rl"], env=env, cwd=folder, capture_output=True, check=False)


def _without_prompt(screen: str) -> str:
    return re.sub(r"\n\$ *\n*$", "\n", screen.rstrip("\n") + "\n")


@contextmanager
def _places() -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield a folder to work in, and an environment isolated from the user's."""
    with tempfile.TemporaryDirectory(prefix="symph-screen-", dir="/tmp") as name:
        folder = Path(name, "work")
        folder.mkdir()
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("SYMPH", "TMUX", "GIT", "KUBE"))}
        env = kept | {"HOME": name, "XDG_RUNTIME_DIR": name, "PS1": "$ ", "SHELL": "/bin/sh", "TERM": "xterm-256color"}
        env |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "ENV": ""}
        for role in ("AUTHOR", "COMMITTER"):
            env |= {f"GIT_{role}_NAME": "Ann", f"GIT_{role}_EMAIL": "ann@example.org"}
        env.pop("LINES", None)
        env.pop("COLUMNS", None)
        yield folder, env


if __name__ == "__main__":
    if not shutil.which("tmux"):
        raise SystemExit("tmux is missing, in which the screens are")
    main()
