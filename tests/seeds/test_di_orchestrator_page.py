"""The overview of DI-orchestrator, section by section: its YAML imports, runs and fits its operator; its commands work.

The page shows parts of a job; `...` marks omissions, which are filled in here. The command line of `ding` is
as on the page (`-p k8s` is a typo for `-P k8s`). The fake of `ding` keeps to its own contract: the
module `config` compiles a file, the coordinator waits for a collector and a learner, which read the compiled file.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from symphony_charts.importers.input_file import read
from symphony_charts.importers.report import Imported
from symphony_charts.integrations.dijob.importer import import_dijob
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.sources import HostPathVolume, Mount
from tests import symph as command
from tests.chart.harness import chart_of, native_objects
from tests.linting import lint

# 3. Set storage middleware
VOLUMES = """
  volumes:
  - name: work-dir
    hostPath:
      path: /data/nfs/ding/qbert
"""
MOUNTS = """
          volumeMounts:
          - name: work-dir
            mountPath: /ding
"""
# 4. Insert experimental config in DIJob config
HEREDOC = """
          command: ["/bin/bash", "-c",]
          args:
          - |
            cat <<EOF > qbert_dqn_config_k8s.py
            from easydict import EasyDict
            qbert_dqn_config = dict(
                env=dict(
                    collector_env_num=16,
                    collector_episode_num=2,
                    evaluator_env_num=8,
                    evaluator_episode_num=1,
                    stop_value=30000,
                    env_id='QbertNoFrameskip-v4',
                    frame_stack=4,
                    manager=dict(
                        shared_memory=False,
            ...
            ...
            qbert_dqn_system_config = EasyDict(qbert_dqn_system_config)
            system_config = qbert_dqn_system_config
            EOF
            ding -m dist --module config -p k8s -c qbert_dqn_config_k8s.py -s 0;
            ding -m dist --module coordinator -p k8s -c qbert_dqn_config_k8s.py.pkl -s 0
"""
# 5. Define environment variables for a worker
ENV = """
          env:
          - name: PYTHONUNBUFFERED
            value: "1"
"""
# 6. Assign CPU, memory, and GPU resources to workers
RESOURCES = """
          resources:
            requests:
              cpu: "6"
              nvidia.com/gpu: "1"
              memory: "10Gi"
            limits:
              cpu: "6"
              nvidia.com/gpu: "1"
              memory: "10Gi"
"""
# 1. The roles of dijob-qbert.yaml that the page omits, as that file has them.
ROLE = """
          command: ["/bin/bash", "-c",]
          args:
          - |
            ding -m dist --module {module} -c qbert_dqn_config_k8s.py.pkl -s 0 {port}
          ports:
          - name: {role}
            containerPort: {number}
"""
HEAD = """
apiVersion: diengine.opendilab.org/v1alpha1
kind: DIJob
metadata:
  name: qbert-dqn
spec:
  group: xxx
  priorityClassName: ""
  cleanPodPolicy: "Running"
"""


def role(name: str, *parts: str) -> str:
    image = "diorchestrator/ding:v0.1.0-df39b81c"
    return (
        f"  {name}:\n    template:\n      spec:\n        containers:\n        - name: {name}\n          image: {image}"
        + ("".join(part.rstrip("\n") for part in parts) + "\n")
    )


def page() -> str:
    collector = ROLE.format(role="collector", module="collector", port="-clp $COLLECTOR_PORT", number=22270)
    learner = ROLE.format(role="learner", module="spawn_learner", port="-lp $LEARNER_PORT", number=22271)
    return (
        HEAD
        + VOLUMES.lstrip("\n")
        + role("coordinator", HEREDOC, ENV, MOUNTS)
        + role("collector", collector, MOUNTS)
        + role("learner", learner, RESOURCES, MOUNTS)
    )


def imported(kind: str = "dijob") -> Imported:
    return import_dijob(read(page().encode(), "dijob-qbert.yaml"), kind=kind)


def test_volume_config_environment_and_resources_are_those_of_the_page() -> None:
    experiment = imported().experiment
    processes = experiment.processes
    assert experiment.volumes == {"work-dir": HostPathVolume(path="/data/nfs/ding/qbert")}
    assert {tuple(one.mounts) for one in processes.values()} == {(Mount(volume="work-dir", at="/ding"),)}
    text = experiment.configs["qbert_dqn_config_k8s.py"].text or ""
    assert text.startswith("from easydict import EasyDict\nqbert_dqn_config = dict(\n")
    assert text.endswith("system_config = qbert_dqn_system_config\n")
    assert "EOF" not in "\n".join(processes["coordinator"].cmds or [])
    assert processes["coordinator"].env["PYTHONUNBUFFERED"] == "1"
    assert (processes["learner"].requests, processes["learner"].gpus) == ({"cpu": "6", "memory": "10Gi"}, 1)
    assert processes["learner"].limits == {"cpu": "6", "memory": "10Gi"}


def test_its_chart_is_a_job_for_the_operator_of_the_page() -> None:
    experiment = finish(imported().experiment, for_cluster=True)
    chart = chart_of(experiment)
    assert [one for one in lint(chart) if one.severity == "error"] == []
    objects = native_objects(chart)
    (job,) = [item for (kind, _), item in objects.items() if kind == "DIJob"]
    assert job["apiVersion"] == "diengine.opendilab.org/v1alpha1"
    assert {"coordinator", "collector", "learner"} <= set(cast("dict[str, object]", job["spec"]))
    (config,) = [name for kind, name in objects if kind == "ConfigMap" and "config" in name]
    assert config.startswith("r1-qbert-dqn-config-")


@pytest.mark.parametrize("kind", ["jobs", "jobset"])
def test_it_needs_no_operator_on_other_kinds(kind: str) -> None:
    experiment = finish(imported(kind).experiment, for_cluster=True)
    assert [one for one in lint(chart_of(experiment)) if one.severity == "error"] == []


DING = f"""#!{sys.executable}
import os, pathlib, sys, time
words = sys.argv[1:]
module, file = words[words.index("--module") + 1], pathlib.Path(words[words.index("-c") + 1])
if module == "config":
    pathlib.Path(f"{{file}}.pkl").write_text(file.read_text())
    sys.exit(0)
if module == "coordinator":
    print(" * Serving Flask app \\"interaction.master.master\\" (lazy loading)", flush=True)
    for role in ("collector", "spawn_learner"):
        while not pathlib.Path(f"/ding/{{role}}").exists():
            time.sleep(0.02)
    print("all met", flush=True)
    sys.exit(0)
while not file.exists():
    time.sleep(0.02)
pathlib.Path(f"/ding/{{module}}").write_text(file.read_text())
time.sleep(300)
"""


@pytest.fixture
def place(here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the page's job and the fake of `ding`."""
    shared = tmp_path / "nfs"
    shared.mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ding").write_text(DING)
    (tmp_path / "bin/ding").chmod(0o755)
    (tmp_path / "dijob-qbert.yaml").write_text(page().replace("/data/nfs/ding/qbert", str(shared)))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def symph(*words: str) -> str:
    done = command.symph(*words)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def items(*words: str) -> list[dict[str, Any]]:
    return list(json.loads(symph(*words, "-o", "json"))["items"])


def test_submit_view_describe_and_delete_on_one_machine(place: Path) -> None:
    symph("import", "dijob", "dijob-qbert.yaml", "--to", "qbert.yaml")  # kubectl create -f dijob-qbert.yaml
    data = yaml.safe_load((place / "qbert.yaml").read_text())
    roles = {role: role for role in ("coordinator", "collector", "learner")}
    assert data["workload"] == {"kind": "dijob", "dijob": {"group": "xxx", "operator": "v0", "containers": roles}}
    data["processes"]["learner"]["local"] = {"gpus": 0}  # a machine without GPUs
    (place / "qbert.yaml").write_text(yaml.safe_dump(data))
    symph("up", "qbert.yaml", "--wait")
    assert "Serving Flask app" in symph("logs", "coordinator", "qbert-dqn")  # kubectl logs qbert-dqn-coordinator
    assert [one["name"] for one in items("ls", "--all")] == ["qbert-dqn"]  # kubectl get dijob
    said = json.loads(symph("describe", "qbert-dqn", "-o", "json"))["processes"]  # kubectl describe dijob qbert-dqn
    counts = {one["name"]: one["succeeded"] for one in said if one["name"] in ("coordinator", "collector", "learner")}
    assert counts == {"coordinator": 1, "collector": 0, "learner": 0}
    assert (place / "nfs/collector").read_text().startswith("from easydict")
    symph("delete", "qbert.yaml", "--yes")  # kubectl delete -f qbert-dqn.yaml
    assert items("ls", "--all") == []
