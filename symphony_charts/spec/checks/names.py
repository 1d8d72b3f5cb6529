"""Names of an experiment are sanitised throughout, references included, then held to what Kubernetes accepts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from symphony_charts.errors import Problem
from symphony_charts.formats.names import DNS_LABEL, OBJECT_NAME, SERVICE_NAME, prefix_owner, sanitize, shorten
from symphony_charts.formats.paths import join
from symphony_charts.spec.added_kinds import used_kinds
from symphony_charts.spec.model import Experiment, Process
from symphony_charts.spec.pods import pods_of

__all__ = ["name_faults", "object_name_faults", "with_clean_names"]

# A helm release name; objects are named `<release>-<pod>-<hash>`.
_EXPERIMENT_LENGTH = 53
_LABEL_LENGTH = 63
# Workloads have names of at most 52 characters, of which the hash takes 9 and the release at least 3.
_POD_LENGTH = 40

_Value = TypeVar("_Value")


def with_clean_names(experiment: Experiment) -> tuple[Experiment, list[Problem]]:
    """Return `experiment` with sanitised names, references to them, and the owner before its name exactly once.

    Two names that become one are a fault; the first keeps its place.
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
    """Yield names that are not DNS labels, too long, or used twice."""
    yield from _label_faults(experiment.name, "name", _LABEL_LENGTH, starts_with_letter=True)
    for field, value in (("owner", experiment.owner), ("team", experiment.team), ("namespace", experiment.namespace)):
        if value is not None:
            yield from _label_faults(value, field, _LABEL_LENGTH)
    for group, settings in experiment.groups.items():
        path = join("groups", group)
        yield from _label_faults(group, path, _POD_LENGTH)
        if not settings.processes:
            yield Problem(what=f'the group "{group}" is empty', path=path, next="add `processes:` to it, or drop it")
        for name in settings.processes:
            yield from _label_faults(name, f"{path}.processes.{name}", _LABEL_LENGTH)
        if group in experiment.processes:
            what = f'"{group}" names a group and a lone process: both would be a pod of that name'
            yield Problem(what=what, path=f"processes.{group}", next="rename one of them")
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
        yield Problem(what=f'"{name}" cannot be the name of a Kubernetes object', path=path, next=next_step)


def _host_name_faults(experiment: Experiment) -> Iterator[Problem]:
    named: dict[str, str] = {}
    for pod in pods_of(experiment).values():
        for index, name in enumerate(pod.settings.names):
            path = f"{pod.path}.names[{index}]"
            yield from _label_faults(name, path, _LABEL_LENGTH, starts_with_letter=True)
            if name == "localhost":
                yield Problem(what='"localhost" is every pod itself', path=path, next="choose another name")
            if (other := named.setdefault(name, pod.name)) != pod.name:
                what = f'"{name}" is a name of "{other}" and of "{pod.name}"'
                yield Problem(what=what, path=path, next="let it lead to one of them")
            elif name in pod.settings.names[:index]:
                yield Problem(what=f'"{name}" stands twice', path=path, next="drop one of them")


def _clean(named: Mapping[str, _Value], path: str, problems: list[Problem]) -> dict[str, _Value]:
    result: dict[str, _Value] = {}
    origin: dict[str, str] = {}
    for name, value in named.items():
        clean = sanitize(name)
        if clean in result:
            what = f'"{origin[clean]}" and "{name}" become the same name, "{clean}"'
            problems.append(Problem(what=what, path=f"{path}.{name}", next="rename one of them"))
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
        first = "a letter" if starts_with_letter else "a letter or digit"
        next_step = f"use lower-case letters, digits and dashes, {first} first, a letter or digit last"
        yield Problem(what=f'"{name}" cannot be a name', path=path, next=next_step)
    elif len(name) > limit:
        what = f'"{name}" has {len(name)} characters; {limit} fit into the names of the objects made of it'
        yield Problem(what=what, path=path, next="shorten it")
