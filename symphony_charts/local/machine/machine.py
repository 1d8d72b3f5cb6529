"""Plan a run for this machine: addresses, private mounts, limits, open files and Git volumes."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from symphony_charts.errors import Problem, SpecError, SymphError, ToolFailed, ToolMissing
from symphony_charts.kinds.registry import KINDS
from symphony_charts.local.machine.addresses import RunAddresses, choose_addresses
from symphony_charts.local.machine.gpus import gpus_of_run, look_at_gpus
from symphony_charts.local.mounts.mount_points import has_mount_calls
from symphony_charts.local.plan.environment import FROM_CALLER, HOSTS, HOSTS_FILE, of_machine
from symphony_charts.local.plan.plan import make_plan
from symphony_charts.local.plan.records import Checkout, Gpus, Limiter, LocalPlan, Machine, range_at
from symphony_charts.local.runs import Run, home
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import Service
from symphony_charts.spec.sources import GitVolume, key_of
from symphony_charts.system import subprocess_runner
from symphony_charts.system.git.program import check_out_volume
from symphony_charts.system.user_folders import state_dir

_MEMORY, _CPU = 123 * 2**20, 317
# The limits in force inside. Control groups v1 give none to a user's own manager.
_LOOK = 'read -r group </proc/self/cgroup; cd "/sys/fs/cgroup${group#0::}" && cat memory.max cpu.max; :'
# Since this version systemd ends the whole scope after an OOM kill, including the shell that watches it.
_ENDS_SCOPES = 253


@cache
def find_limiter() -> Limiter:
    """Return systemd scopes if a user manager runs and may limit its units, else rlimits for memory."""
    try:
        scope = _scope()
        trial = [*scope, "-p", f"MemoryMax={_MEMORY}", "-p", f"CPUQuota={_CPU / 10}%", "--", "/bin/sh"]
        done = subprocess_runner.run([*trial, "-c", _LOOK], timeout_s=10, check=False)
    except SymphError as error:
        return Limiter(by={"memory": "rlimit"}, why=error.what)
    if done.status:
        message = done.error_text.strip().splitlines()[-1:] or [f"status {done.status}"]
        return Limiter(by={"memory": "rlimit"}, why=f"systemd-run --user fails here ({message[0]})")
    words = done.text.split()
    memory, cpu = str(_MEMORY) in words, str(_CPU * 100) in words
    return Limiter(
        by={"memory": "systemd" if memory else "rlimit", **({"cpu": "systemd"} if cpu else {})},
        scope=tuple(scope),
        why="" if memory and cpu else "the systemd of this user cannot limit both memory and CPU",
    )


def _scope() -> list[str]:
    program, runtime = shutil.which("systemd-run"), os.environ.get("XDG_RUNTIME_DIR")
    if program is None or not runtime:
        what = "no systemd-run" if program is None else "no systemd session (XDG_RUNTIME_DIR is not set)"
        raise ToolMissing(f"{what} on this machine")
    version = re.search(r"systemd (\d+)", subprocess_runner.run([program, "--version"], timeout_s=10).text)
    is_new = version is not None and int(version[1]) >= _ENDS_SCOPES
    keeps = ["-p", "OOMPolicy=continue"] if is_new else []
    words = ["/usr/bin/env", f"XDG_RUNTIME_DIR={runtime}", program, "--user", "--scope", "--quiet", "--collect"]
    return [*words, *keeps]


# Test a mount as well: some machines allow the namespace but forbid mounts in it.
_PROBE = ("mount", "-t", "tmpfs", "symph", "/tmp")  # noqa: S108 - covered in the namespace alone


def plan_here(
    experiment: Experiment,
    services: Sequence[Service],
    folder: Path,
    run_id: str,
    *,
    run_dir: Path | None = None,
    of_run: Run | None = None,
    gpus: Gpus | None = None,
) -> LocalPlan:
    """Return the plan of `experiment` on this machine, at addresses that are free now. Starts and changes nothing.

    With `of_run` the plan uses the addresses and GPUs of this run, and the PATH, HOME, LANG and TERM with which it was
    started: another shell is no change of an experiment. `gpus` are the held GPUs of the run; without, the plan is only
    a preview, with the GPUs that it would get now and a note on missing ones. With `run_dir` the plan is for other
    runners, which start it from that folder and mount nothing.
    """
    contents, problems = {}, []
    for number, secret in enumerate(experiment.secrets):
        path = folder / Path(secret.file).expanduser()
        try:
            contents[key_of(secret)] = path.read_bytes()
        except OSError as error:
            step = "create the file, or correct the path, which is relative to the folder of the spec"
            problems.append(Problem(what=f"secret file {path}: {error.strerror}", path=f"secrets[{number}]", next=step))
    if problems:
        raise SpecError(problems)
    kind = KINDS[experiment.workload.kind]
    private = str(run_dir or home() / experiment.name / run_id)
    if run_dir is None:
        experiment, services = kind.with_helpers_here(experiment, services, private)
    prefix = namespace_prefix() if run_dir is None else []
    caller, caller_notes = dict(os.environ), tuple[str, ...]()
    kept: dict[str, tuple[str, int]] = {}
    if of_run:
        before = of_run.plan()
        addresses = RunAddresses(addresses=range_at(before.base_address), moved=before.moved)
        gpus = gpus or gpus_of_run(of_run, experiment)
        caller, caller_notes = _caller_of(before)
        kept = {
            f"{one.declared_pod}/{one.index}": (one.pod, addresses.addresses.index(one.address))
            for one in before.processes
            if not one.is_step
        }
    else:
        addresses = choose_addresses(experiment, services, strict=gpus is not None)
        gpus = gpus or look_at_gpus(experiment)
    machine = Machine(
        run_id=run_id,
        run_dir=private,
        claims_dir=str(run_dir / "volumes" / "shared" if run_dir else state_dir() / "claims" / experiment.name),
        spec_dir=str(folder.resolve()),
        hostname=socket.gethostname(),
        addresses=addresses.addresses,
        moved=addresses.moved,
        notes=(*addresses.notes, *caller_notes),
        has_namespace=bool(prefix),
        hosts=_hosts(of_run),
        enter=_without_rights() if "--user" in prefix else (),
        caller_env=caller,
        secrets=contents,
        gpus=gpus,
        limiter=find_limiter() if experiment.local.limits else Limiter(),
        kept=kept,
    )
    plan: LocalPlan = kind.planned_here(make_plan(experiment, services, machine), private)
    return plan


def _caller_of(plan: LocalPlan) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the present environment with the variables that a run started with, and a note if they differ."""
    then, kept = plan.caller, (*FROM_CALLER, "TERM")
    # Ignore TERM: terminals differ, and the run uses tmux panes anyway.
    differing = [name for name in FROM_CALLER if os.environ.get(name) != then.get(name)]
    names = " and ".join(filter(None, [", ".join(differing[:-1]), *differing[-1:]]))
    text = f"{plan.experiment} keeps the {names} of its start, which differ from yours"
    notes = (f"{text}; to use yours, start a new run: symph up --force",) if differing else ()
    return {**{name: value for name, value in os.environ.items() if name not in kept}, **then}, notes


def _hosts(run: Run | None) -> str:
    """Return the hosts file of the machine, which processes of `run` may see replaced."""
    for path in (*([run.folder / HOSTS_FILE] if run else []), Path(HOSTS)):
        with contextlib.suppress(OSError):
            return of_machine(path.read_text(encoding="utf-8", errors="replace"))
    return ""


@cache
def namespace_prefix() -> list[str]:
    """Return the command that gives a program its own mount namespace here; empty if that is not allowed.

    Later mounts and unmounts of the machine propagate into it (a disk, an automounted home), but not out of it.
    """
    if sys.platform != "linux" or shutil.which("unshare") is None or not has_mount_calls():
        return []
    plain = ["unshare", "--mount", "--propagation", "slave"]
    own = ["unshare", "--user", "--map-current-user", "--keep-caps", *plain[1:]]
    # Root in a container may not mount, but can often create a user namespace.
    for prefix in [plain, own] if os.geteuid() == 0 else [own]:
        done = subprocess_runner.run([*prefix, *_PROBE], timeout_s=10, check=False)
        if done.status == 0:
            return prefix
    return []


def _without_rights() -> tuple[str, ...]:
    """Return the command that drops the capabilities of a user namespace, which a container would not have."""
    setpriv = shutil.which("setpriv")
    return (setpriv, "--ambient-caps=-all", "--inh-caps=-all", "--") if setpriv else ()


if sys.platform != "win32":
    import resource

# Other open files of a tmux server, besides one terminal and one log pipe per pane.
_SPARE_FDS = 64
# Terminals reserved for other programs.
_SPARE_TERMINALS = 16
_PTY = Path("/proc/sys/kernel/pty")


def check_capacity(count: int) -> None:
    """Raise ToolFailed if `count` processes cannot get a terminal and a log pipe each.

    A tmux server that runs out of open files spins and stops answering, so check first.
    """
    free = free_terminals()
    if count + _SPARE_TERMINALS > free:
        what = f"{count} processes need a terminal each, and only {free} are free on this machine"
        raise ToolFailed(what, str(_PTY / "max"), f"raise the limit: sysctl -w kernel.pty.max={2 * count + 4096}")
    needed = 2 * count + _SPARE_FDS
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        what = f"{count} processes need {needed} open files, and the limit is {hard}"
        step = f"raise the limit: ulimit -n {needed} as root, or in /etc/security/limits.conf"
        raise ToolFailed(what, "ulimit -Hn", step)


def free_terminals() -> int:
    most, used = (int((_PTY / name).read_text(encoding="ascii")) for name in ("max", "nr"))
    return most - used


def check_out_all(checkouts: Sequence[Checkout]) -> dict[str, str]:
    """Fill the existing empty folders of `checkouts`; return the commit of each volume.

    Asks each repository once, so that all volumes of a moving branch get the same commit. Raises ToolFailed.
    """
    done: dict[tuple[str, str], tuple[Path, str]] = {}
    for wanted in checkouts:
        key, folder = (wanted.repository, wanted.revision), Path(wanted.folder)
        if key in done:
            shutil.copytree(done[key][0], folder, symlinks=True, dirs_exist_ok=True)
        else:
            done[key] = folder, check_out_volume(wanted.repository, wanted.revision, folder)
    return {checkout.volume: done[checkout.repository, checkout.revision][1] for checkout in checkouts}


def with_commits(experiment: Experiment, commits: Mapping[str, str]) -> Experiment:
    volumes = {
        name: msgspec.structs.replace(volume, revision=commits[name])
        if isinstance(volume, GitVolume) and name in commits
        else volume
        for name, volume in experiment.volumes.items()
    }
    return msgspec.structs.replace(experiment, volumes=volumes)
