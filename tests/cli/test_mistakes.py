"""Messages about beginners' mistakes have the place, the cause in the user's words, and a next step that works."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from symphony_charts.cli.main import main
from tests.cli.mistakes import MISTAKES, Mistake

Said = tuple[int, str]
Symph = Callable[[str], Said]


@pytest.fixture
def symph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Symph:
    """Run a command line in this process, in an empty folder; return its status and all its output."""
    monkeypatch.chdir(tmp_path)
    for name in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{name}_NAME", "u")
        monkeypatch.setenv(f"{name}_EMAIL", "u@example.org")

    def run(words: str) -> Said:
        status = main(shlex.split(words))
        said = capsys.readouterr()
        return status, said.out + said.err

    return run


def write(folder: Path, mistake: Mistake) -> None:
    for name, content in mistake.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir()
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_a_mistake_is_told_with_place_cause_and_a_next_step(
    mistake: Mistake, symph: Symph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, mistake)
    for words in mistake.before:
        assert symph(words)[0] == 0
    with monkeypatch.context() as patch:
        for name, value in mistake.env.items():
            patch.setenv(name, value)
        status, said = symph(mistake.words)
    assert status == mistake.status, said
    assert [part for part in mistake.says if part not in said] == [], said
    assert "next: " in said
    assert "bug in symph" not in said
    assert "Traceback" not in said or mistake.files.keys() & {"e.py"}
    for words in mistake.then:
        status, said = symph(words)
        assert status == 0, said
