"""Why an experiment does not run: each cause is made on the cluster, and read by `symph status` in one sentence."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.programs import Programs, eventually
from tests.tools import HELM_VERSIONS, helm

pytestmark = pytest.mark.rig

_WAIT_S = 90
_QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "few"},
    "spec": {"hard": {"requests.cpu": "50m"}},
}
_NAP = {"cmds": ["sleep 300"], "grace_period": 1}
_CAUSES: dict[str, tuple[dict[str, Any], str, str, int]] = {
    "image": (
        {"image": "denied.example/agent:1"},
        "the image denied.example/agent:1 cannot be pulled: pull access denied",
        "name a registry login in image_pull_secrets",
        1,
    ),
    "image that is not there": (
        {"image": "absent.example/agent:1"},
        "the image absent.example/agent:1 cannot be pulled: absent.example/agent:1: not found",
        "mend the image in the spec",
        1,
    ),
    "pool": ({"requests": {"cpu": "900"}}, "Insufficient cpu; the plan on the cluster's nodes: NO, ", "", 0),
    "quota": ({}, "the quota few is used up: asks for requests.cpu=", "kubectl -n {} describe resourcequota few", 0),
    "secret": (
        {"env": {"TOKEN": {"secret": "absent", "key": "token"}}},
        "the Secret absent is missing",
        "symph secrets push SPEC -n {}",
        1,
    ),
    "failed": (
        {"cmds": ["echo first; echo no module named gym; exit 3"]},
        ": no module named gym",
        "symph logs nap exp --tail 50 -n {}",
        1,
    ),
}


@pytest.fixture
def symph(programs: Programs, tmp_path: Path) -> Callable[..., Any]:
    """Runs one command line in a folder of its own."""
    env = {"HELM_BIN": str(helm(HELM_VERSIONS[-1])), "SYMPH_STATE_DIR": str(tmp_path / "state")}

    def run(*words: str) -> Any:
        argv = [sys.executable, "-m", "symphony_charts", *words]
        return programs.try_run(argv, cwd=tmp_path, more_env=env, timeout_s=120)

    return run


@pytest.mark.parametrize("case", _CAUSES)
def test_each_cause_on_a_cluster_is_one_sentence_with_a_step(
    case: str, symph: Callable[..., Any], programs: Programs, namespace: str, tmp_path: Path
) -> None:
    fields, text, step, code = _CAUSES[case]
    if case == "quota":
        programs.kubectl("-n", namespace, "apply", "-f", "-", stdin=json.dumps(_QUOTA))
    spec = {"name": "exp", "image": "busybox:1.37.0", "processes": {"nap": {**_NAP, **fields}}}
    (tmp_path / "exp.json").write_text(json.dumps(spec))
    started = symph("install", "exp.json", "-n", namespace)
    assert started.code == 0, started.err

    def why() -> dict[str, Any]:
        (item,) = json.loads(symph("status", "exp", "-n", namespace, "-o", "json").out)["items"]
        return dict(item["why"] or {})

    cause = case.partition(" ")[0]
    found = eventually(
        lambda: why().get("cause") == cause and text in why()["text"] and why(), _WAIT_S, lambda: str(why())
    )
    assert isinstance(found, dict)
    assert found["next"].startswith(step.format(namespace)), found
    assert found["processes"] == ["nap"]
    said = symph("status", "exp", "-n", namespace)
    assert (said.code, text in said.out) == (code, True), said
    # The other verbs say the same.
    described = json.loads(symph("describe", "exp", "-n", namespace, "-o", "json").out)["why"]
    assert (described["cause"], text in described["text"]) == (cause, True)
    assert text in symph("process", "exp", "-n", namespace).err


def test_run_says_why_nothing_comes(
    symph: Callable[..., Any], namespace: str, tmp_path: Path, programs: Programs
) -> None:
    spec = {"name": "exp", "processes": {"nap": {**_NAP, "image": "denied.example/agent:1"}}}
    (tmp_path / "exp.json").write_text(json.dumps(spec))
    env = {**os.environ, **programs.environment(), "HELM_BIN": str(helm(HELM_VERSIONS[-1]))}
    argv = [sys.executable, "-m", "symphony_charts", "run", "exp.json", "-n", namespace]
    with subprocess.Popen(argv, cwd=tmp_path, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as running:
        assert running.stderr
        line = next(line for line in running.stderr if b"cannot be pulled" in line)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=120)
    assert b"nap * the image denied.example/agent:1 cannot be pulled: pull access denied" in line
