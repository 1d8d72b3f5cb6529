"""Symphony's configuration singleton."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from symphony_charts.errors import NotFound, SpecError
from symphony_charts.settings.user import SymphonyConfig, find_config_file


@pytest.fixture(autouse=True)
def forget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hide the developer's configuration, and reset it afterwards."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SYMPH_GLOBAL_CONFIG", raising=False)
    SymphonyConfig.reset()
    yield
    SymphonyConfig.reset()


def test_every_call_gives_the_same_configuration_until_a_reset() -> None:
    SymphonyConfig().set_username("sarah")
    assert SymphonyConfig().username == "sarah"
    assert SymphonyConfig() is SymphonyConfig()
    SymphonyConfig.reset()
    assert (SymphonyConfig().username, SymphonyConfig().experiment_folder) == (None, None)


def test_a_registered_field_is_what_its_handler_makes_of_the_data() -> None:
    SymphonyConfig().register_handler("numbers", lambda data: [int(item) for item in data])
    SymphonyConfig().update({"numbers": ["1", "2"]})
    assert SymphonyConfig().numbers == [1, 2]  # type: ignore[attr-defined]  # projects add their own fields
    with pytest.raises(ValueError, match="numbers"):
        SymphonyConfig().register_handler("numbers", str)


def test_an_unknown_field_is_ignored_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="unknown configuration field"):
        SymphonyConfig().update({"nonsense": 1})
    assert not hasattr(SymphonyConfig(), "nonsense")


@pytest.mark.parametrize(("name", "text"), [("c.yml", "username: sarah\n"), ("c.json", '{"username": "sarah"}')])
def test_a_configuration_file_is_yaml_or_json(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    SymphonyConfig().load_config_file(tmp_path / name)
    assert SymphonyConfig().username == "sarah"


def test_a_configuration_file_that_is_missing_or_broken_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"c\.yml"):
        SymphonyConfig().load_config_file(tmp_path / "c.yml")
    for text, place in (("a: 1\na: [1", r"c\.yml:2\b"), ("[1]", r"c\.yml\b")):
        (tmp_path / "c.yml").write_text(text)
        with pytest.raises(SpecError, match=place):
            SymphonyConfig().load_config_file(tmp_path / "c.yml")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a folder two levels below the project's."""
    deep = tmp_path / "project" / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    return tmp_path / "project"


def test_the_projects_file_comes_before_the_chosen_one_before_the_users(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users, chosen, own = tmp_path / "home" / ".symphony.yml", tmp_path / "chosen.yml", project / ".symphony.yml"
    assert find_config_file() is None
    for path in (users, chosen, own):
        path.write_text(f"username: {path.parent.name}\n")
    assert find_config_file() == own
    own.unlink()
    assert find_config_file() == users
    monkeypatch.setenv("SYMPH_GLOBAL_CONFIG", str(chosen))
    assert find_config_file() == chosen


def test_the_file_that_is_found_is_read_at_first_use_and_what_is_set_wins(project: Path) -> None:
    (project / ".symphony.yml").write_text("username: sarah\nexperiment_folder: ~/foo\n")
    assert (SymphonyConfig().username, SymphonyConfig().experiment_folder) == ("sarah", "~/foo")
    SymphonyConfig().set_username("jim")
    assert SymphonyConfig().username == "jim"


def test_a_field_of_the_project_waits_for_its_handler(project: Path) -> None:
    (project / ".symphony.yml").write_text("numbers: ['1', '2']\n")
    SymphonyConfig().register_handler("numbers", lambda data: [int(item) for item in data])
    assert SymphonyConfig().numbers == [1, 2]  # type: ignore[attr-defined]  # projects add their own fields


def test_two_files_in_one_folder_are_refused(project: Path) -> None:
    for name in (".symphony.yml", ".symphony.yaml"):
        (project / name).write_text("username: x\n")
    with pytest.raises(SpecError, match="both exist"):
        SymphonyConfig()


def test_a_chosen_file_that_is_not_there_is_an_error(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMPH_GLOBAL_CONFIG", str(project / "none.yml"))
    with pytest.raises(NotFound, match="SYMPH_GLOBAL_CONFIG"):
        SymphonyConfig()
