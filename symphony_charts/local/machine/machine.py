"""`plan_here` plans a run for this machine: free addresses, private mounts, limits. Nothing is started or changed."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from symphony_charts.errors import Problem, SpecError
from symphony_charts.kinds.registry import KINDS
from symphony_charts.local.machine.addresses import addresses_of_run, choose_addresses
from symphony_charts.local.machine.gpus import gpus_of_run, look_at_gpus
from symphony_charts.local.machine.limits import find_limiter
from symphony_charts.local.plan.environment import FROM_CALLER
from symphony_charts.local.plan.host_names import HOSTS, HOSTS_FILE, of_machine
from symphony_charts.local.plan.plan import make_plan
from symphony_charts.local.plan.records import Gpus, Limiter, LocalPlan, Machine
from symphony_charts.local.runs import Run, home
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.services import Service
from symphony_charts.spec.sources import key_of
from symphony_charts.system import subprocess_runner
from symphony_charts.system.user_folders import state_dir

__all__ = ["namespace_prefix", "plan_here"]

# What showing files at a pod's paths takes: some machines give a namespace and then forbid to mount in it.
_PROBE = "mount -t tmpfs symph /tmp"


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
    """Return the plan of `experiment` on this machine, under addresses that are free now. Starts and changes nothing.

    With `of_run` it is planned at the addresses and on the GPUs that this run has, and with the PATH, HOME, LANG and
    TERM of whoever started it: another shell is no change of an experiment. `gpus` are those that are held for
    it; without, it is planned to be looked at, with the GPUs that it would get now, and what it lacks is only noted.
    With `run_dir` it is for other runners than ours, which start it from that folder and mount nothing.
    """
    contents, problems = {}, []
    for number, secret in enumerate(experiment.secrets):
        path = folder / Path(secret.file).expanduser()
        try:
            contents[key_of(secret)] = path.read_bytes()
        except OSError as error:
            step = "make it, or mend the path, which counts from the folder of the spec"
            problems.append(Problem(what=f"secret file {path}: {error.strerror}", path=f"secrets[{number}]", next=step))
    if problems:
        raise SpecError(problems)
    kind = KINDS[experiment.workload.kind]
    private = str(run_dir or home() / experiment.name / run_id)
    if run_dir is None:
        experiment, services = kind.with_helpers_here(experiment, services, private)
    addresses = addresses_of_run(of_run) if of_run else choose_addresses(experiment, services, strict=gpus is not None)
    if gpus is None:
        gpus = gpus_of_run(of_run, experiment) if of_run else look_at_gpus(experiment)
    prefix = namespace_prefix() if run_dir is None else []
    caller, caller_notes = _caller_of(of_run) if of_run else (dict(os.environ), ())
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
    )
    plan: LocalPlan = kind.planned_here(make_plan(experiment, services, machine), private)
    return plan


def _caller_of(run: Run) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the present environment with the variables that `run` started with, and a note if they differ."""
    then = run.plan().caller
    kept = (*FROM_CALLER, "TERM")
    now = {name: os.environ[name] for name in kept if name in os.environ}
    # Each terminal is called as it likes, and a pane of tmux is none of them.
    differing = [name for name in FROM_CALLER if now.get(name) != then.get(name)]
    names = " and ".join(filter(None, [", ".join(differing[:-1]), *differing[-1:]]))
    text = f"{names} of {run.experiment} stay as they were when it was started, and differ here"
    notes = (f"{text}; to start it with yours: symph up --force",) if differing else ()
    return {**{name: value for name, value in os.environ.items() if name not in kept}, **then}, notes


def _hosts(run: Run | None) -> str:
    """Return the hosts file of the machine, which processes of `run` may see replaced."""
    for path in (*([run.folder / HOSTS_FILE] if run else []), Path(HOSTS)):
        with contextlib.suppress(OSError):
            return of_machine(path.read_text(encoding="utf-8", errors="replace"))
    return ""


@cache
def namespace_prefix() -> list[str]:
    """Return the command that gives a program a mount namespace of its own here; empty where that is not allowed.

    What the machine mounts and unmounts meanwhile is seen there, too (a disk, an automounted home), and nothing of
    what is mounted there is seen elsewhere.
    """
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return []
    plain = ["unshare", "--mount", "--propagation", "slave"]
    own = ["unshare", "--user", "--map-current-user", "--keep-caps", *plain[1:]]
    # Root of a container may not mount, but often may have a user namespace as others do.
    for prefix in [plain, own] if os.geteuid() == 0 else [own]:
        done = subprocess_runner.run([*prefix, "/bin/sh", "-c", _PROBE], timeout_s=10, check=False)
        if done.status == 0:
            return prefix
    return []


def _without_rights() -> tuple[str, ...]:
    """Return the command that drops the capabilities of a user namespace, which a container would not have."""
    setpriv = shutil.which("setpriv")
    return (setpriv, "--ambient-caps=-all", "--inh-caps=-all", "--") if setpriv else ()
