"""The launcher API of Surreal, call by call, from one script that imports `symphony`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from symphony_charts.integrations.symphony.spec import ExperimentSpec
from symphony_charts.kinds.base import is_conductor
from tests.compat.conftest import EXAMPLES, Script

LAUNCHER = EXAMPLES / "symphony" / "surreal_kube.py"
POOLS = EXAMPLES / "pools" / "cloudwise.tf.json"
# Symphony's own allocation for this topology.
PORTS = {
    "tensorboard": 6006,
    "parameter-publish": 7000,
    "prefetch-queue": 7001,
    "collector-frontend": 7002,
    "sampler-frontend": 7003,
    "collector-backend": 7004,
    "sampler-backend": 7005,
    "ps-frontend": 7006,
    "ps-backend": 7007,
    "tensorplex": 7008,
    "loggerplex": 7009,
}

Object = dict[str, Any]


@pytest.fixture
def settings(tmp_path: Path) -> Object:
    (tmp_path / "mjkey.txt").write_text("key")
    return {
        "username": "foobar",
        "kube_metadata_folder": str(tmp_path / "meta"),
        "mount_secrets": ["~/mjkey.txt"],
        "nfs": "10.0.0.2",
        "cluster_definition": str(POOLS),
        "scheduling": {
            "nonagent": {"assign_to": "gpu", "node_pool_name": "np-8cpu-53248mem-1v100-np"},
            "agent": {"assign_to": "resource", "cpu": 1.5, "memory_m": None, "gpu_type": None, "gpu_count": None},
        },
        "dump": str(tmp_path / "dump.yaml"),
        "image": "registry.test/surreal",
    }


@pytest.fixture
def launch(script: Script, settings: Object, tmp_path: Path) -> Script:
    """Run the launcher with these settings."""

    def run(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "settings.json"
        file.write_text(json.dumps(settings))
        return script(LAUNCHER, str(file), *words, **options)

    return run


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    made = [item for item in objects if item["kind"] == kind and not is_conductor(item)]
    return [item for item in made if "helm.sh/hook" not in str(item["metadata"])]


def pods_of(objects: list[Object]) -> dict[str, Object]:
    made = [*of_kind(objects, "Job"), *of_kind(objects, "StatefulSet")]
    templates = [item["spec"]["template"] for item in made]
    return {item["metadata"]["labels"]["symph.dev/group"]: item["spec"] for item in templates}


def test_the_launcher_makes_surreals_topology(launch: Script, settings: Object) -> None:
    done = launch("create", "First_experiment", "--dry-run", "--", "--env", "x")
    assert done.returncode == 0, done.stderr
    said, _, documents = done.stdout.partition("---\n")
    assert said == "remainder ['--env', 'x'] True\n"
    assert ("a2V5" in done.stdout, "kind: Secret" in done.stdout) == (False, False)
    objects = list(yaml.safe_load_all(documents))
    # The user prefixes the name once, and the name is clean.
    assert {item["metadata"]["labels"]["symph.dev/experiment"] for item in objects} == {"foobar-first-experiment"}

    services = {s["metadata"]["labels"].get("symph.dev/service"): s["spec"] for s in of_kind(objects, "Service")}
    assert {name: spec["ports"][0]["port"] for name, spec in services.items() if name} == PORTS
    assert [name for name, spec in services.items() if spec.get("type") == "LoadBalancer"] == ["tensorboard"]

    pods = pods_of(objects)
    assert sorted(pods) == ["agent-0", "agent-1", "eval-0", "nonagent"]
    held = {one["name"]: one for field in ("initContainers", "containers") for one in pods["nonagent"].get(field, [])}
    assert sorted(held) == ["learner", "loggerplex", "ps", "replay", "tensorboard", "tensorplex"]
    learner = held["learner"]
    assert learner["args"] == ["surreal learner --results /r && true"]
    assert ("command" in learner, learner["image"]) == (False, "surreal:foobar-first-experiment")
    assert {"name": "DISABLE_MUJOCO_RENDERING", "value": "1"} in learner["env"]

    containers = [one for pod in pods.values() for one in pod["containers"]]
    assert {one["imagePullPolicy"] for one in containers} == {"Always"}
    assert {mount["mountPath"] for one in containers for mount in one["volumeMounts"]} >= {"/mnt", "/etc/secrets"}
    nfs = [v["nfs"] for pod in pods.values() for v in pod["volumes"] if "nfs" in v]
    assert nfs == [{"server": "10.0.0.2", "path": "/exports"}] * 4

    assert "np-8cpu-53248mem-1v100-np" in pods["nonagent"]["nodeSelector"].values()
    assert str(learner["resources"]["limits"]["nvidia.com/gpu"]) == "1"
    cpus = {str(pods[name]["containers"][0]["resources"]["requests"]["cpu"]) for name in ("agent-0", "eval-0")}
    assert cpus == {"1.5"}

    loaded = ExperimentSpec.load_file(settings["dump"])
    assert {name: entry["port"] for name, entry in loaded.address_book.entries.items()} == PORTS
    assert ExperimentSpec.load_dict(loaded.dump_dict()).dump_dict() == loaded.dump_dict()


def test_an_alias_is_the_verb_its_help_is_the_docstring_and_symphonys_verbs_are_there(launch: Script) -> None:
    assert launch("c", "first", "-dr").returncode == 0
    assert "Create an experiment." in launch("create", "--help").stdout
    assert "create, c" in launch("--help").stdout
    for verb in ("list-processes", "list-experiments"):
        assert launch(verb, "--help").stdout.startswith("usage: ")


@pytest.fixture
def docker(tmp_path: Path) -> Path:
    """Install a stub for docker that records its calls: tests have no daemon."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "docker"
    program.write_text(
        "#!/bin/sh\n"
        f'echo "$*" >> {tmp_path}/calls\n'
        'while [ $# -gt 0 ]; do if [ "$1" = --iidfile ]; then printf sha256:abc > "$2"; fi; shift; done\n'
        f"cat {tmp_path}/images 2>/dev/null || true\n"
    )
    program.chmod(0o755)
    return tmp_path / "calls"


def test_the_image_is_built_tagged_and_pushed(launch: Script, settings: Object, tmp_path: Path, docker: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("a")
    settings["docker_build_settings"] = {
        "name": "ignored",
        "dockerfile": "~/Dockerfile",
        "temp_directory": "~/temp",
        "context_directories": [{"name": "surreal", "path": "~/src"}],
    }
    done = launch("build", "v1", env={"PATH": f"{docker.parent / 'bin'}:/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    build, tag, push = docker.read_text().splitlines()
    assert build.startswith(f"build --file {tmp_path}/Dockerfile --iidfile ")
    assert build.endswith(f"{tmp_path}/temp/symphony_docker_build")
    assert (tmp_path / "temp" / "symphony_docker_build" / "surreal" / "a.py").read_text() == "a"
    assert (tag, push) == ("tag sha256:abc registry.test/surreal:v1", "push registry.test/surreal:v1")


def test_images_are_cleaned_by_pattern(launch: Script, tmp_path: Path, docker: Path) -> None:
    (tmp_path / "images").write_text("surreal:one\nother:two\nsurreal:three\n")
    done = launch("clean", "surreal", env={"PATH": f"{docker.parent / 'bin'}:/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    calls = docker.read_text().splitlines()
    assert calls == [
        "container prune -f",
        "images --format {{.Repository}}:{{.Tag}}",
        "rmi surreal:one surreal:three",
        "image prune -f",
    ]
