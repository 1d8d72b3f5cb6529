"""Charts in a folder of a larger repository: writes stay below it, and Argo CD and Flux read that folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from tests.cli.git_project import INIT, Project, git
from tests.gitops.servers import commit

ROOT = "deploy/charts"


@pytest.fixture
def mono(project: Project) -> Project:
    """Return a project whose repository contains other work as well."""
    settings = project.folder / ".symph.yaml"
    settings.write_text(settings.read_text().replace("author:", f"path: {ROOT}, author:"))
    commit(project.repo, {"src/main.c": "int main;\n", "charts/theirs.txt": "of others\n", "deploy/other.txt": "x\n"})
    return project


def outside(project: Project, branch: str = "main") -> list[str]:
    return [path for path in project.paths(branch) if not path.startswith(f"{ROOT}/")]


def test_every_verb_works_below_the_folder_and_nothing_else_changes(mono: Project) -> None:
    assert mono.symph(*INIT)[0] == 0
    before = outside(mono)
    assert mono.publish(2)[0] == 0
    assert mono.publish(3)[1].startswith("rl 0.1.1 -> dev   was 0.1.0")
    assert mono.symph("promote", "rl", "--from", "dev", "--to", "prod")[0] == 0
    assert mono.symph("rollback", "rl", "--env", "dev")[0] == 0
    assert mono.symph("diff", "rl", "0.1.0", "0.1.1")[0] == 0
    assert [item["version"] for item in mono.json("history", "rl", "--env", "dev")["items"]] == [
        "0.1.0",
        "0.1.1",
        "0.1.0",
    ]
    assert mono.symph("retire", "rl", "--env", "dev", "--yes")[0] == 0
    assert mono.symph("history", "rl", "--env", "dev")[0] == 0
    assert [item["env"] for item in mono.json("status")["items"]] == ["prod"]
    assert mono.symph("gitops", "gc", "--keep", "1", "--yes")[0] == 0
    assert outside(mono) == before
    assert f"{ROOT}/charts/ml/rl/0.1.1/Chart.yaml" in mono.paths()
    git("-C", str(mono.repo), "fsck", "--full", "--strict")


def test_the_folder_is_given_by_a_flag_as_well(project: Project) -> None:
    assert project.symph("publish", "rl.yaml", "--env", "dev", "--repo-path", "a/b/")[0] == 0
    assert {path.split("/envs")[0].split("/charts")[0] for path in project.paths()} == {"a/b"}


@pytest.mark.parametrize("folder", ["../x", "a//b", ".git", "a b", "a/./b"])
def test_a_path_that_is_not_a_folder_is_refused(folder: str, project: Project) -> None:
    assert project.symph("publish", "rl.yaml", "--env", "dev", "--repo-path", folder)[0] == 3


def test_argo_cd_looks_below_the_folder(mono: Project) -> None:
    mono.symph(*INIT)
    spec = next(yaml.safe_load_all(mono.show(f"{ROOT}/bootstrap/applicationset.yaml")))["spec"]
    assert spec["generators"][0]["git"]["files"] == [{"path": f"{ROOT}/envs/dev/*/*.symph-app.yaml"}]
    assert spec["template"]["spec"]["source"]["path"] == f"{ROOT}/{{{{ .chart }}}}"
    # deploy/charts/envs/<env>/<team>
    assert spec["template"]["metadata"]["labels"]["symph.dev/team"] == "{{ index .path.segments 4 }}"


def test_files_for_forges_are_at_the_top_of_the_repository(mono: Project) -> None:
    before = outside(mono)
    assert mono.symph(*INIT, "--dry-run")[0] == 0
    assert outside(mono) == before
    status, out, _ = mono.symph(*INIT)
    assert (status, "at the top of the repository, where forges read them" in out) == (0, True)
    laid = [".github/workflows/symph-check.yaml", ".gitlab-ci.yml", "CODEOWNERS"]
    assert sorted({*outside(mono)} - {*before}) == laid
    assert not {".github/workflows/check.yaml", *laid} & {
        path.removeprefix(f"{ROOT}/") for path in mono.paths() if path.startswith(ROOT)
    }
    steps = yaml.safe_load(mono.show(laid[0]))["jobs"]["check"]["steps"]
    assert [step["run"] for step in steps if "run" in step] == [
        f"pip install -r {ROOT}/ci/requirements.txt",
        f"sh {ROOT}/ci/check",
    ]
    assert yaml.safe_load(mono.show(laid[1]))["check"]["script"][0] == f"pip install -r {ROOT}/ci/requirements.txt"
    assert f"/{ROOT}/bootstrap/ " in mono.show("CODEOWNERS")
    assert mono.show(f"{ROOT}/ci/check").startswith("#!/bin/sh")


def test_files_of_others_at_the_top_stay_and_what_to_add_is_said(mono: Project) -> None:
    commit(mono.repo, {"CODEOWNERS": "* @them\n"})
    status, _, err = mono.symph(*INIT)
    assert (status, mono.show("CODEOWNERS")) == (0, "* @them\n")
    assert "CODEOWNERS is there already and stays; add to it:" in err
    assert f"/{ROOT}/bootstrap/ " in err


def test_flux_looks_below_the_folder(mono: Project) -> None:
    mono.symph(*INIT, "--flux", "--cluster-url", "https://git.example.org/mono.git")
    mono.publish(2)
    source = yaml.safe_load(mono.show(f"{ROOT}/bootstrap/flux-source.yaml"))["spec"]
    assert source["sparseCheckout"] == [f"{ROOT}/charts", f"{ROOT}/envs"]
    applied = next(yaml.safe_load_all(mono.show(f"{ROOT}/bootstrap/flux-releases.yaml")))["spec"]
    assert applied["path"] == f"./{ROOT}/envs/dev"
    release = next(yaml.safe_load_all(mono.show(f"{ROOT}/envs/dev/ml/rl.symph-app.yaml")))["spec"]
    assert release["chart"]["spec"]["chart"] == f"./{ROOT}/charts/ml/rl/0.1.0"


def test_a_stale_branch_is_brought_up_to_date_below_the_folder(mono: Project) -> None:
    mono.publish(2)
    mono.publish(3, "--branch", "review")
    mono.publish(4)
    status, out, err = mono.publish(3, "--branch", "review")
    assert (status, "rl 0.1.2 -> dev   was 0.1.1" in out) == (0, True), err
    assert outside(mono, "review") == outside(mono)


def test_into_a_checkout_it_is_written_below_the_folder_and_the_check_runs_there(mono: Project) -> None:
    checkout = mono.clone()
    assert mono.symph(*INIT, "--into", str(checkout))[0] == 0
    assert mono.symph("publish", "rl.yaml", "--env", "dev", "--into", str(checkout))[0] == 0
    assert (checkout / ROOT / "charts/ml/rl/0.1.0/Chart.yaml").is_file()
    who = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    git("-C", str(checkout), "add", ".")
    git("-C", str(checkout), *who, "commit", "-qm", "one")
    assert mono.symph("gitops", "lint", str(checkout / ROOT), "--base", "HEAD")[0] == 0
    values = checkout / ROOT / "charts/ml/rl/0.1.0/values.yaml"
    values.write_text(values.read_text() + "# by hand\n")
    _, out, _ = mono.symph("gitops", "lint", str(checkout / ROOT), "--base", "HEAD")
    assert "published-chart" in out
    shutil.rmtree(checkout)


def test_a_file_where_the_folder_shall_be_is_a_conflict(project: Project, tmp_path: Path) -> None:
    commit(project.repo, {"deploy": "a file\n"})
    status, _, err = project.symph("publish", "rl.yaml", "--env", "dev", "--repo-path", ROOT)
    assert (status, "deploy is not a folder" in err) == (7, True), err
