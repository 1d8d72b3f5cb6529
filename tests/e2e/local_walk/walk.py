"""A walk: a sequence of steps in a world, with a check of all invariants after each.

A step is a line of text, so that a failing walk can be recorded and replayed:

- ``up MACHINE EXPERIMENT SHAPE NUMBER [OPTION...]``: write and start the spec of that shape; NUMBER sets a variable of
  its processes;
- ``symph MACHINE WORD...``: any verb; ``together MACHINE LINE...``: verbs in parallel, one per quoted line;
  ``cut MACHINE MILLISECONDS LINE``: a verb that gets KILL after that time;
- ``kill MACHINE KIND INDEX SIGNAL``: signal a supervisor, tmux server, wrapper or process; ``close MACHINE INDEX``:
  close a pane;
- ``damage EXPERIMENT HOW FILE``: spoil a file of its last run; ``fill``: fill the disk; ``shut MACHINE``: make the
  state folder read-only there; ``recover``: undo the last two, and resume what was stopped;
- ``boot MACHINE KIND``, ``reboot MACHINE KIND``: KIND is ``machine``, or ``container`` with the boot id of all
  containers;
- ``foreign KIND``: put a foreign file in the state folder; ``squat MACHINE``: in the runtime folder;
- ``gc MACHINE``: remove old runs;
- ``fetch MACHINE EXPERIMENT``: copy a file behind a link.
"""

from __future__ import annotations

import json
import shlex
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.local_walk.specs import own_file, spec
from tests.e2e.local_walk.world import HOME, Answer, Process, Sight, World
from tests.local import nvidia

STATE = f"{HOME}/.local/state/symph"
_HOST_BOOT = "11111111-2222-3333-4444-555555555555"
_SQUATTER = 61002
# The exit statuses of the command; `up --wait` and `exec` may also pass on those of programs.
_KNOWN = {0, 1, 2, 3, 4, 5, 6, 7, 8}
_SETTLE_S = 15.0


class WalkError(AssertionError):
    """A broken invariant, with the steps that led to it."""

    def __init__(self, steps: Sequence[str], faults: Sequence[str], answers: Sequence[Answer]) -> None:
        replay = "\n".join(f"    {step}" for step in steps)
        said = "\n".join(map(str, answers[-4:]))
        super().__init__("\n".join([*faults, "after these steps:", replay, "which said:", said]))


@dataclass
class Walk:
    """The steps taken in `world` and their expected results.

    Without `is_looking`, only verbs among the steps are run, so the output of `ls` and `p` is not checked.
    """

    world: World
    is_looking: bool = True
    steps: list[str] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    is_troubled: bool = False
    _canaries: dict[str, str] = field(default_factory=dict)
    _promised: dict[str, str] = field(default_factory=dict)

    def begin(self) -> None:
        """Boot the first machine, and create the files that no program may touch."""
        self.world.boot("A")
        self.world.shell("A", _LAY_OUT, str(self.world.user), nvidia.LISTING)
        self.world.env["PATH"] = f"{HOME}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        files = self.world.look("A", "/home").files
        self._canaries = {path: files[path] for path in ("/home/other/f", f"{HOME}/precious", f"{HOME}/exp/code.py")}

    def do(self, step: str) -> None:
        """Take a step. Raises WalkError if an invariant is broken afterwards."""
        self.steps.append(step)
        before = len(self.answers)
        verb, *words = shlex.split(step)
        getattr(self, f"_{verb}")(*words)
        self._check([fault for answer in self.answers[before:] if (fault := _misbehaved(answer))])

    def finish(self) -> None:
        """Undo all faults, stop everything by name, and check that nothing is left. Raises WalkError.

        The names include those that `ls` prints: a run without a supervisor may have only tmux left.
        """
        self._recover()
        self._check([])
        for machine in sorted(self.world.booted):
            there = {process.token.split(".")[0] for process in self._sight(machine).processes if process.token}
            for name in sorted(there | {item["name"] for item in self._listed(machine)}):
                self._symph(machine, "down", name)
        self.steps.append("finish")
        self._await(lambda: [f"{process} is left" for process in self._everywhere() if _is_ours(process)])
        self._await(lambda: [f"ls still shows {item}" for one in self.world.booted for item in self._listed(one)])
        self._check([])

    # Steps

    def _up(self, machine: str, name: str, shape: str, number: str, *options: str) -> None:
        ends = {"finite": 0, "failing": 3}
        wait = ["--wait"] if shape in ends else []
        self.answers.append(self.world.symph(machine, *self._up_words(name, shape, number), *options, *wait))
        if self.answers[-1].status == ends.get(shape):
            self._promise(f"{name}.{shape}.{number}.p")

    def _up_words(self, name: str, shape: str, number: str) -> list[str]:
        path = f"{HOME}/exp/{name}.{shape}.{number}.yaml"
        text = spec(name, shape, f"{name}.{shape}.{number}")
        self.world.shell(self._any(), '[ -e "$1" ] || { printf %s "$2" >"$1.new"; mv "$1.new" "$1"; }', path, text)
        return ["up", path]

    def _symph(self, machine: str, *words: str) -> None:
        self._forget_what_goes(words)
        self.answers.append(self.world.symph(machine, *words))

    def _gc(self, machine: str) -> None:
        self._symph(machine, "local", "gc", "--keep", "0", "--yes")

    def _together(self, machine: str, *lines: str) -> None:
        self.answers += self.world.symphs(machine, *map(self._words, lines))

    def _cut(self, machine: str, milliseconds: str, line: str) -> None:
        self.world.symph(machine, *self._words(line), kill_after_s=int(milliseconds) / 1000)

    def _words(self, line: str) -> list[str]:
        words = shlex.split(line)
        self._forget_what_goes(words)
        if words[0] != "up":
            return words
        return [*self._up_words(*words[1:4]), *words[4:]]

    def _kill(self, machine: str, kind: str, index: str, number: str) -> None:
        kinds: dict[str, Callable[[Process], bool]] = {
            "supervisor": lambda process: process.is_supervisor,
            "tmux": lambda process: process.is_tmux,
            "wrapper": lambda process: any(word.endswith("wrapper.sh") for word in process.argv[:2]),
            "process": lambda process: bool(process.token),
        }
        found = sorted(process.pid for process in self._sight(machine).processes if kinds[kind](process))
        if found:
            self.world.signal(machine, found[int(index) % len(found)], int(number))

    def _close(self, machine: str, index: str) -> None:
        servers = [process for process in self._sight(machine).processes if process.is_tmux]
        if servers:
            socket = servers[int(index) % len(servers)].argv[2]
            # A client of a stopped server waits, ignores TERM while it does, and leaves its output open in the server.
            client = 'timeout -k 1 5 tmux -S "$1"'
            listed = f'panes=$(mktemp); {client} list-panes -a -F "#{{pane_id}}" >"$panes" || :'
            script = f'{listed}; head -1 "$panes" | xargs -r {client} kill-pane -t || :'
            self.world.shell(machine, script, socket, user=self.world.user)

    def _damage(self, name: str, how: str, file: str = "state") -> None:
        if self.is_troubled:
            return
        text = {"empty": "", "half": '{"phase": "runn', "list": "[]", "map": "{}"}[how]
        script = 'f=$(ls -d "$1"/local/"$2"/*/"$4".json 2>/dev/null | tail -1); [ -z "$f" ] || printf %s "$3" >"$f"'
        self.world.shell(self._any(), script, STATE, name, text, file)

    def _fill(self) -> None:
        self.is_troubled = True
        self.world.shell(self._any(), 'cat /dev/zero >"$1/../ballast" 2>/dev/null || :', STATE)

    def _shut(self, machine: str) -> None:
        self.is_troubled = True
        self.world.shell(machine, _SHUT, STATE, str(self.world.user))

    def _recover(self) -> None:
        for machine in sorted(self.world.booted):
            self.world.shell(machine, 'while mountpoint -q "$1"; do umount -l "$1"; done', STATE)
            for process in self._sight(machine).processes:
                if process.is_tmux or process.is_supervisor:
                    self.world.signal(machine, process.pid, signal.SIGCONT)
        self.world.shell(self._any(), 'rm -f "$1/../ballast"', STATE)
        self.is_troubled = False

    def _boot(self, machine: str, kind: str) -> None:
        if machine not in self.world.booted:
            self.world.boot(machine, boot_id=_HOST_BOOT if kind == "container" else "")

    def _reboot(self, machine: str, kind: str) -> None:
        pids = [process.pid for process in self._sight(machine).processes if _is_ours(process)]
        self.world.halt(machine)
        # The canaries take the process numbers of the previous boot.
        self.world.boot(machine, boot_id=_HOST_BOOT if kind == "container" else "", pids=pids, canaries=20)

    def _foreign(self, kind: str) -> None:
        if self.is_troubled:
            return
        planted = {"folder": f"{STATE}/local/lib/python3/site.py", "link": "/home/other/sub/keep"}[kind]
        self.world.shell(self._any(), _PLANT, STATE, planted, kind)
        self._canaries[planted] = "keep\n"

    def _squat(self, machine: str) -> None:
        self.world.env["XDG_RUNTIME_DIR"] = ""
        folder = f"/tmp/symph-{self.world.user}"
        self.world.shell(machine, _SQUAT, folder, f"{HOME}/precious", nvidia.gpu(0), user=_SQUATTER)

    def _fetch(self, machine: str, name: str) -> None:
        self._await(lambda: [] if any(p.argv[:1] == ["sleep"] for p in self._sight(machine).processes) else ["none"])
        answer = self.world.symph(machine, "scp", "p:/data/latest/m", f"{HOME}/exp/fetched", name)
        self.answers.append(answer)
        files = self._sight(machine).files
        wanted = {f"{process.token}\n" for process in self._sight(machine).processes if process.token}
        if files.get(f"{HOME}/exp/fetched") not in wanted:
            raise WalkError(self.steps, ["what stands behind a link was not copied"], self.answers)

    # Invariants

    def _check(self, faults: list[str]) -> None:
        if faults:
            raise WalkError(self.steps, faults, self.answers)
        sights = {machine: self._sight(machine) for machine in sorted(self.world.booted)}
        lost = [fault for machine, sight in sights.items() for fault in self._lost_on(machine, sight)]
        if lost:
            raise WalkError(self.steps, lost, self.answers)
        if self.is_looking and not self.is_troubled:
            self._await(lambda: [fault for machine in sights for fault in self._untrue(machine)])

    def _await(self, faults: Callable[[], list[str]]) -> None:
        """Wait until there are no faults; momentary ones do not count."""
        deadline = time.monotonic() + _SETTLE_S
        while found := faults():
            if time.monotonic() > deadline:
                raise WalkError(self.steps, found, self.answers)
            time.sleep(0.1)

    def _lost_on(self, machine: str, sight: Sight) -> list[str]:
        """Return permanent damage: strangers that were signalled, and missing files."""
        for process in sight.processes:
            if process.token and process.argv[:1] == ["sleep"]:
                self._promise(process.token)
        return [
            *(f"canary {pid} on {machine} has ended with {status}" for pid, status in sight.dead),
            *(
                f"{path} holds {sight.files.get(path)!r}"
                for path, text in self._canaries.items()
                if sight.files.get(path) != text
            ),
            *self._gone(sight, "what"),
        ]

    def _listed(self, machine: str) -> list[dict[str, Any]]:
        """Return the output of `ls` there; nothing if only verbs among the steps may run."""
        answer = self.world.symph(machine, "ls", "-o", "json") if self.is_looking else None
        return json.loads(answer.out)["items"] if answer and answer.status == 0 else []

    def _untrue(self, machine: str) -> list[str]:
        """Return the differences between the output of `ls` and `p` and reality."""
        sight = self._sight(machine)
        answer = self.world.symph(machine, "ls", "-o", "json")
        if answer.status:
            return [f"ls on {machine}: {answer}"]
        items = json.loads(answer.out)["items"]
        phases = {item["name"]: item["phase"] for item in items}
        # The note gives the age of what another machine's supervisor last wrote; nothing newer can be known.
        dated = {item["name"] for item in items if "this is its state of" in item.get("note", "")}
        here = {process.token.split(".")[0] for process in sight.processes if process.token}
        everywhere = {process.token.split(".")[0] for process in self._everywhere() if process.token}
        # Recent output may still be on its way.
        faults = self._gone(sight, "the log of")
        faults += [
            f"processes of {name} run on {machine}, and ls there does not show it" for name in here - set(phases)
        ]
        servers = [process.argv[2] for process in sight.processes if process.is_tmux and "start-server" in process.argv]
        if len(servers) > len(items):
            faults.append(f"{machine} has {servers}, and ls there shows {sorted(phases)} alone")
        faults += [
            f"ls on {machine} says that {name} runs, and nothing of it does anywhere"
            for name, phase in phases.items()
            if phase == "running" and name not in everywhere | (dated - here)
        ]
        # Of a run with damaged files, nothing more is known.
        for name in sorted(name for name in here & set(phases) if phases[name] != "damaged")[:1]:
            faults += self._untrue_of(machine, name, sight)
        return faults

    def _untrue_of(self, machine: str, name: str, sight: Sight) -> list[str]:
        answer = self.world.symph(machine, "p", name, "-o", "json")
        if answer.status:
            return [f"p on {machine}: {answer}"]
        said = sum(item["phase"] == "running" for item in json.loads(answer.out)["items"])
        there = {process.session for process in sight.processes if process.token.split(".")[0] == name}
        return [] if said == len(there) else [f"p on {machine} says that {said} of {name} run, and {len(there)} do"]

    def _gone(self, sight: Sight, kind: str) -> list[str]:
        promised = {what: wanted for what, wanted in self._promised.items() if what.startswith(kind)}
        return [f"{what} is gone" for what, wanted in promised.items() if not _is_kept(what, wanted, sight)]

    def _promise(self, token: str) -> None:
        self._promised[f"what {token} wrote into its folder"] = own_file(token)
        self._promised[f"the log of {token}"] = f"log {token}"
        if ".claim." in token:
            self._promised[f"what {token} wrote into its claim"] = f"claim.{token}"

    def _forget_what_goes(self, words: Sequence[str]) -> None:
        goes = {"delete": ["the log of"], "local": ["the log of"]}.get(words[0], [])
        if "--volumes" in words or words[:2] == ["local", "volumes"]:
            goes = [*goes, "what"]
        for what in list(self._promised):
            if any(what.startswith(start) for start in goes) and "into its folder" not in what:
                del self._promised[what]

    def _sight(self, machine: str) -> Sight:
        return self.world.look(machine, "/home")

    def _everywhere(self) -> list[Process]:
        return [process for machine in sorted(self.world.booted) for process in self._sight(machine).processes]

    def _any(self) -> str:
        return min(self.world.booted)


def walked(world: World, steps: Iterable[str], *, is_looking: bool = True) -> None:
    """Take these steps in `world`, then finish the walk; raises WalkError."""
    walk = Walk(world, is_looking)
    walk.begin()
    for step in steps:
        walk.do(step)
    walk.finish()


def _misbehaved(answer: Answer) -> str:
    """Return the fault in how a verb ended, for any verb; empty if there is none."""
    if answer.is_hung:
        return "it did not come back"
    if "Traceback" in answer.out + answer.err or "bug in symph" in answer.err or answer.status == 70:
        return "a fault of its own"
    if answer.status not in _KNOWN and not {"--wait", "exec", "run"} & set(answer.argv):
        return f"exit status {answer.status} means nothing"
    return ""


def _is_ours(process: Process) -> bool:
    return bool(process.run or process.is_supervisor or process.is_tmux)


def _is_kept(what: str, wanted: str, sight: Sight) -> bool:
    if what.startswith("the log"):
        return any(wanted in text for path, text in sight.files.items() if path.startswith(STATE))
    if wanted.startswith("/"):
        return wanted in sight.files
    return any(Path(path).name == wanted for path in sight.files if path.startswith(STATE))


# A home, foreign files in and beside it, and a fake of NVIDIA's program.
_LAY_OUT = """
mkdir -p /home/me/exp /home/me/bin /home/other/sub
echo keep >/home/other/f; echo keep >/home/other/sub/keep; echo keep >/home/me/precious; echo keep >/home/me/exp/code.py
printf %s "$2" >/home/me/bin/listing
cat >/home/me/bin/nvidia-smi <<'X'
#!/bin/sh
exec cat /home/me/bin/listing
X
chmod 755 /home/me/bin/nvidia-smi; chown -R "$1:$1" /home/me
"""
_PLANT = """
mkdir -p "$1/local" "$(dirname "$2")"; echo keep >"$2"
if [ "$3" = link ]; then ln -sfn /home/other "$1/local/link"; touch -h -d '3 days ago' "$1/local/link"; fi
find "$1/local/lib" /home/other -exec touch -d '3 days ago' {} + 2>/dev/null || :
"""
_SHUT = '[ -d "$1" ] || install -d -o "$2" "$1"; mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"'
_SQUAT = """
mkdir -p "$1/gpus"; chmod 777 "$1" "$1/gpus"; ln -sfn "$2" "$1/gpus/$3.held"
"""
