"""Symphony's configuration singleton."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from symphony_charts.cluster.config import SymphonyConfig
from symphony_charts.errors import NotFound, SpecError


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    yield
    SymphonyConfig.reset()


def test_every_call_gives_the_same_configuration() -> None:
    SymphonyConfig().set_username("sarah")
    assert SymphonyConfig().username == "sarah"
    assert SymphonyConfig() is SymphonyConfig()


def test_nothing_is_set_at_first_and_after_a_reset() -> None:
    SymphonyConfig().update({"username": "a", "experiment_folder": "b"})
    SymphonyConfig.reset()
    assert (SymphonyConfig().username, SymphonyConfig().experiment_folder) == (None, None)


def test_update_sets_the_fields() -> None:
    SymphonyConfig().update({"username": "sarah", "experiment_folder": "~/foo"})
    assert (SymphonyConfig().username, SymphonyConfig().experiment_folder) == ("sarah", "~/foo")


def test_a_registered_field_is_what_its_handler_makes_of_the_data() -> None:
    SymphonyConfig().register_handler("numbers", lambda data: [int(item) for item in data])
    SymphonyConfig().update({"numbers": ["1", "2"]})
    assert SymphonyConfig().numbers == [1, 2]  # type: ignore[attr-defined]  # projects add their own fields


def test_a_field_is_registered_once() -> None:
    with pytest.raises(ValueError, match="username"):
        SymphonyConfig().register_handler("username", str)


def test_an_unknown_field_is_ignored_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="no configuration field"):
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
    (tmp_path / "c.yml").write_text("a: [")
    with pytest.raises(SpecError, match=r"c\.yml"):
        SymphonyConfig().load_config_file(tmp_path / "c.yml")
    (tmp_path / "c.yml").write_text("[1]")
    with pytest.raises(SpecError, match=r"c\.yml"):
        SymphonyConfig().load_config_file(tmp_path / "c.yml")
