"""Turn an experiment into the plan of its processes on one machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from msgspec.structs import asdict, replace

from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.quantity import amount_of
from symphony_charts.local.plan.environment import FROM_CALLER, Environments, host_names, passed_names
from symphony_charts.local.plan.mounts import (
    checkouts_of,
    created_host_paths,
    layout,
    lost_writes,
    mount_binds,
    process_secrets,
    relocation_note,
    with_local_paths,
)
from symphony_charts.local.plan.readiness import checks_of, waits_of
from symphony_charts.local.plan.records import AtEnd, Check, Checkout, LocalPlan, Machine, PlannedProcess, Restart, Wait
from symphony_charts.local.plan.replicas import (
    Replica,
    local_process,
    overlay_notes,
    replica_name,
    replicas_of,
    steps_of,
)
from symphony_charts.local.plan.resources import limits_note, limits_of, scope_words
from symphony_charts.spec.checks.pods import UNLIMITED
from symphony_charts.spec.environment import entry_point, expand
from symphony_charts.spec.model import Experiment, Process, Step
from symphony_charts.spec.pods import Pod, ProcessRef, Service, find_process, pods_that_end, processes_of, retries_of
from symphony_charts.spec.variable_names import not_handed_on, shell_argv

# The default grace period of a pod in Kubernetes, in seconds.
_GRACE_S = 30


def make_plan(experiment: Experiment, services: Sequence[Service], machine: Machine) -> LocalPlan:
    """Plan all processes of `experiment` here. Raises SpecError with every process that cannot run, and the reason."""
    context = _Context(experiment, services, machine)
    replicas, files, planned = context.replicas, context.files, context.plan_all()
    names = host_names(replicas, machine)
    binds = [*files.binds, *(bind for process in planned for bind in process.binds)]
    ours = (f"{machine.run_dir}/", f"{machine.claims_dir}/")
    folders = {bind.volume for bind in binds if bind.volume.startswith(ours)}
    folders -= {f"{machine.run_dir}/{file.path}" for file in files.files}
    folders |= {bind.volume for bind in binds} & created_host_paths(experiment)
    return LocalPlan(
        experiment=experiment.name,
        processes=tuple(planned),
        done_when=_done_when(experiment, planned),
        linger_s=experiment.linger,
        files=(*files.files, *names.files),
        folders=tuple(sorted(folders)),
        checkouts=tuple(_checkouts(experiment, replicas, machine)),
        binds=(*files.binds, *names.binds),
        has_namespace=machine.has_namespace,
        base_address=machine.addresses.address(0),
        ports={service.name: service.port for service in services},
        moved=dict(machine.moved),
        is_sharing_gpus=machine.gpus.is_shared,
        labels=dict(experiment.labels),
        caller={name: machine.caller_env[name] for name in (*FROM_CALLER, "TERM") if name in machine.caller_env},
        not_passed=tuple(sorted(machine.caller_env.keys() - {name for process in planned for name in process.env})),
        notes=(
            *machine.notes,
            *files.notes,
            *names.notes,
            *relocation_note(planned, machine),
            *limits_note(experiment, machine.limiter),
            *machine.gpus.notes,
            *overlay_notes(experiment),
            *_line_notes(experiment),
        ),
    )


def _line_notes(experiment: Experiment) -> Iterator[str]:
    """Yield a note for each process whose shell lines may not see one of its variables."""
    for ref, process in processes_of(experiment):
        lost = not_handed_on(shell_argv(process.shell), process.env) if process.cmds else []
        if lost:
            yield f"if sh is dash, it drops {', '.join(lost)} from the environment of {ref}; `shell: bash` does not"


class _Context:
    def __init__(self, experiment: Experiment, services: Sequence[Service], machine: Machine) -> None:
        self.experiment, self.services, self.machine = experiment, services, machine
        self.files = layout(experiment, machine)
        self.replicas = list(replicas_of(experiment, machine))
        self.has_end = any(replica.pod.is_finite for replica in self.replicas)
        self.pods_that_end = pods_that_end(experiment)
        self.names = {ref.process for ref, _ in processes_of(experiment)}
        self.environments = Environments(experiment, services, machine, self.replicas)
        self.waits = waits_of(experiment, services, self.replicas)

    def plan_all(self) -> list[PlannedProcess]:
        """Plan every process in slot order. Raises SpecError with all that cannot run here."""
        problems: list[Problem] = []
        planned: list[PlannedProcess] = []
        for replica in self.replicas:
            pod, before = replica.pod, tuple[Wait, ...]()
            programs: list[tuple[str, Process | Step]] = [*steps_of(self.experiment, pod).items()]
            for name, process in [*programs, *pod.processes.items()]:
                path = f"{pod.path}.processes.{name}" if pod.is_group else pod.path
                if isinstance(process, Step):
                    path = f"prepare.{name}"
                try:
                    process_here = self._plan(len(planned), replica, path, name, process)
                except SpecError as error:
                    problems += [problem.moved_to(f"{path}.{problem.path}".rstrip(".")) for problem in error.problems]
                    continue
                planned.append(replace(process_here, waits=(*before, *process_here.waits)))
                if isinstance(process, Step):
                    before = (Wait(slot=len(planned) - 1, until="done"),)
        if not self.replicas:
            what = "nothing to run: no process has a replica"
            problems.append(Problem(what=what, path="processes", next="set `replicas` of a process to at least 1"))
        if problems:
            raise SpecError(problems)
        return planned

    def _plan(self, slot: int, replica: Replica, path: str, name: str, process: Process | Step) -> PlannedProcess:
        experiment, machine, ref = self.experiment, self.machine, ProcessRef(replica.pod.name, name)
        local = process.local if isinstance(process, Process) else None
        process = local_process(process) if isinstance(process, Process) else process
        secrets = process_secrets(experiment, ref, machine)
        if lost := list(lost_writes(experiment, process.mounts, machine)):
            raise SpecError(lost)
        mounts = (*mount_binds(experiment, process.mounts, replica.name, machine), *secrets)
        if not machine.has_namespace:
            process = with_local_paths(process, (*self.files.binds, *mounts))
        tty = experiment.local.tty if local is None or local.tty is None else local.tty
        gpus = machine.gpus.ids.get(f"{replica.name}/{name}", ())
        is_service = isinstance(process, Process) and process.lifecycle == "service"
        retries = retries_of(experiment, replica.pod)
        restart = _restart(replica.pod, retries, is_service=is_service)
        log_size = (local.log_size if local is not None else None) or experiment.local.log_size
        ends = isinstance(process, Process) and not is_service
        is_tried_again = restart == "always" or (restart == "on-failure" and retries > 0)
        counts_tries = ends and is_tried_again
        # Steps and services get the number, too, as in a Job, but always 0: here they are not retried with their pod.
        attempt = "0" if replica.pod.is_finite and not counts_tries else None
        env, named = self.environments.of(process, name, replica, tty=tty, gpus=gpus, attempt=attempt)
        entry = entry_point(process)
        if not entry.command:
            what = f'process "{name}" has no command: it starts the one of its image, and local runs use no images'
            raise SpecError([Problem(what=what, next="set its `local: {command: [...]}` or `local: {cmds: [...]}`")])
        argv = tuple(expand(word, named) for word in [*entry.command, *(entry.args or [])])
        cwd = process.cwd or experiment.local.cwd or machine.spec_dir
        preamble = local.preamble if local is not None and local.preamble is not None else experiment.local.preamble
        limits = limits_of(process, machine.limiter) if experiment.local.limits else ()
        # Another shell is no change: what patterns pass may differ.
        started = [argv, self._without_patterns(env), cwd]
        around = [preamble, *map(asdict, mounts), *map(asdict, limits)]
        checks = list(self._checks(ref, replica, process)) if isinstance(process, Process) else []
        count = 1 if replica.name == replica.pod.name else max(replica.count, 2)
        return PlannedProcess(
            slot=slot,
            name=replica_name(name, replica.index, count, self.names, separator="/"),
            group=replica.pod.name if replica.pod.is_group else "",
            pod=replica.name,
            process=name,
            index=replica.index,
            is_step=isinstance(process, Step),
            is_service=is_service,
            argv=argv,
            env=env,
            preamble=tuple(preamble),
            cwd=str(PurePosixPath(machine.spec_dir) / cwd),
            tty=tty,
            address=replica.address,
            waits=tuple(self.waits[ref]) if isinstance(process, Process) else (),
            checks=tuple(check for check in checks if check.role == "ready"),
            health=tuple(check for check in checks if check.role != "ready"),
            restart=restart,
            retries=retries,
            counts_tries=counts_tries,
            on_failure=experiment.on_failure,
            grace_s=replica.pod.settings.grace_period or _GRACE_S,
            deadline_s=replica.pod.settings.deadline,
            log_bytes=0 if log_size == UNLIMITED else amount_of("storage", log_size),
            gpus=gpus,
            enter=machine.enter,
            limits=limits,
            scope=scope_words(limits, machine.limiter),
            binds=mounts,
            spec_path=path,
            digest=f"{_digest(started)}.{_digest(around)}",
            at_end=self._at_end(replica.pod),
        )

    def _at_end(self, pod: Pod) -> AtEnd:
        """Return when the processes of `pod` end after the run, which has no end without finite processes here."""
        if pod.is_finite or not self.has_end:
            return "stop"
        return "linger" if pod.name in self.pods_that_end else "stay"

    def _without_patterns(self, env: Mapping[str, str]) -> object:
        caller, patterns = self.machine.caller_env, self.experiment.local.pass_env
        names = passed_names(patterns, caller, by_pattern=True)
        if not names:
            return env
        return [{key: value for key, value in env.items() if key not in names or value != caller[key]}, patterns]

    def _checks(self, ref: ProcessRef, replica: Replica, process: Process) -> Iterator[Check]:
        own = [service for service in self.services if service.listener == ref]
        ports = [self.environments.addresses[service.name].port_of(replica.index) for service in own]
        moved = {service.port: port for service, port in zip(own, ports, strict=True)}
        listening = [(service.name, port) for service, port in zip(own, ports, strict=True)]
        for check in checks_of(process, replica.address, listening):
            # A probe may use the pod's port number where the port here differs.
            yield check if check.automatic else replace(check, port=moved.get(check.port, check.port))


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _checkouts(experiment: Experiment, replicas: Sequence[Replica], machine: Machine) -> Iterator[Checkout]:
    for replica in replicas:
        mounts = [mount for step in steps_of(experiment, replica.pod).values() for mount in step.mounts]
        mounts += [mount for process in replica.pod.processes.values() for mount in process.mounts]
        yield from dict.fromkeys(checkouts_of(experiment, mounts, replica.name, machine))


def _done_when(experiment: Experiment, planned: Sequence[PlannedProcess]) -> tuple[int, ...]:
    named = {find_process(experiment, name) for name in experiment.done_when}
    watched = [process for process in planned if not process.is_step]
    if named:
        return tuple(one.slot for one in watched if (one.declared_pod, one.process) in named)
    return tuple(one.slot for one in watched if not one.is_service)


def _restart(pod: Pod, retries: int, *, is_service: bool) -> Restart:
    # A service beside finite processes is a sidecar, which the kubelet always restarts.
    if pod.settings.restart is not None and not (is_service and pod.is_finite):
        restart: Restart = pod.settings.restart
    else:
        restart = "always" if is_service else "never"
    return "on-failure" if restart == "never" and retries and not is_service else restart
