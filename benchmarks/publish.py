"""How fast publishing is, beside the ways that others go, in one run.

    python benchmarks/publish.py [--charts 1000] [--typed] [--many 1000] [--writers 8]

A repository with so many charts, as `symph package` makes them, is made first. "As typed" are whole commands, by the
wall clock and by the CPU time that they and their servers use: `symph publish` of a spec that changes each time, with
and without its cache, and `symph package` followed by a clone (full, shallow, or shallow, sparse and blobless), copy,
add, commit and push. They take turns, so that a busy machine slows all of them alike. Without `--typed`, then the
engine alone, without the start of Python, beside the same peers without `symph package` and git fast-import into a kept
cache.
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
from functools import cache, partial
from pathlib import Path

from symphony_charts.gitops.operations import Publish
from symphony_charts.gitops.store.store import Store
from symphony_charts.system.git.program import Author

SPEC = "name: {name}\nimage: busybox:1\nprocesses: {{a: {{command: [sleep, '{number}']}}}}\n"
CLONES = {
    "full clone": (),
    "shallow clone": ("--depth=1",),
    "shallow, sparse, blobless clone": ("--depth=1", "--filter=blob:none", "--sparse"),
}
WHO = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
NOW = 1_700_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--charts", type=int, default=1_000)
    parser.add_argument("--typed", action="store_true")
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
    files = options.charts * len(files_of("x"))
    print(f"repository of {options.charts} charts, {files} files, made in {took:.1f} s; git {version()}")
    counter = iter(range(10**9))

    def name() -> str:
        return f"new{next(counter)}"

    print(f"\nas typed, median of {options.runs}")
    times, cpu = as_typed(seed, scratch, options.runs, name)
    show(times)
    print("by CPU time")
    show(cpu)
    if options.typed:
        return

    print(f"\nwithout Python, one chart, median of {options.runs}")
    rows = {
        **{
            title: lambda repo, work, way=way: by_clone(repo, work, name(), way)  # type: ignore[misc]  # bound at once
            for title, way in CLONES.items()
        },
        "fast-import into a kept cache": lambda repo, work: by_fast_import(repo, work, name()),
    }
    times = {title: peer(seed, scratch, options.runs, way) for title, way in rows.items()}
    times["symph, cold"] = ours(seed, scratch, options.runs, name, is_warm=False)
    times["symph, warm"] = ours(seed, scratch, options.runs, name, is_warm=True)
    show(times)

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


def show(times: dict[str, float]) -> None:
    best = next(iter(times.values()))
    for title, seconds in times.items():
        print(f"  {title:52} {seconds:7.3f} s   {seconds / best:6.1f}x")


def project_in(work: Path, repo: Path, number: int) -> Path:
    """Return a folder with settings, and a spec that differs by `number`."""
    project = work / "project"
    project.mkdir(exist_ok=True)
    settings = f"repository: {{url: 'file://{repo}', author: Ann <ann@example.org>}}\nteam: team\n"
    (project / ".symph.yaml").write_text(f"{settings}environments: {{dev: {{namespace: rl}}}}\n")
    (project / "rl.yaml").write_text(SPEC.format(name="rl", number=number))
    return project


def symph(*words: str, folder: Path) -> None:
    environ = {**os.environ, "SYMPH_STATE_DIR": str(folder / "state"), "PYTHONWARNINGS": "ignore"}
    argv = [sys.executable, "-m", "symphony_charts", *words]
    subprocess.run(argv, cwd=folder, env=environ, check=True, capture_output=True)


def as_typed(
    seed: Path, scratch: Path, runs: int, name: Callable[[], str]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the median wall-clock and CPU times of each way to publish one changed spec, in seconds."""
    took: dict[str, list[tuple[float, float]]] = {}

    def measure(title: str, way: Callable[[], object]) -> None:
        before, seconds = os.times(), clock(way)
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        took.setdefault(title, []).append((seconds, used))

    with fresh(seed, scratch) as (repo, work):
        symph("publish", "rl.yaml", "--env", "dev", folder=project_in(work, repo, 0))
        for number in range(1, 2 * runs, 2):
            for offset, kind in enumerate(("warm", "cold")):
                project = project_in(work, repo, number + offset)
                if kind == "cold":
                    shutil.rmtree(project / "state")
                command = partial(symph, "publish", "rl.yaml", "--env", "dev", folder=project)
                measure(f"symph publish, {kind}", command)
            for title, options in CLONES.items():
                with fresh(seed, scratch) as (other, place):
                    package = partial(symph, "package", "rl.yaml", folder=project_in(place, other, number))
                    push = partial(by_clone, other, place, name(), options)
                    measure(f"symph package, {title}, push", lambda: (package(), push()))  # noqa: B023 - called at once
                    check(other, 1)
        check(repo, 2 * runs + 1)
    wall, cpu = (
        {title: statistics.median(each[kind] for each in all_) for title, all_ in took.items()} for kind in (0, 1)
    )
    return wall, cpu


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


@cache
def packaged() -> dict[str, str]:
    """Return the files of a chart of `symph package`."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        folder = project_in(Path(place), Path(place) / "none.git", 0)
        symph("package", "rl.yaml", folder=folder)
        chart = folder / "dist" / "rl"
        return {path.relative_to(chart).as_posix(): path.read_text() for path in chart.rglob("*") if path.is_file()}


def files_of(name: str) -> dict[str, bytes]:
    """Return the files of a chart of that name, most of them equal in all charts."""
    return {path: text.replace("name: rl\n", f"name: {name}\n").encode() for path, text in packaged().items()}


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


def store(repo: Path, folder: Path) -> Store:
    # By file://, not by path: with a path git would take shortcuts that no server has.
    return Store(f"file://{repo}", "main", root=folder, author=Author(name="Ann <ann@example.org>"))


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
    kept = work / "cache.git"
    git("fetch", "-q", "--depth=1", "--filter=blob:none", "origin", "+refs/heads/main:refs/tip", folder=kept)
    parts = [b"commit refs/heads/new\ncommitter Ann <a@example.org> 1 +0000\ndata 3\nnewfrom refs/tip"]
    for path, content in files_of(name).items():
        parts.append(f"\nM 100644 inline charts/team/{name}/0.1.0/{path}\ndata {len(content)}\n".encode() + content)
    git("fast-import", "--quiet", text=b"".join(parts) + b"\n", folder=kept)
    git("push", "-q", f"file://{repo}", "refs/heads/new:refs/heads/main", folder=kept)


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
            file = checkout / f"charts/team/w{number}-{step}/0.1.0/Chart.yaml"
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
    found = sum(1 for line in added.splitlines() if line.endswith("/Chart.yaml"))
    assert found == charts, f"{found} charts instead of {charts}"


if __name__ == "__main__":
    sys.exit(main())
