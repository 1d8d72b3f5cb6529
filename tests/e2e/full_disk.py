"""A run on a disk that becomes full, and what each verb says before, meanwhile and after; printed as JSON.

The disk is a small one of its own, which takes namespaces of mounts and pids (`tests.namespace`).
"""

from __future__ import annotations

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


def symph(*words: str) -> list[object]:
    argv = [sys.executable, "-m", "symphony_charts", *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    return [done.returncode, done.stderr]


def main(folder: Path) -> None:
    assert os.getpid() < 10, "only in a pid namespace of its own"
    state = folder / "state"
    state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "none", str(state)], check=True)
    os.environ.update(SYMPH_STATE_DIR=str(state), SYMPH_RUNTIME_DIR=str(folder / "run"), HOME=str(folder))
    (folder / "e.yaml").write_text(SPEC)
    (folder / "other.yaml").write_text(SPEC.replace("name: exp", "name: other"))
    told: dict[str, object] = {"before": symph("up", str(folder / "e.yaml"))}
    time.sleep(0.5)
    with (state / "ballast").open("wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(b"x" * 4096)
        except OSError:
            pass
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
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
