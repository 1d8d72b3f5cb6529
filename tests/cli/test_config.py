"""Settings of the environment, the project and the user: precedence, and the output of `symph config`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from symphony_charts.cli.main import main
from symphony_charts.cli.parser import SymphonyParser
from symphony_charts.settings.project import find_settings

PAGE = Path(__file__).parents[2] / "docs/settings.md"
MINE = "team: mine\nrepository: https://git.example.org/u.git\ndefaults: {output: wide, namespace: mine}\n"
PROJECT = "team: rl\nenvironments: {dev: {namespace: rl-dev}}\ndefaults: {namespace: prj}\n"


@pytest.fixture
def mine(private_places: Path) -> Path:
    file = private_places / "home/.config/symph/config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(MINE)
    return file


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a project's settings; enter a folder below the project."""
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    (tmp_path / ".symph.yaml").write_text(PROJECT)
    return tmp_path / ".symph.yaml"


def settings(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, tuple[object, str]]:
    """Return value and source by name, as `symph config` prints them."""
    assert main(["config", *words, "-o", "json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    return {item["name"]: (item["value"], item["source"]) for item in items}


def test_a_key_of_the_project_takes_the_place_of_the_users(mine: Path, project: Path) -> None:
    found = find_settings(project.parent)
    assert (found.team, found.repository and found.repository.url) == ("rl", "https://git.example.org/u.git")
    assert found.defaults.given == {"output": "wide", "namespace": "prj"}
    assert found.path == project
    assert find_settings(mine.parents[3]).path is None


def test_every_value_comes_with_its_source(
    mine: Path, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SYMPH_ENV", "dev")
    said = settings(capsys)
    assert said["team"] == ("rl", str(project))
    assert said["repository.url"] == ("https://git.example.org/u.git", str(mine))
    assert said["defaults.namespace"] == ("prj", str(project))
    assert said["defaults.output"] == ("wide", str(mine))
    assert said["defaults.env"] == ("dev", "$SYMPH_ENV")
    assert said["defaults.on"] == ("tmux", "built-in")


def test_the_nearest_of_them_is_what_an_option_is(mine: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [mine.name, project.name] == ["config.yaml", ".symph.yaml"]
    parsed = SymphonyParser().parse(["ls"])
    assert (parsed.namespace, parsed.output) == ("prj", "wide")
    monkeypatch.setenv("SYMPH_NAMESPACE", "env")
    assert SymphonyParser().parse(["ls"]).namespace == "env"
    assert SymphonyParser().parse(["ls", "-n", "typed", "-o", "json"]).namespace == "typed"


def test_settings_stand_where_xdg_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "symph").mkdir()
    (tmp_path / "symph/config.yaml").write_text("team: xdg\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert find_settings(tmp_path).team == "xdg"


def test_a_default_that_is_none_is_refused_with_its_line_and_help_is_still_shown(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine.write_text("team: x\ndefaults: {nmespace: ml}\n")
    assert main(["ls"]) == 3
    said = capsys.readouterr().err
    assert f"{mine}:2" in said
    assert "namespace" in said
    assert main(["ls", "--help"]) == 0


def test_a_part_of_the_settings_can_be_asked_for(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert project
    assert settings(capsys, "environments.dev")["environments.dev.namespace"][0] == "rl-dev"
    assert main(["config", "environments.prod"]) == 8


def test_a_repository_with_a_password_in_its_address_is_refused_and_not_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SYMPH_REPO", "https://ann:hunter2@git.example.org/x.git")
    assert main(["config"]) == 3
    answer = capsys.readouterr()
    assert "hunter2" not in answer.out + answer.err


def test_the_page_shows_what_is_printed(
    mine: Path, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project.parent)
    monkeypatch.setenv("SYMPH_NAMESPACE", "ml")
    mine.write_text("defaults: {output: wide}\n")
    assert main(["config", "-o", "table"]) == 0
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    shown = PAGE.read_text(encoding="utf-8").split("```")[1].strip().splitlines()
    assert [line.split() for line in shown] == printed[: len(shown)]
