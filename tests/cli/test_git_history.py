"""`history` reports author and commit of each change, also of retired experiments; `status` reports known facts."""

from __future__ import annotations

from tests.cli.git_project import POINTER, SETTINGS, SPEC, Project, git
from tests.gitops.servers import commit


def commits(project: Project) -> list[str]:
    return git("-C", str(project.repo), "rev-list", "main").split()


def test_each_entry_has_its_author_and_its_commit(project: Project) -> None:
    project.publish(2)
    settings = project.folder / ".symph.yaml"
    settings.write_text(settings.read_text().replace("Ann <ann@example.org>", "Bob <bob@example.org>"))
    project.publish(3, "--env-set", "groups.agent.replicas=6")
    project.symph("rollback", "rl", "--env", "dev")
    items = project.json("history", "rl", "--env", "dev")["items"]
    assert [item["commit"] for item in items] == commits(project)
    assert [item["by"].split()[0] for item in items] == ["Bob", "Bob", "Ann"]
    assert [item["op"] for item in items] == ["rollback", "publish", "publish"]
    assert [item["isNow"] for item in items] == [True, False, False]


def test_history_shows_retired_experiments_with_their_values(project: Project) -> None:
    project.publish(2, "--env-set", "groups.agent.replicas=6")
    project.publish(3)
    project.symph("retire", "rl", "--env", "dev", "--yes")
    items = project.json("history", "rl", "--env", "dev")["items"]
    assert [(item["op"], item["version"]) for item in items] == [
        ("retire", None),
        ("publish", "0.1.1"),
        ("publish", "0.1.0"),
    ]
    assert [item["commit"] for item in items] == commits(project)
    assert items[2]["values"] == {"groups": {"agent": {"replicas": 6}}}
    assert [item["isNow"] for item in items] == [False, False, False]


def test_a_retired_experiment_is_found_without_its_team(project: Project) -> None:
    project.publish(2, "--team", "vision")
    project.symph("retire", "rl", "--env", "dev", "--team", "vision", "--yes")
    (project.folder / ".symph.yaml").write_text(SETTINGS.replace("REPO", str(project.repo)).replace("team: ml\n", ""))
    assert len(project.json("history", "rl", "--env", "dev")["items"]) == 2


def test_history_of_an_unknown_experiment_exits_8(project: Project) -> None:
    project.publish(2)
    status, _, err = project.symph("history", "els", "--env", "dev")
    assert (status, "dev never ran ml/els" in err) == (8, True)
    assert project.symph("history", "rl", "--env", "prod")[0] == 8
    assert project.symph("rollback", "els", "--env", "dev")[0] == 8


def test_many_charts_in_one_commit_have_a_history_each(project: Project) -> None:
    (project.folder / "es.yaml").write_text(SPEC.replace("name: rl", "name: es"))
    assert project.symph("publish", "rl.yaml", "es.yaml", "--env", "dev")[0] == 0
    for name in ("rl", "es"):
        assert [item["commit"] for item in project.json("history", name, "--env", "dev")["items"]] == commits(project)


def test_one_pointer_that_cannot_be_read_spoils_no_other(project: Project) -> None:
    project.publish(2)
    commit(
        project.repo,
        {"envs/dev/ops/bad.symph-app.yaml": project.show(POINTER).replace("history: []", "history: surprise")},
    )
    status, out, err = project.symph("status")
    assert status == 1
    assert "published" in out
    assert "cannot be read" in out
    assert "history" in err


def test_a_reason_stands_in_the_commit_and_in_the_history(project: Project) -> None:
    project.publish(2, "-m", "first try")
    project.publish(3, "--message", "more agents,\n  as asked: retire ml/rl from dev")
    assert project.symph("promote", "rl", "--from", "dev", "--to", "prod", "-m", "release 7")[0] == 0
    assert project.symph("rollback", "rl", "--env", "dev", "-m", "it diverged")[0] == 0
    assert project.symph("retire", "rl", "--env", "prod", "--yes", "-m", "done")[0] == 0
    items = project.json("history", "rl", "--env", "dev")["items"]
    reasons = ["it diverged", "more agents, as asked: retire ml/rl from dev", "first try"]
    assert [(item["op"], item["reason"]) for item in items] == list(
        zip(["rollback", "publish", "publish"], reasons, strict=True)
    )
    assert [item["reason"] for item in project.json("history", "rl", "--env", "prod")["items"]] == ["done", "release 7"]
    assert "it diverged" in project.symph("history", "rl", "--env", "dev")[1]
    assert "Symph-Reason: it diverged\n" in git("-C", str(project.repo), "log", "--format=%B", "main")


def test_a_reason_that_holds_a_secret_is_refused(project: Project) -> None:
    token = "ghp_" + "0aB1cD2eF3" * 3 + "gH4iJ5"
    for words in (("--dry-run",), ()):
        status, _, err = project.symph("publish", "rl.yaml", "--env", "dev", "-m", f"use {token}", *words)
        assert (status, "the message (-m)" in err, token in err) == (7, True, False)
    assert project.symph("publish", "rl.yaml", "--env", "dev", "--into", str(project.folder), "-m", "x")[0] == 2


def test_rollback_restores_a_retired_experiment(project: Project) -> None:
    project.publish(2)
    project.publish(3, "--env-set", "groups.agent.replicas=6")
    before = project.show(POINTER)
    project.symph("retire", "rl", "--env", "dev", "--yes")
    status, out, _ = project.symph("rollback", "rl", "--env", "dev", "--dry-run")
    assert (status, out.splitlines()[0]) == (0, "rl retired -> 0.1.1 in dev")
    assert project.symph("status", "rl", "--env", "dev")[0] == 8
    assert project.symph("rollback", "rl", "--env", "dev", "--expect", "0.1.1")[0] == 7
    assert project.symph("rollback", "rl", "--env", "dev")[0] == 0
    kept = ("version:", "digest:", "chart:", "replicas:", "namespace:")
    lines = [
        [line for line in text.splitlines() if line.strip().startswith(kept)]
        for text in (before, project.show(POINTER))
    ]
    assert lines[0] == lines[1]
    items = project.json("history", "rl", "--env", "dev")["items"]
    assert [(item["op"], item["version"]) for item in items] == [
        ("rollback", "0.1.1"),
        ("retire", None),
        ("publish", "0.1.1"),
        ("publish", "0.1.0"),
    ]
    assert [item["commit"] for item in items] == commits(project)
    assert project.symph("rollback", "rl", "--env", "dev")[1].startswith("rl 0.1.1 -> 0.1.0 in dev")


def test_an_older_version_of_what_was_retired_is_brought_back(project: Project) -> None:
    project.publish(2)
    project.publish(3)
    project.symph("retire", "rl", "--env", "dev", "--yes")
    assert project.symph("rollback", "rl", "--env", "dev", "--to", "0.9.9")[0] == 8
    assert project.symph("rollback", "rl", "--env", "dev", "--to", "0.1.0")[1].startswith("rl retired -> 0.1.0 in dev")
    assert project.symph("rollback", "rl", "--env", "dev")[1].startswith("rl 0.1.0 -> 0.1.1 in dev")
