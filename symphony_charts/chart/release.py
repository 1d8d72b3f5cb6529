"""Merge values as Helm does, and render the objects of a release.

A chart contains its experiment as ``experiment.yaml`` beside its configuration files. Verbs that read a chart from
disk or Git rebuild its trees from this file and so render it without Helm. They leave charts whose templates differ
from the rebuilt ones (forked, edited, or from another version) to Helm.
"""

from __future__ import annotations

import base64
import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from symphony_charts.chart.build.chart import BuiltChart, Release, build
from symphony_charts.chart.schema import ValuesSchema, check_values
from symphony_charts.errors import Problem, SpecError, UsageError
from symphony_charts.formats.data import Values, sub
from symphony_charts.formats.names import OBJECT_NAME
from symphony_charts.formats.strvals import Convert, assign, assign_json, assign_literal, json_object, plain, typed
from symphony_charts.formats.yaml_read import load
from symphony_charts.placement.assign import asks_for_tpu
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.data import to_record, to_yaml
from symphony_charts.spec.model import Experiment, LocalSettings, Process, Step
from symphony_charts.spec.pods import Service, allocate, pods_of, processes_of
from symphony_charts.spec.sources import SecretSource, key_of
from symphony_charts.spec.variable_names import DEFAULT_SHELL

# Source: helm/helm, pkg/cli/values/options.go (all `-f` in order, then --set-json, --set, --set-string, --set-file and
# --set-literal, each in order) and pkg/chart/common/util/coalesce.go (maps merge, lists replace, null deletes). Flags
# assign to values in the files, not to the chart's defaults: an index changes one item of a list in a file, and
# replaces a list of the chart.


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """Overrides of a command line, each kind in its order.

    `files` are the contents of `-f`; `json`, `sets`, `strings`, `from_files` and `literals` the texts of --set-json,
    --set, --set-string, --set-file and --set-literal; `contents` has the text of each file that `from_files` name.
    """

    files: tuple[Mapping[str, object], ...] = ()
    json: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    strings: tuple[str, ...] = ()
    from_files: tuple[str, ...] = ()
    literals: tuple[str, ...] = ()
    contents: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any((self.files, self.json, self.sets, self.strings, self.from_files, self.literals))


def user_values(overrides: Overrides) -> Values:
    """Return the values that files and flags set, including nulls. Helm stores these as the values of a release."""
    values: Values = {}
    for file in overrides.files:
        values = merge(values, file, keeps_null=True)
    values = {key: _own(value) for key, value in values.items()}
    for text in overrides.json:
        whole = json_object(text)
        if whole is None:
            assign_json(values, text)
        else:
            values = merge(values, whole, keeps_null=True)
    for text in overrides.sets:
        assign(values, text, typed)
    for text in overrides.strings:
        assign(values, text, plain, "--set-string")
    for text in overrides.from_files:
        assign(values, text, _content(overrides, text), "--set-file")
    for text in overrides.literals:
        assign_literal(values, text)
    return values


def paths_of(text: str) -> list[str]:
    """Return the files that a --set-file text names."""
    paths: list[str] = []
    # Assignment to an empty map may fail; `user_values` reports errors with the real values.
    with contextlib.suppress(UsageError):
        assign({}, text, paths.append, "--set-file")
    return paths


def _own(value: object) -> object:
    """Return a deep copy in which YAML anchors and aliases share nothing."""
    if isinstance(value, Mapping):
        return {key: _own(item) for key, item in value.items()}
    return [_own(item) for item in value] if isinstance(value, list) else value


def _content(overrides: Overrides, text: str) -> Convert:
    def read(path: str) -> object:
        if path not in overrides.contents:
            raise UsageError(f'"{path}" was not read', f"--set-file {text}", "name a file")
        return overrides.contents[path]

    return read


def merge(base: Mapping[str, object], over: Mapping[str, object], *, keeps_null: bool = False) -> Values:
    """Return `base` with `over` on top: merge maps, replace everything else; a null removes a default.

    A null for a key that `base` lacks is kept, as in Helm; `keeps_null` keeps all, which remove defaults later. The
    result shares parts of both arguments.
    """
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        if value is None and key in result and not keeps_null:
            del result[key]
        elif isinstance(value, Mapping) and isinstance(old, Mapping):
            result[key] = merge(old, value, keeps_null=keeps_null)
        else:
            result[key] = value
    return result


def overrides_between(base: Mapping[str, object], wanted: Mapping[str, object]) -> Values:
    """Return the smallest values that give `wanted` when merged over `base`. They never contain `specDigest`."""
    overrides: Values = {key: None for key in base if key not in wanted}
    for key, value in wanted.items():
        old = base.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            inner = overrides_between(old, value)
            overrides |= {key: inner} if inner else {}
        elif key not in base or old != value or type(old) is not type(value):
            overrides[key] = value
    # It identifies the chart of the values.
    overrides.pop("specDigest", None)
    return overrides


ORIGIN = "experiment.yaml"


def origin_text(experiment: Experiment, services: Iterable[Service]) -> bytes:
    """Return ``experiment.yaml`` for a finished experiment: with fixed ports, without data of this machine."""
    ports, configs = {service.name: service.port for service in services}, experiment.configs
    portable = replace(
        experiment,
        groups={
            name: replace(group, processes={key: _portable(one, ports) for key, one in group.processes.items()})
            for name, group in experiment.groups.items()
        },
        processes={name: _portable(process, ports) for name, process in experiment.processes.items()},
        configs={name: replace(file, text=None, base64=None, file=f"files/{name}") for name, file in configs.items()},
        secrets=[replace(secret, file=key_of(secret), key=None) for secret in experiment.secrets],
        placement=replace(experiment.placement, pools=None),
        local=LocalSettings(),
    )
    return to_yaml(portable).encode()


def _portable(process: Process, ports: Mapping[str, int]) -> Process:
    fixed = {key: {name: ports[name] for name in getattr(process, key)} for key in ("binds", "exposes")}
    # Without shell lines, only `local` needs the shell.
    shell = process.shell if process.cmds or process.preamble else DEFAULT_SHELL
    return replace(process, **fixed, shell=shell, assign_to=None, local=None)


def open_chart(files: Mapping[str, bytes], at: str) -> BuiltChart:
    """Return the trees of the chart with these files, located at `at`.

    Raises SpecError if the chart has no ``experiment.yaml``, or its templates are not those of the experiment.
    """
    if ORIGIN not in files:
        step = "publish the experiment again, or render the chart with helm"
        raise SpecError.one(f"the chart has no {ORIGIN}, so symph did not make it", at, step)
    written = to_record(load(files[ORIGIN].decode("utf-8", "replace")))
    experiment = finish(_with_files(written, files), for_cluster=True)
    chart = build(experiment, allocate(experiment)).with_values(_values(files))
    made = {f"templates/{name}": text.encode() for name, text in chart.texts().items()}
    changed = sorted(path for path, text in made.items() if files.get(path) != text)
    if changed:
        what = f"{', '.join(changed)}: edited, or made by another version of symph"
        raise SpecError.one(what, at, "render the chart with helm, or publish the experiment again")
    return chart


def _with_files(experiment: Experiment, files: Mapping[str, bytes]) -> Experiment:
    missing = [file.file for file in experiment.configs.values() if file.file not in files]
    if missing:
        raise SpecError.one(f"the chart has no {', '.join(map(str, missing))}", next="publish the experiment again")
    contents = {name: base64.b64encode(files[str(file.file)]).decode() for name, file in experiment.configs.items()}
    return replace(
        experiment,
        configs={name: replace(file, base64=contents[name], file=None) for name, file in experiment.configs.items()},
    )


def _values(files: Mapping[str, bytes]) -> dict[str, Any]:
    values = load(files.get("values.yaml", b"").decode("utf-8", "replace"))
    if not isinstance(values, dict) or not values.get("specDigest"):
        raise SpecError.one("values.yaml has no specDigest", next="publish the experiment again")
    return values


# Source: helm, pkg/chartutil/validate_name.go.
_MAX_RELEASE = 53


def merge_values(schema: ValuesSchema, over: Mapping[str, object], base: BuiltChart | None = None) -> dict[str, Any]:
    """Return the values of a chart with `over` on top, merged as Helm does.

    `schema` is the chart's schema; `base` is the chart with other default values.

    Raises:
        SpecError: The schema refuses the values, or they belong to another version of the experiment.
    """
    chart = base or schema.chart
    values = merge(chart.values, over)
    if values.get("specDigest") != chart.values["specDigest"]:
        what = "the values are those of another version of the experiment, and the chart refuses them"
        raise SpecError.one(what, "specDigest", "leave `specDigest` out of them")
    check_values(schema, values)
    return values


def render_release(chart: BuiltChart, values: Mapping[str, Any], release: Release) -> list[dict[str, Any]]:
    """Return all objects that Helm creates from `chart` and complete `values`, including the test pod.

    The values must fit the chart's schema.

    Raises:
        SpecError: Helm or the chart refuses the release, or two objects have the same name, so the cluster would keep
            only the last one.
    """
    if not OBJECT_NAME.fullmatch(release.name) or len(release.name) > _MAX_RELEASE:
        what = f'"{release.name}" cannot be the name of a release'
        raise SpecError.one(what, next=f"use at most {_MAX_RELEASE} lower-case letters, digits and hyphens")
    objects = chart.objects(values, release)
    names = Counter(f"{item['kind']}/{sub(item, 'metadata').get('name')}" for item in objects)
    problems = [
        Problem(what=f"two objects of the chart have the name {name}", path=name, next="rename a group or a service")
        for name, count in names.items()
        if count > 1
    ]
    if problems:
        raise SpecError(problems)
    return objects


# Settings of an external secret store.
_EXTERNAL = ("store", "is_cluster_store", "refresh")


def losses(experiment: Experiment) -> Iterator[Problem]:
    """Yield settings of an experiment that a chart ignores, with paths in the spec."""
    programs: list[Process | Step] = [*experiment.prepare.values()]
    for ref, process in processes_of(experiment):
        programs.append(process)
        if process.after:
            what = "the cluster starts all pods at once; `after` orders processes on one machine only"
            step = "let it wait for what it connects to"
            pod = pods_of(experiment)[ref.pod]
            path = f"{pod.path}.processes.{ref.process}" if pod.is_group else pod.path
            yield Problem(what=what, path=f"{path}.after", next=step)
    mounted = {mount.volume for program in programs for mount in program.mounts}
    for name in experiment.volumes:
        if name not in mounted:
            yield Problem(what="nothing mounts it", path=f"volumes.{name}", next="mount it, or leave it out")
    if experiment.placement.tpu_topology and not any(asks_for_tpu(pod) for pod in pods_of(experiment).values()):
        what, step = "nothing asks for a TPU", "say `requests: {google.com/tpu: ...}`, or leave it out"
        yield Problem(what=what, path="placement.tpu_topology", next=step)
    yield from _secret_losses(experiment)


def _secret_losses(experiment: Experiment) -> Iterator[Problem]:
    source, usual = experiment.secret_source, SecretSource()
    if source.source != "external":
        unread = [f"secret_source.{field}" for field in _EXTERNAL if getattr(source, field) != getattr(usual, field)]
        unread += [f"secrets[{index}].remote" for index, file in enumerate(experiment.secrets) if file.remote]
        what = f"only an external store reads it, and the source is {source.source}"
        for path in unread:
            yield Problem(what=what, path=path, next="set `secret_source.source: external`, or leave it out")
    if source.source != "sealed" and source.scope != usual.scope:
        what = f"only sealed values have a scope, and the source is {source.source}"
        step = "set `secret_source.source: sealed`, or leave it out"
        yield Problem(what=what, path="secret_source.scope", next=step)
