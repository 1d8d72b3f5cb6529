"""A user of the installed command, in an empty folder and an empty home: each step, with its expected output."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

_TIMEOUT_S = 120
# Ended by Ctrl-C as it should, or a moment before it was ready for it.
_INTERRUPTED = (0, 130)
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed command: its words, the fault, and its output."""

    words: tuple[str, ...]
    why: str
    said: str


@dataclass(kw_only=True)
class Journey:
    """One user: `programs` holds the installed command, `folder` is the user's only folder; results are appended."""

    programs: Path
    folder: Path
    tools: Sequence[Path] = ()
    kubeconfig: Path | None = None
    passed: int = 0
    failures: list[Failure] = field(default_factory=list)

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def begin(self) -> None:
        for name in ("work", "home", "tools", "run"):
            (self.folder / name).mkdir(parents=True)
        for tool in self.tools:
            (self.folder / "tools" / tool.name.partition("-")[0]).symlink_to(tool)

    def symph(self, *words: str, status: int = 0, says: str = "", stdin: str = "") -> str:
        """Run one command and return its stdout. It must end with `status` and print `says` on stdout or stderr."""
        return self.run(str(self.programs / "symph"), *words, status=status, says=says, stdin=stdin)

    def walk(self, script: str) -> None:
        """Run each line of `script`, of `symph` or after `!` of another program; the text after `#` must be printed."""
        for line in filter(None, script.splitlines()):
            command, _, says = line.partition(" # ")
            words = shlex.split(command)
            (self.run(*words[1:], says=says) if words[0] == "!" else self.symph(*words, says=says))

    def run(self, *words: str, status: int = 0, says: str = "", stdin: str = "") -> str:
        """Run any program as `symph` does."""
        try:
            ended = subprocess.run(
                words,
                capture_output=True,
                text=True,
                input=stdin,
                cwd=self.work,
                env=self._env(),
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            self._fail(words, f"did not end within {_TIMEOUT_S} s", "")
            return ""
        said = ended.stdout + ended.stderr
        if ended.returncode != status:
            self._fail(words, f"exit status {ended.returncode}, not {status}", said)
        elif says not in said:
            self._fail(words, f"does not say {says!r}", said)
        else:
            self.passed += 1
        return ended.stdout

    def begins(self, *words: str, says: str) -> None:
        """Start a command that runs until it is interrupted, wait until it prints `says`, and interrupt it."""
        argv = [str(self.programs / "symph"), *words]
        with subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.work, env=self._env()
        ) as process:
            timer = threading.Timer(_TIMEOUT_S, process.kill)
            timer.start()
            assert process.stdout is not None
            said = ""
            for line in process.stdout:
                said += line
                if says in line:
                    process.send_signal(signal.SIGINT)
            timer.cancel()
        if says in said and process.returncode in _INTERRUPTED:
            self.passed += 1
        else:
            self._fail(("symph", *words), f"exit status {process.returncode}, and {says!r} is asked for", said)

    def expect(self, title: str, holds: bool, saw: object) -> None:
        if holds:
            self.passed += 1
        else:
            self._fail((title,), "does not hold", str(saw))

    def write(self, path: str, content: object) -> str:
        """Write a text, or JSON, below the work folder; return its relative path."""
        target = self.work / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def _env(self) -> dict[str, str]:
        path = [str(self.programs), str(self.folder / "tools"), _SYSTEM_PATH]
        env = {"PATH": ":".join(path), "HOME": str(self.folder / "home"), "LANG": "C.UTF-8", "TERM": "dumb"}
        env |= {"XDG_RUNTIME_DIR": str(self.folder / "run"), "TMUX_TMPDIR": str(self.folder / "run")}
        env |= {"GIT_AUTHOR_NAME": "u", "GIT_AUTHOR_EMAIL": "u@example.org"}
        env |= {"GIT_COMMITTER_NAME": "u", "GIT_COMMITTER_EMAIL": "u@example.org"}
        return env | ({"KUBECONFIG": str(self.kubeconfig)} if self.kubeconfig else {})

    def _fail(self, words: tuple[str, ...], why: str, said: str) -> None:
        self.failures.append(
            Failure(words=tuple(Path(words[0]).name if not n else w for n, w in enumerate(words)), why=why, said=said)
        )
