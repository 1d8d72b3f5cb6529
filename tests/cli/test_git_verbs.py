"""publish, promote, rollback, retire, status and history on a real repository, as users type them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.cli.git_project import POINTER, SETTINGS, SPEC, Project, git, with_secret
from tests.gitops.servers import commit


def test_a_chart_that_gives_rights_is_not_published(project: Project) -> None:
    project.write(SPEC + "workload: {kind: argo}\n")
    status, _, err = project.symph("publish", "rl.yaml", "--env", "dev")
    assert status == 1
    assert "takes no Role, RoleBinding, ServiceAccount from Git" in err
    assert "workload.argo.service_account" in err
    project.write(SPEC + "workload: {kind: argo, argo: {service_account: mine}}\n")
    assert project.symph("publish", "rl.yaml", "--env", "dev")[0] == 0


def test_a_publish_is_a_commit_with_chart_pointer_and_trailers(project: Project) -> None:
    status, out, err = project.symph("publish", "rl.yaml", "--env", "dev")
    assert (status, out) == (0, "rl 0.1.0 -> dev\n")
    assert "commit " in err
    assert project.log() == ["publish ml/rl 0.1.0 -> dev"]
    assert "namespace: rl-dev" in project.show(POINTER)
    assert 'name: "rl"' in project.show("charts/ml/rl/0.1.0/Chart.yaml")
    body = git("-C", str(project.repo), "log", "-1", "--format=%(trailers:only)", "main")
    assert "Symph-Chart: ml/rl@0.1.0" in body
    assert "Symph-Spec: rl.yaml" in body


def test_publishing_the_same_again_makes_no_commit(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    assert project.json("publish", "rl.yaml", "--env", "dev")["commit"] is None
    assert len(project.log()) == 1


def test_a_changed_default_is_the_next_patch_and_keeps_its_ports(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    project.write(SPEC.replace("replicas: 2", "replicas: 3"))
    (change,) = project.json("publish", "rl.yaml", "--env", "dev")["changes"]
    assert (change["version"], change["was"]) == ("0.1.1", "0.1.0")
    assert 'version: "0.1.1"' in (project.folder / "rl.lock.yaml").read_text()


@pytest.mark.parametrize(("kind", "run"), [("jobs", "new"), ("dijob", "same")])
def test_a_publish_says_whether_it_is_a_new_run(kind: str, run: str, project: Project) -> None:
    spec = SPEC + f"workload: {{kind: {kind}}}\n"
    project.write(spec)
    (first,) = project.json("publish", "rl.yaml", "--env", "dev")["changes"]
    project.write(spec.replace("replicas: 2", "replicas: 3"))
    (scaled,) = project.json("publish", "rl.yaml", "--env", "dev")["changes"]
    project.write(spec.replace("command: [work]", "command: [play]"))
    _, out, _ = project.symph("publish", "rl.yaml", "--env", "dev", "--dry-run")
    assert (first["run"], scaled["run"]) == (None, run)
    assert "   a new run: " in out


def test_a_dry_run_shows_the_paths_and_pushes_nothing(project: Project) -> None:
    _, out, err = project.symph("publish", "rl.yaml", "--env", "dev", "--dry-run")
    assert out.splitlines()[1:3] == ["  + charts/ml/rl/0.1.0/", f"  + {POINTER}"]
    assert "nothing was changed (--dry-run)" in err
    assert git("-C", str(project.repo), "branch", "--list") == ""
    assert not (project.folder / "rl.lock.yaml").exists()


def test_a_group_that_no_pool_can_hold_is_refused_and_nothing_is_pushed(project: Project) -> None:
    pools = project.folder / "pools.yaml"
    pools.write_text("pools: [{name: small, allocatable: {cpu: 1500m, memory: 4Gi, pods: 9}, max_nodes: 1}]\n")
    status, _, err = project.symph("publish", "rl.yaml", "--env", "dev", "--pools", str(pools))
    assert status == 4
    assert "cannot be scheduled" in err
    assert "--force-unschedulable" in err
    assert project.symph("publish", "rl.yaml", "--env", "dev", "--pools", str(pools), "--force-unschedulable")[0] == 0


def test_the_fit_is_that_of_the_chart_with_the_environments_values(project: Project) -> None:
    pools = project.folder / "pools.yaml"
    pools.write_text("pools: [{name: p, allocatable: {cpu: '4', memory: 8Gi, pods: 9}, max_nodes: 1}]\n")
    assert project.symph("publish", "rl.yaml", "--env", "dev", "--pools", str(pools))[0] == 0
    status, _, err = project.symph("publish", "rl.yaml", "--env", "prod", "--pools", str(pools))
    assert status == 4, "prod has eight agents by its own values"
    assert "agent" in err


def test_a_fault_in_one_spec_publishes_none(project: Project) -> None:
    (project.folder / "bad.yaml").write_text(SPEC.replace("connects: data", "connects: dta"))
    status, _, err = project.symph("publish", "rl.yaml", "bad.yaml", "--env", "dev")
    assert status == 3
    assert "bad.yaml" in err
    assert git("-C", str(project.repo), "branch", "--list") == ""


def test_into_a_checkout_writes_what_would_be_pushed(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    project.write(SPEC.replace("replicas: 2", "replicas: 3"))
    checkout = project.clone()
    assert project.symph("publish", "rl.yaml", "--env", "dev", "--into", str(checkout))[0] == 0
    git("-C", str(checkout), "add", "-A")
    written = git("-C", str(checkout), "write-tree").strip()
    project.symph("publish", "rl.yaml", "--env", "dev")
    pushed = project.show(POINTER)
    by_hand = (checkout / POINTER).read_text()
    assert [line for line in pushed.splitlines() if "at:" not in line] == [
        line for line in by_hand.splitlines() if "at:" not in line
    ]
    charts = "charts/ml/rl/0.1.1"
    assert git("-C", str(checkout), "rev-parse", f"{written}:{charts}") == git(
        "-C", str(project.repo), "rev-parse", f"main:{charts}"
    )


def test_a_link_in_a_checkout_leads_nowhere(project: Project) -> None:
    checkout, outside = project.folder / "checkout", project.folder / "outside"
    outside.mkdir()
    git("init", "-q", str(checkout))
    (checkout / "charts").symlink_to(outside)
    status, _, err = project.symph("publish", "rl.yaml", "--env", "dev", "--into", str(checkout))
    assert status == 7
    assert "symbolic link" in err
    assert list(outside.iterdir()) == []


def test_promotion_takes_the_version_and_keeps_the_environments_values(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    for precondition in ("--version", "--expect"):
        assert project.symph("promote", "rl", "--from", "dev", "--to", "prod", precondition, "0.0.9")[0] == 7
    assert project.symph("promote", "rl", "--from", "dev", "--to", "prod")[0] == 0
    pointer = project.show("envs/prod/ml/rl.symph-app.yaml")
    assert "replicas: 8" in pointer
    assert "namespace: rl-prod" in pointer
    assert git("-C", str(project.repo), "diff", "--name-only", "main~1", "main").split() == [
        "envs/prod/ml/rl.symph-app.yaml"
    ]


def test_rollback_restores_version_digest_and_values(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev", "--env-set", "groups.agent.replicas=5")
    before = project.json("status", "rl")["items"][0]
    project.write(SPEC.replace("replicas: 2", "replicas: 3"))
    project.symph("publish", "rl.yaml", "--env", "dev", "--env-set", "groups.agent.replicas=6")
    assert project.symph("rollback", "rl", "--env", "dev")[0] == 0
    after = project.json("status", "rl")["items"][0]
    assert [after[key] for key in ("version", "digest", "values", "chart")] == [
        before[key] for key in ("version", "digest", "values", "chart")
    ]
    history = project.json("history", "rl", "--env", "dev")["items"]
    assert [(entry["version"], entry["op"]) for entry in history] == [
        ("0.1.0", "rollback"),
        ("0.1.1", "publish"),
        ("0.1.0", "publish"),
    ]


def test_retiring_asks_first_and_then_removes_the_pointer_alone(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    assert project.symph("retire", "rl", "--env", "dev")[0] == 2
    assert len(project.log()) == 1
    assert project.symph("retire", "rl", "--env", "dev", "--yes")[0] == 0
    names = git("-C", str(project.repo), "ls-tree", "-r", "--name-only", "main")
    assert POINTER not in names
    assert "charts/ml/rl/0.1.0/Chart.yaml" in names
    assert project.symph("retire", "rl", "--env", "dev", "--yes")[0] == 8


def test_the_team_is_found_where_only_one_has_the_experiment(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev", "--team", "vision")
    (project.folder / ".symph.yaml").write_text(SETTINGS.replace("REPO", str(project.repo)).replace("team: ml\n", ""))
    assert project.symph("history", "rl", "--env", "dev")[0] == 0
    project.symph("publish", "rl.yaml", "--env", "dev", "--team", "audio")
    status, _, err = project.symph("history", "rl", "--env", "dev")
    assert status == 2
    assert "audio/rl" in err


def test_a_pointer_without_its_chart_is_seen(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    commit(project.repo, {"charts": None})
    status, out, _ = project.symph("status")
    assert status == 1
    assert "chart missing" in out


def test_a_secret_that_found_its_way_into_the_spec_is_refused_by_path(project: Project) -> None:
    with_secret(project)
    text = (project.folder / "rl.yaml").read_text()
    project.write(text.replace("replicas: 2", "replicas: 2, env: {TOKEN: hunter2-hunter2}"))
    status, _, err = project.symph("publish", "rl.yaml", "--env", "dev")
    assert status == 7
    assert "values.yaml contains the secret token.txt" in err
    assert "hunter2" not in err
    assert git("-C", str(project.repo), "branch", "--list") == ""
    checkout = project.folder / "checkout"
    git("init", "-q", str(checkout))
    assert project.symph("publish", "rl.yaml", "--env", "dev", "--into", str(checkout))[0] == 7
    assert [path.name for path in checkout.iterdir()] == [".git"]


def test_sealed_secrets_go_into_the_pointer_and_stay_the_same_while_nothing_changes(project: Project) -> None:
    from tests.secrets.test_sealing import certificate, unseal

    with_secret(project, source="sealed")
    (project.folder / "cert.pem").write_bytes(certificate())
    words = ("publish", "rl.yaml", "--env", "dev", "--cert", "cert.pem")
    assert project.symph(*words)[0] == 0
    (item,) = project.json("status", "rl")["items"]
    sealed = item["values"]["secrets"]["encryptedData"]["token.txt"]
    assert unseal(sealed, b"rl-dev/rl-secrets") == b"hunter2-hunter2\n"
    assert project.json(*words)["commit"] is None


def test_sealing_without_a_certificate_says_how_to_get_one(project: Project) -> None:
    with_secret(project, source="sealed")
    status, _, err = project.symph("publish", "rl.yaml", "--env", "dev")
    assert status == 2
    assert "--cert cluster" in err


def test_package_with_push_writes_the_chart_and_publishes_it(project: Project) -> None:
    assert project.symph("package", "rl.yaml", "--push", "--env", "dev", "--dry-run")[0] == 0
    assert not (project.folder / "dist").exists()
    status, out, _ = project.symph("package", "rl.yaml", "--push", "--env", "dev")
    assert status == 0
    assert "rl 0.1.0 -> dev" in out
    assert (project.folder / "dist/rl-0.1.0.tgz").is_file()
    assert project.log() == ["publish ml/rl 0.1.0 -> dev"]


def test_a_sweep_is_one_chart_and_a_pointer_for_each_trial_in_one_commit(project: Project) -> None:
    project.write(SPEC.replace("replicas: 2", "replicas: 2, env: {LR: '1'}"))
    found = project.json(
        "sweep", "rl.yaml", "--grid", "lr=0.1,0.2", "--grid", "processes.agent.replicas=1,3", "--env", "dev"
    )
    names = [item["name"] for item in found["items"]]
    assert names == ["rl-lr0-1-replicas1", "rl-lr0-1-replicas3", "rl-lr0-2-replicas1", "rl-lr0-2-replicas3"]
    assert len(project.log()) == 1
    items = project.json("status")["items"]
    assert [item["name"] for item in items] == names
    assert {item["chart"] for item in items} == {"charts/ml/rl/0.1.0"}
    assert items[3]["values"]["groups"]["agent"]["replicas"] == 3
    assert items[3]["values"]["groups"]["agent"]["containers"]["agent"]["env"]["LR"] == "0.2"
    assert project.symph("retire", names[0], "--env", "dev", "--yes")[0] == 0
    assert len(project.json("status")["items"]) == 3


def test_a_trial_is_promoted_compared_and_rolled_back_like_any_other(project: Project) -> None:
    project.write(SPEC.replace("replicas: 2", "replicas: 2, env: {LR: '1'}"))
    project.symph("sweep", "rl.yaml", "--grid", "lr=0.1,0.2", "--env", "dev")
    assert project.symph("promote", "rl-lr0-2", "--from", "dev", "--to", "prod", "--copy-values")[0] == 0
    assert project.json("diff", "rl-lr0-2", "--from", "dev", "--to", "prod")["outcome"] == "nothing"
    project.write(SPEC.replace("replicas: 2", "replicas: 4, env: {LR: '1'}"))
    project.symph("sweep", "rl.yaml", "--grid", "lr=0.1,0.2", "--env", "dev")
    assert project.symph("rollback", "rl-lr0-2", "--env", "dev")[0] == 0
    (item,) = [each for each in project.json("status", "rl-lr0-2")["items"] if each["env"] == "dev"]
    assert (item["version"], item["chart"]) == ("0.1.0", "charts/ml/rl/0.1.0")


def test_an_environment_that_nothing_lists_is_said_to_be_new(project: Project) -> None:
    repository = f"{{url: {project.repo}, author: Ann <ann@example.org>}}"
    (project.folder / ".symph.yaml").write_text(f"team: ml\nrepository: {repository}\n")
    new = "environment {} of the repository is {}; .symph.yaml lists none"
    said = {}
    for words in (["publish", "rl.yaml", "--env", "dev"], ["publish", "rl.yaml", "--env", "dve", "--dry-run"]):
        status, _, said[words[3]] = project.symph(*words)
        assert status == 0
    assert new.format("dev", "the first one") in said["dev"]
    assert new.format("dve", "a new one beside dev (did you mean dev?)") in said["dve"]
    assert "is a new one beside" in project.symph("promote", "rl", "--from", "dev", "--to", "prod")[2]
    assert ".symph.yaml lists none" not in project.symph("publish", "rl.yaml", "--env", "dev")[2]


def newer(text: str) -> str:
    """Return a pointer as a newer symph might write it."""
    data: Any = yaml.safe_load(text)
    data |= {"apiVersion": "symph.dev/v1.1", "approvedBy": ["cy"]}
    data["destination"] |= {"zone": "a"}
    for entry in data["history"]:
        entry["approvedBy"] = ["bo"]
    return yaml.safe_dump(data)


def test_fields_of_a_newer_version_are_kept_and_reported(project: Project) -> None:
    project.publish(2)
    project.publish(3)
    commit(project.repo, {POINTER: newer(project.show(POINTER))})
    for status, _, err in (project.publish(4), project.symph("rollback", "rl", "--env", "dev")):
        assert (status, "a newer symph wrote apiVersion, approvedBy, destination" in err) == (0, True), err
    found = yaml.safe_load(project.show(POINTER))
    assert (found["apiVersion"], found["approvedBy"], found["destination"]["zone"]) == ("symph.dev/v1.1", ["cy"], "a")
    assert [entry.get("approvedBy") for entry in found["history"]] == [None, None, ["bo"]]
    assert project.symph("history", "rl", "--env", "dev")[0] == 0
    status, out, _ = project.symph("gitops", "lint", str(project.clone()))
    assert (status, "pointer-newer" in out) == (0, True), out
