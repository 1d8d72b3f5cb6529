"""The benchmarks with their smallest sizes and their expected output: they must run; speed is not checked."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "benchmarks"
# Benchmarks that take about a second of CPU.
CHEAP = {
    "importers.py": ([], r" 20 +1000 +"),
    "placement.py": (
        ["--small", "--no-solver"],
        r" 100 pods +10 pools +ours \d+ nodes .* first-fit \d+ nodes, 0 left over",
    ),
}
HEAVY = {
    "leaks.py": (["--small"], r"harmless pieces \| 500 (.|\n)*\| base64 \| "),
    "chart.py": (["--small"], r"helm create(.|\n)*2 charts(.|\n)*helm .*, +4 groups(.|\n)*release, 200 groups"),
    "local.py": (["2", "--repeat", "1"], r"tmuxp +(.|\n)*2 deaths while others are started"),
    "logs.py": (["--repeat", "1", "--size", "100000"], r"symph logs --since +\d+ ms"),
    "publish.py": (["--charts", "3", "--many", "2", "--writers", "2", "--runs", "1"], r"2 writers x 5 .* 0 lost"),
    "streams.py": (
        ["--processes", "2", "--seconds", "0.05", "--repeat", "1", "--alone"],
        r"all end together\n.*\n +symph run +0 +0 +0 (.|\n)*as it is done\n.*\n +symph run +0 +0 +0 (.|\n)*ring: ",
    ),
    "sweep.py": (["2", "--parallel", "2"], r"symph again "),
    "torchx.py": (["--small"], r"kubernetes_mcad +1 (.|\n)*20 roles x 1000: "),
    "watching.py": (["--repeat", "1", "2"], r"kube: symph exec(.|\n)*tmux: symph exec "),
}


def run_benchmark(name: str, env: Mapping[str, str]) -> None:
    """Run a benchmark with its smallest sizes, and check its last output."""
    words, printed = {**CHEAP, **HEAVY}[name]
    argv = [sys.executable, str(FOLDER / name), *words]
    done = subprocess.run(argv, env=dict(env), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(printed, done.stdout), done.stdout
