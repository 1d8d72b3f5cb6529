"""``torchx run -s symph`` on a real cluster: submitted, watched, read and cancelled by TorchX's own commands."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.e2e.programs import Programs
from tests.torchx_scheduler.conftest import Torchx
from tests.waiting import eventually

pytest.importorskip("torchx")


def test_an_application_goes_to_the_cluster_and_back_by_torchx_alone(
    programs: Programs, namespace: str, tmp_path: Path
) -> None:
    def torchx(*words: str) -> str:
        return Torchx(folder=tmp_path, env=dict(programs.environment()))(*words).stdout

    (tmp_path / ".torchxconfig").write_text(f"[symph]\non = kube\nnamespace = {namespace}\n")
    script = "echo replica $SYMPH_INDEX of $SYMPH_REPLICAS, in $${TORCHX_JOB_ID##*/}"
    command = ("utils.sh", "--image", "busybox:1.37.0", "--num_replicas", "2", "sh", "-c", script)
    handle = torchx("run", "-s", "symph", *command).strip()
    assert handle == f"symph://torchx/{namespace}:sh"
    eventually(lambda: "State: SUCCEEDED" in torchx("status", handle), 60, "it has not succeeded")
    logs = torchx("log", handle)
    assert "sh/0 replica 0 of 2" in logs
    assert "sh/1 replica 1 of 2" in logs
    (app_id,) = {line.rpartition(" ")[2] for line in logs.splitlines() if ", in " in line}
    assert app_id.startswith("sh-")
    assert "SUCCEEDED" in torchx("list", "-s", "symph")
    (role,) = ast.literal_eval(torchx("describe", handle).replace("<RetryPolicy.APPLICATION: 'APPLICATION'>", "''"))[
        "roles"
    ]
    assert (role["name"], role["image"], role["num_replicas"]) == ("sh", "busybox:1.37.0", 2)
    assert (role["entrypoint"], role["args"][:1]) == ("sh", ["-c"])
    assert "TORCHX_JOB_ID" in role["env"]

    endless = torchx("run", "-s", "symph", "utils.sh", "--image", "busybox:1.37.0", "sleep", "300").strip()
    assert endless == f"symph://torchx/{namespace}:sh-2"
    torchx("cancel", endless)
    eventually(lambda: "sh-2" not in torchx("list", "-s", "symph"), 60, "it was not cancelled")
    assert handle in torchx("list", "-s", "symph")
