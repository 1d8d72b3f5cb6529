"""Runs on a disk that becomes full; prints the verbs' answers as JSON.

The disk is a small separate one, which takes namespaces of mounts and pids (`tests.namespace`).
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

SPEC = """
name: exp
processes:
  a: {command: [/bin/sh, -c, 'while :; do printf "%2000s\\n" $(date +%s%N); sleep 0.1; done']}
"""
# Ends with the status of its second argument once the file `end` exists.
PROGRAM = 'echo started >>"$0/starts"; while ! [ -f "$0/end" ]; do sleep 0.05; done; exit "$1"'
SYMPH = [sys.executable, "-m", "symphony_charts"]


def small_disk(folder: Path) -> Path:
    """Return a state folder of 2 MB, which `symph` uses from now on."""
    assert os.getpid() < 10, "only in a pid namespace of its own"
    state = folder / "state"
    state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "none", str(state)], check=True)
    os.environ.update(SYMPH_STATE_DIR=str(state), SYMPH_RUNTIME_DIR=str(folder / "run"), HOME=str(folder))
    return state


def fill(state: Path) -> None:
    with contextlib.suppress(OSError), (state / "ballast").open("wb", buffering=0) as ballast:
        while True:
            ballast.write(b"x" * 4096)


def symph(*words: str) -> list[object]:
    done = subprocess.run([*SYMPH, *words], capture_output=True, text=True, timeout=60, check=False)
    return [done.returncode, done.stderr]


def goes_on(folder: Path) -> dict[str, object]:
    """Fill the disk during a run, ask, make room, and end the run."""
    state = small_disk(folder)
    (folder / "e.yaml").write_text(SPEC)
    (folder / "other.yaml").write_text(SPEC.replace("name: exp", "name: other"))
    told: dict[str, object] = {"before": symph("up", str(folder / "e.yaml"))}
    time.sleep(0.5)
    fill(state)
    time.sleep(1)
    words = {"process": ["exp"], "describe": ["exp"], "logs": ["a", "exp", "--tail", "1"], "ls": []}
    told["full"] = {verb: symph(verb, *more) for verb, more in words.items()}
    told["up"] = symph("up", str(folder / "other.yaml"))
    told["left"] = sorted(path.name for path in (state / "local").iterdir())
    (state / "ballast").unlink()
    (log,) = state.glob("local/exp/*/p/0/log")
    was, until = log.stat().st_size, time.monotonic() + 20
    while log.stat().st_size < was + 10000 and time.monotonic() < until:
        time.sleep(0.1)
    told["logged"] = log.stat().st_size - was
    told["after"] = symph("process", "exp")
    told["down"] = symph("down", "exp")
    told["states"] = [json.loads(path.read_text())["phase"] for path in state.glob("local/exp/*/state.json")]
    return told


def ends(folder: Path, verb: str, status: int) -> dict[str, object]:
    """Start a process with `symph VERB`, fill the disk, and let the process end with `status`."""
    state = small_disk(folder)
    train = {"command": ["/bin/sh", "-c", PROGRAM, str(folder), str(status)], "restart": "on-failure", "retries": 1}
    (folder / "e.yaml").write_text(json.dumps({"name": "exp", "processes": {"train": train}}))
    words = ["run"] if verb == "run" else ["up", "--wait"]
    argv = [*SYMPH, *words, str(folder / "e.yaml")]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as command:
        while not (folder / "starts").exists():
            assert command.poll() is None, command.communicate()
            time.sleep(0.05)
        fill(state)
        (folder / "end").touch()
        _, said = command.communicate(timeout=100)
    (found,) = state.glob("local/exp/*/state.json")
    starts = (folder / "starts").read_text().count("started")
    noted = json.loads(found.read_text())["processes"][0]["status"]
    return {"code": command.returncode, "said": said, "starts": starts, "noted": noted}


if __name__ == "__main__":
    place, *words = sys.argv[1:]
    sys.stdout.write(json.dumps(ends(Path(place), words[0], int(words[1])) if words else goes_on(Path(place))))
