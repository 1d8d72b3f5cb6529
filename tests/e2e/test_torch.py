"""A real torch finds its peers: TorchX's `dist.ddp` in tmux, on the cluster, and there as TorchX's own objects."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from symphony_charts.local import up
from symphony_charts.local.runs import live_runs
from tests.e2e.programs import Programs
from tests.e2e.torch_environment import torch_folder
from tests.waiting import eventually

pytest.importorskip("torchx")

PROGRAM = Path(__file__).with_name("torch_all_reduce.py")
# Nodes and processes per node, the number of ranks, and the sum over all of them.
SHAPE, RANKS, TOTAL = "2x2", 4, 10
LONGEST = 240


@pytest.fixture(scope="session")
def torch_bin() -> Path:
    found = torch_folder()
    if found is None and (os.environ.get("CI") or os.environ.get("SYMPH_REQUIRE_TOOLS")):
        pytest.fail("Debian's torch is not to be had, and this run may not skip")
    if found is None:
        pytest.skip("Debian's torch is not to be had")
    return found / "bin"


@pytest.fixture
def here(private_places: Path, need_tool: Callable[[str], str]) -> Iterator[None]:
    need_tool("tmux")
    yield
    for run in live_runs():
        up.down(run)


def component(torch_bin: Path) -> list[str]:
    path = f"PATH={torch_bin}:/usr/bin:/bin"
    return ["dist.ddp", "-j", SHAPE, "--cpu", "1", "--memMB", "700", "--env", path, "--script", str(PROGRAM)]


def torchx(folder: Path, environment: dict[str, str], *words: str) -> str:
    argv = [sys.executable, "-m", "torchx.cli.main", *words]
    done = subprocess.run(
        argv, env=environment, cwd=folder, stdout=-1, stderr=-2, text=True, timeout=LONGEST, check=False
    )
    assert done.returncode == 0, f"{words}: {done.stdout}"
    return done.stdout


def assert_every_rank_said(text: str) -> None:
    missing = [rank for rank in range(RANKS) if f"rank {rank} of {RANKS}: {TOTAL}" not in text]
    assert not missing, f"{missing} of {RANKS}: {text}"


@pytest.mark.usefixtures("here")
def test_every_rank_finds_its_peers_in_tmux(torch_bin: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "NO_COLOR": "1"}
    run = ("run", "-s", "symph", "--workspace", "", "--wait", "--log", *component(torch_bin))
    assert_every_rank_said(torchx(tmp_path, environment, *run))


def test_every_rank_finds_its_peers_on_the_cluster_as_with_the_objects_of_torchx(
    programs: Programs, namespace: str, torch_bin: Path, tmp_path: Path
) -> None:
    environment = dict(programs.environment())
    own = ("run", "-s", "kubernetes_mcad", "-cfg", f"namespace={namespace}", "--workspace", "", "--dryrun")
    shown = torchx(tmp_path, environment, *own, *component(torch_bin))
    items = items_of(yaml.safe_load(shown.partition("=== SCHEDULER REQUEST ===\n")[2]))
    (tmp_path / "own.yaml").write_text(yaml.safe_dump_all(items))
    programs.kubectl("apply", "-n", namespace, "-f", str(tmp_path / "own.yaml"))

    handle = torchx(
        tmp_path,
        environment,
        *("run", "-s", "symph", "-cfg", f"on=kube,namespace={namespace}", "--workspace", ""),
        *component(torch_bin),
    ).splitlines()[-1]
    eventually(lambda: "State: SUCCEEDED" in torchx(tmp_path, environment, "status", handle), LONGEST, "it goes on")
    assert_every_rank_said(torchx(tmp_path, environment, "log", handle))

    pods = [item["metadata"]["name"] for item in items if item["kind"] == "Pod"]
    for pod in pods:
        condition = ("--for=jsonpath={.status.phase}=Succeeded", f"--timeout={LONGEST}s")
        programs.kubectl("wait", "-n", namespace, *condition, f"pod/{pod}", timeout_s=LONGEST + 30)
    logs = "".join(programs.kubectl("logs", "-n", namespace, pod) for pod in pods)
    assert_every_rank_said(logs)


def items_of(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the objects inside TorchX's AppWrapper, which its controller would make."""
    return [item["generictemplate"] for item in request["spec"]["resources"]["GenericItems"]]
