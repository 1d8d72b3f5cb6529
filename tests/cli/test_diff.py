"""`symph diff` on a real repository."""

from __future__ import annotations

import pytest

from tests.cli.git_project import SPEC, Project


@pytest.fixture
def published(project: Project) -> Project:
    project.symph("publish", "rl.yaml", "--env", "dev")
    project.write(SPEC.replace("replicas: 2", "replicas: 3").replace("[work]", "[work, hard]"))
    return project


def test_a_spec_against_what_runs_names_each_field_and_the_effect(published: Project) -> None:
    status, out, _ = published.symph("diff", "rl.yaml", "--env", "dev")
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == "0.1.0 in dev -> rl.yaml"
    assert "Job/rl-agent   new run: pod template changed" in lines
    assert '  agent.command     ["work"] -> ["work","hard"]' in [line.replace(", ", ",") for line in lines]
    assert "under Argo CD: a new run: Job/rl-agent" in out
    assert "CPU 3 -> 4" in out


def test_the_environments_own_values_count_on_both_sides(published: Project) -> None:
    published.symph("promote", "rl", "--from", "dev", "--to", "prod")
    found = published.json("diff", "rl.yaml", "--env", "prod")
    assert found["amounts"]["cpu"] == {"before": 9000, "after": 9000}


def test_two_versions_and_two_environments_are_compared(published: Project) -> None:
    published.symph("publish", "rl.yaml", "--env", "dev")
    published.symph("rollback", "rl", "--env", "dev")
    published.symph("promote", "rl", "--from", "dev", "--to", "prod")
    assert published.json("diff", "rl", "0.1.0", "0.1.1")["outcome"] == "new run"
    across = published.json("diff", "rl", "--from", "dev", "--to", "prod")
    assert (across["before"], across["after"]) == ("0.1.0 in dev", "0.1.0 in prod")
    assert across["amounts"]["cpu"] == {"before": 3000, "after": 9000}


def test_nothing_differs_after_a_publish(published: Project) -> None:
    assert published.symph("diff", "rl.yaml", "--env", "dev", "--exit-code")[0] == 1
    published.symph("publish", "rl.yaml", "--env", "dev")
    status, out, err = published.symph("diff", "rl.yaml", "--env", "dev", "--exit-code")
    assert status == 0
    assert "nothing happens" in out
    assert "another version" not in err


def test_markdown_is_a_table_that_values_cannot_break(published: Project) -> None:
    published.write(SPEC.replace("[work]", "[work, 'a|b<c>']"))
    _, out, _ = published.symph("diff", "rl.yaml", "--env", "dev", "-o", "markdown")
    row = next(line for line in out.splitlines() if line.startswith("| Job/rl-agent"))
    assert "a\\|b&lt;c" in row


def test_an_unknown_version_lists_those_that_there_are(published: Project) -> None:
    status, _, err = published.symph("diff", "rl", "0.1.0", "9.9.9")
    assert status == 8
    assert "it holds 0.1.0" in err


def test_comparing_with_nothing_is_a_usage_error(published: Project) -> None:
    assert published.symph("diff", "rl")[0] == 2
    assert published.symph("diff", "nothing.yaml")[0] == 3
