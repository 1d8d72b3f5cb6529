"""macOS and Windows make, check and publish experiments, and watch them on clusters; local runs need Linux.

Simulated: Python's library as it is there (tests/cli/other_system.py). Nothing here ran on such a machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.mistakes import OK

ROOT = Path(__file__).parents[2]
POOLS = "pools: [{name: std, machine_type: n1-standard-8, max_nodes: 4}]\n"
WORKS = (
    "package e.yaml",
    "validate e.yaml",
    "render e.yaml",
    "plan e.yaml --pools pools.yaml",
    "publish e.yaml --env dev --team t --repo r.git",
    "history rl --env dev --repo r.git",
    "sweep e.yaml --grid processes.a.replicas=1,2 --on argo",
    "init mine",
    "status",
)
CLUSTER = (
    "ls --on kube",
    "logs rl --on kube",
    "exec a rl --on kube -- sh",
    "run e.yaml --on kube",
    "wait rl --on kube",
)
LOCAL = (
    "up e.yaml",
    "up e.yaml --dry-run",
    "run e.yaml",
    "ls",
    "ps",
    "down rl",
    "attach rl",
    "restart a",
    "sweep e.yaml --grid processes.a.replicas=1,2 --up",
)
Said = list[dict[str, Any]]


def run(system: str, folder: Path, *lines: str) -> Said:
    (folder / "e.yaml").write_text(OK)
    (folder / "pools.yaml").write_text(POOLS)
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", "r.git"], cwd=folder, check=True)
    who = {f"GIT_{role}_{what}": "u@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {**os.environ, **who, "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", "tests.cli.other_system", system, *lines]
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(("system", "name"), [("darwin", "macOS"), ("win32", "Windows")])
def test_verbs_without_linux_work_and_the_others_are_refused_first(system: str, name: str, tmp_path: Path) -> None:
    said = run(system, tmp_path, *WORKS, *CLUSTER, *LOCAL, "doctor -o json")
    works, cluster = said[: len(WORKS)], said[len(WORKS) : len(WORKS) + len(CLUSTER)]
    local, doctor = said[len(WORKS) + len(CLUSTER) : -1], said[-1]
    assert [(line, one["err"]) for line, one in zip(WORKS, works, strict=True) if one["status"]] == []
    first = [one["err"].partition("\n")[0] for one in cluster]
    assert [line for line in first if not line.startswith("error: no cluster is configured")] == []
    refusal = f"error: experiments run on a local machine only under Linux, and this is {name}"
    told = [(one["status"], one["err"].partition("\n")[0]) for one in local]
    assert [pair for pair in zip(LOCAL, told, strict=True) if pair[1] != (5, refusal)] == []
    system_row = json.loads(doctor["out"])["items"][0]
    assert (system_row["name"], system_row["status"], name in system_row["detail"]) == ("system", "warning", True)
