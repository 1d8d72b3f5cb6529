"""`symph diff` on a real repository."""

from __future__ import annotations

import pytest
import yaml

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
    assert "under Argo CD: a new run: the old Job/rl-agent" in out
    assert "CPU 3.005 -> 4.005" in out


def test_the_environments_own_values_count_on_both_sides(published: Project) -> None:
    published.symph("promote", "rl", "--from", "dev", "--to", "prod")
    found = published.json("diff", "rl.yaml", "--env", "prod")
    assert found["amounts"]["cpu"] == {"before": 9005, "after": 9005}


def test_two_versions_are_compared(published: Project) -> None:
    published.symph("publish", "rl.yaml", "--env", "dev")
    assert published.json("diff", "rl", "0.1.0", "0.1.1")["outcome"] == "new run"


@pytest.mark.parametrize("is_first", [True, False])
def test_two_environments_show_what_a_promotion_does_to_the_second(published: Project, is_first: bool) -> None:
    """As its dry run does, which a promotion then makes true."""
    words = ("rl", "--from", "dev", "--to", "prod")
    if not is_first:
        published.symph("promote", *words)
    published.symph("publish", "rl.yaml", "--env", "dev")
    found = published.json("diff", *words)
    assert (found["before"], found["after"]) == (
        "nothing in prod" if is_first else "0.1.0 in prod",
        "0.1.1 in prod, promoted from dev",
    )
    assert found["amounts"]["cpu"] == {"before": 0 if is_first else 9005, "after": 9005}
    (effect,) = published.json("promote", *words, "--dry-run")["effects"]
    assert effect["objects"] == found["objects"]
    _, out, _ = published.symph("promote", *words, "--dry-run")
    assert "under Argo CD: " in out
    assert is_first or "Job/rl-agent   new run: pod template changed" in out
    _, out, _ = published.symph("promote", *words, "--dry-run", "-o", "markdown")
    assert "| object | effect | fields |" in out
    published.symph("promote", *words)
    assert published.json("diff", *words)["outcome"] == "nothing"


def test_a_dry_run_of_each_change_shows_what_it_does(published: Project) -> None:
    assert (
        "under Argo CD: a new run: the old Job/rl-agent"
        in published.symph("publish", "rl.yaml", "--env", "dev", "--dry-run")[1]
    )
    published.symph("publish", "rl.yaml", "--env", "dev")
    status, out, _ = published.symph("rollback", "rl", "--env", "dev", "--dry-run")
    assert (status, '["work", "hard"] -> ["work"]' in out) == (0, True)
    status, out, _ = published.symph("retire", "rl", "--env", "dev", "--dry-run")
    assert (status, "0.1.1 in dev -> nothing in dev" in out, "Job/rl-agent" in out) == (0, True, True)


SCRIPT = "set -x\npip install a\npip install b\npython train.py\n    --out /out/checkpoints\n    --lr 0.1\n"


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (SCRIPT, "--lr 0.1", "--lr 0.2"),
        ("".join(f"key{number}: value{number}\n" for number in range(80)), "value70\n", "other\n"),
        (
            f"python train.py {' '.join(f'--flag{number} {number}' for number in range(30))}",
            "--flag29 29",
            "--flag29 30",
        ),
    ],
    ids=["script", "config", "one line"],
)
def test_a_long_text_is_compared_line_by_line(project: Project, text: str, old: str, new: str) -> None:
    def write(text: str) -> None:
        data = yaml.safe_load(SPEC)
        data["processes"]["agent"]["args"] = ["-c", text]
        project.write(yaml.safe_dump(data))

    write(text)
    project.symph("publish", "rl.yaml", "--env", "dev")
    write(text.replace(old, new))
    gone, come = (each.strip().split(" ")[-1] for each in (old, new))
    for words in ((), ("-o", "markdown")):
        _, out, _ = project.symph("diff", "rl.yaml", "--env", "dev", *words)
        marks = [line[0 if words else 4 :] for line in out.splitlines()]
        changed = [line for line in marks if line[:1] in ("+", "-")]
        assert [line[0] for line in changed] == ["-", "+"], out
        assert (gone in changed[0], come in changed[1]) == (True, True)
        assert len(out.splitlines()) < 40


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
    assert "published versions: 0.1.0" in err


def test_comparing_with_nothing_is_a_usage_error(published: Project) -> None:
    assert published.symph("diff", "rl")[0] == 2
    assert published.symph("diff", "nothing.yaml")[0] == 3
