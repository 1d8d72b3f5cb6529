"""An experiment -> the plan of its processes on one machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import PurePosixPath

from symphony_charts.environment.entrypoint import entry_point
from symphony_charts.environment.expansion import expand
from symphony_charts.environment.variables import Address
from symphony_charts.errors import Problem, SpecError
from symphony_charts.local.plan.environment import Environments
from symphony_charts.local.plan.limits import limits_note, limits_of, scope_words
from symphony_charts.local.plan.mounts import checkouts_of, layout, mount_binds, own_secrets, secrets_dir
from symphony_charts.local.plan.order import without_cycles
from symphony_charts.local.plan.overlays import overlay_notes
from symphony_charts.local.plan.overrides import local_process
from symphony_charts.local.plan.probes import checks_of, health_of
from symphony_charts.local.plan.records import Bind, Check, Checkout, LocalPlan, Machine, PlannedProcess, Wait
from symphony_charts.local.plan.relocation import note_of, relocated
from symphony_charts.local.plan.replicas import Replica, replicas_of
from symphony_charts.local.plan.restarts import PolicyFacts
from symphony_charts.spec.model import Experiment, Process, Step
from symphony_charts.spec.pods import ProcessRef, find_process, pods_of
from symphony_charts.spec.services import Service
from symphony_charts.spec.sources import SECRETS_DIR

__all__ = ["make_plan"]

# A pod's grace period when nothing is said, in seconds (Kubernetes' default).
_GRACE_S = 30


def make_plan(experiment: Experiment, services: Sequence[Service], machine: Machine) -> LocalPlan:
    """Everything that `experiment` runs here: argv, environment, files, order and policies of each process.

    Raises SpecError with every process that cannot run on one machine, and why.
    """
    replicas = list(replicas_of(experiment, machine))
    files = layout(experiment, machine)
    context = _Context(experiment, tuple(services), machine, replicas, files.binds)
    planned = context.plan_all()
    shown = [*files.binds, *(bind for process in planned for bind in process.binds)]
    folders = {bind.source for bind in shown if bind.source.startswith(machine.run_dir)}
    limits = limits_note(experiment, machine.limiter) if experiment.local.limits else ()
    return LocalPlan(
        experiment=experiment.name,
        processes=tuple(planned),
        done_when=tuple(_done_when(experiment, planned)),
        files=files.files,
        folders=tuple(sorted(folders)),
        checkouts=tuple(_checkouts(experiment, replicas, machine)),
        binds=files.binds,
        has_namespace=machine.has_namespace,
        base_address=machine.addresses.address(0),
        ports={service.name: service.port for service in services},
        moved=dict(machine.moved),
        is_sharing_gpus=machine.gpus.is_shared,
        notes=(
            *machine.notes,
            *files.notes,
            *_relocations(planned, machine),
            *limits,
            *machine.gpus.notes,
            *overlay_notes(experiment),
        ),
    )


class _Context:
    """What planning one process needs of all the others."""

    def __init__(
        self,
        experiment: Experiment,
        services: tuple[Service, ...],
        machine: Machine,
        replicas: Sequence[Replica],
        binds: Sequence[Bind],
    ) -> None:
        self.experiment, self.services, self.machine, self.replicas = experiment, services, machine, replicas
        self.pods, self.binds = pods_of(experiment), binds
        self.pod_addresses: dict[str, list[str]] = {}
        for replica in replicas:
            self.pod_addresses.setdefault(replica.pod.name, []).append(replica.address)
        self.addresses = {service.name: self._address(service) for service in services}
        self.environments = Environments(experiment, services, machine, replicas, self.addresses)
        self.slots: dict[tuple[str, str], list[int]] = {}
        self.dialled_first = self._dialled_first()
        slot = 0
        for replica in replicas:
            for name in [*self._steps(replica), *replica.pod.processes]:
                self.slots.setdefault((replica.pod.name, name), []).append(slot)
                slot += 1

    def plan_all(self) -> list[PlannedProcess]:
        """Every process in slot order; all that cannot run here are reported together."""
        problems: list[Problem] = []
        planned: list[PlannedProcess] = []
        for replica in self.replicas:
            before: list[int] = []
            for name, step in self._steps(replica).items():
                self._add(planned, problems, replica, f"prepare.{name}", name, step, before)
                before = [len(planned) - 1]
            for name, process in replica.pod.processes.items():
                path = f"{replica.pod.path}.processes.{name}" if replica.pod.is_group else replica.pod.path
                self._add(planned, problems, replica, path, name, process, before)
        if problems:
            raise SpecError(problems)
        return planned

    def _steps(self, replica: Replica) -> dict[str, Step]:
        steps = self.experiment.prepare.items()
        return {name: step for name, step in steps if not step.groups or replica.pod.name in step.groups}

    def _address(self, service: Service) -> Address:
        hosts = self.pod_addresses.get(service.listener.pod)
        hosts = hosts or [self.machine.addresses.address(0)]
        ports = self.machine.moved.get(service.name, ())
        return Address(host=hosts[0], hosts=tuple(hosts), port=ports[0] if ports else service.port, ports=ports)

    def _add(
        self,
        planned: list[PlannedProcess],
        problems: list[Problem],
        replica: Replica,
        path: str,
        name: str,
        process: Process | Step,
        before: Sequence[int],
    ) -> None:
        try:
            one = self._plan(len(planned), replica, path, name, process)
        except SpecError as error:
            problems += [problem.moved_to(f"{path}.{problem.path}".rstrip(".")) for problem in error.problems]
            return
        waits = (*(Wait(slot=slot, until="done") for slot in before), *one.waits)
        planned.append(replace(one, waits=waits))

    def _plan(self, slot: int, replica: Replica, path: str, name: str, process: Process | Step) -> PlannedProcess:
        experiment, machine, ref = self.experiment, self.machine, ProcessRef(replica.pod.name, name)
        local = process.local if isinstance(process, Process) else None
        process = local_process(process) if isinstance(process, Process) else process
        secrets = own_secrets(experiment, ref, machine)
        mounts = (*mount_binds(experiment, process.mounts, replica.name, machine), *secrets)
        if not machine.has_namespace:
            process = relocated(process, (*self.binds, *mounts))
        tty = experiment.local.tty if local is None or local.tty is None else local.tty
        gpus = machine.gpus.ids.get(f"{replica.name}/{name}", ())
        folder = secrets_dir(machine, secrets)
        env = self.environments.of(process, name, replica, tty=tty, secrets=folder, gpus=gpus)
        entry = entry_point(process)
        if not entry.command:
            what = f'process "{name}" starts what its image says, and images are not used on this machine'
            raise SpecError([Problem(what=what, next="give it `local: {command: [...]}` or `local: {cmds: [...]}`")])
        argv = tuple(expand(word, env) for word in [*entry.command, *(entry.args or [])])
        cwd = process.cwd or experiment.local.cwd or machine.spec_dir
        preamble = local.preamble if local is not None and local.preamble is not None else experiment.local.preamble
        facts = PolicyFacts.of(experiment, replica.pod, process)
        limits = limits_of(process, machine.limiter) if experiment.local.limits else ()
        content = [argv, env, cwd, preamble, *map(asdict, mounts), *map(asdict, limits)]
        return PlannedProcess(
            slot=slot,
            name=f"{name}-{replica.index}" if replica.count > 1 else name,
            group=replica.pod.name if replica.pod.is_group else "",
            pod=replica.name,
            process=name,
            index=replica.index,
            is_step=isinstance(process, Step),
            is_service=facts.is_service,
            argv=argv,
            env=env,
            preamble=tuple(preamble),
            cwd=str(PurePosixPath(machine.spec_dir) / cwd),
            tty=tty,
            address=replica.address,
            waits=tuple(self._waits(ref, process)),
            checks=tuple(self._checks(checks_of, ref, replica, process)),
            health=tuple(self._checks(health_of, ref, replica, process)),
            restart=facts.restart,
            retries=facts.retries,
            on_exit=facts.on_exit,
            grace_s=replica.pod.settings.grace_period or _GRACE_S,
            deadline_s=replica.pod.settings.deadline,
            gpus=gpus,
            enter=machine.enter,
            limits=limits,
            scope=scope_words(limits, machine.limiter),
            binds=mounts,
            spec_path=path,
            digest=hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16],
        )

    def _waits(self, ref: ProcessRef, process: Process | Step) -> Iterator[Wait]:
        if isinstance(process, Step):
            return
        for name in process.after:
            other = find_process(self.experiment, name)
            is_service = self.pods[other.pod].processes[other.process].lifecycle == "service"
            for slot in self.slots[(other.pod, other.process)]:
                yield Wait(slot=slot, until="ready" if is_service else "done")
        for other in self.dialled_first[ref]:
            for slot in self.slots.get((other.pod, other.process), []):
                yield Wait(slot=slot, until="ready")

    def _dialled_first(self) -> dict[ProcessRef, list[ProcessRef]]:
        """For each process the listeners it connects to and can wait for: not those that wait for it in turn."""
        listeners = {service.name: service.listener for service in self.services}
        connects: dict[ProcessRef, list[ProcessRef]] = {}
        strict: dict[ProcessRef, list[ProcessRef]] = {}
        for pod in self.pods.values():
            for name, process in pod.processes.items():
                ref = ProcessRef(pod.name, name)
                targets = [listeners[service] for service in process.connects if service in listeners]
                connects[ref] = [target for target in dict.fromkeys(targets) if target != ref]
                strict[ref] = [find_process(self.experiment, other) for other in process.after]
        return without_cycles(connects, strict)

    def _checks(
        self, find: Callable[..., Iterator[Check]], ref: ProcessRef, replica: Replica, process: Process | Step
    ) -> Iterator[Check]:
        if isinstance(process, Process):
            own = [service for service in self.services if service.listener == ref]
            ports = [self.addresses[service.name].port_of(replica.index) for service in own]
            listening = [(service.name, port) for service, port in zip(own, ports, strict=True)]
            moved = {service.port: port for service, port in zip(own, ports, strict=True)}
            for check in find(process, replica.address, listening):
                # A probe may name the pod's number of a port that has another one here.
                yield check if check.automatic else replace(check, port=moved.get(check.port, check.port))


def _checkouts(experiment: Experiment, replicas: Sequence[Replica], machine: Machine) -> Iterator[Checkout]:
    for replica in replicas:
        steps = [step for step in experiment.prepare.values() if not step.groups or replica.pod.name in step.groups]
        mounts = [mount for step in steps for mount in step.mounts]
        mounts += [mount for process in replica.pod.processes.values() for mount in process.mounts]
        yield from dict.fromkeys(checkouts_of(experiment, mounts, replica.name, machine))


def _relocations(planned: Sequence[PlannedProcess], machine: Machine) -> tuple[str, ...]:
    if machine.has_namespace:
        return ()
    binds = dict.fromkeys(bind for process in planned for bind in process.binds if bind.target != SECRETS_DIR)
    return note_of(binds)


def _done_when(experiment: Experiment, planned: Sequence[PlannedProcess]) -> Iterator[int]:
    named = {find_process(experiment, name) for name in experiment.done_when}
    for process in planned:
        if process.is_step or (process.is_service and not named):
            continue
        pod = process.group or process.pod.removesuffix(f"-{process.index}").removesuffix(f".{process.index}")
        if not named or any(ref.process == process.process and ref.pod in (process.group, pod) for ref in named):
            yield process.slot
