"""The store against real Git servers that fail.

Difficulties: a push may be refused because of another client, it may have succeeded although its answer was lost, and
the server may continue with a request that the client has given up.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from symphony_charts.errors import CheckFailed, Conflict, NotFound, SpecError, ToolFailed
from symphony_charts.gitops.base import Operation
from symphony_charts.gitops.operations import Rollback
from symphony_charts.gitops.store.store import PushResult, Store
from symphony_charts.system.git import remote
from symphony_charts.system.git.cache import Cache
from symphony_charts.system.git.program import Author
from tests.gitops.samples import NOW, publish, small_chart, small_publish
from tests.gitops.servers import HttpServer, commit, files_at, git, history, http_server, make_bare, set_hook
from tests.gitops.storm import Storm, start
from tests.waiting import eventually

MakeStore = Callable[..., Store]
WRITER = Author(name="Writer <writer@example.org>")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    return make_bare(tmp_path / "charts.git")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HttpServer]:
    with http_server(tmp_path) as running:
        yield running


@pytest.fixture
def store(tmp_path: Path, bare: Path) -> MakeStore:
    """Return a factory of stores of the repository, each with its own cache unless it shares one by name."""

    def make(cache: str = "cache", url: str = "", **options: object) -> Store:
        return Store(url or f"file://{bare}", "main", root=tmp_path / cache, author=WRITER, **options)  # type: ignore[arg-type]  # tests pass what Store takes

    return make


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "PATIENCE_S", 0.3)


def apply(store: Store, *operations: Operation) -> PushResult:
    return store.apply(operations, now=NOW)


def test_a_published_chart_is_in_the_repository_file_by_file(store: MakeStore, bare: Path) -> None:
    apply(store(), small_publish("rl", 1))
    assert files_at(bare) == {
        "README.md": "100644",
        "charts/team/rl/0.1.0/Chart.yaml": "100644",
        "charts/team/rl/0.1.0/templates/config.yaml": "100644",
        "charts/team/rl/0.1.0/values.yaml": "100644",
        "envs/dev/team/rl.symph-app.yaml": "100644",
    }
    assert git(bare, "show", "main:charts/team/rl/0.1.0/values.yaml") == "number: 1\n"
    git(bare, "fsck", "--full", "--strict")


def test_the_same_input_gives_the_same_commit(tmp_path: Path, store: MakeStore) -> None:
    other = make_bare(tmp_path / "other.git")
    first = apply(store(), small_publish("rl", 1)).commit
    assert apply(store("cache-2", str(other)), small_publish("rl", 1)).commit == first


def test_publishing_the_same_from_another_machine_makes_no_commit(store: MakeStore, bare: Path) -> None:
    apply(store(), small_publish("rl", 1))
    assert apply(store("another-machine"), small_publish("rl", 1)).commit is None
    assert len(history(bare)) == 2


def test_content_that_was_published_keeps_its_version(store: MakeStore, bare: Path) -> None:
    for number in (1, 2, 1):
        apply(store(), small_publish("rl", number))
    assert history(bare)[1:] == [
        "publish team/rl 0.1.0 -> dev",
        "publish team/rl 0.1.1 -> dev",
        "publish team/rl 0.1.0 -> dev",
    ]


def test_one_conflict_of_many_charts_publishes_none(store: MakeStore, bare: Path) -> None:
    apply(store(), small_publish("rl", 1, version="1.0.0"))
    with pytest.raises(Conflict):
        apply(store(), small_publish("other", 1), small_publish("rl", 2, version="1.0.0"))
    assert not any("other" in path for path in files_at(bare))


def test_a_version_taken_meanwhile_is_passed_over(store: MakeStore, bare: Path) -> None:
    """Both writers saw 0.1.0 as the newest; the second retries and becomes 0.1.2."""
    mine = store()
    apply(mine, small_publish("rl", 1))
    apply(store("another-machine"), small_publish("rl", 2))
    apply(mine, small_publish("rl", 3))
    assert history(bare)[2:] == ["publish team/rl 0.1.1 -> dev", "publish team/rl 0.1.2 -> dev"]


def test_a_server_without_filters_is_served_too(tmp_path: Path, store: MakeStore) -> None:
    plain = make_bare(tmp_path / "plain.git", filters=False)
    apply(store(url=f"file://{plain}"), small_publish("rl", 1))
    commit(plain, {"README.md": "changed\n"})
    apply(store(url=f"file://{plain}"), small_publish("rl", 2))
    assert history(plain)[-1] == "publish team/rl 0.1.1 -> dev"


def test_the_cache_holds_no_files_that_nobody_asked_for(tmp_path: Path, store: MakeStore, bare: Path) -> None:
    commit(bare, {f"charts/team/big/{number}.0.0/data": "x" * 100_000 + str(number) for number in range(20)})
    apply(store(), small_publish("rl", 1))
    packs = list((tmp_path / "cache").rglob("*.pack"))
    assert sum(pack.stat().st_size for pack in packs) < 20_000


def test_over_http_a_lost_answer_is_recognised(store: MakeStore, server: HttpServer, bare: Path) -> None:
    mine = store(url=f"{server.url}/charts.git")
    cut = iter(["cut"])
    server.fault = lambda path, done: next(cut, "") if done and path.endswith("/git-receive-pack") else ""
    receipt = apply(mine, small_publish("rl", 1))
    assert receipt.was_lost
    assert history(bare) == ["first", "publish team/rl 0.1.0 -> dev"]


def test_a_lost_answer_is_recognised_behind_other_commits(store: MakeStore, server: HttpServer, bare: Path) -> None:
    """A rollback must not be repeated: it would go one version further back."""
    mine = store(url=f"{server.url}/charts.git")
    for number in (1, 2, 3):
        apply(mine, small_publish("rl", number))
    cut = iter(["cut"])

    def overtaken(path: str, done: bool) -> str:
        if done and path.endswith("/git-receive-pack") and next(cut, ""):
            commit(bare, {"README.md": "overtaken\n"})
            return "cut"
        return ""

    server.fault = overtaken
    receipt = apply(mine, Rollback(team="team", name="rl", env="dev"))
    assert receipt.was_lost
    assert history(bare)[-2:] == ["rollback team/rl 0.1.2 -> 0.1.1 in dev", "by hand"]


@pytest.mark.parametrize("kind", ["cut", "500", "503", "429"])
def test_a_push_that_did_not_arrive_is_sent_again(store: MakeStore, server: HttpServer, bare: Path, kind: str) -> None:
    mine = store(url=f"{server.url}/charts.git")
    faults = iter([kind] * 2)
    server.fault = lambda path, done: next(faults, "") if not done and path.endswith("/git-receive-pack") else ""
    apply(mine, small_publish("rl", 1))
    assert history(bare) == ["first", "publish team/rl 0.1.0 -> dev"]


@pytest.mark.parametrize(("cache", "step"), [*(("warm", step) for step in range(4)), *(("cold", n) for n in range(8))])
def test_the_tip_may_move_at_any_step(store: MakeStore, server: HttpServer, bare: Path, cache: str, step: int) -> None:
    apply(store("warm", f"{server.url}/charts.git"), small_publish("rl", 1))
    mine = store(cache, f"{server.url}/charts.git")
    seen = iter(range(100))

    def move(_path: str, _done: bool) -> str:
        if next(seen) == step:
            commit(bare, {"README.md": "moved\n"})
        return ""

    server.fault = move
    apply(mine, small_publish("rl", 2))
    server.fault = lambda _path, _done: ""
    wanted = ["first", "publish team/rl 0.1.0 -> dev", "by hand", "publish team/rl 0.1.1 -> dev"]
    assert sorted(history(bare)) == sorted(wanted)
    git(bare, "fsck", "--full", "--strict")


@pytest.mark.parametrize("hook", ["pre-receive", "update"])
def test_a_hook_that_refuses_is_quoted(store: MakeStore, bare: Path, hook: str) -> None:
    set_hook(bare, hook, "echo 'charts may not be published on Fridays' >&2; exit 1")
    with pytest.raises(ToolFailed, match="hook declined") as caught:
        apply(store(), small_publish("rl", 1))
    assert "not be published on Fridays" in caught.value.stderr
    assert len(history(bare)) == 1


def test_a_push_that_was_given_up_may_still_arrive(
    store: MakeStore, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server finishes the push; the commit must not be made a second time."""
    set_hook(bare, "pre-receive", "sleep 2")
    waits = iter([0.5])

    def push(cache: Cache, commit: str, lease: str, *, timeout_s: float) -> remote.Answer:
        return remote.push(cache, commit, lease, timeout_s=next(waits, timeout_s))

    monkeypatch.setattr("symphony_charts.gitops.store.store.push", push)
    apply(store(), small_publish("rl", 1))
    assert history(bare) == ["first", "publish team/rl 0.1.0 -> dev"]


def test_a_lock_on_the_servers_branch_is_waited_for(store: MakeStore, bare: Path) -> None:
    lock = bare / "refs/heads/main.lock"
    lock.touch()
    timer = threading.Timer(0.7, lock.unlink)
    timer.start()
    apply(store(), small_publish("rl", 1))
    timer.join(5)
    assert len(history(bare)) == 2


@pytest.mark.usefixtures("impatient")
def test_no_server_is_said_soon(store: MakeStore) -> None:
    with pytest.raises(ToolFailed, match=r"cannot read http://127"):
        apply(store(url="http://127.0.0.1:9/charts.git"), small_publish("rl", 1))


def test_no_repository_is_said_at_once(tmp_path: Path, store: MakeStore) -> None:
    with pytest.raises(ToolFailed, match="cannot read"):
        apply(store(url=f"file://{tmp_path}/absent.git"), small_publish("rl", 1))


def test_a_missing_branch_names_the_next_step(tmp_path: Path, bare: Path) -> None:
    other = Store(f"file://{bare}", "production", root=tmp_path / "c", author=WRITER)
    with pytest.raises(NotFound, match="no branch production") as caught:
        apply(other, small_publish("rl", 1))
    assert "gitops init" in caught.value.next


def test_a_busy_branch_ends_in_an_error_after_the_time_allowed(store: MakeStore, bare: Path) -> None:
    (bare / "refs/heads/main.lock").touch()
    with pytest.raises(ToolFailed, match=r"did not accept the commit within 1\.5 s"):
        apply(store(timeout_s=1.5), small_publish("rl", 1))


@pytest.mark.parametrize("transport", ["file", "http"])
def test_what_was_taken_back_does_not_return(store: MakeStore, server: HttpServer, bare: Path, transport: str) -> None:
    mine = store(url=f"{server.url}/charts.git" if transport == "http" else "")
    for number in (1, 2):
        apply(mine, small_publish("rl", number))
    git(bare, "update-ref", "refs/heads/main", "main~1")
    apply(mine, small_publish("other", 1))
    assert history(bare) == ["first", "publish team/rl 0.1.0 -> dev", "publish team/other 0.1.0 -> dev"]


def test_many_writers_follow_a_rewound_branch(store: MakeStore, bare: Path) -> None:
    for number in (1, 2):
        apply(store(), small_publish("rl", number))
    git(bare, "update-ref", "refs/heads/main", "main~1")
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda name: apply(store(), small_publish(name, 1)), "abcdef"))
    wanted = [f"publish team/{name} 0.1.0 -> dev" for name in ["rl", *"abcdef"]]
    assert sorted(history(bare)[1:]) == sorted(wanted)


def test_a_review_of_a_branch_that_was_deleted_begins_at_the_usual_one(
    tmp_path: Path, store: MakeStore, bare: Path
) -> None:
    review = Store(f"file://{bare}", "review", base="main", root=tmp_path / "cache", author=WRITER)
    apply(review, small_publish("rl", 1))
    git(bare, "update-ref", "-d", "refs/heads/review")
    apply(store(), small_publish("other", 1))
    apply(review, small_publish("rl", 2))
    assert history(bare, "review")[1:] == ["publish team/other 0.1.0 -> dev", "publish team/rl 0.1.0 -> dev"]


def test_a_new_review_begins_where_the_usual_branch_is_now(tmp_path: Path, store: MakeStore, bare: Path) -> None:
    review = Store(f"file://{bare}", "review", base="main", root=tmp_path / "cache", author=WRITER)
    review.preview([small_publish("rl", 1)])
    apply(store(), small_publish("other", 1))
    apply(review, small_publish("rl", 1))
    assert history(bare, "review") == ["first", "publish team/other 0.1.0 -> dev", "publish team/rl 0.1.0 -> dev"]


def zero_packs(repo: Path) -> None:
    for pack in repo.rglob("*.pack"):
        pack.chmod(0o644)
        pack.write_bytes(b"\0" * 100)


def remove(repo: Path, part: str) -> None:
    place = repo / part
    shutil.rmtree(place) if place.is_dir() else place.unlink()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "packs without content": zero_packs,
    **{part: partial(remove, part=part) for part in ("HEAD", "config", "refs", "objects", "objects/pack")},
    "a tip that does not exist": lambda repo: (repo.parent / "tip").write_text("0" * 39 + "1\n"),
    "a tip that is no commit": lambda repo: (repo.parent / "tip").write_text("HEAD\n"),
    "a lock of a killed git": lambda repo: (repo / "refs/symph/import.lock").touch(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_cache_heals(tmp_path: Path, store: MakeStore, bare: Path, damage: str) -> None:
    apply(store(), small_publish("rl", 1))
    (repo,) = (tmp_path / "cache").glob("*/repo.git")
    DAMAGE[damage](repo)
    apply(store(), small_publish("rl", 2))
    assert len(history(bare)) == 3


def test_a_tip_loads_what_is_read(store: MakeStore) -> None:
    apply(store(), small_publish("rl", 1))
    tip = store("another-machine").tip()
    assert tip.read("charts/team/rl/0.1.0/values.yaml") == b"number: 1\n"
    assert tip.read("charts/team/rl/0.1.0/absent") is None
    assert sorted(tip.below("charts/team/rl/0.1.0")) == ["Chart.yaml", "templates/config.yaml", "values.yaml"]


@pytest.mark.parametrize("others", [(), ("other",)])
def test_a_publish_to_a_deleted_branch_is_refused_until_it_is_restored(
    others: tuple[str, ...], store: MakeStore, bare: Path
) -> None:
    last = apply(store(), small_publish("rl", 1)).commit
    for branch in others:
        git(bare, "branch", branch, "main")
    git(bare, "update-ref", "-d", "refs/heads/main")
    for _ in range(2):
        with pytest.raises(Conflict, match="the branch main has been deleted") as caught:
            apply(store(), small_publish("rl", 2))
        assert f"{last}:refs/heads/main" in caught.value.next
    assert git(bare, "branch", "--format=%(refname:short)").split() == list(others)
    git(bare, "update-ref", "refs/heads/main", str(last))
    apply(store(), small_publish("rl", 2))
    assert len(history(bare)) == 3


def test_a_symbolic_link_in_the_way_is_refused(store: MakeStore, bare: Path) -> None:
    script = b"commit refs/heads/main\ncommitter T <t@x> 1 +0000\ndata 1\nx\nfrom refs/heads/main^0\n"
    git(bare, "fast-import", "--quiet", input=script + b"M 120000 inline charts\ndata 4\n/tmp\n")
    with pytest.raises(Conflict, match="charts is a symbolic link"):
        apply(store(), small_publish("rl", 1))


def test_the_guard_sees_every_file_before_it_is_written(tmp_path: Path, store: MakeStore, bare: Path) -> None:
    def refuse(files: Mapping[str, bytes]) -> None:
        raise CheckFailed(f"{min(files)} holds a secret")

    with pytest.raises(CheckFailed, match=r"charts/team/rl/0\.1\.0/Chart\.yaml holds a secret"):
        apply(store(guard=refuse), small_publish("rl", 1))
    written = [file for file in (tmp_path / "cache").rglob("*") if file.is_file() and b"number" in file.read_bytes()]
    assert written == []
    assert len(history(bare)) == 1


def test_hooks_and_settings_of_the_user_do_not_run(
    tmp_path: Path, store: MakeStore, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hooks").mkdir()
    for name in ("pre-push", "reference-transaction", "post-index-change"):
        hook = tmp_path / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-{name}\nexit 1\n")
        hook.chmod(0o755)
    config = f"[core]\n\thooksPath = {tmp_path}/hooks\n[push]\n\tgpgSign = true\n[commit]\n\tgpgSign = true\n"
    (tmp_path / "gitconfig").write_text(config)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nonexistent/index")
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", "/nonexistent/objects")
    assert apply(store(url=f"{server.url}/charts.git"), small_publish("rl", 1)).commit is not None
    assert not list(tmp_path.glob("ran-*"))


@pytest.mark.parametrize(
    "url", ["--upload-pack=touch /tmp/x", "ext::sh -c true", "https://me:token@example.org/x.git", "", "a\nb"]
)
def test_addresses_that_hide_something_are_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(SpecError) as caught:
        Store(url, "main", root=tmp_path, author=WRITER)
    assert "token" not in str(caught.value)


@pytest.mark.parametrize("branch", ["-f", "a..b", "a b", "x.lock", "a//b", "", "refs^", "a/.b"])
def test_what_is_no_branch_is_refused(tmp_path: Path, branch: str) -> None:
    with pytest.raises(SpecError):
        Store("https://example.org/x.git", branch, root=tmp_path, author=WRITER)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.usefixtures("small_disk")
def test_a_full_disk_is_said_and_leaves_the_repository_alone(store: MakeStore, bare: Path) -> None:
    chart = small_chart("rl", 1)
    noise = {f"noise-{number}": random.Random(number).randbytes(90_000) for number in range(9)}
    operation = publish(chart, chart_files={**chart.files, **noise})
    with pytest.raises(ToolFailed, match=r"No space left|Out of diskspace"):
        apply(store("small/cache"), operation)
    assert len(history(bare)) == 1
    apply(store("elsewhere"), operation)
    git(bare, "fsck", "--full", "--strict")


def test_writers_of_one_machine_each_push_their_own_commit(store: MakeStore, bare: Path) -> None:
    apply(store(), small_publish("first", 0))
    with ThreadPoolExecutor(12) as pool:
        receipts = list(pool.map(lambda number: apply(store(), small_publish(f"e{number}", number)), range(12)))
    assert sorted(history(bare)[2:]) == sorted(f"publish team/e{number} 0.1.0 -> dev" for number in range(12))
    assert {receipt.commit for receipt in receipts} == set(git(bare, "rev-list", "main", "--max-count=12").split())


def test_a_refused_writer_does_not_stop_the_others(store: MakeStore, bare: Path) -> None:
    apply(store(), small_publish("first", 0))
    set_hook(
        bare,
        "pre-receive",
        "sleep 0.3; while read old new ref; do ! git log --format=%s $old..$new | grep -q bad; done",
    )

    def publish(name: str) -> str:
        try:
            return str(apply(store(), small_publish(name, 1)).commit)
        except ToolFailed:
            return "refused"

    with ThreadPoolExecutor(6) as pool:
        found = dict(zip(names := [*"abcde", "bad"], pool.map(publish, names), strict=True))
    assert [name for name, commit in found.items() if commit == "refused"] == ["bad"]
    assert sorted(history(bare)[2:]) == [f"publish team/{name} 0.1.0 -> dev" for name in "abcde"]


@pytest.mark.parametrize("lost", [(0,), (1,), (0, 1, 2), (1, 2, 4)], ids=str)
def test_rollbacks_with_lost_answers_are_made_once(
    store: MakeStore, server: HttpServer, bare: Path, lost: tuple[int, ...]
) -> None:
    """A rollback made twice goes back two versions, so a writer must find its own commit in the history."""
    names = [f"e{number}" for number in range(6)]
    url = f"{server.url}/charts.git"
    for number in range(3):
        apply(store(url=url), *(small_publish(name, number) for name in names))
    set_hook(bare, "pre-receive", "sleep 0.2")
    pushes = itertools.count()
    lock = threading.Lock()

    def fault(path: str, done: bool) -> str:
        with lock:
            return "cut" if done and path.endswith("/git-receive-pack") and next(pushes) in lost else ""

    server.fault = fault
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: apply(store(url=url), Rollback(team="team", name=name, env="dev")), names))
    assert sorted(history(bare)[4:]) == [f"rollback team/{name} 0.1.2 -> 0.1.1 in dev" for name in names]


@pytest.mark.parametrize("is_dropped", [False, True])
def test_who_only_reads_does_not_make_the_others_forget(store: MakeStore, bare: Path, is_dropped: bool) -> None:
    """A reader fetches only the newest commit, and so cuts off the history in which writers look for theirs.

    The same applies after a damaged cache was rebuilt.
    """
    names = [f"e{number}" for number in range(6)]
    for number in range(3):
        apply(store(), *(small_publish(name, number) for name in names))
    set_hook(bare, "post-receive", "sleep 0.1")
    is_over = threading.Event()

    def read() -> None:
        while not is_over.wait(0.1):
            reading = store()
            if is_dropped:
                with reading.cache.locked(30):
                    reading.cache.drop()
            reading.tip()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(lambda name: apply(store(), Rollback(team="team", name=name, env="dev")), names))
    finally:
        is_over.set()
        reader.join(30)
    assert sorted(history(bare)[4:]) == [f"rollback team/{name} 0.1.2 -> 0.1.1 in dev" for name in names]


def test_a_publish_that_is_interrupted_while_it_waits_is_never_pushed(
    tmp_path: Path, store: MakeStore, bare: Path
) -> None:
    apply(store("cache-0"), small_publish("first", 0))
    begun, go_on = tmp_path / "begun", tmp_path / "go-on"
    set_hook(bare, "pre-receive", f"touch {begun}; for i in $(seq 200); do test -e {go_on} && break; sleep 0.1; done")
    storm = Storm(writers=3, each=1, caches=1, kills_a_second=0, patience_s=0)
    writers: list[subprocess.Popen[bytes]] = []
    try:
        writers.append(start(f"file://{bare}", tmp_path, 0, storm, {}))
        eventually(begun.exists)
        for number in (1, 2):
            writers.append(start(f"file://{bare}", tmp_path, number, storm, {}))
            eventually(lambda: holds_open(writers[-1].pid, tmp_path / "cache-0"))
            time.sleep(0.5)
        writers[1].send_signal(signal.SIGINT)
        assert writers[1].wait(20) != 0
        go_on.touch()
        assert [writers[0].wait(20), writers[2].wait(20)] == [0, 0]
    finally:
        for writer in writers:
            writer.kill()
            writer.wait(10)
    assert history(bare)[2:] == ["publish team/w0-0 0.1.0 -> dev", "publish team/w2-0 0.1.0 -> dev"]


def holds_open(pid: int, folder: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):  # a file may be closed while the list is read
        return any(str(link.readlink()).startswith(str(folder)) for link in Path(f"/proc/{pid}/fd").iterdir())
    return False
