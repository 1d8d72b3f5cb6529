"""Repositories with SHA-256 object names; git reports the format only after another request."""

from __future__ import annotations

from pathlib import Path

import pytest

from symphony_charts.gitops.store.environments import events_in
from symphony_charts.gitops.store.store import PushResult, Store
from symphony_charts.system.git.program import Author
from symphony_charts.system.git.remote import Log
from tests.gitops.samples import NOW, small_publish
from tests.gitops.servers import fake_ssh, files_at, git, history, http_server, make_bare

ANN = Author(name="Ann <ann@example.org>")


def store(url: str, folder: Path, branch: str = "main", base: str = "") -> Store:
    return Store(url, branch, base=base, root=folder / "cache", author=ANN)


def publish(where: Store, number: int) -> PushResult:
    return where.apply([small_publish("rl", number)], now=NOW)


@pytest.mark.parametrize("transport", ["path", "http", "ssh"])
@pytest.mark.parametrize("files", [{}, {"README.md": "charts\n"}], ids=["empty", "used"])
def test_charts_are_published_read_and_published_again(
    files: dict[str, str], transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = make_bare(tmp_path / "charts.git", files, object_format="sha256")
    # A server that gets no GIT_PROTOCOL speaks version 0, and words the fault in another way.
    monkeypatch.setenv("GIT_SSH_COMMAND", fake_ssh(tmp_path, "unset GIT_PROTOCOL"))
    with http_server(tmp_path) as server:
        url = {"path": str(bare), "http": f"{server.url}/charts.git", "ssh": f"ssh://host{bare}"}[transport]
        publish(store(url, tmp_path), 1)
        publish(store(url, tmp_path / "another"), 2)
        assert publish(store(url, tmp_path / "another"), 2).commit is None
        publish(store(url, tmp_path), 3)
        third = store(url, tmp_path / "third")
        third.tip()
        assert len(events_in(Log(third.cache), "rl", "dev")) == 3
    assert history(bare)[len(files) :] == [f"publish team/rl 0.1.{number} -> dev" for number in range(3)]
    assert "charts/team/rl/0.1.2/values.yaml" in files_at(bare)
    git(bare, "fsck", "--full", "--strict")


def test_a_stale_branch_of_it_is_brought_up_to_date(tmp_path: Path) -> None:
    bare = make_bare(tmp_path / "charts.git", object_format="sha256")
    publish(store(str(bare), tmp_path), 1)
    review = store(str(bare), tmp_path, "review", "main")
    publish(review, 2)
    publish(store(str(bare), tmp_path), 3)
    publish(review, 2)
    assert history(bare, "review")[-1] == "publish team/rl 0.1.2 -> dev"
    git(bare, "fsck", "--full", "--strict")


def test_a_repository_may_be_made_again_with_other_names(tmp_path: Path) -> None:
    url = str(tmp_path / "charts.git")
    for number, object_format in enumerate(("sha1", "sha256", "sha1")):
        bare = make_bare(tmp_path / f"{number}.git", object_format=object_format)
        (tmp_path / "charts.git").unlink(missing_ok=True)
        (tmp_path / "charts.git").symlink_to(bare)
        publish(store(url, tmp_path), 1)
        assert history(bare)[-1] == "publish team/rl 0.1.0 -> dev"
