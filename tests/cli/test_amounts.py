"""Memory amounts at the limits of what Kubernetes parses, through the verbs that read a spec."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.symph import symph

VERBS = {"plan": ["--pools", "pools.yaml"], "validate": [], "package": ["-d", "charts"], "up": ["--dry-run"]}


def ended(folder: Path, verb: str, memory: str) -> subprocess.CompletedProcess[str]:
    """Run the verb on an experiment that asks for `memory`."""
    (folder / "pools.yaml").write_text("pools: [{name: std8, machine_type: n1-standard-8, max_nodes: 9}]\n")
    process = f"{{command: [sleep, '1'], requests: {{memory: {memory}}}, limits: {{memory: {memory}}}}}"
    (folder / "q.yaml").write_text(f"name: q\nimage: busybox:1.37.0\nprocesses:\n  a: {process}\n", encoding="utf-8")
    return symph(verb, "q.yaml", *VERBS[verb], cwd=folder)


@pytest.mark.parametrize(("verb", "status"), [("plan", 4), ("validate", 0), ("package", 0), ("up", 0)])
@pytest.mark.parametrize("memory", ["1Ei", "16Ei"])
def test_an_exbibyte_is_an_amount_that_no_node_has(verb: str, status: int, memory: str, tmp_path: Path) -> None:
    done = ended(tmp_path, verb, memory)
    assert done.returncode == status, done.stderr


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("memory", ["1e400", '"1\\n"', "\uff11", "Gi", "-1", "10E"])
def test_uncountable_amounts_are_refused_with_their_place(verb: str, memory: str, tmp_path: Path) -> None:
    done = ended(tmp_path, verb, memory)
    assert done.returncode == 3, done.stderr
    assert "q.yaml:4, processes.a.requests.memory" in done.stderr
    assert "next:" in done.stderr
