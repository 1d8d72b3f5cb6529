"""The store against real bare repositories: one commit, exactly once, even if the branch moves meanwhile."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from symphony_charts.errors import Conflict, NotFound
from symphony_charts.gitops.publish import Publish
from symphony_charts.gitops.store.store import Author, Store

NOW = 1_700_000_000


@pytest.fixture
def bare(tmp_path: Path, need_tool: Callable[[str], str]) -> Path:
    need_tool("git")
    repo = tmp_path / "repo.git"
    git("init", "-q", "--bare", "-b", "main", str(repo))
    tree = git("-C", str(repo), "mktree").strip()
    who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    first = git("-C", str(repo), *who, "commit-tree", tree, "-m", "begin").strip()
    git("-C", str(repo), "update-ref", "refs/heads/main", first)
    return repo


def git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True, timeout=60, input="").stdout


def store(bare: Path, cache: str = "cache") -> Store:
    return Store(str(bare), "main", root=bare.parent / cache, author=Author(name="Ann <ann@example.org>"))


def chart(name: str = "rl", version: str | None = "0.1.0", text: str = "a: 1\n") -> Publish:
    files = {"Chart.yaml": f'name: {name}\nversion: "{version or "0.1.0"}"\n'.encode(), "values.yaml": text.encode()}
    return Publish(
        team="ml", name=name, chart_files=files, values={"a": text}, digest=f"sha256:{text}", env="dev", version=version
    )


def log(bare: Path) -> list[str]:
    return git("-C", str(bare), "log", "--format=%s", "main").splitlines()[:-1]


def test_a_publish_is_one_commit(bare: Path) -> None:
    receipt = store(bare).apply([chart()], now=NOW)
    assert log(bare) == ["publish ml/rl 0.1.0 -> dev"]
    assert receipt.commit == git("-C", str(bare), "rev-parse", "main").strip()
    paths = git("-C", str(bare), "ls-tree", "-r", "--name-only", "main").splitlines()
    assert "envs/dev/ml/rl.symph-app.yaml" in paths
    assert "charts/ml/rl/0.1.0/values.yaml" in paths


def test_the_same_publish_again_changes_nothing(bare: Path) -> None:
    store(bare).apply([chart()], now=NOW)
    assert store(bare).apply([chart()], now=NOW + 1).commit is None
    assert len(log(bare)) == 1


def test_a_version_with_other_content_is_a_conflict(bare: Path) -> None:
    store(bare).apply([chart()], now=NOW)
    with pytest.raises(Conflict):
        store(bare).apply([chart(text="a: 2\n")], now=NOW)
    assert len(log(bare)) == 1


def test_a_tip_that_others_moved_is_read_again(bare: Path) -> None:
    first, second = store(bare, "one"), store(bare, "two")
    first.apply([chart("a")], now=NOW)
    second.apply([chart("b")], now=NOW)
    first.apply([chart("c")], now=NOW)
    assert sorted(log(bare)) == [f"publish ml/{name} 0.1.0 -> dev" for name in "abc"]


def test_many_charts_are_one_commit(bare: Path) -> None:
    store(bare).apply([chart(f"e{number}") for number in range(20)], now=NOW)
    assert len(log(bare)) == 1
    assert git("-C", str(bare), "ls-tree", "-r", "--name-only", "main").count("symph-app.yaml") == 20


def test_writers_at_the_same_time_lose_nothing(bare: Path) -> None:
    def publish(number: int) -> None:
        writer = store(bare, f"cache{number % 4}")
        writer.apply([chart(f"e{number}")], now=NOW)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(publish, range(12)))
    assert sorted(log(bare)) == sorted(f"publish ml/e{number} 0.1.0 -> dev" for number in range(12))
    git("-C", str(bare), "fsck", "--strict")


def test_a_guard_that_refuses_leaves_the_repository_as_it_was(bare: Path) -> None:
    def refuse(files: object) -> None:
        raise Conflict("a secret is among the files")

    guarded = Store(
        str(bare), "main", root=bare.parent / "c", author=Author(name="Ann <ann@example.org>"), guard=refuse
    )
    with pytest.raises(Conflict, match="secret"):
        guarded.apply([chart()], now=NOW)
    assert log(bare) == []


def test_a_branch_that_is_not_there_is_said_so(bare: Path) -> None:
    with pytest.raises(NotFound, match="no branch other"):
        Store(str(bare), "other", root=bare.parent / "c", author=Author(name="Ann <ann@example.org>")).apply(
            [chart()], now=NOW
        )


def test_who_reads_more_than_was_announced_gets_it(bare: Path) -> None:
    store(bare).apply([chart()], now=NOW)
    tip = store(bare, "another").read([], lambda _seen: [])
    assert tip.read("charts/ml/rl/0.1.0/values.yaml") == b"a: 1\n"
    assert tip.read("charts/ml/rl/0.1.0/absent") is None
    assert sorted(tip.below("charts/ml/rl/0.1.0")) == ["Chart.yaml", "values.yaml"]
