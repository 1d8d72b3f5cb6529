"""One experiment, run twice, in tmux on this machine and from its chart in the cluster, prints the same."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.charts import ExampleCharts, package_spec
from tests.e2e.release import Releases

# Prints a process's view of its environment, and checks that it can bind and dial its addresses.
_PROBE = """
import contextlib, hashlib, json, os, pathlib, socket, stat, sys, time
files = {}
for root in (os.environ["SYMPH_CONFIG_DIR"],):
    for path in sorted(pathlib.Path(root).iterdir()):
        if not path.name.startswith(".."):
            mode = oct(stat.S_IMODE(path.stat().st_mode))
            files[path.name] = [mode, hashlib.sha256(path.read_bytes()).hexdigest()]
view = {"argv": sys.argv, "cwd": os.getcwd(), "files": files, "env": dict(os.environ)}
mine, other = ((os.environ[f"SYMPH_{name}_HOST"], int(os.environ[f"SYMPH_{name}_PORT"])) for name in sys.argv[1:3])
server = socket.create_server(mine)
server.settimeout(60)
deadline = time.monotonic() + 60
while True:
    try:
        with socket.create_connection(other, 2) as met:
            met.sendall(b"x")
        break
    except OSError:
        if time.monotonic() > deadline:
            raise
        time.sleep(0.1)
# Whoever asks whether it listens says nothing.
heard = b""
while not heard:
    with contextlib.suppress(ConnectionError):
        heard = server.accept()[0].recv(1)
print(json.dumps(view, sort_keys=True), flush=True)
"""

_SPEC = {
    "name": "mirror",
    "image": "python:3.12-slim",
    "configs": {"probe.py": {"text": _PROBE}, "data.txt": {"text": "x\ty\n", "mode": "0600"}},
    "processes": {
        "left": {
            "command": ["python", "$(SYMPH_CONFIG_DIR)/probe.py"],
            "args": ["LEFT", "RIGHT", "a b", "$(GREETING)", "$$(GREETING)", "$(UNKNOWN)", "\u00e9\U0001f600", "'\""],
            "env": {"GREETING": "hi $(SYMPHONY_ROLE)", "EMPTY": "", "LINES": "one\ntwo", "N": "1e3", "on": "yes"},
            "binds": "left",
            "connects": "right",
            "cwd": "/tmp",
        },
        "right": {
            "command": ["python", "$(SYMPH_CONFIG_DIR)/probe.py", "RIGHT", "LEFT"],
            "binds": "right",
            "connects": "left",
            "cwd": "/tmp",
        },
    },
}

# Allowed differences: settings of the machine and of the cluster, network addresses, and the variables that hide
# other processes' GPUs here, which a pod cannot see anyway.
_ALLOWED = re.compile(
    r"PATH|HOME|HOSTNAME|LANG|LC_\w+|TERM|TERM_PROGRAM.*|TMUX.*|PWD|USER|KUBERNETES_.*|JOB_COMPLETION_INDEX|SYMPH_RUN"
    r"|CUDA_\w+"
)
_HOST_PART = re.compile(r"SYMPH_\w+_(HOST|BIND_HOST|ADDR|HOSTS)")


@pytest.fixture
def symph() -> Iterator[Callable[..., str]]:
    started: list[str] = []
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    def run(*arguments: str) -> str:
        if arguments[0] == "up":
            started.append(yaml.safe_load(Path(arguments[1]).read_text())["name"])
        argv = [sys.executable, "-m", "symphony_charts", *arguments]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, env=env)
        assert done.returncode == 0, f"symph {' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    yield run
    for name in started:
        argv = [sys.executable, "-m", "symphony_charts", "down", name]
        subprocess.run(argv, capture_output=True, timeout=60, check=False, env=env)


def _seen(text: str) -> dict[str, Any]:
    """Return a probe's view without the allowed differences; of addresses, only the ports remain."""
    view: dict[str, Any] = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
    env = {name: value for name, value in view["env"].items() if not _ALLOWED.fullmatch(name)}
    view["env"] = {n: re.sub(r"[^,:]+", "", v) if _HOST_PART.fullmatch(n) else v for n, v in env.items()}
    return view


def test_a_process_sees_the_same_in_tmux_and_in_its_pod(
    release: Releases, tmp_path: Path, symph: Callable[..., str]
) -> None:
    spec = tmp_path / "mirror.json"
    spec.write_text(json.dumps(_SPEC))
    run = release("mirror")
    run.install(package_spec(spec, tmp_path))
    symph("up", str(spec), "--wait")
    run.wait_finished()
    for process in ("left", "right"):
        assert _seen(symph("logs", process, "mirror")) == _seen(run.log(process))


@pytest.mark.parametrize(("example", "processes"), [("ring", ["p0", "p1", "p2"]), ("integrate", ["master"])])
def test_an_example_says_the_same_in_tmux_and_from_its_chart(
    release: Releases, charts: ExampleCharts, symph: Callable[..., str], example: str, processes: list[str]
) -> None:
    run = release(example)
    run.install(charts[example])
    # Another name than the example's: its usual address is that of tests which run the example at the same time.
    symph("up", str(charts.spec(example)), "--spec-set", f"name=here-{example}", "--wait")
    run.wait_finished()
    # The order of the workers of the integral differs; its result does not.
    first = -1 if example == "integrate" else 0
    for process in processes:
        here, there = (text.splitlines(True) for text in (symph("logs", process, f"here-{example}"), run.log(process)))
        assert here[first:] == there[first:]
        assert here
