"""Starting, asking and stopping many processes on this machine, beside its peers in the same run.

    python benchmarks/local.py [--repeat N] [COUNT ...]      (default: 10 100 300, 3 times)

Everybody starts the same: COUNT windows, each with a program that sleeps, 30 variables and a log by pipe-pane. Ours
has a configuration file at the pod's path, a supervised exit status and a readable state besides. `source-file` is one
tmux reading one file of commands, the fastest that tmux can do; `bare` the same without variables and logs. honcho, if
it is installed, has no terminals; its time ends when all of its programs sleep. Turns are interleaved and medians
printed: seconds of wall clock until the command is back, CPU seconds of all its processes until everything sleeps, and
what that is in times of ours. Whoever takes longer than 15 s has one turn only.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

_VARIABLES = {f"V{number}": f"value-{number}" for number in range(30)}
_SLEEP = ["/bin/sleep", "600"]
_SLOW_S = 15.0
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: orphans of measured programs become children of this one
_LIBTMUX = """
import libtmux, sys
count, folder = int(sys.argv[1]), sys.argv[2]
variables = {f"V{number}": f"value-{number}" for number in range(30)}
server = libtmux.Server(socket_path=folder + "/s", config_file="/dev/null")
session = server.new_session(session_name="x", window_command="/bin/sleep 600", environment=variables)
session.active_pane.cmd("pipe-pane", f"exec cat >>{folder}/log-0")
for number in range(1, count):
    window = session.new_window(attach=False, window_shell="/bin/sleep 600", environment=variables)
    window.active_pane.cmd("pipe-pane", f"exec cat >>{folder}/log-{number}")
"""
# Writes the time of its death to a file and fails.
_DIE = "import sys, time; open(sys.argv[1], 'w').write(str(time.time()))"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds of wall clock, and CPU seconds of all started processes."""

    wall: float
    cpu: float


def symph(*words: str) -> list[str]:
    return [sys.executable, "-m", "symphony_charts", *words]


def ours(count: int, folder: Path) -> list[list[str]]:
    process = {"command": _SLEEP, "env": _VARIABLES}
    _write_spec(folder, {f"p{number}": process for number in range(count)})
    return [symph("up", str(folder / "experiment.yaml"))]


def source_file(count: int, folder: Path, *, is_bare: bool = False) -> list[list[str]]:
    """Return the commands for one tmux that reads all its commands from one file."""
    env = "" if is_bare else " ".join(f"-e {name}={value}" for name, value in _VARIABLES.items())
    lines = []
    for number in range(count):
        lines.append(f"{'new-window' if number else 'new-session -d -s x'} {env} {' '.join(_SLEEP)}")
        lines += [] if is_bare else [f"pipe-pane 'exec cat >>{folder}/log-{number}'"]
    (folder / "conf").write_text("\n".join(lines) + "\n")
    return [[*_tmux(folder), "start-server", ";", "source-file", str(folder / "conf")]]


def bare(count: int, folder: Path) -> list[list[str]]:
    """Return the same commands without variables and logs."""
    return source_file(count, folder, is_bare=True)


def libtmux(count: int, folder: Path) -> list[list[str]]:
    return [[sys.executable, "-c", _LIBTMUX, str(count), str(folder)]]


def tmuxp(count: int, folder: Path) -> list[list[str]]:
    """Return the commands for `tmuxp load`, and one `source-file` after it, since tmuxp does not support logs."""
    window = {"window_shell": " ".join(_SLEEP), "environment": _VARIABLES, "panes": ["blank"]}
    windows = [{"window_name": f"p{number}", **window} for number in range(count)]
    (folder / "load.yaml").write_text(yaml.dump({"session_name": "x", "windows": windows}, Dumper=yaml.CSafeDumper))
    pipes = [f"pipe-pane -t 'x:=p{number}' 'exec cat >>{folder}/log-{number}'" for number in range(count)]
    (folder / "pipes").write_text("\n".join(pipes) + "\n")
    program = str(Path(sys.executable).with_name("tmuxp"))
    load = [program, "load", "-d", "-y", "-S", str(folder / "s"), "-f", "/dev/null", str(folder / "load.yaml")]
    return [load, [*_tmux(folder), "source-file", str(folder / "pipes")]]


CONTENDERS: dict[str, Callable[[int, Path], list[list[str]]]] = {
    "symph up": ours,
    "bare": bare,
    "source-file": source_file,
    "libtmux": libtmux,
    "tmuxp": tmuxp,
}


def honcho(count: int, folder: Path) -> list[list[str]]:
    """Return the command of honcho, which stays in the foreground."""
    (folder / ".env").write_text("".join(f"{name}={value}\n" for name, value in _VARIABLES.items()))
    (folder / "Procfile").write_text("".join(f"p{number}: exec {' '.join(_SLEEP)}\n" for number in range(count)))
    program = shutil.which("honcho")
    return [[program, "start", "-d", str(folder)]] if program else []


CONTENDERS["honcho"] = honcho


def _tmux(folder: Path) -> list[str]:
    return ["tmux", "-S", str(folder / "s"), "-f", "/dev/null"]


def _write_spec(folder: Path, processes: dict[str, object]) -> None:
    configs = {"c.txt": {"text": "hello"}}
    spec = {"name": "many", "configs": configs, "on_failure": "continue", "processes": processes}
    (folder / "experiment.yaml").write_text(json.dumps(spec))


def environment(folder: Path) -> dict[str, str]:
    """Return an environment isolated from the user's own tmux and runs."""
    # Without PYTHONDONTWRITEBYTECODE, as for an installed package, which is compiled.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TMUX", "PYTHONDONTWRITE"))}
    # libtmux cannot read tmux's output in a locale without UTF-8.
    own = {"SYMPH_STATE_DIR": f"{folder}/state", "SYMPH_RUNTIME_DIR": f"{folder}/run", "LC_ALL": "C.UTF-8"}
    return {**kept, **own}


def timed(argv: list[str], env: dict[str, str], timeout_s: int = 300) -> float:
    """Return the wall clock of one command, which must succeed."""
    # Not the timeout of subprocess, which polls every 50 ms.
    signal.alarm(timeout_s)
    began = time.perf_counter()
    subprocess.run(argv, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    took = time.perf_counter() - began
    signal.alarm(0)
    return took


def descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the name: state, parent, and so on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def cpu_seconds() -> float:
    """Return the CPU seconds of all processes started from here: live ones, and ended ones through their parents."""
    ours_ended = os.times()
    total = ours_ended.children_user + ours_ended.children_system
    for pid in descendants():
        try:
            total += int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
        except OSError:
            continue
        fields = _stat(pid)
        total += sum(int(ticks) for ticks in fields[13:15]) / os.sysconf("SC_CLK_TCK")
    return total


def settle(count: int, rest_s: float = 0.3) -> None:
    """Wait until `count` programs below this one sleep, and for `rest_s` more."""
    deadline = time.monotonic() + 60
    while sum(_name(pid) == "sleep" for pid in descendants()) < count:
        if time.monotonic() > deadline:
            raise SystemExit(f"fewer than {count} programs were started")
        time.sleep(0.01)
    time.sleep(rest_s)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def clear() -> None:
    """End all processes below this program."""
    deadline = time.monotonic() + 30
    while left := descendants():
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        for _ in left:
            try:
                os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
        if time.monotonic() > deadline:
            raise SystemExit("could not end what was started")
        time.sleep(0.02)


def places() -> Iterator[Path]:
    """Yield a folder for one turn; remove everything afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="symph-b-", dir="/tmp"))
    try:
        yield folder
    finally:
        clear()
        shutil.rmtree(folder)


def turn(contender: str, count: int) -> Cost:
    for folder in places():
        env, commands = environment(folder), CONTENDERS[contender](count, folder)
        before = cpu_seconds()
        began = time.perf_counter()
        if contender == "honcho":
            subprocess.Popen(commands[0], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            settle(count, rest_s=0.0)
        else:
            for argv in commands:
                timed(argv, env)
        wall = time.perf_counter() - began
        settle(count)
        return Cost(wall=wall, cpu=cpu_seconds() - before)
    raise AssertionError


def compare(count: int, repeat: int) -> None:
    found: dict[str, list[Cost]] = {name: [] for name in CONTENDERS if name != "honcho" or shutil.which("honcho")}
    for _ in range(repeat):
        for name, costs in found.items():
            if not costs or costs[0].wall < _SLOW_S:
                costs.append(turn(name, count))
    middle = {
        name: Cost(wall=statistics.median(c.wall for c in costs), cpu=statistics.median(c.cpu for c in costs))
        for name, costs in found.items()
    }
    own = middle["symph up"]
    print(f"{count} processes      wall s   / ours    CPU s   / ours   turns")
    for name, cost in middle.items():
        row = f"{cost.wall:>8.2f} {cost.wall / own.wall:>8.2f} {cost.cpu:>8.2f} {cost.cpu / own.cpu:>8.2f}"
        print(f"  {name:<16} {row} {len(found[name]):>7}", flush=True)


def verbs(count: int, repeat: int) -> None:
    """Print the cost of querying and stopping, and of the supervisor."""
    rows = []
    for _ in range(repeat):
        for folder in places():
            env = environment(folder)
            [up] = ours(count, folder)
            timed(up, env)
            settle(count)
            supervisor = json.loads(next(folder.glob("state/local/*/*/supervisor.json")).read_text())["pid"]
            memory, each = _mib([supervisor]), 1024 * _mib(descendants()) / count
            before = Path(f"/proc/{supervisor}/schedstat").read_text().split()[0]
            time.sleep(2)
            idle_ms = (int(Path(f"/proc/{supervisor}/schedstat").read_text().split()[0]) - int(before)) / 1e6
            top = _top(env)
            asked, down = timed(symph("p", "many"), env), timed(symph("down", "many"), env)
            rows.append((asked, down, memory, idle_ms, each, *top))
    asked, down, memory, idle_ms, each, busy, size = (statistics.median(column) for column in zip(*rows, strict=True))
    print(
        f"  symph ps {asked:.3f} s, symph down {down:.2f} s; supervisor {memory:.0f} MiB, {idle_ms:.1f} ms CPU in 2 s"
    )
    print(f"  {each:.0f} KiB for each process, with all that serves it; symph top {busy:.1%} of a core, {size:.0f} MiB")


def _mib(pids: list[int]) -> float:
    """Return the proportional memory of these processes, without the sleeping programs themselves."""
    total = 0
    for pid in pids:
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += 0 if _name(pid) == "sleep" else int(rollup.partition("\nPss:")[2].split()[0])
    return total / 1024


def _top(env: dict[str, str]) -> tuple[float, float]:
    """Return the share of a core and the memory in MiB that `symph top` takes in a terminal, once it is drawn."""
    argv = ["script", "-qec", shlex.join(symph("top", "many")), "/dev/null"]
    with subprocess.Popen(
        argv, env={**env, "TERM": "xterm-256color"}, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ):
        time.sleep(5)
        pids = [pid for pid in descendants() if "\0top\0" in _cmdline(pid) and _name(pid) != "script"]
        before = [sum(int(ticks) for ticks in _stat(pid)[11:13]) for pid in pids]
        time.sleep(4)
        used = sum(sum(int(ticks) for ticks in _stat(pid)[11:13]) for pid in pids) - sum(before)
        memory = _mib(pids)
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
    return used / os.sysconf("SC_CLK_TCK") / 4, memory


def _cmdline(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def deaths(count: int) -> None:
    """Print the delay until the death of processes is reported while others are still being started."""
    for folder in places():
        python = [sys.executable, "-I", "-S", "-c", _DIE]
        ends = {f"p{n}": {"command": [*python, str(folder / str(n))], "restart": "never"} for n in range(count)}
        lasting: dict[str, object] = {"last": {"command": _SLEEP}}
        _write_spec(folder, {**ends, **lasting})
        env = environment(folder)
        timed(symph("up", str(folder / "experiment.yaml")), env)
        state = next(folder.glob("state/local/*/*/state.json"))
        deadline = time.monotonic() + 60
        while len(known := _ends(state)) < count and time.monotonic() < deadline:
            time.sleep(0.05)
        late = sorted(1000 * (ended - float((folder / str(slot)).read_text())) for slot, ended in known.items())
        shown = ", ".join(f"{share:.0%} {late[int((len(late) - 1) * share)]:.0f}" for share in (0.5, 0.9, 0.99, 1))
        print(f"  {len(late)} deaths while others are started are known after ms: {shown}")


def _ends(state: Path) -> dict[int, float]:
    return {one["slot"]: one["ended"] for one in json.loads(state.read_text())["processes"] if one.get("ended")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("counts", nargs="*", type=int, default=[10, 100, 300])
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    for count in args.counts:
        compare(count, args.repeat)
        verbs(count, args.repeat)
        deaths(count)


if __name__ == "__main__":
    main()
