"""Read experiments and lock files from data, apply changes of the command line, and write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, get_args, get_origin

import msgspec

from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.data import sub
from symphony_charts.formats.field_reader import field_names, record_faults
from symphony_charts.formats.names import is_below, join, nearest, snake
from symphony_charts.formats.strvals import assign, typed
from symphony_charts.formats.yaml_read import load
from symphony_charts.formats.yaml_write import dump
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.json_schema import decoded, settings_record
from symphony_charts.spec.model import Experiment, Process
from symphony_charts.spec.pods import pods_of
from symphony_charts.spec.shorthand import expand
from symphony_charts.spec.sources import Record
from symphony_charts.spec.variable_names import Variable
from symphony_charts.system.records import convert

# Habits from Symphony, compose files and Kubernetes, and our key for each.
_HABITS = {
    "container_image": "image",
    "containers": "processes",
    "depends_on": "after",
    "entrypoint": "command",
    "healthcheck": "ready",
    "health_check": "ready",
    "hostname": "names",
    "when": "after",
    "environment": "env",
    "env_from": "env",
    "group": "groups",
    "ports": "exposes",
    "process": "processes",
    "process_groups": "groups",
    "readiness_probe": "ready",
    "resources": "requests",
    "restart_policy": "restart",
    "service_account_name": "service_account",
    "start_dir": "cwd",
    "termination_grace_period_seconds": "grace_period",
    "volume_mounts": "mounts",
    "working_dir": "cwd",
}


def experiment_faults(data: object) -> Iterator[Problem]:
    """Yield all faults of `data` (shorthand expanded) as the fields of an Experiment."""
    return record_faults(data, Experiment, _advice, settings_record)


def _advice(key: str, path: str, keys: list[str]) -> str:
    habit = _HABITS.get(snake(key), "")
    if key == "resources" and "requests" in keys:
        return "write `requests` and `limits` right here, without `resources` around them"
    if path and "restart" in keys and key in field_names(Experiment):
        return f"`{key}` belongs to the experiment: write it at the left margin"
    if "requests" in keys and key in ("cpu", "cpus", "mem", "memory", "ram"):
        return f"write `requests: {{{key[:3] if key.startswith('cpu') else 'memory'}: ...}}`"
    if "mounts" in keys and key == "volumes":
        return "a process has `mounts`; `volumes` at the left margin declares what several of them share"
    if not path and "processes" in keys and key in field_names(Process):
        return f"`{key}` belongs to a process: indent it below its name, below `processes:`"
    if not path and "processes" in keys and key == "services":
        return "a service is what a process `binds`; a compose file comes over by symph import compose FILE"
    return f'did you mean "{habit}"?' if habit in keys else ""


def from_data(data: object, *, for_cluster: bool = False) -> Experiment:
    """Return the experiment that `data` describes: shorthand expanded, names sanitised, everything checked.

    Raises SpecError with all faults of types and content.
    """
    return read_record(data, for_cluster=for_cluster)[1]


def read_record(
    data: object,
    problems: Sequence[Problem] = (),
    *,
    for_cluster: bool = False,
    complete: Callable[[Experiment], Experiment] = lambda experiment: experiment,
) -> tuple[Experiment, Experiment]:
    """Return the experiment as written, and finished and passed to `complete`.

    Raises SpecError with the `problems` of the text, all faults of types, and those of the content that do not follow
    from them.
    """
    found = list(problems)
    written, finished = None, None
    part: Experiment | None
    try:
        written = part = to_record(data)
    except SpecError as error:
        known = {_without_line(problem.path) for problem in found}
        found += (problem for problem in error.problems if problem.path not in known)
        part = _sound_part(data, error.problems)
    if part is not None:
        for step in (partial(finish, for_cluster=for_cluster), complete):
            try:
                finished = part = step(part)
            except SpecError as error:
                found += independent(error.problems, found)
    if found or written is None or finished is None:
        raise SpecError(found)
    return written, finished


def _without_line(path: str) -> str:
    return re.sub(r"^line [\d:]+(, )?", "", path)


# Keys that define what others refer to, and keys that refer to it.
_DEFINING = frozenset(("binds", "exposes", "volumes", "processes", "groups", "prepare", "name", "configs", "secrets"))
_REFERRING = frozenset(
    ("connects", "after", "done_when", "order", "expose", "volume", "ready", "groups", "only", "names")
)


def independent(later: Sequence[Problem], earlier: Sequence[Problem]) -> list[Problem]:
    """Return the problems in `later` that do not follow from those in `earlier`, whose places were left out."""
    paths = [_without_line(problem.path) for problem in earlier]
    steps = {_steps(path)[-1] for path in paths if path}
    steps |= {name for problem in earlier for name in re.findall(r'did you mean "(\w+)"', problem.next)}
    is_defined = _DEFINING.isdisjoint(steps) and all(_DEFINING.isdisjoint(_steps(path)[-2:]) for path in paths if path)
    return [
        problem
        for problem in later
        if not any(_is_same_place(path, problem.path) for path in paths if path)
        and _steps(problem.path)[-1] not in steps
        and (is_defined or (_REFERRING.isdisjoint(_steps(problem.path)) and "$(SYMPH_" not in problem.what))
    ]


def _is_same_place(path: str, other: str) -> bool:
    return is_below(path, other) or is_below(other, path) or _steps(path)[:-1] == _steps(other)


def _steps(path: str) -> list[str]:
    return [step for step in re.split(r"[.\[\]]+", path) if step and not step.isdecimal()] or [""]


def _sound_part(data: object, problems: Sequence[Problem]) -> Experiment | None:
    """Return the experiment without the places of `problems`; None if what is left is none."""
    if not isinstance(data, dict):
        return None
    expanded = _copy(expand(data)[0])
    for path in sorted((problem.path for problem in problems), reverse=True):
        _remove(expanded, path)
    if not isinstance(expanded.get("name"), str):
        expanded["name"] = "x"
    with suppress(SpecError, msgspec.ValidationError, RecursionError):
        return decoded(convert(expanded, Experiment))
    return None


def _remove(data: Any, path: str) -> None:
    """Remove the value at `path`, or the nearest one around it."""
    while isinstance(data, (dict, list)):
        if isinstance(data, list):
            index = re.match(r"\[(\d+)\]\.?", path)
            key: Any = int(index[1]) if index and int(index[1]) < len(data) else None
            path = path[index.end() :] if index else ""
        else:
            key = max((key for key in data if isinstance(key, str) and is_below(path, key)), key=len, default=None)
            path = path[len(key or "") :].removeprefix(".")
        if key is None:
            return
        if not path or not isinstance(data[key], (dict, list)):
            del data[key]
            return
        data = data[key]


def to_record(data: object) -> Experiment:
    """Return the record as written, without checks of names and references."""
    if not isinstance(data, dict):
        what = "the experiment is empty" if data is None else "an experiment must be a map"
        raise SpecError.one(what, next="begin with `name:` and `processes:`")
    try:
        expanded, problems = expand(data)
        if not problems:
            return decoded(convert(_in_order(data, expanded), Experiment))
    except RecursionError as error:
        raise SpecError.one("the spec has too many levels", next="use fewer levels") from error
    except msgspec.ValidationError as error:
        raise SpecError(list(experiment_faults(expanded)) or [Problem(str(error))]) from error
    raise SpecError([*problems, *experiment_faults(expanded)])


def _in_order(written: dict[object, object], expanded: dict[str, object]) -> dict[str, object]:
    """Return the data with `order` set if lone processes come before the groups."""
    keys = [key for key in written if key in ("processes", "groups")]
    if keys != ["processes", "groups"] or "order" in written:
        return expanded
    lone, groups = sub(expanded, "processes"), sub(expanded, "groups")
    grouped = [f"{name}/{process}" for name in groups for process in sub(groups, name, "processes")]
    return {**expanded, "order": [*lone, *grouped]} if lone and grouped else expanded


def to_data(experiment: Experiment) -> dict[str, object]:
    """Return the experiment as JSON types, in the order of the records, without defaults."""
    data: dict[str, object] = msgspec.to_builtins(experiment)
    return data


def to_yaml(experiment: Experiment) -> str:
    return dump(to_data(experiment))


def to_json(experiment: Experiment) -> str:
    """Return the experiment as indented JSON with a newline at the end."""
    return msgspec.json.format(msgspec.json.encode(experiment), indent=2).decode() + "\n"


# Changes apply to the data of a spec before it becomes records, so every check of a spec covers them.

_FLAG = "--spec-set"
# Maps of things that run. A typing error in a name would add a process instead of changing one.
_RUNNING = ("processes", "groups", "prepare")


def changed(data: object, texts: Sequence[str]) -> object:
    """Return the data of a spec with the assignments in `texts`; null removes a key. Each Variable is set everywhere.

    Raises:
        UsageError: A text is not a list of ``PATH=VALUE``.
        SpecError: A path names a process, group or step that the spec does not have.
    """
    if not texts or not isinstance(data, dict):
        return data
    result: dict[str, Any] = _copy(data)
    for text in texts:
        if isinstance(text, Variable):
            _set_variable(result, *text.split("=", 1))
            continue
        assigned = _assigned(text)
        if problems := list(_unknown_names(assigned, result, result, ())):
            raise SpecError(problems)
        assign(result, text, typed, _FLAG)
        _remove_nulls(result, assigned)
    return result


def at_changes(error: SpecError, texts: Sequence[str]) -> tuple[list[Problem], list[Problem]]:
    """Return the problems caused by `texts`, with the option as their place, and all others."""
    places = [(path, text) for text in texts for path in _leaves(_assigned(text), "")]
    ours, others = [], []
    for problem in error.problems:
        options = [f"{_FLAG} {text}" for path, text in places if is_below(problem.path, path)]
        options += [f"-E {text}" for text in texts if isinstance(text, Variable) and _is_of(problem.path, text)]
        if options:
            ours.append(problem.moved_to(f"{options[0]}, {problem.path}"))
        else:
            others.append(problem)
    return ours, others


def _set_variable(data: dict[str, Any], key: str, value: str) -> None:
    """Set a variable in every process and step, and in the local settings that would override it."""
    holders = [data, *_maps(data.get("groups"))]
    processes = [process for holder in holders for process in _maps(holder.get("processes"))]
    for process in [*processes, *_maps(data.get("prepare"))]:
        if isinstance(variables := process.setdefault("env", {}), dict):
            variables[key] = value
    for holder in [data, *processes]:
        if key in (variables := sub(holder, "local", "env")):
            variables[key] = value


def _maps(value: Any) -> list[dict[str, Any]]:
    return [item for item in value.values() if isinstance(item, dict)] if isinstance(value, dict) else []


def _is_of(path: str, variable: str) -> bool:
    # The reader of YAML puts its own line before the path; such a fault is in the file.
    return not path.startswith("line ") and path.endswith(f".env.{variable.partition('=')[0]}")


def _assigned(text: str) -> dict[str, Any]:
    assigned: dict[str, Any] = {}
    if not isinstance(text, Variable):
        assign(assigned, text, typed, _FLAG)
    return assigned


def _copy(value: Any) -> Any:
    """Return a deep copy in which YAML aliases do not share data with their anchors."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _unknown_names(assigned: Any, data: Any, spec: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[Problem]:
    """Yield a problem for each process, group or step that is in `assigned` and not in `data`."""
    for key, value in assigned.items() if isinstance(assigned, dict) else ():
        if key in _RUNNING and (not above or key == "processes") and isinstance(value, dict):
            known = sub(data, key)
            for name, inner in value.items():
                if name in known:
                    yield from _unknown_names(inner, known[name], spec, (*above, key, name))
                else:
                    leaf = next(_leaves(value, ".".join((*above, key))))
                    yield _unknown(name, ".".join((*above, key)), known, spec).moved_to(leaf)


def _unknown(name: str, path: str, known: Mapping[str, Any], spec: Mapping[str, Any]) -> Problem:
    step = f"known here: {', '.join(known)}" if known else f"the spec has no {path}"
    if near := nearest(name, known):
        step = f"did you mean {path}.{near}?"
    for group, inner in sub(spec, "groups").items():
        if name in sub(inner, "processes"):
            step = f"did you mean groups.{group}.processes.{name}?"
    return Problem(f'{path} has no "{name}"', next=step)


def _remove_nulls(data: Any, assigned: Mapping[str, Any]) -> None:
    for key, value in assigned.items():
        if value is None:
            data.pop(key, None)
        elif isinstance(value, dict) and isinstance(data.get(key), dict):
            _remove_nulls(data[key], value)


def _leaves(assigned: Mapping[str, Any], path: str) -> Iterator[str]:
    for key, value in assigned.items():
        inner = join(path, key)
        if isinstance(value, dict) and value:
            yield from _leaves(value, inner)
        else:
            yield inner


# Programs write lock files and people review them: one service per line keeps diffs small.

_HEADER = "# Written by symph, so that services keep their ports. Commit it beside the spec.\n"


class Lock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Lock file of an experiment: `ports` by service, and the last packaged `version` and its `digest`."""

    ports: dict[str, Annotated[int, msgspec.Meta(ge=1, le=65535)]] = {}
    version: str | None = None
    digest: str | None = None


def parse(text: str) -> Lock:
    """Return the lock in `text`; an empty text is an empty lock.

    Raises SpecError if the text is not a lock file.
    """
    data = load(text)
    try:
        return convert({} if data is None else data, Lock)
    except msgspec.ValidationError as error:
        raise SpecError.one(f"not a lock file: {error}", next="restore it from Git, or delete it") from error


def render(lock: Lock) -> str:
    """Return the text of `lock`, with services sorted by name, so that equal locks have equal text."""
    versions = msgspec.to_builtins(msgspec.structs.replace(lock, ports={}))
    return _HEADER + dump({"ports": dict(sorted(lock.ports.items())), **versions})


# Values and Kubernetes fields with another name than ours; `cmds` becomes `command`.
_OF_GROUP = {
    "backoffLimit": "retries",
    "restartPolicy": "restart",
    "activeDeadlineSeconds": "deadline",
    "minReplicas": "min_replicas",
    "terminationGracePeriodSeconds": "grace_period",
    "serviceAccountName": "service_account",
    "priorityClassName": "priority_class",
    "nodeSelector": "node_selector",
}
_OF_CONTAINER = {
    "workingDir": "cwd",
    "imagePullPolicy": "image_pull_policy",
    "overlay": "container_overlay",
    "volumes": "mounts",
    "volumeMounts": "mounts",
    "readinessProbe": "ready",
}
_OF_SERVICE = {
    "expose": "type",
    "className": "class_name",
    "loadBalancerClass": "class_name",
    "sourceRanges": "source_ranges",
}


def spec_path(path: str, experiment: Experiment) -> str:
    """Return the path in the spec for a `path` of the values; `path` itself if the spec has no such field.

    ``groups.a.containers.a.env.TOKEN`` is ``processes.a.env.TOKEN`` for a lone process.
    """
    head, *steps = path.split(".")
    if head == "workload":
        return ".".join([head, *map(snake, steps)])
    if head == "services" and len(steps) == 2 and steps[0] in experiment.expose:
        return f"expose.{steps[0]}.{_OF_SERVICE.get(steps[1], steps[1])}"
    pod = pods_of(experiment).get(steps[0]) if head == "groups" and steps else None
    if pod is None:
        return path
    rest = steps[1:]
    if rest[:1] == ["containers"] and len(rest) > 1 and rest[1] in pod.processes:
        process, rest = rest[1], rest[2:]
        if rest[:1] == ["command"] and pod.processes[process].cmds is not None:
            rest = ["cmds"]
        base = f"{pod.path}.processes.{process}" if pod.is_group else pod.path
        return ".".join([base, *(_OF_CONTAINER.get(step, step) for step in rest[:1]), *rest[1:]])
    return ".".join([pod.path, *(_OF_GROUP.get(step, step) for step in rest)])


def is_spec_path(path: str) -> bool:
    """Return True if an experiment may have data at `path`; map keys may have any name."""
    types: list[Any] = [Experiment]
    for step in path.split("."):
        types = [inner for each in types for inner in _inside(each, step)]
    return bool(types)


def _inside(type_: Any, step: str) -> Iterator[Any]:
    """Yield the possible types under the key `step` of a value of `type_`."""
    if isinstance(type_, type) and (settings := settings_record(type_, step)):
        yield settings
    elif isinstance(type_, type) and issubclass(type_, Record):
        yield from (field.type for field in msgspec.structs.fields(type_) if field.encode_name == step)
    elif get_origin(type_) is dict:
        yield get_args(type_)[1]
    elif type_ is object:
        yield object
    else:
        arguments: Sequence[Any] = get_args(type_) if get_origin(type_) not in (list, tuple) else ()
        for each in arguments:
            yield from _inside(each, step)
