"""A world of machines that share a home, driven from outside; nothing in it can touch files or processes outside."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

HOME = "/home/me"
_INSIDE = Path(__file__).with_name("inside.py")
_OUTER = ("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--")
# The time limit of a verb, on a machine that is busy with other tests.
_PATIENCE_S = 60.0


def why_not() -> str:
    """Return the reason why no world can be made here; empty if one can."""
    if os.geteuid() != 0:
        return "only root can make machines of namespaces"
    done = subprocess.run([*_OUTER, "unshare", "--uts", "--net", "true"], capture_output=True, text=True, check=False)
    return done.stderr.strip()


@dataclass(frozen=True, kw_only=True)
class Answer:
    argv: Sequence[str]
    status: int
    out: str
    err: str
    is_hung: bool

    def __str__(self) -> str:
        said = "\n".join(f"    | {line}" for line in (self.out + self.err).strip().splitlines()[-12:])
        return f"  {' '.join(self.argv)} -> {self.status}\n{said}"


@dataclass(frozen=True, kw_only=True)
class Process:
    """A process of a machine; `run` and `token` come from its environment."""

    pid: int
    session: int
    argv: Sequence[str]
    run: str
    token: str

    @property
    def is_supervisor(self) -> bool:
        return any(word.endswith("supervisor") for word in self.argv) and "-m" in self.argv

    @property
    def is_tmux(self) -> bool:
        return bool(self.argv) and Path(self.argv[0]).name.startswith("tmux")


@dataclass(frozen=True, kw_only=True)
class Sight:
    """The state of a machine: processes, dead canaries with their signals, and the files of some folders."""

    processes: Sequence[Process]
    dead: Sequence[tuple[int, int]]
    files: Mapping[str, str]


@dataclass
class World:
    """Machines by name. `command` is the program run as `symph`; `user` is the user that runs it."""

    command: str
    user: int = 0
    size: str = "16m"
    booted: set[str] = field(default_factory=set)
    env: dict[str, str] = field(default_factory=dict)

    def __enter__(self) -> World:
        checkout = str(Path(self.command).parents[2])
        shown = [sys.base_prefix, checkout]
        argv = [*_OUTER, sys.executable, "-I", "-S", str(_INSIDE), "world", str(self.user), self.size, *shown]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Its first process ends when its stdin closes, and all machines with it.
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def boot(self, machine: str, *, boot_id: str = "", pids: Sequence[int] = (), canaries: int = 5) -> None:
        """Boot a machine with `pids` and `canaries` more numbers as canaries; `boot_id` is new by default."""
        machine_id = uuid.uuid5(uuid.NAMESPACE_DNS, machine).hex
        what = {"host": machine, "boot_id": boot_id or str(uuid.uuid4()), "machine_id": machine_id, "uid": self.user}
        self._ask(machine, "boot", pids=list(pids), canaries=canaries, **what)
        self.booted.add(machine)

    def halt(self, machine: str) -> None:
        self._ask(machine, "halt")
        self.booted.discard(machine)

    def symph(self, machine: str, *words: str, kill_after_s: float | None = None, **env: str) -> Answer:
        return self.symphs(machine, words, kill_after_s=kill_after_s, **env)[0]

    def symphs(
        self, machine: str, *verbs: Sequence[str], kill_after_s: float | None = None, **env: str
    ) -> list[Answer]:
        return self._run(machine, [[self.command, *words] for words in verbs], self.user, kill_after_s, env)

    def shell(self, machine: str, script: str, *words: str, user: int = 0) -> Answer:
        """Run lines of sh as `user` (default: root); they must succeed."""
        answer = self._run(machine, [["sh", "-euc", script, "sh", *words]], user, None, {})[0]
        assert answer.status == 0, str(answer)
        return answer

    def look(self, machine: str, *folders: str) -> Sight:
        data = self._ask(machine, "look", folders=list(folders))
        processes = [
            Process(
                pid=item["pid"],
                session=item["session"],
                argv=item["argv"],
                run=item["env"].get("SYMPH_RUN", ""),
                token=item["env"].get("T", ""),
            )
            for item in data["processes"]
        ]
        dead = [(pid, status) for pid, status in data["dead"]]
        return Sight(processes=processes, dead=dead, files=data["files"])

    def signal(self, machine: str, pid: int, number: int) -> None:
        self._ask(machine, "signal", pid=pid, number=int(number))

    def _run(
        self,
        machine: str,
        commands: Sequence[Sequence[str]],
        user: int,
        kill_after_s: float | None,
        env: dict[str, str],
    ) -> list[Answer]:
        whole = {
            "PATH": os.environ["PATH"],
            "HOME": HOME,
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": f"/run/user/{user}",
            "PYTHONDONTWRITEBYTECODE": "1",
            **self.env,
            **env,
        }
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        asked = [
            {
                "argv": ["env", "-C", HOME, *become, *argv],
                "env": {name: value for name, value in whole.items() if value},
                "kill_after_s": kill_after_s,
            }
            for argv in commands
        ]
        answers = self._ask(machine, "run", commands=asked, timeout_s=_PATIENCE_S)
        return [Answer(argv=argv, **answer) for argv, answer in zip(commands, answers, strict=True)]

    def _ask(self, machine: str, verb: str, **more: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"machine": machine, "do": verb, **more}) + "\n")
        self._process.stdin.flush()
        # It always writes whole lines, so the buffer never hides an answer from `select`.
        ready, _, _ = select.select([self._process.stdout], [], [], 2 * _PATIENCE_S)
        assert ready, f"the machine {machine} does not answer: {verb} {more}"
        line = self._process.stdout.readline()
        assert line, "the world has ended"
        return json.loads(line)
