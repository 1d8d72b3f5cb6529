"""Git volumes of runs on one machine: the same commit for every pod, at the pod's path, from real repositories."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from symphony_charts.errors import Conflict, NotFound, ToolFailed
from symphony_charts.local import up
from symphony_charts.local.history import load_saved
from symphony_charts.local.runs import Run
from symphony_charts.spec.sources import GitVolume
from symphony_charts.system.git.program import check_out_volume
from tests.local.runs import log_of, python, start, until

AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *AUTHOR, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(folder: Path, text: str) -> str:
    (folder / "main.txt").write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", text)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, need_tool: Callable[[str], str]) -> Path:
    """Create a repository with the commits `one` (tagged v1, branch old), `two`, and `three` on main."""
    need_tool("git")
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    commit(folder, "one")
    git(folder, "tag", "-a", "v1", "-m", "v1")
    git(folder, "branch", "old")
    commit(folder, "two")
    commit(folder, "three")
    return folder


@pytest.mark.parametrize(
    ("revision", "text"), [("HEAD", "three"), ("main", "three"), ("old", "one"), ("v1", "one"), ("main~1", "two")]
)
def test_branches_tags_and_whatever_git_understands_are_checked_out(
    repository: Path, tmp_path: Path, revision: str, text: str
) -> None:
    (tmp_path / "to").mkdir()
    named = git(repository, "rev-parse", revision) if "~" in revision else revision
    found = check_out_volume(f"file://{repository}", named, tmp_path / "to")
    assert (tmp_path / "to" / "main.txt").read_text() == text
    assert found == git(repository, "rev-parse", f"{revision}^{{commit}}")


def test_an_abbreviated_commit_is_found(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    whole = git(repository, "rev-parse", "main~2")
    assert check_out_volume(str(repository), whole[:10], tmp_path / "to") == whole


def test_only_the_asked_commit_is_fetched(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    check_out_volume(f"file://{repository}", "main", tmp_path / "to")
    assert git(tmp_path / "to", "rev-list", "--count", "HEAD") == "1"


def test_a_missing_repository_is_told_by_its_address(tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    with pytest.raises(ToolFailed, match="cannot read the repository file:///no/such"):
        check_out_volume("file:///no/such", "main", tmp_path / "to")


def test_an_address_that_names_a_program_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    with pytest.raises(ToolFailed):
        check_out_volume(f"ext::sh -c touch% {tmp_path}/ran", "main", tmp_path / "to")
    assert not (tmp_path / "ran").exists()


def with_volume(folder: Path, name: str = "exp", revision: str = "main", **more: object) -> Run:
    show = {**python("print(open('/mnt/main.txt').read(), open('/mnt/new.txt', 'a').tell(), flush=True)", **more)}
    process = {**show, "mounts": [{"volume": "code", "at": "/mnt"}]}
    volume = {"type": "git", "repository": "./repo", "revision": revision}
    return start(folder, name, volumes={"code": volume}, processes={"a": process})


@pytest.mark.usefixtures("here")
def test_a_process_sees_the_checkout_at_its_mount_and_the_run_keeps_the_commit(
    repository: Path, tmp_path: Path
) -> None:
    run = with_volume(tmp_path)
    assert up.wait(run) == 0
    assert log_of(run, "a") == "three 0\n"
    assert run.state().commits == {"code": git(repository, "rev-parse", "main")}
    assert not Path("/mnt/main.txt").exists()
    until(lambda: not (run.folder / "volumes").exists())


@pytest.mark.usefixtures("here")
def test_every_replica_has_a_checkout_of_its_own(repository: Path, tmp_path: Path) -> None:
    run = with_volume(tmp_path, replicas=3)
    assert up.wait(run) == 0
    assert [log_of(run, f"a-{number}") for number in range(3)] == ["three 0\n"] * 3
    assert git(repository, "status", "--porcelain") == ""


@pytest.mark.usefixtures("here")
def test_a_past_run_is_replayed_from_its_commit(repository: Path, tmp_path: Path) -> None:
    run = with_volume(tmp_path)
    up.wait(run)
    before = git(repository, "rev-parse", "main")
    commit(repository, "four")
    volume = load_saved(run).experiment.volumes["code"]
    assert isinstance(volume, GitVolume)
    assert volume.revision == before


@pytest.mark.usefixtures("here")
def test_nothing_starts_when_the_revision_is_not_there(repository: Path, tmp_path: Path, private_places: Path) -> None:
    with pytest.raises(ToolFailed, match="no revision"):
        with_volume(tmp_path, revision="gone")
    assert not (private_places / "state" / "local" / "exp").exists()
    with pytest.raises(NotFound):
        load_saved(Run(private_places / "state" / "local" / "exp" / "r"))


@pytest.mark.usefixtures("here")
def test_another_revision_needs_a_new_run(repository: Path, tmp_path: Path) -> None:
    process = {**python("input()"), "mounts": [{"volume": "code", "at": "/mnt"}]}
    volume = {"type": "git", "repository": str(repository), "revision": "main"}
    start(tmp_path, volumes={"code": volume}, processes={"a": process})
    with pytest.raises(Conflict, match="needs a new run"):
        start(tmp_path, volumes={"code": {**volume, "revision": "old"}}, processes={"a": process})
