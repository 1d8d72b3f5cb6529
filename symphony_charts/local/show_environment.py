"""`of_run` and `of_spec` return the environment of a process of a live run or of a file, and its secret variables."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from symphony_charts.errors import UsageError
from symphony_charts.local.history import load_saved, read_secrets
from symphony_charts.local.machine.machine import plan_here
from symphony_charts.local.plan.environment import MASK, secret_names
from symphony_charts.local.plan.records import LocalPlan, PlannedProcess
from symphony_charts.local.plan.scripts import quote, read_environment
from symphony_charts.local.runs import find_run, find_slots
from symphony_charts.spec import files
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import ProcessRef, allocate
from symphony_charts.spec.variable_names import is_shell_name


class Environment(Struct, frozen=True, kw_only=True):
    """The variables of one process; `secret` names the secret ones."""

    experiment: str
    process: str
    env: Mapping[str, str]
    secret: frozenset[str]
    has_preamble: bool


def of_run(experiment: str | None, process: str | None) -> Environment:
    """Return the environment of a process of a live run. Raises NotFound, and UsageError for several."""
    run = find_run(experiment, live=True)
    plan = run.plan()
    planned = _only(plan, process)
    script = (run.process_dir(planned.slot) / "start").read_text(encoding="utf-8")
    env = read_environment(script)
    contents = {path.name: path.read_bytes() for path in (run.folder / "files").glob("secrets*/*")}
    return Environment(
        experiment=run.experiment,
        process=planned.name,
        env=env,
        secret=_secret(load_saved(run).experiment, planned, env, contents),
        has_preamble="symph: preamble failed" in script,
    )


def of_spec(path: str, process_name: str | None, changes: Sequence[str] = ()) -> Environment:
    """Return the environment of a process of a spec, if it started now. Raises as `of_run` does."""
    spec = files.read(path, changes)
    folder = spec.path.parent
    plan = plan_here(spec.experiment, allocate(spec.experiment, spec.pins), folder, "render")
    process = _only(plan, process_name)
    return Environment(
        experiment=plan.experiment,
        process=process.name,
        env=process.env,
        secret=_secret(spec.experiment, process, process.env, read_secrets(spec.experiment.secrets, folder)),
        has_preamble=bool(process.preamble),
    )


def shell_text(env: Mapping[str, str], masked: Collection[str]) -> str:
    """Return lines that a shell can source; `masked` variables and those with invalid shell names are comments."""
    lines = []
    for name, value in env.items():
        if name in masked:
            lines.append(f"# export {name}={MASK}   (--show-secrets)\n")
        elif is_shell_name(name):
            lines.append(f"export {name}={quote(value)}\n")
        else:
            lines.append(f"# a shell cannot set this: {json.dumps(f'{name}={value}', ensure_ascii=False)}\n")
    return "".join(lines)


def plan_items(
    experiment: Experiment, plan: LocalPlan, folder: Path, *, shows_secrets: bool
) -> list[dict[str, object]]:
    """Return every process of a plan as JSON types, with secret values masked unless `shows_secrets`."""
    secrets = read_secrets(experiment.secrets, folder)
    items: list[dict[str, object]] = []
    for process in plan.processes:
        masked = frozenset() if shows_secrets else _secret(experiment, process, process.env, secrets)
        items.append(
            {
                "name": process.name,
                "group": process.group,
                "pod": process.pod,
                "argv": list(process.argv),
                "env": {name: MASK if name in masked else value for name, value in process.env.items()},
                "cwd": process.cwd,
                "preamble": list(process.preamble),
                "address": process.address,
                "tty": process.tty,
                "gpus": list(process.gpus),
                "limits": {limit.resource: f"{limit.said} by {limit.by}" for limit in process.limits},
                "restart": process.restart,
                "retries": process.retries,
                "after": [f"{plan.processes[wait.slot].name} {wait.until}" for wait in process.waits],
                "mounts": [f"{bind.source} -> {bind.target}" for bind in (*plan.binds, *process.binds)],
            }
        )
    return items


def _only(plan: LocalPlan, name: str | None) -> PlannedProcess:
    """Return the only process that `name` names. Raises NotFound, and UsageError for several."""
    slots = find_slots(plan, name) if name else range(len(plan.processes))
    if len(slots) > 1:
        which = f'"{name}" matches {len(slots)} processes' if name else f"there are {len(slots)} processes"
        raise UsageError(which, next=f"choose one: {', '.join(plan.processes[slot].name for slot in slots)}")
    return plan.processes[slots[0]]


def _secret(
    experiment: Experiment, process: PlannedProcess, env: Mapping[str, str], secrets: Mapping[str, bytes]
) -> frozenset[str]:
    return secret_names(experiment, ProcessRef(process.declared_pod, process.process), env, secrets)
