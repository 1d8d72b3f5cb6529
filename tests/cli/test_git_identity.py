"""Commits are authored and signed as git would do it: by git's settings or by flags."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.git_project import Project, git

PUBLISH = ("publish", "rl.yaml", "--env", "dev")


@pytest.fixture
def config(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the user's git settings, with the author Bob; the project sets no author."""
    path = project.folder / "gitconfig"
    path.write_text("[user]\n\tname = Bob\n\temail = bob@example.org\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(path))
    settings = project.folder / ".symph.yaml"
    settings.write_text(settings.read_text().replace(", author: Ann <ann@example.org>", ""))
    return path


def field(project: Project, form: str) -> str:
    return git("-C", str(project.repo), "log", "-1", f"--format={form}", "main").strip()


def ssh_key(folder: Path) -> Path:
    key = folder / "signing"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True, timeout=30)
    return key


def verdict(project: Project, key: Path) -> str:
    """Return git's verdict on the newest commit's SSH signature: G is good, N is none."""
    allowed = key.with_suffix(".allowed")
    allowed.write_text(f"bob@example.org {key.with_suffix('.pub').read_text()}")
    return git(
        "-C", str(project.repo), "-c", f"gpg.ssh.allowedSignersFile={allowed}", "log", "-1", "--format=%G?"
    ).strip()


@pytest.mark.usefixtures("config")
def test_author_and_committer_are_who_git_says(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    assert project.symph(*PUBLISH)[0] == 0
    assert field(project, "%an %ae %cn %ce") == "Bob bob@example.org Bob bob@example.org"
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Cy")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "cy@example.org")
    assert project.symph("publish", "rl.yaml", "--env", "prod")[0] == 0
    assert field(project, "%an %ae %cn %ce") == "Cy cy@example.org Bob bob@example.org"


def test_the_settings_name_the_author_and_not_who_commits(project: Project, config: Path) -> None:
    (project.folder / ".symph.yaml").write_text(f"team: ml\nrepository: {{url: {project.repo}, author: Ann <a@b.c>}}\n")
    assert project.symph(*PUBLISH)[0] == 0
    assert field(project, "%an %cn") == "Ann Bob"


@pytest.mark.parametrize("author", ["Ann", "<ann@example.org>", "An<n <ann@example.org>"])
def test_an_author_that_git_could_not_write_is_refused(author: str, project: Project) -> None:
    settings = project.folder / ".symph.yaml"
    settings.write_text(settings.read_text().replace("Ann <ann@example.org>", author))
    status, _, err = project.symph(*PUBLISH)
    assert (status, "Your Name <you@example.org>" in err) == (3, True), err


@pytest.mark.parametrize("form", ["path", "literal"])
def test_a_commit_is_signed_by_ssh_as_git_is_set_up(
    form: str, project: Project, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = ssh_key(project.folder)
    named = str(key) if form == "path" else f"key::{key.with_suffix('.pub').read_text().strip()}"
    config.write_text(
        f'{config.read_text()}\tsigningkey = "{named}"\n[commit]\n\tgpgsign = true\n[gpg]\n\tformat = ssh\n'
    )
    agent = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True, timeout=30).stdout
    words = dict(line.partition(";")[0].split("=") for line in agent.splitlines() if "=" in line)
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", words["SSH_AUTH_SOCK"])
        subprocess.run(["ssh-add", "-q", str(key)], check=True, timeout=30)
        status, _, err = project.symph(*PUBLISH)
    finally:
        subprocess.run(
            ["ssh-agent", "-k"], env={**words, "PATH": "/usr/bin:/bin"}, capture_output=True, check=True, timeout=30
        )
    assert (status, verdict(project, key)) == (0, "G"), err


def test_a_commit_is_signed_by_gpg_as_git_is_set_up(
    project: Project, config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("g")
    home.chmod(0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    argv = ["gpg", "--batch", "--pinentry-mode", "loopback", "--passphrase", "", "--quick-gen-key"]
    try:
        subprocess.run([*argv, "Bob <bob@example.org>", "ed25519", "sign"], check=True, capture_output=True, timeout=60)
        config.write_text(config.read_text() + "[commit]\n\tgpgsign = true\n")
        status, _, err = project.symph(*PUBLISH)
        assert (status, field(project, "%G?")) == (0, "G"), err
    finally:
        subprocess.run(["gpgconf", "--kill", "all"], check=True, timeout=30)
        shutil.rmtree(home)


def test_a_key_that_is_not_there_is_told_before_anything_is_pushed(project: Project, config: Path) -> None:
    config.write_text(
        config.read_text() + "\tsigningkey = /nowhere/key\n[commit]\n\tgpgsign = true\n[gpg]\n\tformat = ssh\n"
    )
    status, _, err = project.symph(*PUBLISH)
    assert (status, "/nowhere/key" in err, "commit.gpgsign false" in err) == (6, True, True)
    assert git("-C", str(project.repo), "branch", "--list") == ""
    assert project.symph("status")[0] == 0  # read-only commands sign nothing
