"""Start a probe in tmux in place of each process; it records what the process would see."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from symphony_charts.errors import ToolFailed
from symphony_charts.local import up as local_run
from symphony_charts.local.plan.records import LocalPlan
from symphony_charts.local.plan.replicas import local_process
from symphony_charts.spec.environment import entry_point
from symphony_charts.spec.model import Experiment, LocalProcess, Process
from symphony_charts.spec.pods import Service
from tests.local.parity.process_view import ProcessView, as_in_pod

# Inspects itself, listens on its ports, records the result and waits to be ended. It reads the kernel's own record of
# arguments and environment, which the interpreter cannot have changed.
_PROBE = r"""
import hashlib, json, os, socket, sys, time
argv = open('/proc/self/cmdline', 'rb').read().split(b'\0')[:-1]
pairs = [entry.partition(b'=') for entry in open('/proc/self/environ', 'rb').read().split(b'\0') if entry]
env = {name.decode(): value.decode() for name, _, value in pairs}
listening = [socket.create_server((host, int(env[name[:-len('BIND_HOST')] + 'PORT'])))
             for name, host in env.items() if name.startswith('SYMPH_') and name.endswith('_BIND_HOST')]
files, folder = {}, env['SYMPH_CONFIG_DIR']
for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
    path = os.path.join(folder, name)
    content = open(path, 'rb').read()
    files[path] = hashlib.sha256(content).hexdigest()[:16] + f' {os.stat(path).st_mode & 0o777:o}'
words = [word.decode() for word in argv[argv.index(b'symph-probe') + 2:]]
place = f'{sys.argv[2]}/{os.getpid()}'
with open(place + '.new', 'w') as file:
    json.dump({'argv': words, 'env': env, 'cwd': os.getcwd(), 'files': files}, file)
os.rename(place + '.new', place)
time.sleep(600)
"""
_START_S = 60.0


class _Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one probe."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    files: dict[str, str]


def probe(
    experiment: Experiment, services: Sequence[Service], folder: Path, planned: Mapping[str, ProcessView]
) -> dict[str, ProcessView]:
    """Return the view of each process in `planned` as a program in its place sees it, started in tmux and ended again.

    Nothing of the experiment itself runs: neither its programs nor its steps, preambles and probes. The run is separate
    from real runs and leaves no trace. Raises ToolFailed if a process does not start.
    """
    with tempfile.TemporaryDirectory(prefix="symph-", dir="/tmp") as state, _private_state(Path(state)):
        seen = Path(state) / "seen"
        seen.mkdir(mode=0o700)
        run = local_run.up(_with_probes(experiment, str(seen)), services, folder=folder)
        assert run is not None
        try:
            plan = run.plan()
            views = {path.name: _read(path) for path in _await(seen, len(planned))}
            slots = {f"{item.pod}/{item.process}": item.slot for item in plan.processes}
            pids = {name: (run.process_dir(slots[name]) / "pid").read_text().strip() for name in planned}
        finally:
            local_run.down(run)
    return {name: _view(name, views[pids[name]], plan) for name in planned}


def _with_probes(experiment: Experiment, seen: str) -> Experiment:
    """Return the experiment with probes as processes, in the same environment, with the original arguments appended."""

    def change(process: Process) -> Process:
        entry = entry_point(local_process(process))
        words = [*(entry.command or []), *(entry.args or [])]
        local = msgspec.structs.replace(
            process.local or LocalProcess(),
            command=None,
            args=None,
            cmds=None,
            preamble=None,
            cwd=None,
            # It uses no GPU, and takes none from other runs.
            gpus=0,
        )
        return msgspec.structs.replace(
            local_process(process),
            command=[sys.executable, "-I", "-S", "-c", _PROBE, "symph-probe", seen],
            args=words,
            cmds=None,
            preamble=[],
            ready=None,
            after=[],
            deadline=None,
            local=local,
        )

    groups = {
        name: msgspec.structs.replace(
            group, deadline=None, processes={inner: change(process) for inner, process in group.processes.items()}
        )
        for name, group in experiment.groups.items()
    }
    return msgspec.structs.replace(
        experiment,
        groups=groups,
        processes={name: change(process) for name, process in experiment.processes.items()},
        prepare={},
        done_when=[],
        local=msgspec.structs.replace(experiment.local, preamble=[]),
        on_failure="continue",
    )


def _await(folder: Path, count: int) -> list[Path]:
    deadline = time.monotonic() + _START_S
    while True:
        paths = [path for path in folder.iterdir() if path.suffix != ".new"]
        if len(paths) >= count:
            return paths
        if time.monotonic() > deadline:
            raise ToolFailed(f"{len(paths)} of {count} processes came up in tmux", next="symph up SPEC shows why")
        time.sleep(0.02)


def _read(path: Path) -> _Seen:
    return msgspec.json.decode(path.read_bytes(), type=_Seen)


def _view(name: str, seen: _Seen, plan: LocalPlan) -> ProcessView:
    item = next(item for item in plan.processes if name == f"{item.pod}/{item.process}")
    binds = [] if plan.has_namespace else [*plan.binds, *item.binds]

    def back(text: str) -> str:
        return as_in_pod(text, binds, plan.ports, plan.moved)

    return ProcessView(
        name=name,
        argv=tuple(map(back, seen.argv)),
        env={key: back(value) for key, value in seen.env.items()},
        cwd=back(seen.cwd),
        files={back(path): mark for path, mark in seen.files.items()},
        hosts=frozenset(item.address for item in plan.processes),
    )


@contextmanager
def _private_state(folder: Path) -> Iterator[None]:
    """Keep the state of this program's runs in `folder` within the context."""
    names = {"SYMPH_STATE_DIR": "state", "SYMPH_RUNTIME_DIR": "run"}
    before = {name: os.environ.get(name) for name in names}
    os.environ.update({name: str(folder / part) for name, part in names.items()})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
