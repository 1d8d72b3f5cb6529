"""The environment of a process on one machine: this machine answers the list of variables, expanded as in a pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symphony_charts.environment.expansion import expand, pod_order
from symphony_charts.errors import Problem, SpecError
from symphony_charts.kinds.registry import KINDS, compat_kind
from symphony_charts.local.plan.mounts import config_dir
from symphony_charts.local.plan.records import Machine
from symphony_charts.local.plan.replicas import Replica
from symphony_charts.local.plan.resources import CUDA_VISIBLE, gpu_environment
from symphony_charts.spec.environment import Address, Fact, Variable, interpret, own_variables, shared_environment
from symphony_charts.spec.model import Experiment, Process, Step
from symphony_charts.spec.pods import ProcessRef, pods_of
from symphony_charts.spec.services import Service
from symphony_charts.spec.sources import EnvSource

__all__ = ["Environments"]

# Of the person's own environment only these pass unasked; a pod has them from its image.
FROM_CALLER = ("PATH", "HOME", "LANG")


class Environments:
    """The environments of all processes of an experiment; `addresses` are those of its services here."""

    def __init__(
        self, experiment: Experiment, services: Sequence[Service], machine: Machine, replicas: Sequence[Replica]
    ) -> None:
        self._experiment, self._services, self._machine = experiment, services, machine
        hosts: dict[str, list[str]] = {}
        for replica in replicas:
            hosts.setdefault(replica.pod.name, []).append(replica.address)
        # What runs nowhere has no address, as in the chart; what only this machine leaves out has one.
        pods = {pod.name for pod in pods_of(experiment).values() if pod.settings.replicas} | hosts.keys()
        self.addresses = {
            service.name: _address(service, hosts.get(service.listener.pod), machine)
            for service in services
            if service.listener.pod in pods
        }
        compat = compat_kind(experiment.compat)
        self._kinds = [KINDS[experiment.workload.kind], *([compat] if compat else [])]
        hidden = {name for kind in self._kinds for name in kind.hidden_here(experiment)}
        self._shared = shared_environment({name: one for name, one in self.addresses.items() if name not in hidden})
        self._hosts = hosts

    def of(
        self,
        process: Process | Step,
        name: str,
        replica: Replica,
        *,
        tty: bool,
        secrets: str,
        gpus: Sequence[str],
        attempt: str | None,
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Return the variables of a process in the order of a pod; `secrets` is the folder of its secrets.

        `attempt` is the number of earlier tries, None if it changes or is unknown. The second map has those that
        ``$(NAME)`` may name: not what an image or a node sets.

        Raises SpecError for a value that only a cluster knows.
        """
        local = process.local.env if isinstance(process, Process) and process.local is not None else {}
        ref = ProcessRef(replica.pod.name, name)
        listens = [service.name for service in self._services if service.listener == ref]
        own = [service.name for service in self._services if service.listener.pod == replica.pod.name]
        # A step runs before the services of its pod.
        beside = [service for service in own if service not in listens] if isinstance(process, Process) else []
        dialled = process.connects if isinstance(process, Process) else ()
        connects = [service for service in dialled if service in self.addresses]
        declared = {**process.env, **self._gpus(process, gpus), **self._experiment.local.env, **local}
        listed = interpret(
            [
                *own_variables(self._experiment.name, ref, listens, connects, beside=beside),
                *(Variable(key, value) for key, value in self._of_kinds(process, replica).items()),
                *(Variable(key, value) for key, value in declared.items()),
                *(Variable(key, value) for key, value in self._overrides(process, replica).items()),
            ],
            {**self._facts(replica, secrets), Fact.ATTEMPT: attempt},
            self.addresses,
            replica.index,
        )
        values = dict(self._shared)
        fields = _pod_fields(self._experiment, replica, self._machine)
        for variable, value in listed.items():
            text = _resolve(variable, value, fields) if isinstance(value, EnvSource) else value
            if text is None:
                values.pop(variable, None)
            else:
                values[variable] = text
        named = {name: text for name, text in self._passed().items() if name not in values}
        for variable in pod_order(values):
            named[variable] = expand(values[variable], named)
        return {**self._given(replica.name, tty=tty), **named}, named

    def _of_kinds(self, process: Process | Step, replica: Replica) -> dict[str, str]:
        if isinstance(process, Step):
            return {}
        experiment, pod, index = self._experiment, replica.pod.name, replica.index
        found = (kind.variables_here(experiment, pod, index, self._hosts) for kind in self._kinds)
        return {name: value for variables in found for name, value in variables.items()}

    def _overrides(self, process: Process | Step, replica: Replica) -> Mapping[str, str]:
        if isinstance(process, Step):
            return {}
        listeners = {service.name: service.listener.pod for service in self._services}
        ports = {
            name: address.port_of(replica.index) if listeners[name] == replica.pod.name else address.port
            for name, address in self.addresses.items()
        }
        return self._kinds[0].overrides_here(
            self._experiment, replica.pod.name, replica.index, self._hosts, ports, replica.name
        )

    def _given(self, pod: str, *, tty: bool) -> dict[str, str]:
        """Return the variables that a pod would have from its image and its node."""
        caller = self._machine.caller_env
        given = {name: caller[name] for name in [*FROM_CALLER, *(["TERM"] if tty else [])] if name in caller}
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", **given, "HOSTNAME": pod}

    def _passed(self) -> dict[str, str]:
        caller = self._machine.caller_env
        return {name: caller[name] for name in self._experiment.local.pass_env if name in caller}

    def _facts(self, replica: Replica, secrets: str) -> dict[Fact, str]:
        return {
            Fact.ADDRESS: replica.address,
            Fact.INDEX: str(replica.index),
            Fact.REPLICAS: str(replica.count),
            Fact.RUN: self._machine.run_id,
            Fact.CONFIG_DIR: config_dir(self._machine),
            Fact.SECRETS_DIR: secrets,
        }

    def _gpus(self, process: Process | Step, ids: Sequence[str]) -> dict[str, str]:
        if not ids and CUDA_VISIBLE in self._experiment.local.pass_env:
            return {}
        declared = process.env.get(CUDA_VISIBLE)
        return gpu_environment(ids, declared if isinstance(declared, str) and "$(" not in declared else None)


def _address(service: Service, hosts: Sequence[str] | None, machine: Machine) -> Address:
    hosts = hosts or [machine.addresses.address(0)]
    ports = machine.moved.get(service.name, ())
    return Address(host=hosts[0], hosts=tuple(hosts), port=ports[0] if ports else service.port, ports=ports)


def _pod_fields(experiment: Experiment, replica: Replica, machine: Machine) -> dict[str, str]:
    settings = replica.pod.settings
    own = {"labels": experiment.labels | settings.labels, "annotations": experiment.annotations | settings.annotations}
    return {
        **{f"metadata.{kind}['{key}']": text for kind, texts in own.items() for key, text in texts.items()},
        "metadata.name": replica.name,
        "metadata.namespace": experiment.namespace or "default",
        "metadata.labels['symph.dev/run']": machine.run_id,
        "metadata.labels['symph.dev/experiment']": experiment.name,
        "metadata.labels['app.kubernetes.io/instance']": experiment.name,
        "metadata.labels['symph.dev/group']": replica.pod.name,
        "spec.nodeName": machine.hostname,
        "spec.serviceAccountName": experiment.service_account or "default",
        "status.hostIP": "127.0.0.1",
        "status.podIP": replica.address,
        "status.podIPs": replica.address,
    }


def _resolve(name: str, source: EnvSource, fields: Mapping[str, str]) -> str | None:
    """Return the value of a source of the cluster on this machine; None for an optional one that is missing."""
    if source.field is not None and source.field in fields:
        return fields[source.field]
    if source.optional:
        return None
    what = f"the value of {name} comes from the cluster, which is not here"
    raise SpecError([Problem(what=what, path=f"env.{name}", next=f"set `local: {{env: {{{name}: ...}}}}`")])
