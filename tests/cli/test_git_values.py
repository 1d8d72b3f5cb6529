"""A value that the chart does not have is refused on every way into an environment, and found in a repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.git_project import Project, git

WRONG = "groups.agent.replica=3"


def commits(project: Project) -> str:
    return git("-C", str(project.repo), "rev-list", "--all", "--count")


@pytest.mark.parametrize("flag", ["--set", "--env-set"])
def test_a_publish_with_a_mistyped_value_changes_nothing(project: Project, flag: str) -> None:
    before = commits(project)
    status, _, err = project.symph("publish", "rl.yaml", "--env", "dev", flag, WRONG)
    assert (status, commits(project)) == (3, before)
    assert "did you mean groups.agent.replicas?" in err


def test_values_of_the_settings_are_checked_as_well(project: Project) -> None:
    settings = project.folder / ".symph.yaml"
    text = settings.read_text()
    assert "namespace: rl-dev" in text
    settings.write_text(text.replace("namespace: rl-dev", "namespace: rl-dev, values: {groups: {agent: {replica: 3}}}"))
    assert project.symph("publish", "rl.yaml", "--env", "dev")[0] == 3


def damage(project: Project) -> Path:
    """Return a checkout with a hand-written value that the chart of dev does not have."""
    assert project.symph("publish", "rl.yaml", "--env", "dev")[0] == 0
    checkout = project.clone()
    (pointer,) = (checkout / "envs" / "dev").rglob("*.symph-app.yaml")
    text = pointer.read_text()
    assert "values: {}" in text
    pointer.write_text(text.replace("values: {}", "values: {groups: {agent: {replica: 3}}}"))
    git("-C", str(checkout), "-c", "user.name=u", "-c", "user.email=u@e", "commit", "-qam", "by hand")
    return checkout


def test_a_mistyped_value_is_found_in_a_repository(project: Project) -> None:
    checkout = damage(project)
    status, out, _ = project.symph("gitops", "lint", str(checkout))
    assert status == 1
    assert "[pointer-values]" in out
    assert "values.groups.agent.replica" in out


def test_a_mistyped_value_is_not_promoted(project: Project) -> None:
    git("-C", str(damage(project)), "push", "-q", "origin", "HEAD:main")
    status, _, err = project.symph("promote", "rl", "--from", "dev", "--to", "prod", "--copy-values")
    assert status == 3
    assert "did you mean groups.agent.replicas?" in err
