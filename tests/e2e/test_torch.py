"""A real torch finds its peers: TorchX's `dist.ddp` in tmux, on the cluster, and there as TorchX's own objects."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.programs import Programs
from tests.e2e.torch_environment import torch_folder
from tests.torchx_scheduler.conftest import Torchx
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


def component(torch_bin: Path) -> list[str]:
    path = f"PATH={torch_bin}:/usr/bin:/bin"
    return ["dist.ddp", "-j", SHAPE, "--cpu", "1", "--memMB", "700", "--env", path, "--script", str(PROGRAM)]


def assert_every_rank_said(text: str) -> None:
    missing = [rank for rank in range(RANKS) if f"rank {rank} of {RANKS}: {TOTAL}" not in text]
    assert not missing, f"{missing} of {RANKS}: {text}"


@pytest.mark.usefixtures("here")
def test_every_rank_finds_its_peers_in_tmux(torch_bin: Path, tmp_path: Path) -> None:
    run = ("run", "-s", "symph", "--workspace", "", "--wait", "--log", *component(torch_bin))
    assert_every_rank_said(Torchx(folder=tmp_path, timeout_s=LONGEST)(*run).stderr)


def test_every_rank_finds_its_peers_on_the_cluster_as_with_the_objects_of_torchx(
    programs: Programs, namespace: str, torch_bin: Path, tmp_path: Path
) -> None:
    torchx = Torchx(folder=tmp_path, env=dict(programs.environment()), timeout_s=LONGEST)
    own = ("run", "-s", "kubernetes_mcad", "-cfg", f"namespace={namespace}", "--workspace", "", "--dryrun")
    shown = torchx(*own, *component(torch_bin)).stdout
    items = items_of(yaml.safe_load(shown.partition("=== SCHEDULER REQUEST ===\n")[2]))
    (tmp_path / "own.yaml").write_text(yaml.safe_dump_all(items))
    programs.kubectl("apply", "-n", namespace, "-f", str(tmp_path / "own.yaml"))

    ours = ("run", "-s", "symph", "-cfg", f"on=kube,namespace={namespace}", "--workspace", "")
    handle = torchx(*ours, *component(torch_bin)).stdout.splitlines()[-1]
    eventually(lambda: "State: SUCCEEDED" in torchx("status", handle).stdout, LONGEST, "it goes on")
    assert_every_rank_said(torchx("log", handle).stdout)

    pods = [item["metadata"]["name"] for item in items if item["kind"] == "Pod"]
    for pod in pods:
        condition = ("--for=jsonpath={.status.phase}=Succeeded", f"--timeout={LONGEST}s")
        programs.kubectl("wait", "-n", namespace, *condition, f"pod/{pod}", timeout_s=LONGEST + 30)
    logs = "".join(programs.kubectl("logs", "-n", namespace, pod) for pod in pods)
    assert_every_rank_said(logs)


def items_of(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the objects inside TorchX's AppWrapper, which its controller would make."""
    return [item["generictemplate"] for item in request["spec"]["resources"]["GenericItems"]]
