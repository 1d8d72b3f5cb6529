"""Every container finds exactly the variables that the list promises on every backend, each from its source.

The templates spell names and sources a second time, since ports and replicas are values that users set: here the whole
environment of rendered containers stands beside the list, for one experiment in full and for generated ones.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from symphony_charts.chart.render.values import texts
from symphony_charts.environment.di_engine import node_facts, nodes_of
from symphony_charts.environment.expansion import expand
from symphony_charts.environment.variables import Address, Fact, interpret, variables_of
from symphony_charts.formats.data import maps, sub
from symphony_charts.kinds.children import opened
from symphony_charts.kinds.registry import kind_of
from symphony_charts.kinds.table import rows
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import ProcessRef, pods_of, retries_of
from symphony_charts.spec.services import allocate
from symphony_charts.spec.sources import CONFIG_DIR, SECRETS_DIR
from symphony_charts.spec.variable_names import FAILURES, RESTARTS
from tests.chart.harness import Objects, chart_of, experiment_of, helm_objects, native_objects, write_chart
from tests.chart.strategies import experiments
from tests.tools import HELM_VERSIONS

SOME = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
# What a pod learns only when it runs, by the field that tells it; every other field is that of the index.
POD_IP, RUN, NAMESPACE, INDEX = "<status.podIP>", "$(SYMPH_RUN)", "$(DI_JOB_NAMESPACE)", "<index>"
FIELDS = {"status.podIP": POD_IP, "metadata.labels['symph.dev/run']": RUN, "metadata.namespace": NAMESPACE}


def found(objects: Objects, declared: dict[ProcessRef, set[str]]) -> dict[ProcessRef, dict[str, str]]:
    """The environment of each container but what `declared` names: the ConfigMaps with its own entries over them."""
    items = opened(objects.values())
    data = config_maps(items)
    environments = {}
    for item in items:
        if kind_of(item) not in ("Job", "StatefulSet"):
            continue
        template = sub(sub(item, "spec"), "template")
        group = str(sub(sub(template, "metadata"), "labels")["symph.dev/group"])
        spec = sub(template, "spec")
        for container in [*maps(spec, "initContainers"), *maps(spec, "containers")]:
            ref = ProcessRef(group, str(container["name"]))
            env: dict[str, str] = {}
            for source in maps(container, "envFrom"):
                texts = data[str(sub(source, "configMapRef")["name"])]
                env |= {name: str(value) for name, value in texts.items()}
            for entry in maps(container, "env"):
                field = str(sub(sub(entry, "valueFrom"), "fieldRef").get("fieldPath", ""))
                value = FIELDS.get(field, INDEX) if field else expand(str(entry.get("value", "")), env)
                env[str(entry["name"])] = value
            theirs = declared.get(ref, set()) | {FAILURES, RESTARTS}
            environments[ref] = {name: value for name, value in env.items() if name not in theirs}
    return environments


def config_maps(items: Iterable[dict[str, object]]) -> dict[str, dict[str, object]]:
    """The data of each ConfigMap, by its name."""
    return {str(sub(item, "metadata")["name"]): sub(item, "data") for item in items if item["kind"] == "ConfigMap"}


def promised(
    experiment: Experiment, addresses: dict[str, Address], steps: list[str]
) -> dict[ProcessRef, dict[str, str]]:
    """What the list says of every process and step, with a pod's answers."""
    services = allocate(experiment)
    names_run = any(RUN in host for address in addresses.values() for host in address.hosts)
    has_ranks = experiment.compat == "di-engine"
    pods = pods_of(experiment)
    nodes = {
        pod: [f"r1-exp-{pod}-{RUN}-{index}.r1-exp-{pod}-pods" for index in range(pods[pod].settings.replicas)]
        for pod in (nodes_of(experiment) if has_ranks else [])
    }
    is_counted = bool(rows()[experiment.workload.kind].failures)
    of_a_run = begun_anew(experiment)
    environments = {}
    for pod in pods.values():
        count = pod.settings.replicas
        facts: dict[Fact, str | None] = {
            Fact.ADDRESS: POD_IP,
            Fact.INDEX: INDEX if count > 1 else "0",
            Fact.REPLICAS: str(count),
            Fact.RUN: RUN if (names_run and pod.name in of_a_run) or pod.name in nodes else None,
            Fact.CONFIG_DIR: CONFIG_DIR,
            Fact.SECRETS_DIR: SECRETS_DIR,
        }
        if pod.name in nodes:
            facts |= node_facts(f"{NAMESPACE}/r1-exp-{RUN}", pod.name, 0, nodes, experiment.workload.dijob.tasks)
        for name in [*steps, *pod.processes]:
            ref = ProcessRef(pod.name, name)
            is_node = pod.name in nodes and name in pod.processes
            connects = pod.processes[name].connects if name in pod.processes else []
            listed = variables_of(experiment.name, ref, services, connects=connects, is_node=is_node)
            tried = name in pod.processes and pod.processes[name].lifecycle == "finite"
            attempt = "1" if tried and is_counted and not retries_of(experiment, pod) else None
            told = interpret(listed, {**facts, Fact.ATTEMPT: attempt}, addresses)
            environments[ref] = {key: str(value) for key, value in told.items()}
    return environments


def begun_anew(experiment: Experiment) -> set[str]:
    """The pods that begin anew with each run: finite ones, those they reach, and those that are told their names."""
    pods = pods_of(experiment)
    bound = {service.name: pods[service.listener.pod] for service in allocate(experiment)}
    reached = {
        name: [bound[service] for process in pod.processes.values() for service in process.connects]
        for name, pod in pods.items()
    }
    begun = {
        name
        for name, pod in pods.items()
        if pod.is_finite
        or pod.settings.keep is False
        or any(other.is_finite and other.settings.replicas > 1 for other in reached[name])
    }
    while more := {o.name for name in begun for o in reached[name] if o.settings.keep is None} - begun:
        begun |= more
    return begun


def as_a_pod_carries_it(env: dict[str, str], replicas: int) -> dict[str, str]:
    """What `ditask` is told, in the words by which a pod of several replicas is told it."""
    if "DI_RANK" not in env:
        return env
    rank = "DI_FIRST_RANK" if replicas > 1 else "DI_RANK"
    rest = {name: value for name, value in env.items() if name != "DI_RANK"}
    return {**rest, rank: env["DI_RANK"], "DI_JOB_NAMESPACE": NAMESPACE}


def told_of_tries(chart_workload: dict[str, object] | None = None, **process: object) -> tuple[set[str], bool]:
    """The variables about tries that a process has, and whether a shell before it counts them."""
    processes = {"a": {"command": ["x"], **process}}
    experiment = experiment_of(processes=processes, **({"workload": chart_workload} if chart_workload else {}))
    (item,) = [one for one in opened(native_objects(chart_of(experiment)).values()) if kind_of(one) == "Job"]
    (container,) = maps(sub(sub(sub(item, "spec"), "template"), "spec"), "containers")
    names = {str(entry["name"]) for entry in maps(container, "env")} & {"SYMPH_ATTEMPT", FAILURES, RESTARTS}
    return names, "symph-attempt" in str(container.get("command"))


@pytest.mark.parametrize(
    ("workload", "process", "told", "is_counted"),
    [
        ({}, {}, {"SYMPH_ATTEMPT"}, False),
        ({}, {"retries": 2}, {FAILURES}, True),
        ({}, {"retries": 2, "restart": "on-failure"}, set(), False),
        ({}, {"retries": 0, "restart": "on-failure"}, {"SYMPH_ATTEMPT"}, False),
        ({}, {"retries": 2, "command": None, "args": ["x"]}, set(), False),
        ({"kind": "jobset"}, {}, {"SYMPH_ATTEMPT"}, False),
        ({"kind": "jobset", "jobset": {"max_restarts": 1}}, {}, {RESTARTS}, True),
        ({"kind": "jobset", "jobset": {"max_restarts": 1}}, {"retries": 2}, {FAILURES, RESTARTS}, True),
        ({"kind": "volcano"}, {"retries": 2}, set(), False),
        ({"kind": "appwrapper"}, {}, set(), False),
        ({"kind": "dijob"}, {}, set(), False),
    ],
)
def test_a_process_learns_which_try_it_is_where_somebody_counts(
    workload: dict[str, object], process: dict[str, object], told: set[str], is_counted: bool
) -> None:
    assert told_of_tries(workload, **process) == (told, is_counted)


DOTTED = {"my.var": "$(A) b", "-x": "", "A": "a"}


@pytest.mark.parametrize(
    ("settings", "fields", "script"),
    [
        ({}, {"retries": 2}, "symph-attempt"),
        ({"hold": True}, {}, "symph-hold"),
        ({}, {"preamble": ["unset A"]}, "exec"),
    ],
)
def test_a_shell_before_a_program_loses_no_variable(
    settings: dict[str, object], fields: dict[str, object], script: str
) -> None:
    look = [sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)), flush=True)"]
    experiment = experiment_of(processes={"a": {"command": look, "env": DOTTED, **fields}})
    (job,) = [one for one in native_objects(chart_of(experiment), values=settings).values() if kind_of(one) == "Job"]
    (container,) = maps(sub(sub(sub(job, "spec"), "template"), "spec"), "containers")
    env: dict[str, str] = {}
    for entry in maps(container, "env"):
        env[str(entry["name"])] = expand(str(entry.get("value", "0")), env)
    words = [expand(word, env) for key in ("command", "args") for word in texts(container.get(key))]
    assert script in str(words)
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=env, text=True) as program:
        assert program.stdout is not None
        seen = json.loads(program.stdout.readline())
        program.terminate()
    assert {name: seen.get(name) for name in ("my.var", "-x")} == {"my.var": "a b", "-x": ""}


MEMBERS: dict[str, dict[str, object]] = {"a": {"binds": "one"}, "b": {"lifecycle": "service", "binds": "two"}}
PROCESSES: dict[str, dict[str, object]] = {
    "many": {"binds": "peers", "replicas": 3},
    "store": {"lifecycle": "service", "replicas": 2, "binds": "data", "exposes": "web"},
    "alone": {"connects": ["one", "two", "peers", "data"]},
}


@pytest.mark.parametrize("compat", ["", "di-engine"])
def test_the_environment_is_the_contract(compat: str, tmp_path: Path) -> None:
    experiment = experiment_of(
        groups={"g": {"processes": {name: {**member, "command": ["x"]} for name, member in MEMBERS.items()}}},
        processes={name: {**process, "command": ["x"]} for name, process in PROCESSES.items()},
        **({"compat": compat} if compat else {}),
    )
    replicas = {
        "peers": tuple(f"r1-exp-many-{RUN}-{index}.r1-exp-many-pods" for index in range(3)),
        "data": tuple(f"r1-exp-store-{index}.r1-exp-store-pods" for index in range(2)),
        "web": tuple(f"r1-exp-store-{index}.r1-exp-store-pods" for index in range(2)),
    }
    addresses = {
        service.name: Address(
            host=f"r1-exp-{service.name}",
            hosts=replicas.get(service.name, (f"r1-exp-{service.name}",)),
            port=service.port,
        )
        for service in allocate(experiment)
    }
    counts = {name: pod.settings.replicas for name, pod in pods_of(experiment).items()}
    wanted = promised(experiment, addresses, [])
    carried = {ref: as_a_pod_carries_it(env, counts[ref.pod]) for ref, env in wanted.items()}
    assert found(native_objects(chart_of(experiment)), {}) == carried
    # Here all nodes are of type none, so each is told of them all.
    written = write_chart(chart_of(experiment), tmp_path)
    for version in HELM_VERSIONS:
        assert found(helm_objects(version, written), {}) == carried


@pytest.mark.parametrize("version", HELM_VERSIONS)
@SOME
@given(experiments())
def test_generated_containers_find_what_the_list_says(version: str, data: dict[str, object]) -> None:
    experiment = from_data(data)
    chart = chart_of(experiment)
    with tempfile.TemporaryDirectory() as folder:
        objects = helm_objects(version, write_chart(chart, Path(folder)))
    declared, steps = declared_in(chart.values)
    seen = found(objects, declared)
    # The names of objects are another contract; that HOST, ADDR and HOSTS go together is this one.
    told = {name: text for env in seen.values() for name, text in env.items() if POD_IP not in text}
    shared = {name: str(text) for data in config_maps(opened(objects.values())).values() for name, text in data.items()}
    addresses = {
        service.name: Address(
            host=shared[f"{prefix}_ADDR"].rpartition(":")[0],
            hosts=tuple(entry.rpartition(":")[0] for entry in told[f"{prefix}_HOSTS"].split(",")),
            port=service.port,
        )
        for service in allocate(experiment)
        for prefix in ["SYMPH_" + service.name.upper().replace("-", "_")]
    }
    wanted = promised(experiment, addresses, steps)
    # A container that an overlay adds to a pod is none of the experiment's.
    assert {ref: seen.get(ref) for ref in declared} == {
        ref: {name: text for name, text in wanted[ref].items() if name not in declared[ref]} for ref in declared
    }


def declared_in(values: dict[str, object]) -> tuple[dict[ProcessRef, set[str]], list[str]]:
    """The variables that users set, by container of the values, and the names of all steps."""
    declared, steps = {}, set()
    for group, settings_ in sub(values, "groups").items():
        for key in ("containers", "initContainers"):
            for name, container in sub(settings_, key).items():
                overlaid = {str(entry["name"]) for entry in maps(sub(container, "overlay"), "env")}
                declared[ProcessRef(group, name)] = {*sub(container, "env"), *overlaid}
                steps |= {name} if key == "initContainers" else set()
    return declared, sorted(steps)
