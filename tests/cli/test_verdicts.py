"""`validate`, `package` and `publish` accept and refuse the same specs, for the same reasons."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.git_project import SETTINGS, Project

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path for path in ROOT.glob("examples/*/experiment.*") if not path.name.endswith(".lock.yaml"))

_RUN = {"command": ["x"], "requests": {"cpu": "1", "memory": "1Gi"}}
_POOLS = "pools:\n  - {name: small, allocatable: {cpu: 2, memory: 4Gi}, max_nodes: 1}\n"


def one(**fields: object) -> dict[str, object]:
    return {"processes": {"p": {**_RUN, **fields}}}


def pod(**fields: object) -> dict[str, object]:
    """Return a spec of one process with further fields of its pod."""
    return one(pod_overlay={"spec": fields})


def container(**fields: object) -> dict[str, object]:
    """Return a spec of one process with further fields of its container."""
    return one(container_overlay=fields)


_TWO = {"a": {**_RUN, "binds": "s"}, "b": {**_RUN, "connects": "s"}}
_V0 = {"kind": "dijob", "dijob": {"operator": "v0"}}
_CASES: dict[str, dict[str, object]] = {
    # Without errors.
    "plain": one(),
    "two processes": {"processes": _TWO},
    "asks for nothing": {"processes": {"p": {"command": ["x"]}}},
    "an image that may change": one(image="busybox"),
    "an image of another syntax": one(image="busybox:1,0"),
    "a line as a command": one(command=["sleep 5"]),
    "open to the world": {**one(exposes="web"), "expose": {"web": {"type": "LoadBalancer"}}},
    "an order": {"processes": {"a": _RUN, "b": {**_RUN, "after": "a"}}},
    "an unused volume": {**one(), "volumes": {"v": {"type": "empty_dir"}}},
    "no command": {"processes": {"p": {}}},
    "capital letters": {**one(), "name": "Rl_1"},
    "no replicas": one(replicas=0),
    "a path of the node": {
        **one(mounts=[{"volume": "v", "at": "/v"}]),
        "volumes": {"v": {"type": "host_path", "path": "/x"}},
    },
    "a kept service": {"processes": {**_TWO, "c": {**_RUN, "lifecycle": "service", "until": "uninstall"}}},
    # Objects that Argo CD's project refuses.
    "rights": {**one(), "workload": {"kind": "argo"}},
    "an aggregator": {
        "processes": {
            "coordinator": _RUN,
            "aggregator": {**_RUN, "lifecycle": "service", "binds": {"aggregator": 22272}},
        },
        "workload": _V0,
    },
    # Faults of the spec.
    "an unknown key": one(colour="red"),
    "another type": one(replicas="many"),
    "no binder": one(connects="nothing"),
    "two binders": {"processes": {"a": {**_RUN, "binds": "s"}, "b": {**_RUN, "binds": "s"}}},
    "an unknown kind": {**one(), "workload": {"kind": "cron"}},
    "a bad name": {**one(), "name": "é"},
    "no process": {"processes": {}},
    "an unknown volume": one(mounts=[{"volume": "v", "at": "/v"}]),
    "a role of no operator": {"processes": {"coordinator": _RUN, "worker": _RUN}, "workload": _V0},
    # Faults of the chart.
    "a field that no pod has": pod(nonsense=1),
    "a field of another type": pod(hostNetwork="yes"),
    "two faults": pod(nonsense=1, hostNetwork="yes"),
    "an unknown pod volume": container(volumeMounts=[{"name": "none", "mountPath": "/x"}]),
    "a bad quantity": container(resources={"requests": {"cpu": "much"}}),
    "more than the limit": one(requests={"cpu": "4", "memory": "1Gi"}, limits={"cpu": "2"}),
    "a long variable": one(env={"X": "x" * 140_000}),
    "a large file": {**one(), "configs": {"c": {"text": "x" * 1_100_000}}},
    "a broken promise": {**container(securityContext={"privileged": True}), "security": {"level": "restricted"}},
    "a restart of a Job": pod(restartPolicy="Always"),
    "a token": one(env={"KEY": "-----BEGIN OPENSSH PRIVATE KEY----- b3BlbnNzaC1rZXktdjEAAAAABG5vbmU"}),
    "no room": {**one(requests={"cpu": "64", "memory": "1Gi"}), "placement": {"pools": "pools.yaml"}},
    "no room, and a field that no pod has": {
        **one(requests={"cpu": "64", "memory": "1Gi"}, pod_overlay={"spec": {"nonsense": 1}}),
        "placement": {"pools": "pools.yaml"},
    },
}


def errors_in(text: str) -> set[str]:
    """Return the errors in a command's output: message, place and next step."""
    blocks = re.findall(r"^error: .*\n(?:  .*\n)*", text, re.MULTILINE)
    return {re.sub(r"  \[[a-z-]+\]$", "", block, count=1, flags=re.MULTILINE) for block in blocks}


def agree(project: Project, spec: str) -> str:
    """Return the verdict of the three verbs: "taken", "refused", or "refused by publish" for missing rights."""
    status, out, err = project.symph("validate", spec)
    errors = errors_in(out + err)
    refused_rights = "[rights]" in out
    warnings = len(re.findall(r"^warning: .*\[[a-z-]+\]$", out, re.MULTILINE))
    assert bool(errors) == bool(status), (out, err)
    for verb in (["package", spec, "--dry-run"], ["package", spec], ["publish", spec, "--env", "dev"]):
        ended, out, err = project.symph(*verb)
        told = errors_in(err)
        if verb[0] == "publish" and not errors and refused_rights:
            assert ended == 1
            assert "from Git" in err
            return "refused by publish"
        assert (bool(ended), told) == (bool(errors), errors), (verb, out, err)
        if not errors:
            assert (re.search(r"^(\d+) warnings?: symph validate", err, re.MULTILINE) or ["", "0"])[1] == str(warnings)
    if errors:
        assert not (project.folder / "dist").exists()
        assert not list(project.folder.glob("*.lock.yaml"))
    return "refused" if errors else "taken"


def written(project: Project, data: Mapping[str, object]) -> str:
    """Write a spec file that holds `data`, beside small node pools."""
    (project.folder / "pools.yaml").write_text(_POOLS)
    project.write(json.dumps({"name": "rl", "image": "busybox:1.37.0", **data}))
    return "rl.yaml"


@pytest.mark.parametrize("case", _CASES)
def test_the_three_verbs_agree(project: Project, case: str) -> None:
    names = list(_CASES)
    if names.index(case) < names.index("rights"):
        wanted = "taken"
    else:
        wanted = "refused by publish" if case in ("rights", "an aggregator") else "refused"
    assert agree(project, written(project, _CASES[case])) == wanted


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.parent.name)
def test_the_three_verbs_take_every_example(project: Project, example: Path) -> None:
    shutil.copytree(ROOT / "examples", project.folder, dirs_exist_ok=True)
    assert agree(project, f"{example.parent.name}/{example.name}") == "taken"


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/argo/*.yaml")), ids=lambda path: path.stem)
def test_the_three_verbs_agree_on_the_pipelines(project: Project, path: Path) -> None:
    shutil.copytree(path.parent, project.folder, dirs_exist_ok=True)
    assert agree(project, path.name) == "refused by publish"


@pytest.mark.parametrize("file", sorted(ROOT.glob("examples/import/dijob-*.yaml")), ids=lambda path: path.stem)
def test_the_three_verbs_take_the_dijobs_of_the_examples(project: Project, file: Path) -> None:
    assert project.symph("import", "dijob", str(file), "--to", "rl.yaml")[0] == 0
    wanted = "refused by publish" if "AggregatorConfig" in file.read_text() else "taken"
    assert agree(project, "rl.yaml") == wanted


def test_the_pools_of_the_project_count_for_all_three(project: Project) -> None:
    settings = project.folder / ".symph.yaml"
    settings.write_text(SETTINGS.replace("REPO", str(project.repo)) + "pools: pools.yaml\n")
    large = one(requests={"cpu": "64", "memory": "1Gi"})
    assert agree(project, written(project, large)) == "refused"
    for verb in (["validate"], ["package"], ["publish", "--env", "dev"]):
        assert project.symph(*verb, "rl.yaml", "--force-unschedulable")[0] == 0, verb


def test_a_chart_that_is_wrong_leaves_the_one_before_alone(project: Project) -> None:
    spec = written(project, one())
    assert project.symph("package", spec)[0] == 0
    before = {path: path.read_bytes() for path in project.folder.rglob("*") if path.is_file() and path.name != spec}
    assert project.symph("package", written(project, pod(nonsense=1)))[0] == 1
    after = {path: path.read_bytes() for path in project.folder.rglob("*") if path.is_file() and path.name != spec}
    assert after == before


def test_the_faults_of_all_specs_are_told(project: Project) -> None:
    for name in ("a", "b"):
        data: dict[str, Any] = {"name": name, "image": "busybox:1.37.0", **pod(nonsense=1)}
        (project.folder / f"{name}.yaml").write_text(json.dumps(data))
    status, _, err = project.symph("package", "a.yaml", "b.yaml")
    assert (status, "a.yaml, Job/" in err, "b.yaml, Job/" in err) == (1, True, True)
