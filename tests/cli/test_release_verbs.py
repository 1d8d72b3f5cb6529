"""The verbs of Helm releases without a cluster: selection of the release, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from symphony_charts.cli.main import main
from symphony_charts.cli.options import seconds


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a folder without settings, on a machine without helm and without a cluster."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("SYMPH_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("HELM_BIN", "")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr("shutil.which", lambda _name: None)
    return tmp_path


@pytest.mark.parametrize(("text", "meant"), [("90", 90), ("90s", 90), ("5m", 300), ("2d", 172800), ("0.5m", 30)])
def test_times_are_written_in_seconds_minutes_or_hours(text: str, meant: float) -> None:
    assert seconds(text) == meant


@pytest.mark.parametrize("text", ["", "m", "-5", "1m30s", "٣"])
def test_other_times_are_wrong_usage(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", "rl", f"--timeout={text}"]) == 2
    assert "--timeout" in capsys.readouterr().err


def test_without_helm_it_is_said_what_to_install(nowhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (nowhere / "rl.yaml").write_text("name: rl\nimage: u:1\nprocesses: {a: {args: [a]}}\n")
    assert main(["install", "rl.yaml"]) == 5
    assert "install helm" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["status", "history", "rollback"])
def test_a_name_that_is_nowhere_says_where_was_looked(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "rl"]) == 8
    said = capsys.readouterr().err
    assert ("no repository is configured" in said, "--env" in said, "-n NAMESPACE" in said) == (True, True, True)


@pytest.mark.parametrize("verb", ["status", "history", "rollback"])
def test_git_and_a_release_cannot_both_be_meant(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "rl", "--env", "dev", "-n", "ml"]) == 2
    assert "choose one" in capsys.readouterr().err


def test_a_namespace_is_made_by_an_upgrade_only_with_install(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["upgrade", "rl.yaml", "--create-namespace"]) == 2
    assert "--install" in capsys.readouterr().err
