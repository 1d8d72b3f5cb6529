from __future__ import annotations

from pathlib import Path

import pytest

from symphony_charts.errors import SpecError, UsageError
from symphony_charts.settings.project import find_settings


def write(folder: Path, text: str, name: str = ".symph.yaml") -> Path:
    (folder / name).write_text(text)
    return folder


def test_the_nearest_settings_above_are_taken(tmp_path: Path) -> None:
    assert find_settings(tmp_path).repository is None
    inner = tmp_path / "a/b"
    inner.mkdir(parents=True)
    write(tmp_path, "team: outer\n")
    assert find_settings(inner).team == "outer"
    write(tmp_path / "a", "team: inner\n")
    assert find_settings(inner).team == "inner"


def test_short_forms_mean_the_long_ones(tmp_path: Path) -> None:
    write(tmp_path, "repository: git@example.org:x.git\nenvironments: [dev, prod]\npools: p.yaml\n")
    found = find_settings(tmp_path)
    assert found.repository is not None
    assert (found.repository.url, found.repository.branch) == ("git@example.org:x.git", "main")
    assert list(found.environments) == ["dev", "prod"]
    assert found.pools == [str(tmp_path / "p.yaml")]


def test_two_files_in_one_folder_are_an_error(tmp_path: Path) -> None:
    write(tmp_path, "team: a\n")
    write(tmp_path, "team: b\n", ".symph.yml")
    with pytest.raises(SpecError, match="both exist"):
        find_settings(tmp_path)


def test_every_wrong_key_is_told_with_its_line_and_the_nearest_key(tmp_path: Path) -> None:
    write(tmp_path, "tem: a\nenvironments:\n  dev:\n    nmespace: x\n")
    with pytest.raises(SpecError) as failure:
        find_settings(tmp_path)
    said = str(failure.value)
    assert f'unknown key "tem"\n  at:   {tmp_path}/.symph.yaml:1, tem\n  next: did you mean "team"?' in said
    assert '.symph.yaml:4, environments.dev.nmespace\n  next: did you mean "namespace"?' in said


@pytest.mark.parametrize(
    "text", ["path: x\n", "repository: {branch: b}\n", "pools: [1]\n", "environments: {a: 3}\n", "team: [1]\n", "- a\n"]
)
def test_what_is_no_setting_is_refused_in_our_words(tmp_path: Path, text: str) -> None:
    write(tmp_path, text)
    with pytest.raises(SpecError, match=r"\.symph\.yaml") as failure:
        find_settings(tmp_path)
    assert "`" not in str(failure.value).splitlines()[0]


def test_an_environment_is_asked_for_unless_there_is_only_one(tmp_path: Path) -> None:
    assert find_settings(write(tmp_path, "environments: [dev]\n")).environment(None) == "dev"
    with pytest.raises(UsageError, match="which environment"):
        find_settings(write(tmp_path, "environments: [dev, prod]\n")).environment(None)
    with pytest.raises(UsageError) as failure:
        find_settings(tmp_path).environment("prd")
    assert 'did you mean "prod"?' in failure.value.next


def test_an_unknown_environment_of_the_users_settings_names_their_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "symph").mkdir()
    file = write(tmp_path / "symph", "environments: [lab, dev]\n", "config.yaml") / "config.yaml"
    with pytest.raises(UsageError) as failure:
        find_settings(tmp_path).environment("prod")
    assert (failure.value.at, failure.value.next) == (f"{file}, environments", "choose one of: lab, dev")


def test_the_default_backend_needs_no_quotes(tmp_path: Path) -> None:
    write(tmp_path, "defaults: {on: kube}\n")
    assert find_settings(tmp_path).defaults.on == "kube"
    write(tmp_path, "defaults: {on: kube, yes: 1}\n")
    with pytest.raises(SpecError, match="`yes` is not text"):
        find_settings(tmp_path)
