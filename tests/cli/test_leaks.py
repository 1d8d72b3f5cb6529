"""Suspected secrets stop every verb that sends data, unless the user gives a reason."""

from __future__ import annotations

import re

import pytest

from tests.cli.git_project import SPEC, Project, git

# Invented, and written in halves so that scanners do not report this file.
TOKEN = "ghp_" + "k3Jd8sLq0ZmPw7RtYvXc2BnA9fGhUe5TiOsD"
LEAK = SPEC.replace(
    "processes:", f"processes:\n  logger: {{command: [log, {TOKEN}], requests: {{cpu: 1, memory: 1Gi}}}}"
)


@pytest.mark.parametrize("also", [[], ["--dry-run"], ["--into", "checkout"]])
def test_a_token_is_refused_with_rule_and_line_and_never_shown(project: Project, also: list[str]) -> None:
    git("init", "-q", str(project.folder / "checkout"))
    project.write(LEAK)
    status, out, err = project.symph("publish", "rl.yaml", "--env", "dev", *also)
    assert status == 7
    assert re.search(r"values\.yaml:\d+ contains a secret \(rule github-pat\)", err)
    assert TOKEN not in out + err
    assert [path.name for path in (project.folder / "checkout").iterdir()] == [".git"]


@pytest.mark.parametrize("words", [(), ("--rule", "github-pat", "--path", "*.yaml"), ("--pattern", "ghp_.*")])
@pytest.mark.parametrize("more", ["", "allow_leaks:  # ours\n  - fingerprint: x:1\n    reason: a test\n"])
def test_a_finding_allowed_with_a_reason_is_published(project: Project, words: tuple[str, ...], more: str) -> None:
    project.write(LEAK)
    _, _, err = project.symph("publish", "rl.yaml", "--env", "dev")
    (fingerprint,) = re.findall(r"symph gitops allow '(github-pat:[0-9a-f]{16})' --reason WHY", err)
    settings = project.folder / ".symph.yaml"
    settings.write_text(f"# mine\n{settings.read_text()}{more}")
    before = settings.read_text()
    assert project.symph("gitops", "allow", *(words or [fingerprint]), "--reason", "revoked", "--dry-run")[0] == 0
    assert settings.read_text() == before
    assert project.symph("gitops", "allow", *(words or [fingerprint]), "--reason", "revoked")[0] == 0
    assert set(before.splitlines()) < set(settings.read_text().splitlines())
    status, _, err = project.symph("publish", "rl.yaml", "--env", "dev")
    assert status == 0, err


@pytest.mark.parametrize(
    ("words", "status", "what"),
    [
        (["x:1", "--reason", " "], 3, "the reason is empty"),
        (["x:1"], 2, "--reason"),
        (["--reason", "x"], 3, "either a fingerprint or a rule"),
        (["x:1", "--rule", "y", "--reason", "x"], 2, "names one find"),
        (["--rule", "y", "--reason", "x"], 3, "disables a rule"),
        (["--pattern", "(", "--reason", "x"], 3, "not a regular expression"),
    ],
)
def test_an_allowance_that_says_too_little_or_too_much_is_not_written(
    project: Project, words: list[str], status: int, what: str
) -> None:
    before = (project.folder / ".symph.yaml").read_text()
    answer, _, err = project.symph("gitops", "allow", *words)
    assert (answer, what in err) == (status, True), err
    assert (project.folder / ".symph.yaml").read_text() == before


def test_a_value_of_a_declared_file_is_refused_wherever_it_is_put(project: Project) -> None:
    (project.folder / "my.env").write_text("WANDB_API_KEY=correct-horse-battery-9\n")
    spec = SPEC.replace("command: [serve]", "command: [serve], env: {OTHER: correct-horse-battery-9}")
    project.write(spec + "secrets: [my.env]\n")
    status, _, err = project.symph("publish", "rl.yaml", "--env", "dev")
    assert (status, "WANDB_API_KEY" in err, "battery" in err) == (7, True, False)


def test_a_branch_that_is_called_like_a_secret_is_not_pushed(project: Project) -> None:
    (project.folder / "key.txt").write_text("correct-horse-battery-9\n")
    project.write(SPEC + "secrets: [key.txt]\n")
    status, _, err = project.symph("publish", "rl.yaml", "--env", "dev", "--branch", "topic/correct-horse-battery-9")
    assert (status, "battery" in err) == (7, False)
