"""Reasons why an experiment does not run: each is caused on the cluster and read by `symph status`."""

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

from tests.e2e.programs import Programs, Symph
from tests.e2e.tools.modules import SEALED_SECRETS
from tests.gitops.servers import commit, git
from tests.tools import newest_helm
from tests.waiting import eventually

_WAIT_S = 90
Why = Callable[[], dict[str, Any]]
# The objects that exist before the experiment, by cause.
_BEFORE = {
    "quota": "create quota few --hard=requests.cpu=50m",
    "secret without the key": "create secret generic held",
    "config without the key": "create configmap held",
    "refused": "label namespace {} pod-security.kubernetes.io/enforce=restricted",
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
        "correct the image in the spec",
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
    "secret without the key": (
        {"env": {"TOKEN": {"secret": "held", "key": "token"}}},
        "the Secret {}/held has no key token",
        "symph secrets push SPEC -n {}",
        1,
    ),
    "secret as a folder": (
        {"mounts": [{"at": "/keys", "secret": {"secret": "absent"}}]},
        "the Secret absent is missing",
        "symph secrets push SPEC -n {}",
        1,
    ),
    "config": (
        {"env": {"RATE": {"config": "absent", "key": "rate"}}},
        "the ConfigMap absent is missing",
        "symph upgrade SPEC -n {}",
        1,
    ),
    "config without the key": (
        {"env": {"RATE": {"config": "held", "key": "rate"}}},
        "the ConfigMap {}/held has no key rate",
        "symph upgrade SPEC -n {}",
        1,
    ),
    "refused": (
        {},
        'the cluster refuses its pods: violates PodSecurity "restricted:latest": ',
        "kubectl -n {} get events --field-selector type=Warning",
        1,
    ),
    "probe": (
        {"ready": {"exec": ["sh", "-c", "echo no model yet; exit 1"], "timeout": "30s"}},
        "not ready: no model yet",
        "symph logs nap exp --tail 50 -n {}",
        0,
    ),
    "failed": (
        {"cmds": ["echo first; echo no module named gym; exit 3"]},
        ": no module named gym",
        "symph logs nap exp --tail 50 -n {}",
        1,
    ),
}


@pytest.fixture
def symph(programs: Programs, tmp_path: Path) -> Symph:
    env = {"HELM_BIN": str(newest_helm()), "SYMPH_STATE_DIR": str(tmp_path / "state")}
    return lambda *words: programs.symph(*words, cwd=tmp_path, env=env)


@pytest.fixture
def why(symph: Symph, namespace: str) -> Why:
    """Return a function that returns the reason of `symph status` why `exp` does not run, and the exit status."""

    def answer() -> dict[str, Any]:
        done = symph("status", "exp", "-n", namespace, "-o", "json")
        (item,) = json.loads(done.out)["items"]
        return {**(item["why"] or {}), "code": done.code}

    return answer


@pytest.mark.parametrize("case", _CAUSES)
def test_each_cause_on_a_cluster_is_one_sentence_with_a_step(
    case: str, symph: Symph, why: Why, programs: Programs, namespace: str, tmp_path: Path
) -> None:
    fields, text, step, code = _CAUSES[case]
    text = text.replace("{}", namespace)
    if case in _BEFORE:
        programs.kubectl("-n", namespace, *_BEFORE[case].format(namespace).split())
    spec = {"name": "exp", "image": "busybox:1.37.0", "processes": {"nap": {**_NAP, **fields}}}
    (tmp_path / "exp.json").write_text(json.dumps(spec))
    started = symph("install", "exp.json", "-n", namespace)
    assert started.code == 0, started.err

    cause = case.partition(" ")[0]

    def hit() -> dict[str, Any] | None:
        now = why()
        return now if now.get("cause") == cause and text in now["text"] else None

    found = eventually(hit, _WAIT_S, lambda: str(why()))
    assert found["next"].startswith(step.format(namespace)), found
    assert (found["processes"], found["code"]) == (["nap"], code)
    if case == "image":  # other verbs print the same
        assert text in symph("status", "exp", "-n", namespace).out
        described = json.loads(symph("describe", "exp", "-n", namespace, "-o", "json").out)["why"]
        assert (described["cause"], text in described["text"]) == (cause, True)
        assert text in symph("process", "exp", "-n", namespace).err


def test_git_and_the_cluster_that_are_not_alike_are_told_apart(
    symph: Symph, programs: Programs, namespace: str, tmp_path: Path
) -> None:
    bare = tmp_path / "charts.git"
    programs.run(["git", "init", "-q", "--bare", "-b", "main", str(bare)])
    context = programs.kubectl("config", "current-context").strip()
    dev = f"{{namespace: {namespace}, context: {context}}}"
    settings = f"team: ml\nrepository: {{url: {bare}, author: A <a@b.c>}}\nenvironments: {{dev: {dev}}}\n"
    (tmp_path / ".symph.yaml").write_text(settings)

    def publish(seconds: int) -> None:
        nap = {"cmds": [f"sleep {seconds}"], "grace_period": 1}
        spec = {"name": "exp", "image": "busybox:1.37.0", "processes": {"nap": nap}}
        (tmp_path / "exp.json").write_text(json.dumps(spec))
        assert symph("publish", "exp.json", "--env", "dev").code == 0

    def why() -> tuple[str, str, int]:
        done = symph("status", "exp", "--env", "dev", "-o", "json")
        (item,) = json.loads(done.out)["items"]
        return item["why"]["cause"], item["why"]["text"], done.code

    publish(300)
    assert why() == ("start", f"published, and {context} runs nothing of it yet", 0)
    assert symph("install", "exp.json", "-n", namespace).code == 0
    publish(301)
    assert why() == ("drift", "Git says exp-0.1.1, the cluster runs exp-0.1.0", 1)
    pointer = "envs/dev/ml/exp.symph-app.yaml"
    commit(bare, {pointer: git(bare, "show", f"main:{pointer}").replace("0.1.1", "0.1.9")})
    assert why() == ("chart", "the chart that it names is not in the repository", 1)


def test_a_job_that_somebody_suspended_is_no_fault(
    symph: Symph, why: Why, programs: Programs, namespace: str, tmp_path: Path
) -> None:
    spec = {"name": "exp", "image": "busybox:1.37.0", "processes": {"nap": _NAP}}
    (tmp_path / "exp.json").write_text(json.dumps(spec))
    assert symph("install", "exp.json", "-n", namespace).code == 0
    job = programs.kubectl("-n", namespace, "get", "jobs", "-o", "name").strip()
    programs.kubectl("-n", namespace, "patch", job, "-p", '{"spec": {"suspend": true}}')

    eventually(lambda: why().get("cause") == "suspended", _WAIT_S, lambda: str(why()))
    said = symph("status", "exp", "-n", namespace)
    assert (said.code, "nap: suspended until it is resumed" in said.out) == (0, True), said


def test_run_says_why_nothing_comes(symph: Symph, namespace: str, tmp_path: Path, programs: Programs) -> None:
    spec = {"name": "exp", "processes": {"nap": {**_NAP, "image": "denied.example/agent:1"}}}
    (tmp_path / "exp.json").write_text(json.dumps(spec))
    env = {**os.environ, **programs.environment(), "HELM_BIN": str(newest_helm())}
    argv = [sys.executable, "-m", "symphony_charts", "run", "exp.json", "-n", namespace]
    with subprocess.Popen(argv, cwd=tmp_path, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as running:
        assert running.stderr
        line = next(line for line in running.stderr if b"cannot be pulled" in line)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=120)
    assert b"nap * the image denied.example/agent:1 cannot be pulled: pull access denied" in line


def test_a_secret_that_its_controller_cannot_open_says_why(
    symph: Symph, why: Why, programs: Programs, namespace: str, tmp_path: Path
) -> None:
    programs.define(SEALED_SECRETS, "helm/sealed-secrets/crds/*.yaml")
    (tmp_path / "token.txt").write_text("t")
    nap = {**_NAP, "cmds": ["sleep 100"]}
    secrets = {"secrets": ["token.txt"], "secret_source": {"source": "sealed"}}
    spec = {"name": "exp", "image": "busybox:1.37.0", "processes": {"nap": nap}, **secrets}
    (tmp_path / "exp.json").write_text(json.dumps(spec))
    sealed = json.dumps({"secrets": {"encryptedData": {"token.txt": "AgB1"}}})
    (tmp_path / "sealed.json").write_text(sealed)
    started = symph("install", "exp.json", "-n", namespace, "-f", "sealed.json")
    assert started.code == 0, started.err
    # As the controller writes it.
    condition = {"type": "Synced", "status": "False", "message": "no key could decrypt secret (token.txt)"}
    patch = json.dumps({"status": {"conditions": [condition]}})
    words = ("patch", "sealedsecret", "exp-secrets", "--type=merge", "--subresource=status", "-p", patch)
    programs.kubectl("-n", namespace, *words)

    wanted = "the sealed Secret exp-secrets cannot be opened: no key could decrypt secret (token.txt)"
    eventually(lambda: why().get("text") == wanted, _WAIT_S, lambda: str(why()))
    assert why()["next"] == f"symph secrets seal SPEC --cert cluster -n {namespace}"
    assert wanted in symph("status", "exp", "-n", namespace).out
