"""A reader of a page: an empty folder, an empty home, the installed command; follows the page's blocks."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from tests.pages.blocks import Block, blocks_of, given_files
from tests.pages.commands import steps_of
from tests.waiting import eventually

_TIMEOUT_S = 180
_REGISTRY = "registry.example.org"
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
# Patterns for values that differ from run to run, applied in this order to both sides.
_VARYING = (
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?|\b\d{8}-\d{6}\b"), "<time>"),
    (re.compile(r"\b127\.\d{1,3}\.\d{1,3}\.\d{1,3}\b"), "<address>"),
    (re.compile(r"(sha256:)?\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}(?![0-9a-z])…?"), "<id>"),
    (re.compile(r"\b\d+(\.\d+)? ?(B|kB|[MG]B|[KMG]iB)\b"), "<size>"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s|m|h|d)\b( \d+ ?s\b)?"), "<span>"),
    (re.compile(r"/tmp/symph-page-[^/\s]+/(work|home)"), "~"),
    (re.compile(r"[ \t]+|-{4,}"), " "),
)


def differences(shown: Sequence[str], printed: str) -> str:
    """Return the differences between shown and printed output; empty if there are none.

    Dates, addresses of 127/8, ids of at least seven hexadecimal digits, sizes and spans of time are compared by their
    form alone, the width of columns is not compared, and ``...`` matches any text, alone on a line any lines.
    """
    wanted, got = [_general(line) for line in shown], [_general(line) for line in printed.splitlines()]
    got = [line for line in got if line]
    wanted = [line for line in wanted if line]
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else r".*?".join(map(re.escape, line.split("..."))) + r" ?\n" for line in wanted
    )
    if re.fullmatch(pattern, "".join(f"{line}\n" for line in got)):
        return ""
    return "\n".join(difflib.unified_diff(wanted, got, "shown", "printed", lineterm="", n=9))


def _general(line: str) -> str:
    for varying, form in _VARYING:
        line = varying.sub(form, line)
    return line.strip()


class Reader:
    """Follows a page; `faults` are the places where the page is wrong, with the actual output.

    `programs` holds the installed command. `tools` and `kubeconfig` are only for blocks that run on a cluster.
    `registry` is the address used for registry.example.org.
    """

    def __init__(
        self, programs: Path, tools: Sequence[Path] = (), kubeconfig: Path | None = None, registry: str = _REGISTRY
    ) -> None:
        self.faults: list[str] = []
        self._folder = Path(tempfile.mkdtemp(prefix="symph-page-", dir="/tmp"))
        for name in ("work", "home", "run", "tools"):
            (self._folder / name).mkdir()
        for tool in tools:
            (self._folder / "tools" / tool.name.partition("-")[0]).symlink_to(tool)
        self._programs, self._kubeconfig, self._registry = programs, kubeconfig, registry
        self._here = self._folder / "work"

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in self._say("symph ls -o name", on_cluster=False).stdout.split():
            self._say(f"symph down {name}", on_cluster=False)
        # The server of a run that is just ending would outlive its socket.
        for socket in (self._folder / "run").rglob("*.sock"):
            subprocess.run(["tmux", "-S", str(socket), "kill-server"], capture_output=True, check=False)
        eventually(self._is_removed)

    def _is_removed(self) -> bool:
        """Return True if the folder is gone; the supervisor of an ending run still writes and removes files."""
        try:
            shutil.rmtree(self._folder)
        except OSError:
            return not self._folder.exists()
        return True

    def read(self, page: Path) -> None:
        """Follow the page up to the first fault: later blocks would fail because of it."""
        for name, path in given_files(page).items():
            target = self._here / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, target, ignore=shutil.ignore_patterns("__pycache__", "*.lock.yaml"))
            else:
                shutil.copyfile(path, target)
        for block in blocks_of(page):
            self._do(block)
            if self.faults:
                return

    def _do(self, block: Block) -> None:
        if block.kind == "file":
            target = self._here / block.rest
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.kind == "is":
            text = (self._here / block.rest).read_text(encoding="utf-8")
            # The page's remarks beside the lines are not in the file.
            differing = differences(re.sub(r"(?m) +#.*$", "", block.text).splitlines(), text)
            self.faults += [f"{block.place}: {block.rest}\n{differing}"] if differing else []
        elif block.kind == "run" and block.language == "python":
            (self._here / "block.py").write_text(block.text, encoding="utf-8")
            self._try(block, "python block.py", None)
        elif block.kind == "run":
            for command, shown in steps_of(block):
                self._try(block, command, shown)
        elif block.kind == "prints":
            shown = [line for line in block.text.splitlines() if not line.startswith("$ ")]
            self._try(block, block.rest, shown)
        elif block.kind == "do":
            self._try(block, block.rest, None)

    def _try(self, block: Block, command: str, shown: list[str] | None) -> None:
        if self.faults:
            return
        ended = self._say(command, on_cluster=block.kind != "run" or "cluster" in block.rest.split(", "))
        # If a page shows an error, the command must fail.
        fails = any(line.startswith("error:") for line in shown or ())
        if (ended.returncode != 0) is not fails:
            self.faults.append(f"{block.place}: {command}\nended with {ended.returncode}:\n{ended.stdout[-3000:]}")
        elif shown:
            differing = differences(shown, ended.stdout)
            if differing:
                self.faults.append(f"{block.place}: {command}\n{differing}")

    def _say(self, command: str, *, on_cluster: bool) -> subprocess.CompletedProcess[str]:
        """Run one line in bash, in the folder where the line before left the reader."""
        command = command.replace(_REGISTRY, self._registry)
        line = f"{command}\nstatus=$?; pwd > {self._folder}/here; exit $status"
        argv = ["bash", "-o", "pipefail", "-c", line]
        with subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=self._here,
            env=self._env(on_cluster=on_cluster),
            start_new_session=True,
        ) as process:
            try:
                said, _ = process.communicate(timeout=_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                said, _ = process.communicate()
                said += f"\n(did not end within {_TIMEOUT_S} s)"
        here = self._folder / "here"
        if here.exists():
            self._here = Path(here.read_text().strip())
        return subprocess.CompletedProcess(argv, process.returncode, said.replace(self._registry, _REGISTRY))

    def _env(self, *, on_cluster: bool) -> dict[str, str]:
        tools = [str(self._folder / "tools")] if on_cluster else []
        home = str(self._folder / "home")
        env = {"PATH": ":".join([f"{home}/bin", str(self._programs), *tools, _SYSTEM_PATH]), "HOME": home}
        # Unbuffered, so that stdout and stderr come in the order that a terminal shows.
        env |= {"LANG": "C.UTF-8", "TERM": "dumb", "COLUMNS": "120", "PYTHONUNBUFFERED": "1"}
        env |= {"BASH_ENV": f"{home}/variables"}
        env |= {"XDG_RUNTIME_DIR": str(self._folder / "run"), "TMUX_TMPDIR": str(self._folder / "run")}
        for role in ("AUTHOR", "COMMITTER"):
            env |= {f"GIT_{role}_NAME": "Ann", f"GIT_{role}_EMAIL": "ann@example.org"}
        if on_cluster and self._kubeconfig is not None:
            env["KUBECONFIG"] = str(self._kubeconfig)
        return env
