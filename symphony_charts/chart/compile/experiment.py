"""An experiment becomes values: everything that a chart's templates print, as maps keyed by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from symphony_charts.chart.compile.defaults import compile_defaults
from symphony_charts.chart.compile.pods import compile_group, refuse_nulls
from symphony_charts.chart.compile.workload import compile_workload, workload_faults
from symphony_charts.chart.render.names import sha256
from symphony_charts.chart.render.values import Values
from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats import go_json
from symphony_charts.placement.assign.launch import asks_for_tpu
from symphony_charts.spec.model import ChartSettings, Experiment, ExposeSettings, Process, Step
from symphony_charts.spec.pods import ProcessRef, find_process, pods_of, processes_of
from symphony_charts.spec.services import Service
from symphony_charts.spec.sources import SecretSource, key_of

__all__ = ["compile_values", "losses", "with_digest"]

# Dials the bound services in `helm test`; anything with a shell and nc, python3 or bash will do.
_TEST_IMAGE = "busybox:1.37.0"
# What is said of a store of secrets outside of the cluster.
_EXTERNAL = ("store", "is_cluster_store", "refresh")


def compile_values(experiment: Experiment, services: Iterable[Service]) -> Values:
    """The values of the chart of a finished `experiment` whose `services` have their ports.

    They hold no null, whole numbers up to 2^53, environment values as text and quantities as text; `specDigest` is the
    digest of all the rest. Raises SpecError for what the kind of workload cannot run, all faults at once.
    """
    services = tuple(services)
    _refuse(experiment)
    values: Values = {
        "experiment": experiment.name,
        "groups": {name: compile_group(experiment, pod, services) for name, pod in pods_of(experiment).items()},
        "services": {service.name: _service(experiment, service) for service in services},
        "configs": _configs(experiment),
        "secrets": _secrets(experiment),
        "doneWhen": [_path(experiment, name) for name in experiment.done_when],
        "runKey": experiment.workload.run_key,
        "hold": False,
        "labels": dict(experiment.labels),
        "annotations": dict(experiment.annotations),
        "networks": list(experiment.networks),
        "commonLabels": _version_label(experiment.chart),
        "commonAnnotations": {},
        "serviceAccount": {"create": False},
        "networkPolicy": {"enabled": experiment.security.network_policy},
        "defaults": compile_defaults(experiment),
        "workload": compile_workload(experiment),
        **({"compat": experiment.compat} if experiment.compat else {}),
        "tests": {"enabled": True, "image": _TEST_IMAGE},
        "nameOverride": "",
        "fullnameOverride": "",
        "extra": {},
        "global": {},
    }
    refuse_nulls(values)
    return with_digest(values)


def _version_label(about: ChartSettings) -> Values:
    """The version of the programs as the label for it; labels know no plus sign."""
    return {"app.kubernetes.io/version": about.app_version.replace("+", "_")} if about.app_version else {}


def losses(experiment: Experiment) -> Iterator[Problem]:
    """What the spec says and no chart carries, by its path in the spec."""
    programs: list[Process | Step] = [*experiment.prepare.values()]
    for ref, process in processes_of(experiment):
        programs.append(process)
        if process.after:
            what = "the cluster starts all pods at once; `after` orders processes on one machine only"
            step = "let it wait for what it connects to"
            yield Problem(what=what, path=f"{_spec_path(experiment, ref)}.after", next=step)
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
        what = f"it is what an external store is asked for, and the source is {source.source}"
        for path in unread:
            yield Problem(what=what, path=path, next="set `secret_source.source: external`, or leave it out")
    if source.source != "sealed" and source.scope != usual.scope:
        what = f"it is the scope of sealed values, and the source is {source.source}"
        step = "set `secret_source.source: sealed`, or leave it out"
        yield Problem(what=what, path="secret_source.scope", next=step)


def _spec_path(experiment: Experiment, ref: ProcessRef) -> str:
    pod = pods_of(experiment)[ref.pod]
    return f"{pod.path}.processes.{ref.process}" if pod.is_group else pod.path


def with_digest(values: Values) -> Values:
    """`values` with the `specDigest` that belongs to them."""
    return {**values, "specDigest": _digest_of(values)}


def _digest_of(values: Values) -> str:
    """What tells one compiled experiment from another: the hash of its values but for `specDigest` itself."""
    return f"sha256:{sha256(go_json.dumps({key: value for key, value in values.items() if key != 'specDigest'}))}"


def _refuse(experiment: Experiment) -> None:
    problems = [*workload_faults(experiment)]
    problems.extend(
        Problem(what=f'config "{name}" still names the file {file.file}', path=f"configs.{name}", next="read it first")
        for name, file in experiment.configs.items()
        if file.text is None and file.base64 is None
    )
    if problems:
        raise SpecError(problems)


def _service(experiment: Experiment, service: Service) -> Values:
    values: Values = {
        "group": service.listener.pod,
        "process": service.listener.process,
        "port": service.port,
        "bind": service.is_bound,
    }
    if service.is_exposed:
        values |= _expose(experiment.expose.get(service.name, ExposeSettings()))
    return values


def _expose(settings: ExposeSettings) -> Values:
    values: Values = {
        "expose": settings.type,
        "host": settings.host,
        "loadBalancerClass" if settings.type == "LoadBalancer" else "className": settings.class_name,
        "gateway": settings.gateway,
        "sourceRanges": list(settings.source_ranges),
        "annotations": dict(settings.annotations),
    }
    return {key: value for key, value in values.items() if value}


def _configs(experiment: Experiment) -> Values:
    configs: Values = {}
    for name, file in experiment.configs.items():
        entry: Values = {"text": file.text} if file.text is not None else {"base64": file.base64}
        if file.mode is not None:
            entry["mode"] = int(file.mode, 8)
        configs[name] = entry
    return configs


def _secrets(experiment: Experiment) -> Values:
    """The keys of the existing Secret; never what they hold."""
    files: Values = {}
    for secret in experiment.secrets:
        entry: Values = {"only": [_path(experiment, name) for name in secret.only]} if secret.only else {}
        if secret.also_at:
            entry["alsoAt"] = list(secret.also_at)
        if secret.remote is not None:
            entry["remote"] = secret.remote
        files[key_of(secret)] = entry
    source = experiment.secret_source
    values: Values = {"name": "", "files": files}
    if source.source == "sealed":
        # The ciphertext comes with the environment: it is bound to its cluster, and mostly to its namespace.
        values |= {"source": "sealed", "scope": source.scope, "encryptedData": {}}
    elif source.source == "external":
        store = {"name": source.store or "", "isCluster": source.is_cluster_store}
        values |= {"source": "external", "store": store, "refreshInterval": source.refresh}
    return values


def _path(experiment: Experiment, name: str) -> str:
    ref = find_process(experiment, name)
    return f"{ref.pod}/{ref.process}"
