"""The world of a walk: one real repository behind file, HTTP and SSH, and machines with caches of their own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from symphony_charts.cli.main import main
from symphony_charts.formats.yaml_read import load_documents
from symphony_charts.formats.yaml_write import dump
from tests.gitops.servers import git, make_bare

BINARY = os.environ.get("SYMPH_WALK_BINARY", "")
"""The `symph` program to test; empty: this checkout, in the process of the tests."""

_SPEC = """\
name: {name}
image: busybox:1.37.0
processes:
  nap: {{cmds: ["sleep 1"], env: {{LR: "{label}"}}, requests: {{cpu: "1", memory: 1Gi}}}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of a command."""

    status: int
    out: str
    err: str

    @property
    def record(self) -> Any:
        return json.loads(self.out)

    @property
    def was_stopped(self) -> bool:
        # The last is Python's word for an interrupt before symph begins, on a busy machine.
        return self.status in (-signal.SIGKILL, -signal.SIGINT, 130) or "Could not import runpy" in self.err


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The ways to the folder of repositories: its path, and addresses of servers that show it."""

    root: Path
    http: str
    ssh: str
    is_busy: Callable[[], bool]

    def urls(self, name: str) -> list[str]:
        return [f"file://{self.root}/{name}", f"{self.http}/{name}", f"{self.ssh}/{name}"]


@dataclass(slots=True)
class Machine:
    """A user's machine: its folder of specs and settings, and its cache."""

    folder: Path
    url: str
    root: str = ""
    runs: int = 0

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def configure(self, environments: Mapping[str, object]) -> None:
        path = {"path": self.root} if self.root else {}
        repository = {"url": self.url, **path, "author": f"{self.folder.name} <{self.folder.name}@example.org>"}
        (self.folder / ".symph.yaml").write_text(dump({"repository": repository, "environments": dict(environments)}))

    def symph(self, *words: str) -> Answer:
        self.runs += 1
        if BINARY:
            env = {**os.environ, "SYMPH_STATE_DIR": str(self.state)}
            argv = [BINARY, *words]
            done = subprocess.run(
                argv, cwd=self.folder, env=env, capture_output=True, text=True, timeout=120, check=False
            )
            return Answer(status=done.returncode, out=done.stdout, err=done.stderr)
        out, err = io.StringIO(), io.StringIO()
        with _inside(self.folder, self.state), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(list(words))
        return Answer(status=status, out=out.getvalue(), err=err.getvalue())

    def stopped(self, number: signal.Signals, after_s: float, *words: str) -> Answer:
        """Run a command; send it and its git a signal after some time, as a terminal does."""
        argv = [BINARY] if BINARY else [sys.executable, "-m", "symphony_charts"]
        env = {**os.environ, "SYMPH_STATE_DIR": str(self.state)}
        pipe = subprocess.PIPE
        with subprocess.Popen(
            [*argv, *words], cwd=self.folder, env=env, stdout=pipe, stderr=pipe, text=True, start_new_session=True
        ) as process:
            try:
                out, err = process.communicate(timeout=after_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, number)
                out, err = process.communicate(timeout=120)
        return Answer(status=process.returncode, out=out, err=err)

    def write_spec(self, name: str, label: str) -> str:
        """Write a spec whose chart differs by `label` alone."""
        (self.folder / f"{name}.yaml").write_text(_SPEC.format(name=name, label=label))
        return f"{name}.yaml"

    def forget(self) -> None:
        shutil.rmtree(self.state, ignore_errors=True)

    def damage(self, what: str) -> None:
        """Lose a part of each cache, as cleaners of temporary folders do."""
        for repo in self.state.glob("git/*/repo.git"):
            place = repo / what
            shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)


@dataclass(slots=True)
class World:
    """A repository, and the machines of its users."""

    server: Server
    folder: Path
    root: str = ""
    object_format: str = "sha1"
    bare: Path = field(init=False)
    machines: list[Machine] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bare = make_bare(self.server.root / f"{self.folder.name}.git", object_format=self.object_format)
        for number, url in enumerate(self.server.urls(self.bare.name)):
            place = self.folder / f"m{number}"
            place.mkdir(parents=True)
            self.machines.append(Machine(folder=place, url=url, root=self.root))

    def path(self, path: str) -> str:
        """Return a path below the folder of the repository that holds everything."""
        return f"{self.root}/{path}".lstrip("/")

    def tip(self, ref: str = "main") -> str:
        """Return the commit of a branch; empty if there is none."""
        return git(self.bare, "for-each-ref", "--format=%(objectname)", f"refs/heads/{ref}").strip()

    def chain(self, ref: str = "main") -> list[str]:
        """Return the commits of a branch, newest first."""
        return git(self.bare, "rev-list", f"refs/heads/{ref}").split()

    def entries(self, ref: str = "main") -> dict[str, str]:
        """Return the id of everything in a branch, by path: files, and folders with all below them."""
        lines = git(self.bare, "ls-tree", "-r", "-t", f"refs/heads/{ref}").splitlines()
        found = {line.split("\t")[1]: line.split()[2] for line in lines}
        inside = f"{self.root}/" if self.root else ""
        return {path.removeprefix(inside): oid for path, oid in found.items() if path.startswith(inside)}

    def read(self, paths: list[str], ref: str = "main") -> dict[str, Any]:
        """Return files of a branch, parsed as YAML."""
        if not paths:
            return {}
        names = "".join(f"refs/heads/{ref}:{self.path(path)}\n" for path in paths).encode()
        argv = ["git", "-C", str(self.bare), "cat-file", "--batch"]
        data = subprocess.run(argv, input=names, capture_output=True, check=True, timeout=60).stdout
        found: dict[str, Any] = {}
        for path in paths:
            head, _, data = data.partition(b"\n")
            size = int(head.split()[2])
            found[path] = _pointer_in([each for each, _ in load_documents(data[:size].decode())])
            data = data[size + 1 :]
        return found

    def wait_until_idle(self) -> None:
        """Wait for every git that works for this world: on a server it may outlive its killed client."""
        deadline = time.monotonic() + 60
        name = self.folder.name.encode()
        while self.server.is_busy() or any(name in line for line in _command_lines()):
            assert time.monotonic() < deadline, "git still runs"
            time.sleep(0.05)

    def remove(self) -> None:
        shutil.rmtree(self.bare, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def _command_lines() -> Iterator[bytes]:
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield process.read_bytes()


def _pointer_in(documents: list[Any]) -> Any:
    """Return the data of a pointer; for Flux, from its HelmRelease."""
    data = documents[0]
    if data.get("kind") != "HelmRelease":
        return data
    spec, rest = data["spec"], documents[1]
    chart = "/".join(spec["chart"]["spec"]["chart"].split("/")[-4:])
    place = {"name": rest["destination"]["name"], "namespace": spec["targetNamespace"]}
    assert spec.get("kubeConfig", {}).get("secretRef", {}).get("name", "") == (
        f"{place['name']}-kubeconfig" if place["name"] else ""
    )
    return {**rest, "version": chart.rpartition("/")[2], "chart": chart, "values": spec["values"], "destination": place}


def flat(values: Mapping[str, object], path: str = "") -> dict[str, object]:
    """Return nested values as dotted paths."""
    leaves: dict[str, object] = {}
    for key, value in values.items():
        leaves |= flat(value, f"{path}{key}.") if isinstance(value, dict) else {f"{path}{key}": value}
    return leaves


def nested(values: Mapping[str, object]) -> dict[str, object]:
    """Return dotted paths as nested values."""
    result: dict[str, Any] = {}
    for path, value in values.items():
        *folders, last = path.split(".")
        node = result
        for folder in folders:
            node = node.setdefault(folder, {})
        node[last] = value
    return result


@contextlib.contextmanager
def _inside(folder: Path, state: Path) -> Iterator[None]:
    before, name = Path.cwd(), "SYMPH_STATE_DIR"
    old = os.environ.get(name)
    os.chdir(folder)
    os.environ[name] = str(state)
    try:
        yield
    finally:
        os.chdir(before)
        if old is None:
            del os.environ[name]
        else:
            os.environ[name] = old
