"""First use: `gitops init` asks where environments run or reads it from settings; its files match every publish."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.git_project import INIT, Project, git

PLACES = ("--destination", "dev=rl-dev", "--destination", "prod=big/rl")


@pytest.fixture
def fresh(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project without settings, whose user git knows."""
    (project.folder / ".symph.yaml").unlink()
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ann@example.org")
    return project


def init(project: Project, *words: str) -> tuple[int, str, str]:
    return project.symph(*INIT, "--repo", str(project.repo), *words)


def settings(project: Project) -> Any:
    return yaml.safe_load((project.folder / ".symph.yaml").read_text())


def allowed(project: Project) -> list[tuple[str | None, str]]:
    """Return cluster and namespace of every destination that the projects of the bootstrap allow."""
    texts = [project.show(path) for path in project.paths() if path.startswith("bootstrap/project")]
    items = [item for text in texts for item in yaml.safe_load_all(text)]
    return [(place.get("name"), place["namespace"]) for item in items for place in item["spec"]["destinations"]]


def test_init_allows_every_destination_that_publish_writes(fresh: Project) -> None:
    assert init(fresh, *PLACES)[0] == 0
    for env in ("dev", "prod"):
        assert fresh.symph("publish", "rl.yaml", "--env", env)[0] == 0
    written = [yaml.safe_load(fresh.show(path)) for path in fresh.paths() if path.startswith("envs/")]
    places = [(pointer["destination"]["name"] or None, pointer["destination"]["namespace"]) for pointer in written]
    assert sorted(places, key=str) == sorted(allowed(fresh), key=str) == [("big", "rl"), (None, "rl-dev")]
    assert fresh.symph("gitops", "lint", str(fresh.clone()))[0] == 0


def test_the_next_command_works_as_it_is_printed(fresh: Project) -> None:
    (fresh.folder / "rl.yaml").unlink()
    _, _, err = init(fresh, *PLACES)
    steps = err.split("next: ")[1].strip().split(" | ")[1:]
    assert len(steps) == 2
    for step in steps:
        status, _, err = fresh.symph(*step.split()[1:])
        assert status == 0, err


def test_the_next_command_names_the_spec_that_is_there(fresh: Project) -> None:
    assert "symph publish rl.yaml --env dev\n" in init(fresh, *PLACES)[2]


def test_without_settings_and_terminal_the_destinations_are_asked_for_as_flags(fresh: Project) -> None:
    status, _, err = init(fresh)
    assert (status, "--destination dev=NAMESPACE" in err) == (2, True)
    assert git("-C", str(fresh.repo), "branch", "--list") == ""
    assert not (fresh.folder / ".symph.yaml").exists()


def test_a_dry_run_writes_no_settings(fresh: Project) -> None:
    status, out, _ = init(fresh, *PLACES, "--dry-run")
    assert (status, ".symph.yaml would be written" in out) == (0, True)
    assert not (fresh.folder / ".symph.yaml").exists()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_destinations_and_team_are_asked(fresh: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("rl-dev\nbig/rl\nresearch\n"))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    status, _, err = init(fresh)
    assert status == 0, err
    assert "where does dev run? [CLUSTER/]NAMESPACE [dev]: " in err
    made = settings(fresh)
    assert made["team"] == "research"
    assert made["environments"] == {"dev": {"namespace": "rl-dev"}, "prod": {"cluster": "big", "namespace": "rl"}}


def test_settings_that_are_there_are_not_written_over(project: Project) -> None:
    before = (project.folder / ".symph.yaml").read_text()
    assert project.symph(*INIT)[0] == 0
    assert (project.folder / ".symph.yaml").read_text() == before


@pytest.mark.parametrize(("place", "status"), [("dev=other", 7), ("qa=other", 2), ("dev=rl-dev", 0)])
def test_flags_and_settings_must_agree(place: str, status: int, project: Project) -> None:
    assert project.symph(*INIT, "--destination", place)[0] == status


@pytest.mark.parametrize("place", ["dev", "=x", "dev=", "dev=A b", "a/b=c"])
def test_an_invalid_destination_is_refused(place: str, fresh: Project) -> None:
    assert init(fresh, "--destination", place)[0] in (2, 3)
    assert not (fresh.folder / ".symph.yaml").exists()


def test_into_a_checkout_the_repository_is_the_one_it_came_from(project: Project) -> None:
    checkout = project.clone()
    (project.folder / ".symph.yaml").unlink()
    assert project.symph(*INIT, "--into", str(checkout), *PLACES)[0] == 0
    assert str(project.repo) in (checkout / "bootstrap/applicationset.yaml").read_text()


def test_ssh_addresses_reach_flux_as_it_takes_them_with_a_secret(fresh: Project, tmp_path: Path) -> None:
    git("init", "-q", str(tmp_path / "work"))
    words = ["--repo", "git@git.example.org:team/charts.git", "--flux", "--into", str(tmp_path / "work"), *PLACES]
    assert fresh.symph(*INIT, *words)[0] == 0
    spec = yaml.safe_load((tmp_path / "work/bootstrap/flux-source.yaml").read_text())["spec"]
    assert (spec["url"], spec["secretRef"]) == ("ssh://git@git.example.org/team/charts.git", {"name": "team-charts"})
    assert "secret generic team-charts --from-file=identity" in (tmp_path / "work/README.md").read_text()
    assert settings(fresh)["team"] == "team"


def test_the_folder_of_an_environment_outlives_its_last_experiment(project: Project) -> None:
    project.symph(*INIT, "--flux", "--cluster-url", "https://git.example.org/charts.git")
    # Flux's source controller fails if a folder that it checks out is missing.
    assert {"charts/README.md", "envs/dev/README.md", "envs/prod/README.md"} <= set(project.paths())
    assert project.symph("gitops", "gc", "--yes")[0] == 0
    project.symph("publish", "rl.yaml", "--env", "dev")
    assert project.symph("retire", "rl", "--env", "dev", "--yes")[0] == 0
    assert [path for path in project.paths() if path.startswith("envs/dev/")] == ["envs/dev/README.md"]


@pytest.mark.parametrize(
    ("repo", "forges"),
    [
        ("git@github.com:team/charts.git", {".github/workflows/check.yaml"}),
        ("https://gitlab.example.org/team/charts.git", {".gitlab-ci.yml"}),
        ("https://git.example.org/charts.git", {".github/workflows/check.yaml", ".gitlab-ci.yml"}),
    ],
)
def test_the_check_is_for_the_forge_that_holds_the_repository(
    repo: str, forges: set[str], fresh: Project, tmp_path: Path
) -> None:
    git("init", "-q", str(tmp_path / "work"))
    assert fresh.symph(*INIT, "--repo", repo, "--into", str(tmp_path / "work"), *PLACES)[0] == 0
    laid = {path.relative_to(tmp_path / "work").as_posix() for path in (tmp_path / "work").rglob("*")}
    assert laid & {".github/workflows/check.yaml", ".gitlab-ci.yml"} == forges


@pytest.mark.parametrize(("base", "used"), [("", "origin/main"), ("0" * 40, "origin/main"), ("0a1b", "0a1b")])
def test_a_branch_without_a_before_is_compared_with_the_main_one(
    base: str, used: str, project: Project, tmp_path: Path
) -> None:
    project.symph(*INIT)
    tool = tmp_path / "bin/symph"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    tool.chmod(0o755)
    env = {"PATH": f"{tool.parent}:{os.environ['PATH']}", "BASE": base}
    argv = ["sh", str(project.clone() / "ci/check")]
    said = subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=30).stdout
    assert said.splitlines()[-1] == used


def test_gitlab_runs_the_pinned_check(project: Project) -> None:
    project.symph(*INIT)
    job = yaml.safe_load(project.show(".gitlab-ci.yml"))["check"]
    assert job["script"][0] == "pip install -r ci/requirements.txt"
    assert job["variables"] == {"GIT_DEPTH": "0"}


def test_a_repository_without_a_ci_of_ours_needs_no_place_to_install_from(fresh: Project) -> None:
    status, _, err = fresh.symph("gitops", "init", "--repo", str(fresh.repo), *PLACES, "--ci", "none")
    assert status == 0, err
    assert [path for path in fresh.paths() if path.startswith("ci/")] == ["ci/check"]
    assert fresh.symph("gitops", "lint", str(fresh.clone()))[0] == 0
