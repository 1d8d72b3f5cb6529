"""A launcher written for Symphony is a spec file of every verb, with its own arguments after --."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.chart.harness import objects_in
from tests.symph import symph

LAUNCHER = """
import argparse
from symphony import Cluster
from symphony.engine import SymphonyConfig

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("backend")
    parser.add_argument("name")
    parser.add_argument("rest", nargs="*")
    args = parser.parse_args()
    SymphonyConfig().set_username("sarah")
    cluster = Cluster.new(args.backend)
    print("noise")
    exp = cluster.new_experiment(args.name)
    learner = exp.new_process("learner", container_image="python:3.12", cmds=["echo " + " ".join(args.rest)])
    learner.binds("replay")
    cluster.launch(exp)
    raise RuntimeError("after the launch")

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def launcher(tmp_path: Path) -> Path:
    (tmp_path / "launcher.py").write_text(LAUNCHER)
    return tmp_path


@pytest.mark.parametrize("backend", ["kube", "tmux", "subproc"])
def test_a_launcher_is_rendered_with_its_own_arguments(launcher: Path, backend: str) -> None:
    done = symph("render", "launcher.py", "--", backend, "rl", "--", "--n", "2", cwd=launcher)
    assert done.returncode == 0, done.stderr
    jobs = [item for (kind, _), item in objects_in(done.stdout).items() if kind == "Job"]
    assert "echo --n 2" in json.dumps(jobs)
    assert "sarah-rl" in done.stdout
    assert "noise" in done.stderr


def test_without_arguments_the_way_to_give_them_is_said(launcher: Path) -> None:
    done = symph("package", "launcher.py", cwd=launcher)
    assert done.returncode == 3
    assert "after --" in done.stderr


def test_a_fault_of_the_script_is_its_own(launcher: Path) -> None:
    (launcher / "launcher.py").write_text(LAUNCHER.replace("print(", "no_such_name("))
    done = symph("plan", "launcher.py", "--", "kube", "rl", cwd=launcher)
    assert done.returncode == 3
    assert "NameError" in done.stderr
    assert "launcher.py:14" in done.stderr


def test_a_file_that_is_no_script_takes_no_arguments(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("name: a\nprocesses: {p: {command: x, image: u}}\n")
    done = symph("render", "a.yaml", "--", "kube", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not a Python script" in done.stderr
