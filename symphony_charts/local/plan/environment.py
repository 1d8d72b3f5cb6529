"""The environment of each process of a run, its secrets, and its host names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from symphony_charts.errors import Problem, SpecError
from symphony_charts.kinds.registry import KINDS, compat_kind
from symphony_charts.local.plan.mounts import Layout, config_dir, secrets_dir
from symphony_charts.local.plan.records import Bind, File, Machine
from symphony_charts.local.plan.replicas import Replica
from symphony_charts.local.plan.resources import CUDA_VISIBLE, gpu_environment
from symphony_charts.spec.environment import (
    Address,
    Fact,
    Variable,
    expand,
    interpret,
    own_variables,
    pod_order,
    shared_environment,
)
from symphony_charts.spec.model import Experiment, Process, Step
from symphony_charts.spec.pods import ProcessRef, Service, pods_of, processes_of
from symphony_charts.spec.sources import EnvSource
from symphony_charts.spec.variable_names import is_ours, is_shell_name

# Only these variables of the caller pass by default; a pod has them from its image.
FROM_CALLER = ("PATH", "HOME", "LANG")


# Variables of the caller's terminal and shell, which no pattern passes on.
_OF_SHELL = frozenset((*FROM_CALLER, "TERM", "HOSTNAME", "TMUX", "TMUX_PANE", "STY", "PWD", "OLDPWD", "SHLVL", "_"))


def passed_names(patterns: Sequence[str], caller: Mapping[str, str], *, by_pattern: bool = False) -> list[str]:
    """Return the caller's variables that `local.pass_env` passes on; `by_pattern` omits those that it names."""
    globs = [pattern for pattern in patterns if set(pattern) & set("*?[")]
    usual = [name for name in caller if name not in _OF_SHELL and is_shell_name(name) and not is_ours(name)]
    named = [name for name in patterns if name in caller]
    matching = [name for name in usual if name not in named and any(fnmatchcase(name, glob) for glob in globs)]
    return matching if by_pattern else list(dict.fromkeys([*named, *matching]))


class Environments:
    """The environments of all processes of an experiment; `addresses` maps its services to addresses here."""

    def __init__(
        self, experiment: Experiment, services: Sequence[Service], machine: Machine, replicas: Sequence[Replica]
    ) -> None:
        self._experiment, self._services, self._machine = experiment, services, machine
        hosts: dict[str, list[str]] = {}
        for replica in replicas:
            hosts.setdefault(replica.pod.name, []).append(replica.address)
        # Pods without replicas have no address, as in the chart; pods that only this machine omits have one.
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
        self._passed = passed_names(experiment.local.pass_env, machine.caller_env)

    def of(
        self,
        process: Process | Step,
        name: str,
        replica: Replica,
        *,
        tty: bool,
        gpus: Sequence[str],
        attempt: str | None,
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Return the variables of a process in the order of a pod, and those that ``$(NAME)`` may reference.

        `attempt` is the number of earlier tries, None if it changes or is unknown. Raises SpecError for a value that
        only a cluster knows.
        """
        experiment, caller, pod = self._experiment, self._machine.caller_env, replica.pod.name
        ref = ProcessRef(pod, name)
        listens = [service.name for service in self._services if service.listener == ref]
        declared = {**process.env, **self._gpus(process, gpus), **experiment.local.env}
        of_kinds: dict[str, str] = {}
        connects: list[str] = []
        beside: list[str] = []
        # A step runs before the services of its pod.
        if isinstance(process, Process):
            declared |= process.local.env if process.local is not None else {}
            connects = [service for service in process.connects if service in self.addresses]
            own = [service.name for service in self._services if service.listener.pod == pod]
            beside = [service for service in own if service not in listens]
            for kind in self._kinds:
                of_kinds |= kind.variables_here(experiment, pod, replica.index, self._hosts)
            declared |= self._overrides(replica)
        listed = interpret(
            [
                *own_variables(experiment.name, ref, listens, connects, beside=beside),
                *(Variable(key, value) for key, value in of_kinds.items()),
                *(Variable(key, value) for key, value in declared.items()),
            ],
            {
                Fact.ADDRESS: replica.address,
                Fact.INDEX: str(replica.index),
                Fact.REPLICAS: str(replica.count),
                Fact.RUN: self._machine.run_id,
                Fact.CONFIG_DIR: config_dir(self._machine),
                Fact.SECRETS_DIR: secrets_dir(experiment, ref, self._machine),
                Fact.ATTEMPT: attempt,
            },
            self.addresses,
            replica.index,
        )
        values = dict(self._shared)
        fields = _pod_fields(experiment, replica, self._machine)
        for variable, value in listed.items():
            text = _resolve(variable, value, fields) if isinstance(value, EnvSource) else value
            if text is None:
                values.pop(variable, None)
            else:
                values[variable] = text
        named = {name: caller[name] for name in self._passed if name not in values}
        for variable in pod_order(values):
            named[variable] = expand(values[variable], named)
        given = {name: caller[name] for name in [*FROM_CALLER, *(["TERM"] if tty else [])] if name in caller}
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", **given, "HOSTNAME": replica.name, **named}, named

    def _overrides(self, replica: Replica) -> Mapping[str, str]:
        pod, index = replica.pod.name, replica.index
        ports = {
            service.name: address.port_of(index) if service.listener.pod == pod else address.port
            for service in self._services
            if (address := self.addresses.get(service.name))
        }
        return self._kinds[0].overrides_here(self._experiment, pod, index, self._hosts, ports, replica.name)

    def _gpus(self, process: Process | Step, ids: Sequence[str]) -> dict[str, str]:
        if not ids and CUDA_VISIBLE in self._passed:
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
    """Return the value of a cluster source on this machine; None for an optional one that is missing."""
    if source.field is not None and source.field in fields:
        return fields[source.field]
    if source.optional:
        return None
    what = f"the value of {name} comes from the cluster, and a local run has none"
    raise SpecError([Problem(what=what, path=f"env.{name}", next=f"set `local: {{env: {{{name}: ...}}}}`")])


MASK = "********"
# Common names of secret variables; `symph validate` warns of the same names in charts.
_NAME = re.compile(r"(?:^|_)(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|PRIVATE_KEY|CREDENTIALS)(?:_|$)", re.IGNORECASE)
# A shorter secret is likely to be part of other words, and masking those would reveal it.
_SHORTEST = 4


def secret_texts(secrets: Mapping[str, bytes]) -> dict[str, str]:
    """Return the stripped texts of secret files by key, without binary and very short ones."""
    texts = {}
    for key, content in secrets.items():
        try:
            text = content.decode().strip()
        except UnicodeDecodeError:
            continue
        if len(text) >= _SHORTEST:
            texts[key] = text
    return texts


def secret_names(
    experiment: Experiment, ref: ProcessRef, env: Mapping[str, str], secrets: Mapping[str, bytes]
) -> frozenset[str]:
    """Return the variables of `env` with secret values: by content, by source, or by name."""
    process = dict(processes_of(experiment)).get(ref)
    declared = {} if process is None else process.env
    texts = secret_texts(secrets).values()
    return frozenset(
        name
        for name, value in env.items()
        if (_NAME.search(name) and not is_ours(name))
        or (isinstance(source := declared.get(name), EnvSource) and source.secret is not None)
        or any(text in value for text in texts)
    )


def without_secrets(data: object, secrets: Mapping[str, bytes]) -> object:
    """Return JSON data with each secret replaced by its key between NUL characters, which no variable can contain."""
    texts = sorted(secret_texts(secrets).items(), key=lambda item: len(item[1]), reverse=True)

    def hide(text: str) -> str:
        for key, secret in texts:
            text = text.replace(secret, f"\0{key}\0")
        return text

    return _map_texts(data, hide)


def with_secrets(data: object, secrets: Mapping[str, bytes]) -> object:
    """Restore the texts of secrets in the result of `without_secrets`."""
    texts = secret_texts(secrets)
    return _map_texts(data, lambda text: re.sub("\0([^\0]*)\0", lambda match: texts.get(match[1], ""), text))


def _map_texts(data: object, change: Callable[[str], str]) -> object:
    if isinstance(data, str):
        return change(data)
    if isinstance(data, list):
        return [_map_texts(item, change) for item in data]
    if isinstance(data, dict):
        return {key: _map_texts(value, change) for key, value in data.items()}
    return data


HOSTS = "/etc/hosts"
# The path of the hosts file in a run's folder.
HOSTS_FILE = "files/hosts"
_MARK = "# Lines of this machine:\n"


def host_names(replicas: Sequence[Replica], machine: Machine) -> Layout:
    """Return the files and mounts that define the `names` of pods; nothing if no pod has any.

    A name resolves to every replica of its pod, as behind a Service. The machine's own entries for these names are
    ignored.
    """
    lines = [f"{replica.address} {name}" for replica in replicas for name in replica.pod.settings.names]
    if not lines:
        return Layout()
    names = {line.split()[1] for line in lines}
    if not machine.has_namespace:
        return Layout(notes=tuple(_notes(lines, machine)))
    kept = [kept for line in machine.hosts.splitlines() if (kept := _without(names, line))]
    content = "".join(f"{line}\n" for line in lines) + _MARK + "".join(f"{line}\n" for line in kept)
    source = f"{machine.run_dir}/{HOSTS_FILE}"
    return Layout(
        files=(File(path=HOSTS_FILE, content=content.encode(), mode=0o644),),
        binds=(Bind(source=source, target=HOSTS, read_only=True),),
        notes=tuple(_notes([], machine)),
    )


def of_machine(hosts: str) -> str:
    """Return the lines of a hosts file that the machine itself wrote."""
    return hosts.rpartition(_MARK)[2]


def _notes(lines: Sequence[str], machine: Machine) -> Iterator[str]:
    known = {(words[0], name) for line in machine.hosts.splitlines() if (words := _words(line)) for name in words[1:]}
    if missing := [line for line in lines if tuple(line.split()) not in known]:
        names = ", ".join(dict.fromkeys(line.split()[1] for line in missing))
        text = f"this machine has no private mounts, so programs cannot resolve {names}"
        yield f"{text}; to fix it, add to {HOSTS}: {'; '.join(missing)}"
    if machine.moved:
        moved = ", ".join(sorted(machine.moved))
        yield f"{moved} use other ports in this run; a pod's name with the usual port does not reach them"


def _words(line: str) -> list[str]:
    return line.partition("#")[0].split()


def _without(names: set[str], line: str) -> str:
    words = _words(line)
    if not names & set(words[1:]):
        return line
    kept = [word for word in words if word not in names]
    return " ".join(kept) if len(kept) > 1 else ""
