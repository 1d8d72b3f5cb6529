"""Machines in pid namespaces that share a state folder, with canaries at all low numbers. Nothing leaves `unshare`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SYMPH", "Machine", "start_machine", "why_no_machines"]

_MAIN = "import sys; from symphony_charts.cli.main import main; sys.exit(main(sys.argv[1:]))"
# The command as words of a shell.
SYMPH = f"{sys.executable} -c '{_MAIN}'"
_UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private")
# Canaries first, so that they have the low numbers that processes of another machine have there; then whatever comes.
_INIT = """
i=0; while [ $i -lt "$1" ]; do setsid sleep 600 & i=$((i + 1)); done
while [ "$(pgrep -cx sleep)" -lt "$1" ]; do sleep 0.05; done
echo ready; while read -r folder; do (. "$folder/script" >"$folder/out" 2>"$folder/err"; echo $? >"$folder/status.new"
mv "$folder/status.new" "$folder/status") & done; wait
"""


@dataclass
class Machine:
    """A pid namespace with `canaries`, and with a runtime folder and a host name of its own."""

    name: str
    folder: Path
    canaries: int
    program: subprocess.Popen[str]
    count: int = 0

    def run(self, *argv: str, timeout_s: float = 90.0) -> subprocess.CompletedProcess[str]:
        self.count += 1
        place = self.folder / str(self.count)
        place.mkdir(parents=True)
        words = " ".join("'" + word.replace("'", "'\\''") + "'" for word in argv)
        (place / "script").write_text(f"{words}\n")
        assert self.program.stdin is not None
        self.program.stdin.write(f"{place}\n")
        self.program.stdin.flush()
        status = place / "status"
        waited = subprocess.run(
            ["timeout", str(timeout_s), "sh", "-c", f'until [ -e "{status}" ]; do sleep 0.05; done'], check=False
        )
        assert waited.returncode == 0, (argv, (place / "out").read_text(), (place / "err").read_text())
        out, err = (place / "out").read_text(), (place / "err").read_text()
        return subprocess.CompletedProcess(argv, int(status.read_text()), out, err)

    def symph(self, *words: str, timeout_s: float = 90.0) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-c", _MAIN, *words, timeout_s=timeout_s)

    @property
    def dead_canaries(self) -> int:
        return self.canaries - int(self.run("pgrep", "-cx", "sleep").stdout)

    def kill(self) -> None:
        self.program.kill()
        # Its pipes are closed as well.
        self.program.__exit__(None, None, None)


def why_no_machines() -> str:
    """Why there can be no machines here; empty when there can."""
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("pgrep"):
        return "machines of namespaces need root, unshare and pgrep"
    return subprocess.run([*_UNSHARE, "true"], capture_output=True, text=True, check=False).stderr.strip()


def start_machine(name: str, folder: Path, canaries: int = 0) -> Machine:
    """A machine whose state folder is ``folder/state``, whichever others there are."""
    own = folder / name
    own.mkdir()
    env = {
        **os.environ,
        "SYMPH_STATE_DIR": str(folder / "state"),
        "SYMPH_RUNTIME_DIR": str(own / "run"),
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    argv = [*_UNSHARE, "--uts", "--", "sh", "-c", f'hostname {name} && exec sh -c "$1" sh "$2"', "sh", _INIT]
    pipe = subprocess.PIPE
    program = subprocess.Popen([*argv, str(canaries)], stdin=pipe, stdout=pipe, text=True, env=env, cwd=folder)
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    return Machine(name=name, folder=own, canaries=canaries, program=program)
