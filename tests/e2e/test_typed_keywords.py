"""A type checker finds a misspelled keyword of a builder before the program runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
RIGHT = """
from symphony_charts import Cluster, ExperimentSpec
from symphony_charts.spec.model import Assignment, Probe, TcpProbe
from symphony_charts.spec.sources import EnvSource

cluster = Cluster.new("tmux")
exp = cluster.new_experiment("rl", port_range=(7000, 7999), secrets=["key.txt"], preamble_cmds="true", start_dir="/tmp")
ExperimentSpec("rl", port_range=range(7000, 7100), local={"tty": False}, team=None)
exp.new_process("a", ["echo"], replicas=3, binds={"ps": 7000}, container_image="i", shell=["bash", "-c"], cmd="true")
exp.new_process("b", cmds="echo", restart="OnFailure", env={"A": 1, "B": EnvSource(field="status.podIP")})
exp.new_process("c", connects=["ps"], ready=Probe(tcp=TcpProbe(port=1)), assign_to=Assignment(assign_to="gpu"))
group = exp.new_process_group("g", replicas=2, node_selector={"zone": "a"}, preamble_cmds=["true"])
group.new_process("d", args=["x"], gpus=1, requests={"cpu": 2}).set(cwd="/", cmds=["true"])
group.set(labels={"a": "b"})
exp.set(image="i")
exp.add_config("a.toml", file="a.toml", mode="0600")
exp.get_process("a").assign_to("machine", process_per_machine=2)
"""
# A wrong line, and its expected error.
WRONG = {
    'exp.new_process("e", relicas=3)': '"relicas" for "new_process"',
    'exp.new_process("e", replicas="three")': 'has incompatible type "str"',
    'exp.new_process("e", restart="sometimes")': "restart",
    'group.new_process("e", gpu=1)': '"gpu" for "new_process"',
    'exp.new_process_group("h", replica=2)': '"replica" for "new_process_group"',
    'cluster.new_experiment("rl", port_rnge=(1, 2))': '"port_rnge" for "new_experiment"',
    'ExperimentSpec("rl", tem="x")': '"tem" for "ExperimentSpec"',
    'exp.set(imag="i")': '"imag" for "set"',
    "group.set(keeps=True)": '"keeps" for "set"',
}


def test_mypy_refuses_what_the_builders_refuse_and_nothing_else(tmp_path: Path) -> None:
    launcher = tmp_path / "launcher.py"
    launcher.write_text("\n".join([RIGHT, *WRONG, ""]))
    config = tmp_path / "mypy.ini"
    # As in the project of a user with strict checks and without types for our imports.
    config.write_text("[mypy]\nstrict = true\nfollow_imports = silent\n")
    argv = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        str(config),
        "--cache-dir",
        str(ROOT / ".cache" / "mypy-users"),
    ]
    ended = subprocess.run([*argv, str(launcher)], capture_output=True, text=True, check=False, cwd=ROOT)
    first = RIGHT.count("\n") + 2
    said = {int(line): text for line, text in re.findall(r"launcher\.py:(\d+): error: (.*)", ended.stdout)}
    assert sorted(said) == list(range(first, first + len(WRONG))), ended.stdout + ended.stderr
    assert [text for line, text in zip(sorted(said), WRONG.values(), strict=True) if text not in said[line]] == []
