"""Draw the README's pictures, dark and light, from a real session: `python scripts/pictures.py`.

The printed text is stored beside the pictures. As long as only times, ids and sizes of a new session differ from it,
the pictures stay as they are, so that building the pages changes nothing in Git.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.pages.reader import differences  # noqa: E402 - the checkout is no installed package

PICTURES = ROOT / "docs" / "pictures"
WIDTH = 108
# The commands to run and show; of a long answer, the number of lines at its beginning and end.
ALL = (99, 0)
SESSION = (
    ("symph init rl && cd rl", ALL),
    ("symph run experiment.yaml", (4, 4)),
    ("symph plan experiment.yaml --pools pools.yaml --svg ../plan.svg", (6, 0)),
    ("symph package experiment.yaml", (3, 1)),
    ("symph publish experiment.yaml --env dev", ALL),
)
BEFORE = (
    "git init --quiet --bare -b main charts.git",
    "symph gitops init --repo charts.git --destination dev=rl-dev --ci none",
)
# The plan is drawn on white: its colours of paper and ink -> their replacements on black.
NIGHT = {"#ffffff": "#0d1117", "#1f2933": "#e6edf3", "#616e7c": "#9aa5b1", "#cbd2d9": "#3e4c59", "#2f855a": "#56d364"}
NIGHT |= {"#f8fafb": "#161b22", "#eef2f5": "#21262d"}


def main() -> None:
    """Run the session, and draw it if it differs from the session in the pictures."""
    if not shutil.which("tmux"):
        raise SystemExit("tmux is missing, in which the session runs")
    answers, plan = play()
    text = "\n".join(
        f"$ {command}\n{_told(answer, keeps)}" for (command, keeps), answer in zip(SESSION, answers, strict=True)
    )
    seen = PICTURES / "session.txt"
    if seen.exists() and not differences(seen.read_text(encoding="utf-8").splitlines(), text):
        print("the pictures show what a session prints")
        return
    PICTURES.mkdir(exist_ok=True)
    seen.write_text(text + "\n", encoding="utf-8")
    lines = [line for part in zip(SESSION, answers, strict=True) for line in _lines(*part)]
    draw("session", lines, WIDTH)
    for name in ("light", "dark"):
        drawn = plan
        for day, night in NIGHT.items() if name == "dark" else ():
            drawn = drawn.replace(day, night)
        (PICTURES / f"plan-{name}.svg").write_text(drawn, encoding="utf-8")
    print("pictures of a new session in docs/pictures")


def _lines(command: tuple[str, tuple[int, int]], answer: str) -> list[Text]:
    """Return a command and its answer; of a long answer only its beginning and end."""
    text, (head, tail) = command
    lines = answer.rstrip("\n").splitlines()
    if len(lines) > head + tail:
        lines = [*lines[:head], "…", *lines[len(lines) - tail :]]
    return [Text(f"$ {text}", style="bold"), Text.from_ansi("\n".join(lines))]


def draw(name: str, texts: Sequence[Text], width: int) -> None:
    """Draw a terminal with these texts, dark and light."""
    for shade, theme in (("light", DEFAULT_TERMINAL_THEME), ("dark", SVG_EXPORT_THEME)):
        console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
        for text in texts:
            console.print(text, soft_wrap=False, overflow="ellipsis", no_wrap=True)
        # Fetch no font: any monospaced font will do, since each word has a fixed position.
        bare = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
        picture = console.export_svg(title="symph", theme=theme, code_format=bare, unique_id="symph")
        (PICTURES / f"{name}-{shade}.svg").write_text(picture, encoding="utf-8")


def _told(answer: str, keeps: tuple[int, int]) -> str:
    """Return an answer without colours; if cut, only its first and last line: processes write in any order."""
    lines = Text.from_ansi(answer.rstrip("\n")).plain.splitlines()
    return "\n".join(lines if keeps is ALL else [lines[0], "...", lines[-1]])


def play() -> tuple[list[str], str]:
    """Return the output of each command of the session, and the picture of its plan."""
    with tempfile.TemporaryDirectory(prefix="symph-picture-", dir="/tmp") as folder:
        here = Path(folder, "work")
        here.mkdir()
        env = {
            name: value for name, value in os.environ.items() if not name.startswith(("SYMPH", "TMUX", "GIT", "KUBE"))
        }
        env |= {"HOME": folder, "XDG_RUNTIME_DIR": folder, "COLUMNS": str(WIDTH), "FORCE_COLOR": "1"}
        env |= {"PYTHONUNBUFFERED": "1", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        for role in ("AUTHOR", "COMMITTER"):
            env |= {f"GIT_{role}_NAME": "Ann", f"GIT_{role}_EMAIL": "ann@example.org"}

        def run(command: str, cwd: Path) -> str:
            done = subprocess.run(
                ["bash", "-c", command], cwd=cwd, env=env, capture_output=False, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, check=False, timeout=120,
            )  # fmt: skip
            if done.returncode:
                raise SystemExit(f"{command}: {done.returncode}\n{done.stdout}")
            return done.stdout

        for command in BEFORE:
            run(command, here)
        answers = [run(SESSION[0][0], here), *(run(command, here / "rl") for command, _ in SESSION[1:])]
        return answers, (here / "plan.svg").read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
