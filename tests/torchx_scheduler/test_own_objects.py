"""``compat: torchx``: the same objects as TorchX's own schedulers submit, judged by the real ones."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.cli.main import main
from symphony_charts.formats.yaml_read import load
from symphony_charts.importers.report import Log
from symphony_charts.integrations.torchx import components, objects
from symphony_charts.integrations.torchx.appdef import AppDef, read_appdef
from symphony_charts.integrations.torchx.objects import app_wrapper
from symphony_charts.integrations.torchx.options import RunOptions, read_options
from symphony_charts.torchx_scheduler.mcad import KubernetesMCADJob
from tests.torchx_scheduler.conftest import Torchx

PROGRAM = Path(__file__).with_name("own_requests.py")
CASES = 60

TEXTS = [
    "main.py",
    "--rank=${replica_id}",
    "$${${rank0_env}:=localhost}:29500",
    "${app_id}",
    "${img_root}/x",
    "$HOME",
    "",
]
NAMES = ["trainer", "Reader_2", "a-b", "-x", "1-My_App!.v2", "ps"]
LONG = "an-application-of-a-name-that-kubernetes-has-no-room-for-in-labels"
MOUNTS: list[list[str]] = [
    [],
    ["type=bind,src=/host,dst=/data,readonly"],
    ["type=volume,src=claim,dst=/ckpt"],
    ["type=device,src=/dev/fuse,perm=r"],
    ["type=device,src=/dev/infiniband,dst=/dev/ib"],
    ["type=bind,src=/a,dst=/b", "type=volume,src=c,dst=/d,readonly"],
]


def some_role(chance: random.Random, number: int) -> dict[str, Any]:
    """Return a role of any shape that TorchX accepts."""
    replicas = chance.randint(1, 3)
    devices = chance.choice([{}, {"vpc.amazonaws.com/efa": 2}, {"example.com/nic": 1}])
    capabilities = chance.choice([{}, {"node.kubernetes.io/instance-type": "p4d.24xlarge", "other": "x"}])
    return {
        "name": f"{chance.choice(NAMES)}{number}",
        "image": chance.choice(["busybox:1", "registry.example.com/x/y@sha256:" + "0" * 64, "sha256:" + "a" * 64]),
        "entrypoint": chance.choice(["python", "bash"]),
        "args": chance.choices(TEXTS, k=chance.randint(0, 3)),
        "env": {f"V{index}": chance.choice(TEXTS) for index in range(chance.randint(0, 2))},
        "num_replicas": replicas,
        "min_replicas": chance.choice([None, 1, replicas]),
        "max_retries": chance.choice([0, 0, 1, 3]),
        "retry_policy": chance.choice(["REPLICA", "APPLICATION"]),
        "resource": {
            "cpu": chance.choice([0, 0.05, 1.5, 8, 96]),
            "gpu": chance.choice([0, 1, 8]),
            "memMB": chance.choice([0, 100, 1024, 32000]),
            "capabilities": capabilities,
            "devices": devices,
        },
        "port_map": chance.choice([{}, {"c10d": 29500}, {"http": 80, "grpc": 7070}, {"bad": 0}]),
        "metadata": {"team": "vision"},
        "mounts": [option for text in chance.choice(MOUNTS) for option in text.split(",")],
    }


def some_app(chance: random.Random) -> dict[str, Any]:
    roles = [some_role(chance, number) for number in range(chance.randint(1, 3))]
    return {"name": chance.choice(["cifar", LONG, *NAMES]), "roles": roles, "metadata": {"owner": "ada"}}


def maybe(chance: random.Random, **values: object) -> dict[str, object]:
    return {key: value for key, value in values.items() if chance.random() < 0.5}


def mcad_case(seed: int) -> dict[str, Any]:
    """Return an application for the MCAD scheduler, with some of its options."""
    chance = random.Random(seed)
    cfg = maybe(
        chance,
        namespace="ml",
        service_account="sa",
        priority=chance.choice([0, 7]),
        priority_class_name="high",
        image_secret="pull",  # noqa: S106 - the name of a Secret
        coscheduler_name="gang",
        network="fast",
    )
    return {
        "app": some_app(chance),
        "scheduler": "kubernetes_mcad",
        "cfg": {"namespace": "default", "image_repo": "r.example.com/i", **cfg},
    }


def answers(torchx: Torchx, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the answers of the real TorchX to all cases, from one process."""
    env = {**os.environ, "PYTHONPATH": torchx.path, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM)],
        input=json.dumps(cases),
        env=env,
        cwd=torchx.folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def record(data: object) -> AppDef:
    log = Log()
    found = read_appdef(data, log)
    assert not log.problems
    return found


def options(cfg: dict[str, object]) -> RunOptions:
    log = Log()
    found = read_options(cfg, log, "cfg")
    assert not log.problems
    return found


def test_every_app_wrapper_is_that_of_the_real_scheduler(release: Torchx) -> None:
    cases = [mcad_case(seed) for seed in range(CASES)]
    theirs = answers(release, cases)
    ours = [
        app_wrapper(record(answer["app"]), options(case["cfg"]), answer["object"]["metadata"]["name"])
        for case, answer in zip(cases, theirs, strict=True)
    ]
    assert json.loads(json.dumps(ours)) == [answer["object"] for answer in theirs]


@pytest.mark.parametrize("option", ["", ",kind=appwrapper"])
def test_the_scheduler_shows_them_under_the_app_id(release: Torchx, option: str) -> None:
    shown = load(release.request("-cfg", f"compat=torchx,app_id=echo-x1,queue=q{option}", "utils.echo"))
    assert isinstance(shown, dict)
    assert (shown["kind"], shown["metadata"]["name"]) == ("AppWrapper", "echo-x1")


def test_a_volcano_job_of_torchx_is_refused_with_the_alternative(release: Torchx) -> None:
    done = release(
        "run", "-s", "symph", "-cfg", "compat=torchx,app_id=x1,kind=volcano", "--dryrun", "utils.echo", status=1
    )
    assert "torchx run -s kubernetes --dryrun" in done.stderr


def test_the_scheduler_does_not_submit_them(release: Torchx) -> None:
    done = release("run", "-s", "symph", "-cfg", "compat=torchx,app_id=x1", "utils.echo", status=1)
    assert "does not submit them" in done.stderr
    assert "kubectl create -f" in done.stderr


def test_without_an_app_id_they_are_refused(release: Torchx) -> None:
    done = release("run", "-s", "symph", "-cfg", "compat=torchx", "--dryrun", "utils.echo", status=1)
    assert "add app_id=ID" in done.stderr


@pytest.mark.parametrize(("has_scheduler", "label"), [(True, "0.6.9"), (False, "0.7.0")])
def test_they_follow_the_installed_torchx(
    has_scheduler: bool, label: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(components, "installed_version", lambda: "0.6.9")
    monkeypatch.setattr(objects, "find_spec", lambda _: object() if has_scheduler else None)
    app = {"name": "a", "roles": [{"name": "r", "image": "i:1", "entrypoint": "x"}]}
    (tmp_path / "app.json").write_text(json.dumps(app))
    assert main(["import", "torchx", str(tmp_path / "app.json"), "--compat", "torchx", "--app-id", "x1"]) == 0
    said = capsys.readouterr()
    # A version in quotes: some readers take bare digits for a number.
    assert f'torchx.pytorch.org/version: "{label}"\n' in said.out
    assert ("has no MCAD scheduler" in said.err) != has_scheduler


def test_the_request_of_the_scheduler_is_there() -> None:
    job = KubernetesMCADJob(images_to_push={}, resource={"kind": "AppWrapper"})
    assert str(job) == repr(job) == "kind: AppWrapper\n"
