"""How fast publishing is, beside the ways that others go, in one run.

    python benchmarks/publish.py [--charts 10000] [--many 1000] [--writers 8]

A repository with so many charts of twelve files is made first. Peers: a full clone, copy, add, commit and push (what
most tools do); a shallow, sparse and blobless clone with a push; and git fast-import into a kept cache. Our engine is
timed without the start of Python, as the budget has it. "whole command" is `symph publish` as users run it, of a spec
that changes each time: by the wall clock (budget 0.3 s on a quiet machine), and in CPU.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from symphony_charts.gitops.publish import Publish
from symphony_charts.gitops.store.store import Author, Store

FILES = 12
WHO = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
NOW = 1_700_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--charts", type=int, default=10_000)
    parser.add_argument("--many", type=int, default=1_000)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="symph-bench-", dir="/dev/shm") as scratch:
        os.environ |= {"HOME": scratch, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
        bench(Path(scratch), options)


def bench(scratch: Path, options: argparse.Namespace) -> None:
    seed = scratch / "seed.git"
    took = clock(lambda: make_repository(seed, options.charts))
    print(
        f"repository of {options.charts} charts, {options.charts * FILES} files, made in {took:.1f} s; git {version()}"
    )
    counter = iter(range(10**9))

    def name() -> str:
        return f"new{next(counter)}"

    print(f"\none chart, median of {options.runs}")
    rows = {
        "clone, copy, add, commit, push": lambda repo, work: by_clone(repo, work, name(), ()),
        "depth 1, sparse, blobless": lambda repo, work: by_clone(
            repo, work, name(), ("--depth=1", "--filter=blob:none", "--sparse")
        ),
        "fast-import into a kept cache": lambda repo, work: by_fast_import(repo, work, name()),
    }
    times = {title: peer(seed, scratch, options.runs, way) for title, way in rows.items()}
    times["symph, cold"] = ours(seed, scratch, options.runs, name, is_warm=False)
    times["symph, warm"] = ours(seed, scratch, options.runs, name, is_warm=True)
    best = times["symph, warm"]
    for title, seconds in times.items():
        print(f"  {title:34} {seconds:7.3f} s   {seconds / best:6.1f}x")

    wall, cpu = whole_command(seed, scratch, max(options.runs, 5))
    print(f"\nwhole command, warm: {wall:.3f} s, CPU of symph and git {cpu:.3f} s; symph --help {helps():.3f} s")

    many = [small(name()) for _ in range(options.many)]
    with fresh(seed, scratch) as (repo, work):
        seconds = clock(lambda: store(repo, work / "cache").apply(many, now=NOW))
        check(repo, options.many)
    with fresh(seed, scratch) as (repo, work):
        naive = clock(lambda: by_clone(repo, work, "batch", (), count=options.many))
    print(f"\n{options.many} charts in one commit: symph {seconds:.2f} s, clone and push {naive:.2f} s")

    with fresh(seed, scratch) as (repo, work):
        pushes = options.writers * 5
        seconds = clock(lambda: writers(repo, work, options.writers, name))
        check(repo, pushes)
    with fresh(seed, scratch) as (repo, work):
        rebase = clock(lambda: rebase_writers(repo, work, options.writers))
    print(
        f"\n{options.writers} writers x 5 pushes, a cache each: symph {pushes / seconds:.1f} pushes/s, 0 lost;"
        f" commit and pull --rebase {pushes / rebase:.1f} pushes/s"
    )


def whole_command(seed: Path, scratch: Path, runs: int) -> tuple[float, float]:
    """Return median wall clock and CPU of `symph publish` into the large repository, with a warm cache."""
    with fresh(seed, scratch) as (repo, work):
        project = work / "project"
        project.mkdir()
        settings = f"repository: {{url: '{repo}', author: Ann <ann@example.org>}}\nteam: team\n"
        settings += "environments: {dev: {namespace: rl}}\n"
        (project / ".symph.yaml").write_text(settings)
        environ = {**os.environ, "SYMPH_STATE_DIR": str(work / "state"), "PYTHONWARNINGS": "ignore"}
        argv = [sys.executable, "-m", "symphony_charts", "publish", "rl.yaml", "--env", "dev"]
        walls, cpus = [], []
        for number in range(runs + 1):
            spec = f"name: rl\nimage: busybox:1\nprocesses: {{a: {{command: [sleep, '{number}']}}}}\n"
            (project / "rl.yaml").write_text(spec)
            before, began = os.times(), time.perf_counter()
            subprocess.run(argv, cwd=project, env=environ, check=True, capture_output=True)
            after = os.times()
            walls.append(time.perf_counter() - began)
            cpus.append(after.children_user - before.children_user + after.children_system - before.children_system)
    return statistics.median(walls[1:]), statistics.median(cpus[1:])  # the first fills the cache


def helps() -> float:
    """Return the time that Python needs to start and to print the help."""
    return clock(
        lambda: subprocess.run([sys.executable, "-m", "symphony_charts", "--help"], check=True, capture_output=True)
    )


def version() -> str:
    return git("--version").split()[2]


def git(*words: str, text: bytes | None = None, folder: Path | None = None) -> str:
    place = ("-C", str(folder)) if folder else ()
    done = subprocess.run(["git", *place, *WHO, *words], input=text, capture_output=True, check=True)
    return done.stdout.decode()


def clock(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def files_of(name: str) -> dict[str, bytes]:
    """Return twelve files, most of them equal in every chart, as in charts of one template."""
    fixed = {f"templates/t{number}.yaml": b"kind: ConfigMap\n" * (20 + number) for number in range(9)}
    own = {"Chart.yaml": f'name: {name}\nversion: "0.1.0"\n', "values.yaml": f"name: {name}\n", "README.md": name}
    return {**fixed, **{path: content.encode() for path, content in own.items()}}


def small(name: str) -> Publish:
    files = files_of(name)
    return Publish(team="team", name=name, chart_files=files, values={"name": name}, digest=f"sha256:{name}", env="dev")


def make_repository(repo: Path, charts: int) -> None:
    """Make a bare repository with that many charts, in one commit."""
    git("init", "-q", "--bare", "-b", "main", str(repo))
    git("config", "uploadpack.allowFilter", "true", folder=repo)
    git("config", "uploadpack.allowAnySHA1InWant", "true", folder=repo)
    parts = [b"commit refs/heads/main\ncommitter Ann <a@example.org> 1 +0000\ndata 5\nbegin"]
    for number in range(charts):
        base = f"charts/team{number % 100}/e{number}/0.1.0"
        for path, content in files_of(f"e{number}").items():
            parts.append(f"\nM 100644 inline {base}/{path}\ndata {len(content)}\n".encode() + content)
    git("fast-import", "--quiet", text=b"".join(parts) + b"\n", folder=repo)
    git("gc", "-q", folder=repo)


@contextmanager
def fresh(seed: Path, scratch: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a copy of the repository, and an empty folder to work in."""
    with tempfile.TemporaryDirectory(dir=scratch) as place:
        repo, work = Path(place) / "repo.git", Path(place) / "work"
        shutil.copytree(seed, repo)
        work.mkdir()
        yield repo, work


def peer(seed: Path, scratch: Path, runs: int, way: Callable[[Path, Path], None]) -> float:
    times = []
    for _ in range(runs):
        with fresh(seed, scratch) as (repo, work):
            prepare_cache(repo, work)
            times.append(clock(lambda repo=repo, work=work: way(repo, work)))  # type: ignore[misc]  # bound at once
            check(repo, 1)
    return statistics.median(times)


def ours(seed: Path, scratch: Path, runs: int, name: Callable[[], str], *, is_warm: bool) -> float:
    times = []
    for _ in range(runs):
        with fresh(seed, scratch) as (repo, work):
            made = store(repo, work / "cache")
            if is_warm:
                made.apply([small(name())], now=NOW)
            times.append(clock(lambda made=made: made.apply([small(name())], now=NOW)))  # type: ignore[misc]  # likewise
            check(repo, 2 if is_warm else 1)
    return statistics.median(times)


def store(repo: Path, cache: Path) -> Store:
    # By file://, not by path: with a path git would take shortcuts that no server has.
    return Store(f"file://{repo}", "main", root=cache, author=Author(name="Ann <ann@example.org>"))


def by_clone(repo: Path, work: Path, name: str, options: tuple[str, ...], count: int = 1) -> None:
    checkout = work / "checkout"
    git("clone", "-q", *options, f"file://{repo}", str(checkout))
    if "--sparse" in options:
        git("sparse-checkout", "set", "charts/team", folder=checkout)
    for number in range(count):
        for path, content in files_of(f"{name}{number}").items():
            file = checkout / f"charts/team/{name}{number}/0.1.0/{path}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    git("add", "-A", folder=checkout)
    git("commit", "-qm", name, folder=checkout)
    git("push", "-q", "origin", "HEAD:main", folder=checkout)


def prepare_cache(repo: Path, work: Path) -> None:
    git("clone", "-q", "--bare", "--depth=1", "--filter=blob:none", f"file://{repo}", str(work / "cache.git"))


def by_fast_import(repo: Path, work: Path, name: str) -> None:
    cache = work / "cache.git"
    git("fetch", "-q", "--depth=1", "--filter=blob:none", "origin", "+refs/heads/main:refs/tip", folder=cache)
    parts = [b"commit refs/heads/new\ncommitter Ann <a@example.org> 1 +0000\ndata 3\nnewfrom refs/tip"]
    for path, content in files_of(name).items():
        parts.append(f"\nM 100644 inline charts/team/{name}/0.1.0/{path}\ndata {len(content)}\n".encode() + content)
    git("fast-import", "--quiet", text=b"".join(parts) + b"\n", folder=cache)
    git("push", "-q", f"file://{repo}", "refs/heads/new:refs/heads/main", folder=cache)


def writers(repo: Path, work: Path, count: int, name: Callable[[], str]) -> None:
    def five(number: int) -> None:
        made = store(repo, work / f"cache{number}")
        for _ in range(5):
            made.apply([small(f"w{number}-{name()}")], now=NOW)

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(five, range(count)))


def rebase_writers(repo: Path, work: Path, count: int) -> None:
    """Publish like a shell script in CI: commit, push; if refused, pull --rebase and push again."""

    def five(number: int) -> None:
        checkout = work / f"w{number}"
        git("clone", "-q", "--depth=1", f"file://{repo}", str(checkout))
        for step in range(5):
            file = checkout / f"charts/team/w{number}-{step}/0.1.0/values.yaml"
            file.parent.mkdir(parents=True)
            file.write_text(f"{number} {step}\n")
            git("add", "-A", folder=checkout)
            git("commit", "-qm", "x", folder=checkout)
            while True:
                try:
                    git("push", "-q", "origin", "HEAD:main", folder=checkout)
                    break
                except subprocess.CalledProcessError:
                    git("pull", "-q", "--rebase", folder=checkout)

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(five, range(count)))


def check(repo: Path, charts: int) -> None:
    """Check that every chart is there, and the repository is valid."""
    if charts < 50:
        git("fsck", "--connectivity-only", folder=repo)
    added = git(
        "diff",
        "--name-only",
        "--diff-filter=A",
        git("rev-list", "--max-parents=0", "main", folder=repo).strip(),
        "main",
        folder=repo,
    )
    found = sum(1 for line in added.splitlines() if line.endswith("values.yaml"))
    assert found == charts, f"{found} charts instead of {charts}"


if __name__ == "__main__":
    sys.exit(main())
