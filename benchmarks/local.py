"""Starting, asking and stopping many processes on this machine, beside a plain tmux `source-file` of sleeps.

    python benchmarks/local.py [COUNT ...]      (default: 100 500)

Prints seconds of wall clock and the ratio to plain tmux in the same run. Each of our processes has an environment, a
config file, a log and a supervised exit status; plain tmux has none of that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def seconds(argv: list[str], env: dict[str, str]) -> float:
    """The wall clock of one command, which must succeed."""
    started = time.perf_counter()
    subprocess.run(argv, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
    return time.perf_counter() - started


def plain_tmux(count: int, folder: Path, env: dict[str, str]) -> float:
    """A tmux server with `count` windows that sleep, from one file of commands."""
    lines = ["new-session -d -s x /bin/sleep 600", *["new-window /bin/sleep 600"] * (count - 1)]
    (folder / "plain.conf").write_text("\n".join(lines) + "\n")
    base = ["tmux", "-S", str(folder / "plain.sock"), "-f", "/dev/null"]
    took = seconds([*base, "start-server", ";", "source-file", str(folder / "plain.conf")], env)
    subprocess.run([*base, "kill-server"], check=True)
    return took


def spec_of(count: int) -> str:
    """An experiment of `count` processes with 30 variables each."""
    env = ", ".join(f"V{number}: value-{number}" for number in range(30))
    lines = ["name: many", "configs: {c.txt: {text: hello}}", "processes:"]
    lines += [f"  p{number}: {{command: [/bin/sleep, '600'], env: {{{env}}}}}" for number in range(count)]
    return "\n".join(lines) + "\n"


def resident_mib(pid: int) -> float:
    """Resident memory of a process in MiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


def main() -> None:
    """Measure each count and print a line for it."""
    symph = [sys.executable, "-m", "symphony_charts"]
    print(f"{'processes':>9} {'up':>7} {'plain':>7} {'ratio':>6} {'p':>7} {'down':>7} {'supervisor':>11}")
    for count in [int(word) for word in sys.argv[1:]] or [100, 500]:
        with tempfile.TemporaryDirectory(prefix="symph-b-", dir="/tmp") as name:
            folder = Path(name)
            env = {**os.environ, "SYMPH_STATE_DIR": f"{name}/state", "SYMPH_RUNTIME_DIR": f"{name}/run"}
            plain = plain_tmux(count, folder, env)
            (folder / "experiment.yaml").write_text(spec_of(count))
            up = seconds([*symph, "up", str(folder / "experiment.yaml")], env)
            [state] = (folder / "state").glob("local/*/*/state.json")

            memory = resident_mib(json.loads(state.read_text())["supervisor"])
            asked = seconds([*symph, "p", "many"], env)
            down = seconds([*symph, "down", "many"], env)
            row = (
                f"{count:>9} {up:>7.2f} {plain:>7.2f} {up / plain:>6.1f} {asked:>7.3f} {down:>7.2f} {memory:>8.0f} MiB"
            )
            print(row, flush=True)


if __name__ == "__main__":
    main()
