"""Environments are separate: values, places, projects and names of one do not affect another; each move is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from symphony_charts.formats.yaml_read import load
from tests.cli.git_project import SPEC, Project, git, with_secret
from tests.gitops.servers import commit
from tests.secrets.test_sealing import certificate

_SOURCE = f"git+https://git.example.org/symphony-charts@{'0a' * 20}"


def pointer(project: Project, env: str = "dev", team: str = "ml", name: str = "rl") -> Any:
    return load(project.show(f"envs/{env}/{team}/{name}.symph-app.yaml"))


def configure(project: Project, before: str, after: str) -> None:
    settings = project.folder / ".symph.yaml"
    assert before in settings.read_text()
    settings.write_text(settings.read_text().replace(before, after))


def edit(project: Project, path: str, before: str, after: str) -> None:
    text = project.show(path)
    assert before in text
    commit(project.repo, {path: text.replace(before, after)})


def lint(project: Project) -> tuple[int, str]:
    checkout = project.clone()
    status, out, _ = project.symph("gitops", "lint", str(checkout))
    return status, out


def test_one_value_after_another_is_kept(project: Project) -> None:
    publish = ("publish", "rl.yaml", "--env", "prod")
    project.symph(*publish, "--env-set", "groups.agent.retries=2")
    assert pointer(project, "prod")["values"] == {"groups": {"agent": {"replicas": 8, "retries": 2}}}
    project.symph(*publish, "--env-set", "groups.agent.replicas=3")
    assert pointer(project, "prod")["values"] == {"groups": {"agent": {"replicas": 3, "retries": 2}}}
    project.symph(*publish, "--env-unset", "groups.agent.replicas")
    assert pointer(project, "prod")["values"] == {"groups": {"agent": {"replicas": 8, "retries": 2}}}


def test_later_edits_of_the_settings_count_and_diff_shows_them(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "prod", "--env-set", "groups.learner.retries=2")
    configure(project, "replicas: 8", "replicas: 5")
    status, out, err = project.symph("diff", "rl.yaml", "--env", "prod")
    assert (status, err) == (0, "")
    assert "8 -> 5" in out
    project.symph("publish", "rl.yaml", "--env", "prod")
    assert pointer(project, "prod")["values"] == {"groups": {"agent": {"replicas": 5}, "learner": {"retries": 2}}}


def test_a_promotion_takes_the_settings_of_today(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    project.symph("promote", "rl", "--from", "dev", "--to", "prod")
    configure(project, "replicas: 8", "replicas: 5")
    project.write(SPEC.replace("replicas: 2", "replicas: 3"))
    project.symph("publish", "rl.yaml", "--env", "dev")
    project.symph("promote", "rl", "--from", "dev", "--to", "prod")
    assert pointer(project, "prod")["values"] == {"groups": {"agent": {"replicas": 5}}}


def test_a_move_is_said_by_diff_and_publish(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    place = "namespace rl-else"
    configure(project, "namespace: rl-dev", "namespace: rl-else")
    assert f"ends in namespace rl-dev and starts in {place}" in project.symph("diff", "rl.yaml", "--env", "dev")[1]
    assert project.symph("diff", "rl.yaml", "--env", "dev", "--exit-code")[0] == 1
    out = project.symph("publish", "rl.yaml", "--env", "dev", "--dry-run")[1]
    assert f"a new run   ends in namespace rl-dev, starts in {place}" in out
    (change,) = project.json("publish", "rl.yaml", "--env", "dev")["changes"]
    assert change["moves"] == {"from": "namespace rl-dev", "to": place, "ends": True}


def test_another_cluster_leaves_behind_what_runs_and_that_is_said(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    configure(project, "namespace: rl-dev", "namespace: rl-dev, cluster: big")
    said = (
        "starts in namespace rl-dev of big; in namespace rl-dev it keeps running until you delete it: retire it first"
    )
    assert said in project.symph("diff", "rl.yaml", "--env", "dev")[1]
    assert said in project.symph("publish", "rl.yaml", "--env", "dev")[1]


@pytest.mark.parametrize("after", ["namespace: rl-dev, service_account: sa", "namespace: rl-dev, cluster: in-cluster"])
def test_another_spelling_of_the_same_place_is_not_a_move(project: Project, after: str) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    configure(project, "namespace: rl-dev", after)
    assert "nothing happens" in project.symph("diff", "rl.yaml", "--env", "dev")[1]
    (change,) = project.json("publish", "rl.yaml", "--env", "dev")["changes"]
    assert (change["moves"], change["run"]) == (None, "same")


def test_a_project_allows_the_old_place_until_nothing_runs_there(project: Project) -> None:
    """Argo CD prunes nothing where the project does not allow the application to be."""

    def places() -> list[str]:
        documents: list[Any] = [load(text) for text in project.show("bootstrap/project.yaml").split("---\n")]
        # The name has the team and the repository, repo.git.
        (dev,) = [item for item in documents if item and item["metadata"]["name"] == "ml-repo-dev"]
        return [place["namespace"] for place in dev["spec"]["destinations"]]

    init = ("gitops", "init", "--install-from", _SOURCE, "--force")
    project.symph(*init)
    project.symph("publish", "rl.yaml", "--env", "dev")
    edit(project, "envs/dev/ml/rl.symph-app.yaml", "namespace: rl-dev", "namespace: rl-prod")
    project.symph(*init)
    assert places() == ["rl-dev"], "a pointer alone allows nothing"
    edit(project, "envs/dev/ml/rl.symph-app.yaml", "namespace: rl-prod", "namespace: rl-dev")
    configure(project, "namespace: rl-dev", "namespace: rl-else")
    project.symph(*init)
    assert places() == ["rl-else", "rl-dev"]
    assert "keeps running there" not in project.symph("publish", "rl.yaml", "--env", "dev")[2]
    project.symph(*init)
    assert places() == ["rl-else"]
    configure(project, "namespace: rl-else", "namespace: rl-dev")
    edit(project, "bootstrap/project.yaml", "namespace: rl-else", "namespace: rl-dev")
    assert "the old run keeps running in namespace rl-else" in project.symph("publish", "rl.yaml", "--env", "dev")[2]


def test_a_place_that_the_project_does_not_allow_is_said_and_lint_refuses_it(project: Project) -> None:
    project.symph("gitops", "init", "--install-from", _SOURCE)
    assert project.symph("publish", "rl.yaml", "--env", "dev")[2].count("lets dev run") == 0
    configure(project, "namespace: rl-dev", "namespace: rl-else")
    err = project.symph("publish", "rl.yaml", "--env", "dev")[2]
    assert "allows dev in https://kubernetes.default.svc/rl-dev, not in https://kubernetes.default.svc/rl-else" in err
    assert "gitops init --force" in err
    status, out = lint(project)
    assert (status, "[pointer-destination]" in out) == (1, True)


def test_two_applications_of_one_name_are_refused(project: Project) -> None:
    def spec(name: str) -> str:
        project.write(SPEC.replace("name: rl", f"name: {name}"))
        return "rl.yaml"

    assert project.symph("publish", spec("c"), "--env", "dev", "--team", "a-b")[0] == 0
    status, _, err = project.symph("publish", spec("b-c"), "--env", "dev", "--team", "a")
    assert status == 7
    assert "envs/dev/a-b/c.symph-app.yaml already defines an application of the same name: dev-a-b-c" in err


def test_two_applications_of_one_name_are_found_in_a_repository(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev", "--team", "a-b")
    text = project.show("envs/dev/a-b/rl.symph-app.yaml")
    other = text.replace("team: a-b", "team: a").replace("name: rl\n", "name: b-rl\n", 1)
    commit(project.repo, {"envs/dev/a/b-rl.symph-app.yaml": other})
    assert "[same-application]" in lint(project)[1]


@pytest.mark.parametrize("verb", ["promote", "rollback"])
def test_a_chart_edited_by_hand_does_not_run(project: Project, verb: str) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    edit(project, "charts/ml/rl/0.1.0/values.yaml", "repository: busybox", "repository: evil")
    words = ["promote", "rl", "--from", "dev", "--to", "prod"]
    if verb == "rollback":
        project.write(SPEC.replace("replicas: 2", "replicas: 3"))
        project.symph("publish", "rl.yaml", "--env", "dev")
        words = ["rollback", "rl", "--env", "dev"]
    before = project.log()
    status, _, err = project.symph(*words)
    assert (status, project.log()) == (7, before)
    assert "charts/ml/rl/0.1.0 differs from the published chart" in err


def test_a_chart_without_its_chart_yaml_is_a_finding_and_no_fault_of_ours(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    checkout = project.clone()
    (checkout / "charts/ml/rl/0.1.0/Chart.yaml").unlink()
    git("-C", str(checkout), "rm", "-q", "--cached", "charts/ml/rl/0.1.0/Chart.yaml")
    status, out, _ = project.symph("gitops", "lint", str(checkout))
    assert (status, "[pointer-digest]" in out) == (1, True)


def test_taking_over_an_experiment_of_another_user_is_reported(project: Project, tmp_path: Path) -> None:
    del tmp_path
    project.symph("publish", "rl.yaml", "--env", "dev")
    configure(project, "Ann <ann@example.org>", "Bob <bob@example.org>")
    project.write(SPEC.replace("replicas: 2", "replicas: 3"))
    assert "was 0.1.0 by Ann <ann@example.org>" in project.symph("publish", "rl.yaml", "--env", "dev")[1]


@pytest.mark.parametrize("words", [(), ("--copy-values",)])
def test_a_sealed_experiment_is_not_promoted_to_where_nothing_is_sealed_for_it(
    project: Project, words: tuple[str, ...]
) -> None:
    with_secret(project, source="sealed")
    (project.folder / "cert.pem").write_bytes(certificate())
    publish = ("publish", "rl.yaml", "--cert", "cert.pem", "--env")
    assert project.symph(*publish, "dev")[0] == 0
    before = project.log()
    status, _, err = project.symph("promote", "rl", "--from", "dev", "--to", "prod", *words)
    assert (status, project.log()) == (3, before)
    assert "prod has no sealed value of token.txt" in err
    assert project.symph(*publish, "prod", "--version", "0.1.0")[0] == 0
    own = pointer(project, "prod")["values"]["secrets"]
    assert project.symph("promote", "rl", "--from", "dev", "--to", "prod", *words)[0] == 0
    assert pointer(project, "prod")["values"]["secrets"] == own, "the ciphertext of one namespace is none in another"
