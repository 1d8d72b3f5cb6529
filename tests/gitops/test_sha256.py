"""Repositories with SHA-256 object names; git reports the format only after another request."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from symphony_charts.errors import Conflict
from symphony_charts.gitops.store.review import bring_up_to_date, find_stale, find_waiting
from symphony_charts.gitops.store.store import Author, PushResult, Store
from tests.gitops.samples import NOW, small_publish
from tests.gitops.servers import commit, files_at, git, history, http_server, make_bare

ANN = Author(name="Ann <ann@example.org>")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    path = tmp_path / "charts.git"
    argv = ["git", "init", "-q", "--bare", "-b", "main", "--object-format=sha256", str(path)]
    subprocess.run(argv, check=True, timeout=30)
    git(path, "config", "uploadpack.allowFilter", "true")
    git(path, "config", "http.receivepack", "true")
    return path


def store(url: str, folder: Path, branch: str = "main", base: str = "") -> Store:
    return Store(url, branch, base=base, root=folder / "cache", author=ANN)


def publish(where: Store, number: int) -> PushResult:
    return where.apply([small_publish("rl", number)], now=NOW)


@pytest.mark.parametrize("over_http", [False, True])
@pytest.mark.parametrize("is_empty", [True, False])
def test_charts_are_published_read_and_published_again(
    is_empty: bool, over_http: bool, bare: Path, tmp_path: Path
) -> None:
    if not is_empty:
        commit(bare, {"README.md": "charts\n"})
    with http_server(tmp_path) as server:
        url = f"{server.url}/charts.git" if over_http else str(bare)
        publish(store(url, tmp_path), 1)
        publish(store(url, tmp_path / "another"), 2)
        assert publish(store(url, tmp_path / "another"), 2).commit is None
        publish(store(url, tmp_path), 3)
    published = [f"publish team/rl 0.1.{number} -> dev" for number in range(3)]
    assert history(bare) == [*([] if is_empty else ["by hand"]), *published]
    assert "charts/team/rl/0.1.2/values.yaml" in files_at(bare)
    git(bare, "fsck", "--full", "--strict")


def test_a_stale_branch_of_it_is_brought_up_to_date(bare: Path, tmp_path: Path) -> None:
    publish(store(str(bare), tmp_path), 1)
    review = store(str(bare), tmp_path, "review", "main")
    publish(review, 2)
    publish(store(str(bare), tmp_path), 3)
    stale = find_stale(review)
    assert stale
    bring_up_to_date(review, [small_publish("rl", 2)], stale, now=NOW)
    publish(review, 2)
    assert history(bare, "review")[-1] == "publish team/rl 0.1.2 -> dev"
    git(bare, "fsck", "--full", "--strict")
    assert [each.branch for each in find_waiting(str(bare), "main", tmp_path / "cache")] == ["review"]


@pytest.mark.parametrize("others", [(), ("other",)])
def test_a_publish_to_a_deleted_branch_is_refused_until_it_is_restored(others: tuple[str, ...], tmp_path: Path) -> None:
    bare = make_bare(tmp_path / "charts.git", {})
    last = publish(store(str(bare), tmp_path), 1).commit
    for branch in others:
        git(bare, "branch", branch, "main")
    git(bare, "update-ref", "-d", "refs/heads/main")
    for _ in range(2):
        with pytest.raises(Conflict, match="the branch main has been deleted") as caught:
            publish(store(str(bare), tmp_path), 2)
        assert f"git push {bare} {last}:refs/heads/main" in caught.value.next
    assert git(bare, "branch", "--format=%(refname:short)").split() == list(others)
    git(bare, "update-ref", "refs/heads/main", str(last))
    publish(store(str(bare), tmp_path), 2)
    assert len(history(bare)) == 2
