"""Sanitise and check names, cross references, and environment variables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

import msgspec

from symphony_charts.errors import Problem
from symphony_charts.formats.names import (
    DNS_LABEL,
    OBJECT_NAME,
    SERVICE_NAME,
    hint,
    join,
    prefix_owner,
    sanitize,
    shorten,
)
from symphony_charts.spec.checks.pods import ProcessEntry, choice_faults
from symphony_charts.spec.environment import own_variables, shared_variables
from symphony_charts.spec.json_schema import used_kinds
from symphony_charts.spec.model import Experiment, LocalProcess, Process
from symphony_charts.spec.pods import pods_of
from symphony_charts.spec.sources import EnvSource, EnvValue
from symphony_charts.spec.variable_names import RESERVED, reference_order

# A Helm release name; objects are named `<release>-<pod>-<hash>`.
_EXPERIMENT_LENGTH = 53
_LABEL_LENGTH = 63
# Workload names have at most 52 characters: 9 for the hash and at least 3 for the release.
_POD_LENGTH = 40

_Value = TypeVar("_Value")


def with_clean_names(experiment: Experiment) -> tuple[Experiment, list[Problem]]:
    """Return `experiment` with sanitised names and references, and the owner before its name exactly once.

    Two names that become equal are a fault; the first one stays.
    """
    problems: list[Problem] = []
    owner = sanitize(experiment.owner) if experiment.owner is not None else None
    name = prefix_owner(sanitize(experiment.name), owner)
    groups = {
        group: msgspec.structs.replace(
            value, processes=_clean(_with_clean_refs(value.processes), f"groups.{group}.processes", problems)
        )
        for group, value in experiment.groups.items()
    }
    workload = experiment.workload
    for added, kind in used_kinds(workload).items():
        workload = workload.with_settings(added, kind.with_clean_names(workload.settings(added, kind.settings)))
    cleaned = msgspec.structs.replace(
        experiment,
        workload=workload,
        name=shorten(name, _EXPERIMENT_LENGTH) if len(name) <= _LABEL_LENGTH else name,
        owner=owner,
        team=sanitize(experiment.team) if experiment.team is not None else None,
        groups=_clean(groups, "groups", problems),
        processes=_clean(_with_clean_refs(experiment.processes), "processes", problems),
        order=[sanitize(ref) for ref in experiment.order],
        done_when=[sanitize(ref) for ref in experiment.done_when],
        prepare={
            step: msgspec.structs.replace(value, groups=[sanitize(group) for group in value.groups])
            for step, value in _clean(experiment.prepare, "prepare", problems).items()
        },
        secrets=[
            msgspec.structs.replace(secret, only=[sanitize(ref) for ref in secret.only]) if secret.only else secret
            for secret in experiment.secrets
        ],
    )
    return (experiment if cleaned == experiment else cleaned), problems


def name_faults(experiment: Experiment) -> Iterator[Problem]:
    yield from _label_faults(experiment.name, "name", _LABEL_LENGTH, starts_with_letter=True)
    for field, value in (("owner", experiment.owner), ("team", experiment.team), ("namespace", experiment.namespace)):
        if value is not None:
            yield from _label_faults(value, field, _LABEL_LENGTH)
    for group, settings in experiment.groups.items():
        path = join("groups", group)
        yield from _label_faults(group, path, _POD_LENGTH)
        if not settings.processes:
            yield Problem(f'the group "{group}" is empty', path, "add `processes:` to it, or remove it")
        for name in settings.processes:
            yield from _label_faults(name, f"{path}.processes.{name}", _LABEL_LENGTH)
        if group in experiment.processes:
            what = f'"{group}" is a group and a lone process: their pods would have the same name'
            yield Problem(what, f"processes.{group}", "rename one of them")
    for name in experiment.processes:
        yield from _label_faults(name, f"processes.{name}", _POD_LENGTH)
    for step in experiment.prepare:
        yield from _label_faults(step, f"prepare.{step}", _LABEL_LENGTH)
    for volume in experiment.volumes:
        yield from _label_faults(volume, f"volumes.{volume}", _LABEL_LENGTH)
    yield from _host_name_faults(experiment)
    for index, secret in enumerate(experiment.image_pull_secrets):
        yield from object_name_faults(secret, f"image_pull_secrets[{index}]")
    accounts = {"service_account": experiment.service_account}
    accounts |= {f"{pod.path}.service_account": pod.settings.service_account for pod in pods_of(experiment).values()}
    for path, account in accounts.items():
        if account:
            yield from object_name_faults(account, path)


def object_name_faults(name: str, path: str) -> Iterator[Problem]:
    """Yield a fault if no Kubernetes object can have the name."""
    if not OBJECT_NAME.fullmatch(name) or len(name) > 253:
        next_step = "use lower-case letters, digits, dashes and dots"
        yield Problem(f'"{name}" is not a valid name of a Kubernetes object', path, next_step)


def _host_name_faults(experiment: Experiment) -> Iterator[Problem]:
    named: dict[str, str] = {}
    for pod in pods_of(experiment).values():
        for index, name in enumerate(pod.settings.names):
            path = f"{pod.path}.names[{index}]"
            yield from _label_faults(name, path, _LABEL_LENGTH, starts_with_letter=True)
            if name == "localhost":
                yield Problem('"localhost" always means the pod itself', path, "choose another name")
            if (other := named.setdefault(name, pod.name)) != pod.name:
                what = f'"{name}" is a name of both "{other}" and "{pod.name}"'
                yield Problem(what, path, "remove it from one of them")
            elif name in pod.settings.names[:index]:
                yield Problem(f'"{name}" appears twice', path, "remove one of them")


def _clean(named: Mapping[str, _Value], path: str, problems: list[Problem]) -> dict[str, _Value]:
    result: dict[str, _Value] = {}
    origin: dict[str, str] = {}
    for name, value in named.items():
        clean = sanitize(name)
        if clean in result:
            what = f'"{origin[clean]}" and "{name}" become the same name, "{clean}"'
            problems.append(Problem(what, f"{path}.{name}", "rename one of them"))
            continue
        result[clean], origin[clean] = value, name
    return result


def _with_clean_refs(processes: Mapping[str, Process]) -> dict[str, Process]:
    return {
        name: msgspec.structs.replace(process, after=[sanitize(ref) for ref in process.after])
        if process.after
        else process
        for name, process in processes.items()
    }


def _label_faults(name: str, path: str, limit: int, starts_with_letter: bool = False) -> Iterator[Problem]:
    pattern = SERVICE_NAME if starts_with_letter else DNS_LABEL
    if not pattern.fullmatch(name):
        ends = "begin with a letter, end" if starts_with_letter else "begin and end"
        next_step = f"use lower-case letters, digits and dashes; {ends} with a letter or digit"
        yield Problem(f'"{name}" is not a valid name', path, next_step)
    elif len(name) > limit:
        yield Problem(f'"{name}" has {len(name)} characters; names of its objects allow {limit}', path, "shorten it")


def reference_faults(experiment: Experiment, entries: list[ProcessEntry]) -> Iterator[Problem]:
    """Yield references that are unknown, ambiguous or circular."""
    table = _Table(entries)
    graph: dict[str, list[ProcessEntry]] = {}
    for entry in entries:
        if entry.process.after:
            targets = [table.find(ref, f"{entry.path}.after[{i}]") for i, ref in enumerate(entry.process.after)]
            graph[entry.path] = [other for other in targets if other is not None]
    for index, ref in enumerate(experiment.done_when):
        end = table.find(ref, f"done_when[{index}]")
        if end is not None and end.process.lifecycle == "service":
            yield Problem(f'"{ref}" is a service, which never ends', f"done_when[{index}]", "name finite processes")
    yield from _order_faults(experiment.order, table)
    for index, secret in enumerate(experiment.secrets):
        for number, ref in enumerate(secret.only):
            table.find(ref, f"secrets[{index}].only[{number}]")
    pods = {*experiment.groups, *experiment.processes}
    for name, step in experiment.prepare.items():
        for index, pod in enumerate(step.groups):
            if pod not in pods:
                what, next_step = f'unknown group or lone process "{pod}"', name_hint(pod, pods)
                yield Problem(what, f"prepare.{name}.groups[{index}]", next_step)
    for kind in used_kinds(experiment.workload).values():
        yield from kind.faults(experiment)
    yield from table.problems
    yield from _circle_faults(graph, entries)


class _Table:
    """Processes by bare name and by ``group/process``."""

    def __init__(self, entries: list[ProcessEntry]) -> None:
        self.problems: list[Problem] = []
        self._by_name: dict[str, list[ProcessEntry]] = {}
        for entry in entries:
            self._by_name.setdefault(entry.ref.process, []).append(entry)
            self._by_name.setdefault(f"{entry.ref.pod}/{entry.ref.process}", []).append(entry)

    def knows(self, ref: str) -> bool:
        """Return True if exactly one process has this name."""
        return len(self._by_name.get(ref, [])) == 1

    def find(self, ref: str, path: str) -> ProcessEntry | None:
        """Return the process named `ref`; None, with a recorded problem, unless exactly one matches."""
        matches = self._by_name.get(ref, [])
        if len(matches) == 1:
            return matches[0]
        if matches:
            choices = ", ".join(f"{entry.ref.pod}/{entry.ref.process}" for entry in matches)
            what = f'"{ref}" matches several processes: {choices}'
            self.problems.append(Problem(what, path, "name it as group/process"))
        else:
            names = [name for name in self._by_name if "/" not in name]
            self.problems.append(Problem(f'unknown process "{ref}"', path, name_hint(ref, names)))
        return None


def _order_faults(order: Sequence[str], table: _Table) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, ref in enumerate(order):
        # A bare name means a lone process if there is one; `order` uses ``group/process`` for others.
        lone = f"{ref}/{ref}"
        entry = table.find(lone if "/" not in ref and table.knows(lone) else ref, f"order[{index}]")
        if entry is None:
            continue
        if entry.path in seen:
            yield Problem(f'"{ref}" appears twice in the order', f"order[{index}]", "remove one of them")
        seen.add(entry.path)


def _circle_faults(graph: Mapping[str, Sequence[ProcessEntry]], entries: Sequence[ProcessEntry]) -> Iterator[Problem]:
    """Yield the fault of a cycle of `after`, at its first process; `graph` is keyed by path."""
    try:
        TopologicalSorter({path: [entry.path for entry in after] for path, after in graph.items()}).prepare()
    except CycleError as error:
        # graphlib lists each process before those that wait for it; the first one is also the last one.
        by_path = {entry.path: entry for entry in entries}
        cycle = [by_path[path] for path in error.args[1][:0:-1]]
        first = cycle.index(next(entry for entry in entries if entry in cycle))
        trail = [*cycle[first:], *cycle[: first + 1]]
        what = f"processes wait for each other: {' -> '.join(str(entry.ref) for entry in trail)}"
        yield Problem(what, f"{trail[0].path}.after", "remove one of these waits")


def name_hint(name: str, choices: Sequence[str] | set[str]) -> str:
    """Return the next step for an unknown name: the probable name, or a list of all."""
    return hint(name, choices, f"choose one of: {', '.join(sorted(choices)[:12]) or 'none'}")


# Kubernetes' strict rule; not every cluster enables the relaxed one, which allows nearly everything.
_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*", re.ASCII)
# ``$$(NAME)`` is not a reference: kubernetes/kubernetes, third_party/forked/golang/expansion/expand.go.
_REFERENCE = re.compile(r"\$(?:\$|\(([^()$]*)\))")


def env_faults(experiment: Experiment, entries: list[ProcessEntry]) -> Iterator[Problem]:
    """Yield faults of all variables of the experiment, processes, steps and the local mode."""
    yield from _faults(experiment.env, "env")
    for entry in entries:
        if entry.process.env:
            yield from _faults(entry.process.env, f"{entry.path}.env")
        local = entry.process.local
        if local is not None and local.env:
            yield from _faults(local.env, f"{entry.path}.local.env", entry.process.env)
    for name, step in experiment.prepare.items():
        yield from _faults(step.env, f"prepare.{name}.env")
    yield from _faults(experiment.local.env, "local.env")


def symph_reference_faults(experiment: Experiment, entries: list[ProcessEntry]) -> Iterator[Problem]:
    """Yield references such as ``$(SYMPH_CONFIG_DRI)`` to variables that no process gets, which would stay as text."""
    services = list({name for entry in entries for name in (*entry.process.binds, *entry.process.exposes)})
    shared = {name for name, _ in shared_variables(services)}
    for entry in entries:
        local = entry.process.local or LocalProcess()
        parts: dict[str, object] = {name: getattr(entry.process, name) for name in (*_LINES, "env")}
        parts |= {f"local.{name}": getattr(local, name) for name in (*_LINES, "env")}
        names = own_variables("", entry.ref, services, services)
        known = shared | {name for name, _ in names} | {*entry.process.env, *local.env, *experiment.local.env}
        for field, value in parts.items():
            for path, text in _texts(value, f"{entry.path}.{field}"):
                for name in _REFERENCE.findall(text):
                    if name.startswith("SYMPH_") and name not in known | {"SYMPH_METRICS"}:
                        what = f'"$({name})" is not a variable that symph sets'
                        step = hint(name, known, "see docs/variables.md; a service has the name that a process `binds`")
                        yield Problem(what, path, step)


# Fields of a process with texts in which $(NAME) stands for a variable.
_LINES = ("command", "args", "cmds", "preamble")


def _texts(value: object, path: str) -> Iterator[tuple[str, str]]:
    items = list(value.items()) if isinstance(value, Mapping) else []
    if isinstance(value, (list, tuple)):
        items = list(enumerate(value))
    yield from ((join(path, key), text) for key, text in items if isinstance(text, str) and "$(" in text)


def may_be_set(name: str) -> bool:
    """Return True if an experiment may set a variable of this name."""
    return _NAME.fullmatch(name) is not None and name not in RESERVED


def _faults(env: Mapping[str, EnvValue], path: str, others: Mapping[str, EnvValue] | None = None) -> Iterator[Problem]:
    """Yield faults of the variables in `env`, which override `others`."""
    for name, value in env.items():
        here = f"{path}.{name}"
        if not _NAME.fullmatch(name):
            next_step = "use letters, digits, underscores, dots and dashes; do not begin with a digit"
            yield Problem(f'"{name}" is not a valid name of a variable', here, next_step)
        elif name in RESERVED:
            yield Problem(f'"{name}" identifies the process; a spec cannot set it', here, "choose another name")
        if isinstance(value, EnvSource):
            yield from _source_faults(value, here)
        elif "$(" in value:
            yield from _reference_faults(name, value, {**(others or {}), **env}, here)


def _reference_faults(name: str, value: str, env: Mapping[str, EnvValue], path: str) -> Iterator[Problem]:
    """Yield references to variables that are set later.

    Entries without `$(` come first, then those with it in the order of their names.
    """
    for reference in filter(None, _REFERENCE.findall(value)):
        other = env.get(reference)
        if isinstance(other, str) and "$(" in other and reference_order(reference) >= reference_order(name):
            what = f'"{name}" refers to ' + ("itself" if reference == name else f'"{reference}", which is set later')
            next_step = "rename one of them: symph sets variables with references in the order of their names"
            yield Problem(what, path, next_step)


def _source_faults(source: EnvSource, path: str) -> Iterator[Problem]:
    kinds = ("secret", "config", "field", "resource")
    yield from choice_faults(source, kinds, path, "a value needs exactly one source")
    if source.key is None and (source.secret is not None or source.config is not None):
        yield Problem("the source has no `key`", path, "add `key:`")
    elif source.key is not None and source.secret is None and source.config is None:
        yield Problem("`key` is only for a Secret or ConfigMap", f"{path}.key", "remove it")
