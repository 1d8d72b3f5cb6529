"""One pod of a DIJob as processes of the experiment."""

from __future__ import annotations

from dataclasses import dataclass

from symphony_charts.importers.common.field_reader import Fields
from symphony_charts.importers.common.names import UniqueNames
from symphony_charts.importers.common.pod import PodParts, read_pod
from symphony_charts.importers.dijob.configmaps import lift_config_maps
from symphony_charts.importers.dijob.draft import Draft
from symphony_charts.importers.dijob.scripts import read_script
from symphony_charts.spec.variable_names import is_ours

__all__ = ["AddedPod", "add_pod"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedPod:
    """A pod that was added: its name, its data in the draft (to be completed), its first process, its parts."""

    name: str
    settings: dict[str, object]
    process: dict[str, object]
    parts: PodParts


def add_pod(template: Fields, role: str, role_path: str, shared: list[Fields], draft: Draft) -> AddedPod:
    """Add the pod of `role` to the draft: a lone process of the role's name, or a group if it has more containers.

    `shared` are the job's volumes. Replicas, retries and what else belongs to the pod is the caller's to add.
    """
    parts = read_pod(template, draft.volumes, shared)
    name = draft.names.give(role, role_path)
    lift_config_maps(parts, name, draft)
    for container, step in parts.steps.items():
        read_script(step, parts.paths[container], draft)
        _drop_own_environment(step)
        draft.add_step(container, {**step, "groups": [name]}, parts.paths[container])
    for container, process in parts.processes.items():
        path = parts.paths[container]
        compile_step = read_script(process, path, draft, may_split=True)
        _drop_own_environment(process)
        if compile_step is not None:
            _drop_own_environment(compile_step)
            draft.add_step(f"{name}-config", {**compile_step, "groups": [name]}, path)
    draft.image_pull_secrets += parts.image_pull_secrets
    if "labels" in parts.settings or "annotations" in parts.settings:
        what = "the operator drops labels and annotations of its pods; other workload kinds keep them"
        draft.log.note(template.at("metadata"), what)
    return _place(name, parts, template, draft)


def _place(name: str, parts: PodParts, template: Fields, draft: Draft) -> AddedPod:
    if len(parts.processes) <= 1:
        process = next(iter(parts.processes.values()), {})
        process |= parts.settings
        draft.processes[name] = process
        draft.origins[f"processes.{name}"] = next(iter(parts.paths.values()), template.path)
        return AddedPod(name=name, settings=process, process=process, parts=parts)
    names = UniqueNames(draft.log)
    inner: dict[str, object] = {}
    for container, process in parts.processes.items():
        unique = names.give(container, f"{parts.paths[container]}.name")
        inner[unique] = process
        draft.origins[f"groups.{name}.processes.{unique}"] = parts.paths[container]
    group: dict[str, object] = {"processes": inner, **parts.settings}
    draft.groups[name] = group
    draft.origins[f"groups.{name}"] = template.path
    return AddedPod(name=name, settings=group, process=next(iter(parts.processes.values())), parts=parts)


def _drop_own_environment(process: dict[str, object]) -> None:
    """Leave out the variables that every process of an experiment has anyway."""
    env = process.get("env")
    if isinstance(env, dict):
        kept = {name: value for name, value in env.items() if not is_ours(name)}
        process["env"] = kept
        if not kept:
            del process["env"]
