"""TorchX's documentation of its Kubernetes scheduler, under ours: its command, options, mounts, resources, features.

Then the commands of our own page on TorchX, line by line.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("torchx")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "torchx.md"
APPDEF = Path(__file__).resolve().parents[2] / "examples" / "import" / "appdef.json"

# the options as TorchX's page has them -> their types
OPTIONS = {
    "namespace": "str",
    "image_repo": "str",
    "service_account": "str",
    "priority": "int",
    "priority_class_name": "str",
    "image_secret": "str",
    "coscheduler_name": "str",
    "network": "str",
}
# As on the page, except for the scheduler.
COMMAND = (
    "torchx run --scheduler {scheduler} --scheduler_args namespace=default,image_repo=<your_image_repo>{more} {dryrun}"
    " utils.echo --image alpine:latest --msg hello"
)
# The page's Resource, its placeholder `<cloud instance type>` filled in.
COMPONENT = '''
from torchx import specs

def trainer(nodes: int = 1) -> specs.AppDef:
    """A component.

    Args:
        nodes: how many
    """
    resource = specs.Resource(
        cpu=4,
        memMB=16000,
        gpu=2,
        capabilities={
            "node.kubernetes.io/instance-type": "p4d.24xlarge",
        },
    )
    role = specs.Role(name="trainer", image="alpine:latest", entrypoint="sleep", args=["60"], num_replicas=nodes)
    role.resource = resource
    return specs.AppDef(name="trainer", roles=[role])
'''


@pytest.fixture
def project(here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a script, a component and an AppDef; `torchrun` is a fake that prints its arguments."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "torchrun").write_text('#!/bin/sh\necho torchrun "$@"\nexec sleep 60\n')
    (tools / "torchrun").chmod(0o755)
    for name, module in (("torchx", "torchx.cli.main"), ("symph", "symphony_charts")):
        (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n')
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    folder = tmp_path / "project"
    (folder / "my").mkdir(parents=True)
    (folder / "main.py").write_text("print('main')\n")
    (folder / "my" / "components.py").write_text(COMPONENT)
    (folder / "app.json").write_text(APPDEF.read_text())
    monkeypatch.chdir(folder)
    return folder


def command(line: str) -> str:
    done = subprocess.run(shlex.split(line, comments=True), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def request(line: str) -> list[dict[str, Any]]:
    shown = command(line).partition("=== SCHEDULER REQUEST ===\n")[2]
    return [one for one in yaml.safe_load_all(shown) if one]


def pod_of(line: str) -> dict[str, Any]:
    (job,) = [one for one in request(line) if one["kind"] == "Job"]
    template: dict[str, Any] = job["spec"]["template"]
    return template


@pytest.mark.usefixtures("project")
def test_the_command_of_the_page_runs_here_and_shows_a_cluster_s_objects() -> None:
    assert command(COMMAND.format(scheduler="symph", more="", dryrun="")).strip() == "symph://torchx/echo"
    template = pod_of(COMMAND.format(scheduler="symph", more=",on=kube", dryrun="--dryrun"))
    assert template["spec"]["containers"][0]["image"] == "alpine:latest"
    assert template["spec"]["containers"][0]["args"] == ["hello"]


@pytest.mark.usefixtures("project")
def test_the_command_of_the_page_still_reaches_torchx_s_own_scheduler() -> None:
    (wrapper,) = request(COMMAND.format(scheduler="kubernetes_mcad", more="", dryrun="--workspace '' --dryrun"))
    assert wrapper["kind"] == "AppWrapper"


@pytest.mark.usefixtures("project")
def test_every_option_of_the_page_is_listed_with_its_type() -> None:
    listed = dict(re.findall(r"(\w+)=[A-Z_]+ \((\w+), ", command("torchx runopts symph")))
    assert {name: listed.get(name) for name in OPTIONS} == OPTIONS
    ours = command("symph import runopts")
    assert {
        name: re.search(rf"^{name} +{kind} ", ours, re.MULTILINE) is not None for name, kind in OPTIONS.items()
    } == (dict.fromkeys(OPTIONS, True))


@pytest.mark.usefixtures("project")
def test_every_option_of_the_page_reaches_the_objects() -> None:
    cfg = "namespace=ml,service_account=sa,priority_class_name=high,image_secret=pull,coscheduler_name=gang,network=net"
    shown = request(f"torchx run -s symph -cfg on=kube,{cfg},priority=3 --dryrun utils.echo")
    text = yaml.safe_dump_all(shown)
    wanted = (
        "namespace: ml",
        "serviceAccountName: sa",
        "priorityClassName: high",
        "imagePullSecrets:",
        "schedulerName: gang",
        "kind: PodGroup",
        "k8s.v1.cni.cncf.io/networks: net",
    )
    assert [line for line in wanted if line not in text] == []


# The mounts of the page: the volume of the pod, its path, and if it is read-only.
MOUNTS: dict[str, tuple[dict[str, object], str, bool]] = {
    "type=bind,src=/host,dst=/data,readonly": ({"hostPath": {"path": "/host"}}, "/data", True),
    "type=volume,src=claim,dst=/ckpt": ({"persistentVolumeClaim": {"claimName": "claim"}}, "/ckpt", False),
    "type=device,src=/dev/foo,perm=rwm": ({"hostPath": {"path": "/dev/foo"}}, "/dev/foo", False),
}


@pytest.mark.usefixtures("project")
def test_every_mount_of_the_page_reaches_the_pod() -> None:
    line = f"torchx run -s symph -cfg on=kube --dryrun dist.ddp -j 1x1 --script main.py --mount {','.join(MOUNTS)}"
    spec = pod_of(line)["spec"]
    (container,) = spec["containers"]
    for source, target, is_read_only in MOUNTS.values():
        (seen,) = [one for one in container["volumeMounts"] if one["mountPath"] == target]
        (volume,) = [one for one in spec["volumes"] if one["name"] == seen["name"]]
        assert volume.items() >= source.items()
        assert seen.get("readOnly", False) is is_read_only
    assert container["securityContext"]["privileged"]


@pytest.mark.usefixtures("project")
def test_the_resource_of_the_page_selects_the_machine_and_nothing_is_taken_off_unasked() -> None:
    line = "torchx run -s symph -cfg on=kube{more} --dryrun my/components.py:trainer"
    spec = pod_of(line.format(more=""))["spec"]
    assert spec["nodeSelector"] == {"node.kubernetes.io/instance-type": "p4d.24xlarge"}
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "4000m", "memory": "16000M"}
    reserved = pod_of(line.format(more=",reserve=true"))["spec"]["containers"][0]["resources"]
    assert reserved["requests"] == {"cpu": "3900m", "memory": "14976M"}
    assert reserved["limits"] == {"cpu": "4000m", "memory": "16000M", "nvidia.com/gpu": "2"}


def page_commands() -> list[str]:
    """Return the commands of our page, in order, without those that install something or need a cluster."""
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line]
    return [line for line in lines if not line.startswith("pip ") and ("on=kube" not in line or "--dryrun" in line)]


def test_the_commands_of_our_page_all_work_in_their_order(project: Path) -> None:
    lines = page_commands()
    assert len(lines) >= 10
    said = {line: command(line) for line in lines}
    assert said["torchx run -s symph dist.ddp -j 2x4 --script main.py"].strip() == "symph://torchx/main"
    assert (project / "dist" / "main" / "Chart.yaml").is_file()
    assert (project / "experiment.yaml").is_file()
