"""A process ends while the disk of the state folder is full; what `symph` makes of it is printed as JSON.

The disk is a small one of its own, which takes namespaces of mounts and pids (`tests.namespace`).
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

# Ends with the status of its second argument once the file `end` is there.
PROGRAM = 'echo started >>"$0/starts"; while ! [ -f "$0/end" ]; do sleep 0.05; done; exit "$1"'


def main(folder: Path, verb: str, status: int) -> None:
    """Start a process with `symph VERB`, fill the disk, and let the process end with `status`."""
    assert os.getpid() < 10, "only in a pid namespace of its own"
    state = folder / "state"
    state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "none", str(state)], check=True)
    os.environ.update(SYMPH_STATE_DIR=str(state), SYMPH_RUNTIME_DIR=str(folder / "run"), HOME=str(folder))
    train = {"command": ["/bin/sh", "-c", PROGRAM, str(folder), str(status)], "restart": "on-failure", "retries": 1}
    (folder / "e.yaml").write_text(json.dumps({"name": "exp", "processes": {"train": train}}))
    words = ["run"] if verb == "run" else ["up", "--wait"]
    argv = [sys.executable, "-m", "symphony_charts", *words, str(folder / "e.yaml")]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as command:
        while not (folder / "starts").exists():
            assert command.poll() is None, command.communicate()
            time.sleep(0.05)
        with contextlib.suppress(OSError), (state / "ballast").open("wb", buffering=0) as ballast:
            while True:
                ballast.write(b"x" * 4096)
        (folder / "end").touch()
        _, said = command.communicate(timeout=100)
    (found,) = state.glob("local/exp/*/state.json")
    starts = (folder / "starts").read_text().count("started")
    noted = json.loads(found.read_text())["processes"][0]["status"]
    sys.stdout.write(json.dumps({"code": command.returncode, "said": said, "starts": starts, "noted": noted}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
