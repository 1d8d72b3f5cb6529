"""The instructions of README.md and docs/ work as written, from the wheel, with the output that the pages show.

tests/pages/blocks.py documents the marks of blocks, tests/pages/reader.py the comparison.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from symphony_charts.oci.client import Registry
from tests.cli.test_workspace import put_base
from tests.e2e.programs import Programs
from tests.matrix.environments import Leg, build, install
from tests.pages.blocks import PAGES, ROOT, blocks_of, name_of, places_of
from tests.pages.reader import Reader
from tests.registry import running_registry
from tests.tools import newest_helm

# Read before the tests take SYMPH_* out of their environment.
_PROGRAMS = os.environ.get("SYMPH_PAGES_PROGRAMS", "")
RUN = [page for page in PAGES if any(block.kind in ("run", "prints") for block in blocks_of(page))]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the wheel, and of environments with only the wheel; all workers share one."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own) / "wheel"
    folder.mkdir(exist_ok=True)
    return folder


def programs_of(folder: Path, extras: str) -> Path:
    """Return the programs of the wheel with these extras, installed once."""
    if _PROGRAMS:
        return Path(_PROGRAMS)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        env, done = folder / f"env-{extras}", folder / f"done-{extras}"
        if not done.exists():
            built = next(folder.glob("*.whl"), None) or build(ROOT, folder)
            install(Leg(python=sys.executable, end="newest", extras=extras), built, env)
            done.touch()
    return env / "bin"


@pytest.fixture
def registry(request: pytest.FixtureRequest, need_tool: Callable[[str], str], tmp_path: Path) -> Iterator[str]:
    if "registry" not in places_of(request.node.callspec.params["page"]):
        yield "registry.example.org"
        return
    with running_registry(need_tool("docker-registry"), tmp_path) as host:
        with Registry(host) as client:
            put_base(client)
        yield host


@pytest.mark.parametrize("page", [page for page in RUN if "cluster" not in places_of(page)], ids=name_of)
def test_a_page_works_as_it_is_written(page: Path, wheel: Path, registry: str) -> None:
    extras = "all,optuna,torchx" if "extras" in places_of(page) else ""
    with Reader(programs_of(wheel, extras), registry=registry) as reader:
        reader.read(page)
    assert not reader.faults, reader.faults[0]


@pytest.mark.parametrize("page", [page for page in RUN if "cluster" in places_of(page)], ids=name_of)
def test_a_page_works_with_a_cluster(page: Path, wheel: Path, programs: Programs, registry: str) -> None:
    extras = "all,optuna,torchx" if "extras" in places_of(page) else ""
    tools = (newest_helm(), programs.kubectl_path)
    with Reader(programs_of(wheel, extras), tools, programs.kubeconfig, registry=registry) as reader:
        reader.read(page)
    assert not reader.faults, reader.faults[0]
