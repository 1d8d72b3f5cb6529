"""Builds docs/site: every page of docs/ and the README as plain HTML, and a picture of a terminal session.

The session is run for the purpose (`symph` on the ring example, in folders of its own) and drawn by rich; where tmux is
missing the pages are built without it.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from markdown_it import MarkdownIt
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "docs" / "site"
STYLE = (
    "body{max-width:52em;margin:2em auto;padding:0 1em;font:16px/1.5 sans-serif}pre,code{font:14px monospace}"
    "pre{background:#f4f4f4;padding:.8em;overflow:auto}table{border-collapse:collapse}"
    "td,th{border:1px solid #ccc;padding:.3em .6em;text-align:left}nav a{margin-right:1em}img{max-width:100%}"
)
SESSION = (
    ["up", "examples/ring/experiment.yaml"],
    ["process", "ring"],
    ["local", "diff", "examples/ring/experiment.yaml"],
    ["logs", "ring", "--tail", "6", "--timestamps"],
    ["down", "ring"],
    ["local", "history", "ring"],
)


def main() -> None:
    """Build the site from nothing."""
    shutil.rmtree(SITE, ignore_errors=True)
    SITE.mkdir(parents=True)
    picture = record_session() if shutil.which("tmux") else ""
    if picture:
        (SITE / "session.svg").write_text(picture, encoding="utf-8")
    pages = {"index": ROOT / "README.md", **{page.stem: page for page in sorted((ROOT / "docs").glob("*.md"))}}
    pages |= {f"decisions/{page.stem}": page for page in sorted((ROOT / "docs" / "decisions").glob("*.md"))}
    for name, source in pages.items():
        write_page(name, source, list(pages), bool(picture))
    print(f"{len(pages)} pages in {SITE.relative_to(ROOT)}" + (", with a recorded session" if picture else ""))


def write_page(name: str, source: Path, names: list[str], has_picture: bool) -> None:
    """One page with links to all others at its top."""
    up = "../" * name.count("/")
    body = MarkdownIt("commonmark").enable("table").render(source.read_text(encoding="utf-8"))
    body = body.replace('href="docs/', f'href="{up}').replace('.md"', '.html"')
    if name == "local" and has_picture:
        body += (
            '<h2>A session</h2><img src="session.svg" alt="symph up, process, local diff, logs, down, local history">'
        )
    links = "".join(f'<a href="{up}{other}.html">{other}</a>' for other in names if "/" not in other)
    target = SITE / f"{name}.html"
    target.parent.mkdir(exist_ok=True)
    head = f'<!doctype html><meta charset="utf-8"><title>symphony-charts: {name}</title><style>{STYLE}</style>'
    target.write_text(f"{head}<nav>{links}</nav><main>{body}</main>\n", encoding="utf-8")


def record_session() -> str:
    """The commands of SESSION with what they really print, as an SVG picture."""
    console = Console(record=True, width=110, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory(prefix="symph-docs-") as folder:
        env = {
            **os.environ,
            "SYMPH_STATE_DIR": f"{folder}/state",
            "SYMPH_RUNTIME_DIR": f"{folder}/run",
            "FORCE_COLOR": "1",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        for words in SESSION:
            console.print(Text(f"$ symph {' '.join(words)}", style="bold"))
            done = subprocess.run(
                [sys.executable, "-m", "symphony_charts", *words],
                cwd=ROOT,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=True,
                timeout=60,
            )
            console.print(Text.from_ansi(done.stdout.rstrip("\n")))
    return console.export_svg(title="symph")


if __name__ == "__main__":
    main()
