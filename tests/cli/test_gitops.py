"""`symph gitops` on real repositories."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.chart.harness import index
from tests.cli.git_project import INIT, POINTER, SPEC, Project, git
from tests.gitops.servers import commit
from tests.tools import HELM_VERSIONS, helm


def lint(project: Project, folder: Path, *words: str) -> tuple[int, list[str]]:
    status, out, _ = project.symph("gitops", "lint", str(folder), "-o", "json", *words)
    return status, [item["rule"] for item in json.loads(out)["items"]]


def test_init_lays_bootstrap_readme_owners_and_a_check_into_an_empty_repository(project: Project) -> None:
    assert project.symph(*INIT)[0] == 0
    found = project.paths()
    assert {"README.md", "CODEOWNERS", "ci/check", "bootstrap/project.yaml", "bootstrap/argocd-cm.yaml"} <= set(found)
    assert "rl-prod" in project.show("bootstrap/project.yaml")
    assert "resource.customizations.health.jobset" in project.show("bootstrap/argocd-cm.yaml")
    assert "/envs/prod/ @platform" in project.show("CODEOWNERS")


def test_the_check_installs_one_pinned_source_and_no_name(project: Project) -> None:
    assert project.symph(*INIT)[0] == 0
    assert project.show("ci/requirements.txt").splitlines()[-1] == f"symphony-charts @ {INIT[3]}"
    workflow = yaml.safe_load(project.show(".github/workflows/check.yaml"))
    runs = [step["run"] for step in workflow["jobs"]["check"]["steps"] if "run" in step]
    assert runs == ["pip install -r ci/requirements.txt", "sh ci/check"]


def test_a_local_installation_needs_install_from(project: Project) -> None:
    status, _, err = project.symph("gitops", "init")
    assert (status, "next: --install-from WHERE: git+https://HOST/REPOSITORY@COMMIT" in err) == (2, True)
    assert project.symph("gitops", "init", "--install-from", "symphony-charts")[0] == 2
    assert git("-C", str(project.repo), "branch", "--list") == ""


@pytest.mark.parametrize("branch", ["main", "it's", "a$(touch-x)", "a`id`b", 'a"b', "a&b;c", "#x", "%y", "a}b", "!x"])
def test_a_branch_of_any_name_is_data_in_the_check(project: Project, tmp_path: Path, branch: str) -> None:
    git("init", "-q", "-b", branch, str(tmp_path / "work"))
    words = ["--repo", f"{project.repo}#{branch}", "--into", str(tmp_path / "work")]
    status, _, err = project.symph(*INIT, *words)
    assert status == 0, err
    workflow = yaml.safe_load((tmp_path / "work/.github/workflows/check.yaml").read_text())
    assert workflow[True]["push"]["branches"] == [branch]
    tool = tmp_path / "bin/symph"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    tool.chmod(0o755)
    env = {"PATH": f"{tool.parent}:/usr/bin:/bin"}
    script = str(tmp_path / "work/ci/check")
    said = subprocess.run(["sh", script], env=env, capture_output=True, text=True, check=True, timeout=30).stdout
    assert said.splitlines() == ["gitops", "lint", ".", "--base", f"origin/{branch}"]


@pytest.mark.parametrize("url", ["https://h/[[ 7 * 7 ]]/x.git", "https://h/[% raw", "https://h/{{ x }}"])
def test_an_address_is_never_taken_for_a_template(project: Project, tmp_path: Path, url: str) -> None:
    git("init", "-q", str(tmp_path / "work"))
    assert project.symph(*INIT, "--repo", url, "--into", str(tmp_path / "work"))[0] == 0
    assert url in (tmp_path / "work/README.md").read_text()


def test_a_folder_without_anything_to_check_fails_the_check(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    (folder / "src").mkdir(parents=True)
    status, _, err = project.symph("gitops", "lint", str(folder))
    assert (status, "there is nothing to check" in err) == (1, True)
    (folder / "src/main.py").write_text("kind: Job\n")
    (folder / "mkdocs.yml").write_text("site_name: x\n")
    (folder / "charts/theirs").mkdir(parents=True)
    (folder / "charts/theirs/Chart.yaml").write_text("name: theirs\n")
    assert project.symph("gitops", "lint", str(folder))[0] == 1


def test_init_again_changes_nothing(project: Project) -> None:
    project.symph(*INIT)
    assert project.json(*INIT)["commit"] is None
    assert len(project.log()) == 1


def test_init_leaves_what_an_existing_repository_has(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    commit(project.repo, {"README.md": "ours\n"})
    status, out, _ = project.symph(*INIT)
    assert (status, project.show("README.md")) == (0, "ours\n")
    assert "left as they are: README.md" in out


def test_init_refuses_to_replace_another_bootstrap_unless_forced(project: Project) -> None:
    project.symph(*INIT)
    assert project.symph(*INIT, "--protect")[0] == 7
    assert project.symph(*INIT, "--protect", "--force")[0] == 0
    assert "preserveResourcesOnDeletion" in project.show("bootstrap/applicationset.yaml")


FLUX = ("--flux", "--cluster-url", "https://git.example.org/charts.git")


def test_under_flux_the_pointer_is_the_release_so_that_both_cannot_differ(project: Project) -> None:
    project.symph(*INIT, *FLUX)
    project.symph("publish", "rl.yaml", "--env", "dev")
    assert "bootstrap/applicationset.yaml" not in project.paths()
    assert lint(project, project.clone()) == (0, [])
    release, rest = yaml.safe_load_all(project.show(POINTER))
    assert (release["kind"], release["spec"]["chart"]["spec"]["chart"]) == ("HelmRelease", "./charts/ml/rl/0.1.0")
    # Edited by hand, Flux and symph read the same.
    release["spec"]["values"] = {"groups": {"agent": {"replicas": 5}}}
    commit(project.repo, {POINTER: yaml.safe_dump_all([release, rest])})
    (item,) = project.json("status", "rl")["items"]
    assert item["values"] == {"groups": {"agent": {"replicas": 5}}}
    assert project.symph("promote", "rl", "--from", "dev", "--to", "prod", "--copy-values")[0] == 0
    assert next(yaml.safe_load_all(project.show(POINTER.replace("dev", "prod"))))["spec"]["values"] == item["values"]
    assert project.symph("rollback", "rl", "--env", "dev")[0] == 8
    # Deleted by hand, nothing is left of it.
    commit(project.repo, {POINTER: None})
    assert [row["where"] for row in project.json("status", "rl")["items"]] == ["prod"]
    project.symph("retire", "rl", "--env", "prod", "--yes")
    assert not [path for path in project.paths() if path.endswith("symph-app.yaml")]
    assert "envs/prod/README.md" in project.paths()


@pytest.mark.parametrize("back", [True, False])
def test_pointers_get_the_form_of_the_tool_that_reads_them(project: Project, back: bool) -> None:
    first, then = ((*INIT, *FLUX), INIT) if back else (INIT, (*INIT, *FLUX))
    project.symph(*first)
    project.symph("publish", "rl.yaml", "--env", "dev")
    status, _, err = project.symph(*then)
    assert (status, "or another tool" in err) == (7, True)
    before = project.json("status", "rl")["items"]
    assert project.symph(*then, "--force")[0] == 0
    assert project.json("status", "rl")["items"] == before
    assert ("kind: HelmRelease" in project.show(POINTER)) != back
    assert ("bootstrap/flux-source.yaml" in project.paths()) != back
    assert lint(project, project.clone()) == (0, [])


def test_a_repository_of_ours_has_no_findings(project: Project) -> None:
    project.symph(*INIT)
    project.symph("publish", "rl.yaml", "--env", "dev")
    project.symph("promote", "rl", "--from", "dev", "--to", "prod")
    assert lint(project, project.clone()) == (0, [])


@pytest.mark.parametrize(
    ("path", "old", "new", "rule"),
    [
        ("charts/ml/rl/0.1.0/values.yaml", "replicas: 2", "replicas: 3", "pointer-digest"),
        ("envs/dev/ml/rl.symph-app.yaml", "chart: charts/ml/rl/0.1.0", "chart: charts/ml/rl/0.0.9", "pointer-chart"),
        ("envs/dev/ml/rl.symph-app.yaml", "team: ml", "team: other", "pointer-place"),
        ("envs/dev/ml/rl.symph-app.yaml", "name: rl\n", "nam: rl\n", "pointer"),
        ("envs/dev/ml/rl.symph-app.yaml", "symph.dev/v1", "symph.dev/v2", "pointer"),
        ("charts/ml/rl/0.1.0/templates/agent.yaml", "spec:", "spec:\n  ttlSecondsAfterFinished: 1", "pointer-digest"),
    ],
)
def test_an_edit_by_hand_is_found(project: Project, path: str, old: str, new: str, rule: str) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    file = project.clone() / path
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    status, found = lint(project, project.folder / "checkout")
    assert status == 1
    assert rule in found


def test_values_that_make_what_the_project_refuses_are_found(project: Project) -> None:
    """Argo CD's project denies a ServiceAccount, so `publish` refuses it; by hand it would never be synced."""
    project.write(f"{SPEC}service_account: mine\n")
    status, _, err = project.symph("publish", "rl.yaml", "--env", "dev", "--env-set", "serviceAccount.create=true")
    assert (status, "name it: `service_account`" in err) == (1, True), err
    project.symph("publish", "rl.yaml", "--env", "dev")
    text = project.show(POINTER)
    commit(project.repo, {POINTER: text.replace("values: {}", "values: {serviceAccount: {create: true}}", 1)})
    assert lint(project, project.clone()) == (1, ["pointer-rights"])


def findings_under(project: Project, attributes: str) -> list[tuple[str, str]]:
    """Return rules and messages of `gitops lint` in a clone with these additional git attributes."""
    checkout = project.folder / "checkout"
    git("clone", "-q", "--no-checkout", str(project.repo), str(checkout))
    (checkout / ".git" / "info" / "attributes").write_text(attributes)
    git("-C", str(checkout), "checkout", "-q", "main")
    items = json.loads(project.symph("gitops", "lint", str(checkout), "-o", "json")[1])["items"]
    return [(item["rule"], item["what"]) for item in items]


def test_line_ends_that_git_translates_are_told_from_an_edit(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    (found,) = findings_under(project, "* text eol=crlf\n")
    assert found == (
        "pointer-digest", "charts/ml/rl/0.1.0 has other line ends than the published chart: git converted them"
    )  # fmt: skip


def test_lfs_pointers_are_distinguished_from_edits(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    file = project.clone() / "charts/ml/rl/0.1.0/README.md"
    file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    items = json.loads(project.symph("gitops", "lint", str(project.folder / "checkout"), "-o", "json")[1])["items"]
    assert any("Git LFS pointers" in item["what"] for item in items)


def test_files_of_init_keep_git_from_converting_charts(project: Project) -> None:
    project.symph(*INIT)
    checkout = project.clone()
    said = git("-C", str(checkout), "check-attr", "text", "filter", "--", "charts/ml/rl/0.1.0/values.yaml")
    assert [line.rpartition(": ")[2] for line in said.splitlines()] == ["unset", "unset"]


def test_a_link_and_two_releases_of_one_name_are_found(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    project.symph("publish", "rl.yaml", "--env", "dev", "--team", "other")
    checkout = project.clone()
    (checkout / "link").symlink_to("/etc")
    assert sorted(lint(project, checkout)[1]) == ["same-release", "symlink"]


def test_a_bootstrap_file_that_is_no_yaml_is_found(project: Project) -> None:
    project.symph(*INIT)
    (project.clone() / "bootstrap/broken.yaml").write_text("a: [\n")
    assert lint(project, project.folder / "checkout") == (1, ["yaml"])


def test_an_encrypted_secret_for_flux_has_no_finding(project: Project) -> None:
    project.symph(*INIT, "--flux", "--cluster-url", "https://git.example.org/charts.git")
    project.symph("publish", "rl.yaml", "--env", "dev")
    secret = {"kind": "Secret", "metadata": {"name": "rl"}, "data": {"token": "ENC[AES256_GCM,data:x]"}, "sops": {}}
    (project.clone() / "envs/dev/ml/rl.secret.yaml").write_text(yaml.safe_dump(secret))
    assert lint(project, project.folder / "checkout") == (0, [])
    (project.folder / "checkout" / POINTER).unlink()
    assert lint(project, project.folder / "checkout") == (1, ["orphan-secret"])


def test_printed_manifests_follow_the_pointers(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    project.symph("promote", "rl", "--from", "dev", "--to", "prod")
    before = project.log()
    status, out, _ = project.symph("gitops", "render", "--env", "prod")
    jobs = [item for item in yaml.safe_load_all(out) if item["kind"] == "Job"]
    assert status == 0
    assert any(job["spec"].get("completions") == 8 for job in jobs), "prod has eight agents by its own values"
    assert "helm.sh/hook" not in out
    assert project.log() == before
    project.symph("retire", "rl", "--env", "prod", "--yes")
    assert project.symph("gitops", "render", "--env", "prod")[:2] == (0, "")


def edit_template(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    path = "charts/ml/rl/0.1.0/templates/agent.yaml"
    commit(project.repo, {path: f"{project.show(path)}# other\n"})


def test_helm_renders_a_chart_that_was_edited(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    program = helm(HELM_VERSIONS[-1])
    if program is None:
        pytest.skip("helm is not unpacked: python -m tests.tools")
    monkeypatch.setenv("HELM_BIN", str(program))
    project.symph("publish", "rl.yaml", "--env", "dev")
    before = yaml.safe_load_all(project.symph("gitops", "render", "--env", "dev")[1])
    edit_template(project)
    status, out, err = project.symph("gitops", "render", "--env", "dev")
    assert status == 0
    assert index(yaml.safe_load_all(out)) == index(before)
    assert "charts/ml/rl/0.1.0: rendered by helm; templates/agent.yaml: edited, or made by another version" in err
    status, out, err = project.symph("diff", "rl.yaml", "--env", "dev")
    assert (status, "nothing happens" in out, "rendered by helm" in err) == (0, True, True)


def test_without_helm_a_chart_that_was_edited_is_an_error(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELM_BIN", "")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    edit_template(project)
    for words in (["gitops", "render", "--env", "dev"], ["diff", "rl.yaml", "--env", "dev"]):
        status, out, err = project.symph(*words)
        assert (status, out) == (5, "")
        assert "symph cannot render the chart: templates/agent.yaml: edited, or made by another version of symph" in err
        assert "publish the experiment again, or install helm" in err


def test_gc_keeps_what_runs_what_can_be_rolled_back_to_and_the_newest(project: Project) -> None:
    for replicas in range(1, 6):
        project.write(SPEC.replace("replicas: 2", f"replicas: {replicas}"))
        project.symph("publish", "rl.yaml", "--chart-only")
    project.symph("publish", "rl.yaml", "--env", "dev", "--version", "0.1.4")
    project.write(SPEC.replace("replicas: 2", "replicas: 1"))
    project.symph("publish", "rl.yaml", "--env", "dev")
    assert project.symph("gitops", "gc", "--keep", "1")[0] == 2, "it asks first"
    assert project.symph("gitops", "gc", "--keep", "1", "--yes")[0] == 0
    left = {path.split("/")[3] for path in project.paths() if path.startswith("charts/ml/rl/")}
    assert left == {"0.1.0", "0.1.4"}
    assert project.symph("rollback", "rl", "--env", "dev")[0] == 0


def test_flux_is_told_which_keys_open_encrypted_secrets(project: Project) -> None:
    project.symph(*INIT, "--flux", "--cluster-url", "https://git.example.org/charts.git", "--sops-secret", "sops-gpg")
    assert "provider: sops" in project.show("bootstrap/flux-releases.yaml")
    assert 'name: "sops-gpg"' in project.show("bootstrap/flux-releases.yaml")


def test_without_sops_the_way_out_is_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    (project.folder / "token.txt").write_text("hunter2-hunter2\n")
    project.write(f"{SPEC}secrets: [token.txt]\nsecret_source: {{source: sops}}\n")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    status, _, err = project.symph("publish", "rl.yaml", "--env", "dev")
    assert status == 5
    assert "sops" in err
