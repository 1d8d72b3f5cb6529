"""Habits from other tools get an answer that names the way here."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from symphony_charts.cli.main import main
from tests.cli.habits import ROWS

HEAD = "name: rl\nimage: python:3.12-slim\nprocesses:\n  learner:\n"
PROCESS = ["command: python", "env: {LR: '0.1', SEED: '1'}"]
FILES = {
    "d.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n",
    "compose.yaml": "services: {web: {image: nginx}}\n",
    "sky.yaml": "resources: {cloud: aws}\nrun: python train.py\n",
    "pc.yaml": 'version: "0.5"\nprocesses: {a: {command: "python a.py"}}\n',
    "tmuxp.yaml": "session_name: x\nwindows: [{panes: [vim]}]\n",
    "Procfile": "web: python web.py\n",
    "ray.yaml": "cluster_name: x\nprovider: {type: aws}\n",
    "values.yaml": "replicaCount: 3\n",
    "train.py": "x = 1\n",
    "main.tf": "x\n",
}


def spec_with(line: str, *, is_top: bool) -> str:
    """Return the spec with a line in its process, or at its left margin, in place of an equal key."""
    key = f"{line.partition(':')[0]}:"
    inner = "".join(f"    {each}\n" for each in [*(each for each in PROCESS if not each.startswith(key)), line])
    if not is_top:
        return HEAD + inner
    text = HEAD + "".join(f"    {each}\n" for each in PROCESS)
    return "".join(each for each in text.splitlines(keepends=True) if not each.startswith(key)) + f"{line}\n"


@pytest.fixture
def folder(tmp_path: Path, private_places: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert private_places
    monkeypatch.chdir(tmp_path)
    for name in ("LR", "SYMPH_REPO", "SYMPH_ENV", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    for name, text in FILES.items():
        Path(name).write_text(text)
    for name in ("e.yaml", "f.yaml"):
        Path(name).write_text(spec_with(PROCESS[0], is_top=False))
    Path("empty").mkdir()
    Path("dist").mkdir()
    return tmp_path


@pytest.mark.parametrize("row", ROWS.strip().splitlines())
def test_a_habit_gets_an_answer_that_names_the_way_here(
    row: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, line, part = row.split(" | ", 2)
    kind, _, rest = line.partition(" ")
    words = shlex.split(line)
    if kind in ("spec", "top"):
        (folder / "s.yaml").write_text(spec_with(rest, is_top=kind == "top"))
        words = ["validate", "s.yaml"]
    assert main(words) == int(status)
    assert part in capsys.readouterr().err
