"""One check keeps users, passwords and tokens in addresses out of every verb, before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.git_project import INIT, SETTINGS, SPEC, Project

PUBLISH = ("publish", "rl.yaml", "--env", "dev")
BAD = ["https://oauth2:S3cr3t@127.0.0.1/x.git", "https://S3cr3t@127.0.0.1/x.git", "ext::sh -c S3cr3t"]


def written(folder: Path) -> str:
    """Return the contents of all files below a folder as one text."""
    return "".join(file.read_bytes().decode("latin-1") for file in sorted(folder.rglob("*")) if file.is_file())


@pytest.mark.parametrize("url", BAD)
@pytest.mark.parametrize("words", [("validate",), ("package",), ("up",), ("render",), PUBLISH])
def test_a_volume_whose_address_holds_a_secret_is_refused(url: str, words: tuple[str, ...], project: Project) -> None:
    volume = SPEC.replace("image:", f'volumes: {{code: {{type: git, repository: "{url}"}}}}\nimage:')
    project.write(volume.replace("binds: data", "binds: data, mounts: [{volume: code, at: /code}]"))
    status, out, err = project.symph(words[0], "rl.yaml", *words[2:])
    assert (status, "volumes.code.repository" in err) == (3, True)
    assert "S3cr3t" not in out + err


@pytest.mark.parametrize("url", BAD)
@pytest.mark.parametrize("words", [PUBLISH, ("status", "--env", "dev"), (*INIT, "--into", "charts")])
def test_a_repository_whose_address_holds_a_secret_is_refused(
    url: str, words: tuple[str, ...], project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = project.folder / "state"
    monkeypatch.setenv("SYMPH_STATE_DIR", str(state))
    charts = project.folder / "charts"
    charts.mkdir()
    status, out, err = project.symph(*words, "--repo", url)
    assert (status, "repository.url" in err) == (3, True)
    assert "S3cr3t" not in out + err + written(state) + written(charts)


def test_the_settings_say_all_their_bad_addresses_at_once(project: Project) -> None:
    text = SETTINGS.replace("REPO", "https://S3cr3t@h/x").replace("rl-dev", "rl, server: 'https://u:S3cr3t@k:6443'")
    (project.folder / ".symph.yaml").write_text(text)
    status, _, err = project.symph(*PUBLISH)
    assert (status, "repository.url" in err, "environments.dev.server" in err) == (3, True, True)
    assert "S3cr3t" not in err
