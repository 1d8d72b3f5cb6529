"""What the stream of `symph run` loses and costs, beside overmind and honcho in the same run; and what it adds to `up`.

    python benchmarks/streams.py [--processes 100] [--seconds 5] [--repeat 3] [--alone]

Everybody starts the same programs: PROCESSES of them, which together write 10,000 numbered lines a second for so many
seconds, a few of each every 50 ms. Standard output is a file. Told are the lines that are missing, that came twice or
torn, seconds until the last line is there, CPU seconds of all that was started, and what that is in times of ours.
First nobody ends before all have written, and two seconds more; then, in one turn, each ends as it is done.
overmind is built from the Go module proxy, honcho comes from the package index; who cannot be had is left out, and
that is said; `--alone` asks for none. After that, `symph run` of examples/ring beside `symph up --wait`, in turns.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from local import cpu_seconds, descendants, environment, places, symph, timed

RATE = 10_000
OVERMIND, HONCHO = "v2.5.1", "2.0.0"
RING = Path(__file__).parents[1] / "examples/ring/experiment.yaml"
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: orphans of measured programs become children of this one
_WRITER = """
import os, sys, time
index, lines, step, count = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
begun, done = time.monotonic(), 0
while done < lines:
    due = min(lines, max(done + 1, int((time.monotonic() - begun) / step)))
    said = [f"line {index} {number} of a program that says a little each time" for number in range(done, due)]
    sys.stdout.write("\\n".join(said) + "\\n")
    sys.stdout.flush()
    done = due
    time.sleep(0.05)
open(f"ends/{index}", "w").close()
while count and len(os.listdir("ends")) < count:
    time.sleep(0.2)
time.sleep(2 * bool(count))
"""
_TEXT = "of a program that says a little each time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn's lost lines, and its seconds of wall clock and of CPU."""

    missing: int
    twice: int
    torn: int
    wall: float
    cpu: float


def ours(folder: Path, programs: dict[str, list[str]]) -> list[str]:
    spec = {"name": "many", "processes": {name: {"command": argv} for name, argv in programs.items()}}
    (folder / "experiment.json").write_text(json.dumps(spec))
    return symph("run", str(folder / "experiment.json"))


def procfile(folder: Path, programs: dict[str, list[str]]) -> str:
    """Return the programs as a Procfile."""
    (folder / "Procfile").write_text("".join(f"{name}: exec {' '.join(argv)}\n" for name, argv in programs.items()))
    return str(folder / "Procfile")


def peers(folder: Path) -> dict[str, list[str]]:
    """Return the command lines of the available peers, without the Procfile."""
    found = {}
    module = f"module peers\n\ngo 1.24\n\nrequire github.com/DarthSim/overmind/v2 {OVERMIND}\n"
    (folder / "go.mod").write_text(module)
    (folder / "tools.go").write_text(
        '//go:build tools\n\npackage peers\n\nimport _ "github.com/DarthSim/overmind/v2"\n'
    )
    build = ["go", "build", "-o", "overmind", "github.com/DarthSim/overmind/v2"]
    if _has_worked("overmind", [build], folder, GOFLAGS="-mod=mod"):
        found["overmind"] = [str(folder / "overmind"), "start", "-N", "--any-can-die", "-f"]
    pip = [str(folder / "venv/bin/pip"), "install", "--quiet", f"honcho=={HONCHO}"]
    if _has_worked("honcho", [[sys.executable, "-m", "venv", "venv"], pip], folder):
        found["honcho"] = [str(folder / "venv/bin/honcho"), "start", "-f"]
    return found


def _has_worked(name: str, commands: list[list[str]], folder: Path, **env: str) -> bool:
    for argv in commands:
        try:
            done = subprocess.run(
                argv, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            print(f"{name} is left out: there is no {argv[0]}")
            return False
        if done.returncode:
            print(f"{name} is left out: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
            return False
    return True


def turn(peer: list[str] | None, count: int, seconds: float, *, waits: bool) -> Turn:
    """Return one turn of `symph run` (None), or of a peer."""
    lines = int(RATE * seconds / count)
    for folder in places():
        (folder / "ends").mkdir()
        (folder / "writer.py").write_text(_WRITER.replace("ends", f"{folder}/ends"))
        writer = [sys.executable, "-I", "-S", str(folder / "writer.py")]
        programs = {
            f"p{index}": [*writer, str(index), str(lines), str(seconds / lines), str(count * waits)]
            for index in range(count)
        }
        argv = ours(folder, programs) if peer is None else [*peer, procfile(folder, programs)]
        env = environment(folder) | {"OVERMIND_SOCKET": str(folder / "overmind.sock"), "TMPDIR": str(folder)}
        before, began = cpu_seconds(), time.time()
        with (
            (folder / "out").open("wb") as out,
            (folder / "err").open("wb") as err,
            subprocess.Popen(argv, cwd=folder, env=env, stdout=out, stderr=err) as running,
        ):
            _wait(running)
        wall, cpu = (folder / "out").stat().st_mtime - began, cpu_seconds() - before
        missing, twice, torn = lost((folder / "out").read_text(errors="replace"), count, lines)
        if missing == count * lines:
            raise SystemExit(f"{argv[0]}: {(folder / 'err').read_text()[-500:]}")
        return Turn(missing=missing, twice=twice, torn=torn, wall=wall, cpu=cpu)
    raise AssertionError


def _wait(running: subprocess.Popen[bytes]) -> None:
    """Wait until the program has ended; end it if it runs long after the last writer, as overmind does."""
    quiet_since, deadline = time.monotonic() + 20, time.monotonic() + 120
    while running.poll() is None:
        if any("writer.py" in text for text in map(_command_line, descendants())):
            quiet_since = time.monotonic()
        if time.monotonic() > min(deadline, quiet_since + 5):
            running.send_signal(signal.SIGINT)
            running.wait(timeout=30)
        time.sleep(0.5)


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


def lost(text: str, count: int, lines: int) -> tuple[int, int, int]:
    """Return the numbers of missing, repeated and incomplete lines."""
    seen: Counter[tuple[int, int]] = Counter()
    torn = 0
    for line in text.splitlines():
        head, mark, rest = line.partition("line ")
        if not mark:
            continue
        index, _, after = rest.partition(" ")
        number, _, tail = after.partition(" ")
        if (
            tail.rstrip().removesuffix("\x1b[0m") == _TEXT
            and index.isdigit()
            and number.isdigit()
            and "line " not in head
        ):
            seen[int(index), int(number)] += 1
        else:
            torn += 1
    twice = sum(times - 1 for times in seen.values())
    wanted = {(index, number) for index in range(count) for number in range(lines)}
    return len(wanted - seen.keys()), twice, torn


def compare(contenders: dict[str, list[str] | None], count: int, seconds: float, repeat: int, *, waits: bool) -> None:
    found: dict[str, list[Turn]] = {each: [] for each in contenders}
    for _ in range(repeat):
        for each, peer in contenders.items():
            found[each].append(turn(peer, count, seconds, waits=waits))
    how = "all end together" if waits else "each ends as it is done"
    wall = {each: statistics.median(one.wall for one in turns) for each, turns in found.items()}
    cpu = {each: statistics.median(one.cpu for one in turns) for each, turns in found.items()}
    print(f"{count} processes, {int(RATE * seconds)} lines in {seconds:g} s, {repeat} turns; {how}")
    print(f"  {'':<12} missing    twice     torn   wall s   / ours    CPU s   / ours")
    for each, turns in found.items():
        sums = "".join(f"{sum(getattr(one, key) for one in turns):>9}" for key in ("missing", "twice", "torn"))
        own = f"{wall[each] / wall['symph run']:>9.2f}", f"{cpu[each] / cpu['symph run']:>9.2f}"
        print(f"  {each:<10} {sums}{wall[each]:>9.2f}{own[0]}{cpu[each]:>9.2f}{own[1]}", flush=True)


def ring(repeat: int) -> None:
    """Print the extra time of `symph run` over `symph up --wait`."""
    found: dict[str, list[float]] = {"run": [], "up": []}
    for number in range(2 * repeat):
        for folder in places():
            shutil.copytree(RING.parent, folder / "ring")
            words = {"run": ("run",), "up": ("up", "--wait")}
            # Alternate the order between turns.
            for verb in ("run", "up") if number % 2 else ("up", "run"):
                argv = symph(words[verb][0], str(folder / "ring" / RING.name), *words[verb][1:])
                found[verb].append(timed(argv, environment(folder)))
    run, up = (statistics.median(found[verb]) for verb in ("run", "up"))
    print(f"ring: symph run {run:.3f} s, symph up --wait {up:.3f} s: {1000 * (run - up):+.0f} ms, {run / up:.2f} times")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--alone", action="store_true", help="without overmind and honcho")
    args = parser.parse_args()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(prefix="symph-peers-") as name:
        contenders: dict[str, list[str] | None] = {"symph run": None, **({} if args.alone else peers(Path(name)))}
        compare(contenders, args.processes, args.seconds, args.repeat, waits=True)
        compare(contenders, args.processes, args.seconds, 1, waits=False)
    ring(args.repeat)


if __name__ == "__main__":
    main()
