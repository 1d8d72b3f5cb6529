"""Every container has the variables of the contract, with addresses of objects of the chart."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings

from symphony_charts.chart.build.chart import Release
from symphony_charts.kinds.registry import opened
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.data import from_data
from symphony_charts.spec.environment import expand
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import Service, allocate, pods_of
from symphony_charts.spec.sources import CONFIG_DIR, SECRETS_DIR
from tests.chart.harness import built_of, experiment_of
from tests.chart.objects import Item, pod_templates
from tests.chart.strategies import experiments

_INDEX = {
    "<metadata.annotations['batch.kubernetes.io/job-completion-index']>",
    "<metadata.labels['apps.kubernetes.io/pod-index']>",
    "<metadata.labels['volcano.sh/task-index']>",
    "<metadata.annotations['diengine/task-rank']>",
}
_FAILURES = "<metadata.annotations['batch.kubernetes.io/job-index-failure-count']>"
_POD_IP = "<status.podIP>"


def objects_of(experiment: Experiment) -> list[Item]:
    """Return the objects of its chart, and those that controllers make of them."""
    built = built_of(experiment)
    return opened(built.objects(built.values, Release(name="r1")))


def environment(objects: list[Item], container: Item) -> dict[str, str]:
    """Return the environment of a container, with ``<field>`` for fields of the pod."""
    maps = {item["metadata"]["name"]: item["data"] for item in objects if item["kind"] == "ConfigMap"}
    env: dict[str, str] = {}
    for source in container.get("envFrom", []):
        env |= maps[source["configMapRef"]["name"]]
    for entry in container.get("env", []):
        field = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        env[entry["name"]] = f"<{field}>" if field else expand(entry.get("value", ""), env)
    return env


def containers_of(experiment: Experiment, objects: list[Item]) -> dict[tuple[str, str], dict[str, str]]:
    """Return the environment of each process, by group and process."""
    found = {}
    for group, template in pod_templates(objects).items():
        spec = template["spec"]
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            if container["name"] in pods_of(experiment)[group].processes:
                found[group, container["name"]] = environment(objects, container)
    return found


def declared(experiment: Experiment, group: str, process: str) -> set[str]:
    one = pods_of(experiment)[group].processes[process]
    overlay: Any = pods_of(experiment)[group].settings.pod_overlay
    overlays: list[Any] = [one.container_overlay, *overlay.get("spec", {}).get("containers", [])]
    return {*one.env, *(entry["name"] for overlay in overlays for entry in overlay.get("env", []))}


def prefix_of(service: Service) -> str:
    """Return the first part of the names of the variables of a service."""
    return "SYMPH_" + service.name.upper().replace("-", "_")


def faults(experiment: Experiment) -> list[str]:
    """Return the variables that containers of the chart lack, or that differ from the contract."""
    objects, found = objects_of(experiment), []
    services = {item["metadata"]["name"]: item["spec"] for item in objects if item["kind"] == "Service"}
    for (group, process), env in containers_of(experiment, objects).items():
        pod = pods_of(experiment)[group]
        labels = pod_templates(objects)[group]["metadata"]["labels"]
        wanted = {
            "SYMPHONY_ROLE": {process},
            "SYMPH_EXPERIMENT": {experiment.name},
            "SYMPH_GROUP": {group},
            "SYMPH_INDEX": _INDEX,
            "SYMPH_REPLICAS": {str(pod.settings.replicas)},
            "SYMPH_CONFIG_DIR": {CONFIG_DIR},
            "SYMPH_SECRETS_DIR": {SECRETS_DIR},
        }
        if "symph.dev/run" in labels:
            wanted["SYMPH_RUN"] = {labels["symph.dev/run"]}
        for service in allocate(experiment):
            prefix, is_own = prefix_of(service), service.listener.pod == group
            host = env.get(f"{prefix}_HOST", "")
            wanted[f"{prefix}_PORT"] = {str(service.port)}
            wanted[f"{prefix}_ADDR"] = {f"{host}:{service.port}"}
            if is_own:
                wanted[f"{prefix}_HOST"] = {_POD_IP}
            elif f"{prefix}_HOST" not in declared(experiment, group, process):
                ports = [port["port"] for port in services.get(host, {}).get("ports", [])]
                found += [] if service.port in ports else [f"{group}/{process}: no Service {host}:{service.port}"]
            if is_own and service.listener.process == process and service.is_bound:
                wanted[f"{prefix}_BIND_HOST"] = {_POD_IP}
            is_told = service.name in pod.processes[process].connects or service.listener == (group, process)
            if f"{prefix}_HOSTS" in env and not is_told:
                found.append(f"{group}/{process}: {prefix}_HOSTS of others")
            if service.name in pod.processes[process].connects:
                found += _faults_of_hosts(experiment, service, env.get(f"{prefix}_HOSTS", ""), services)
        ours = wanted.keys() - declared(experiment, group, process)
        found += [f"{group}/{process}: {key}={env.get(key)}" for key in sorted(ours) if env.get(key) not in wanted[key]]
    return found


def _faults_of_hosts(experiment: Experiment, service: Service, text: str, services: dict[str, Item]) -> list[str]:
    """Return a fault unless a list of replicas has an address for each, in a domain of a headless Service."""
    entries = [entry.rpartition(":") for entry in text.split(",")]
    domains = {host.partition(".")[2] for host, _, _ in entries}
    is_whole = len({host for host, _, _ in entries}) == pods_of(experiment)[service.listener.pod].settings.replicas
    is_served = all(services.get(domain, {}).get("clusterIP") == "None" for domain in domains)
    has_port = {port for _, _, port in entries} == {str(service.port)}
    return [] if is_whole and is_served and has_port else [f"{service.name}: HOSTS={text}"]


@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(experiments())
def test_generated_containers_find_what_the_contract_says(data: dict[str, object]) -> None:
    assert faults(finish(from_data(data), for_cluster=True)) == []


def test_the_environment_is_the_contract() -> None:
    members = {"a": {"command": ["x"], "binds": "one"}, "b": {"command": ["x"], "lifecycle": "service", "binds": "two"}}
    processes = {
        "many": {"command": ["x"], "binds": "peers", "replicas": 3, "retries": 2},
        "store": {"command": ["x"], "lifecycle": "service", "replicas": 2, "binds": "data", "exposes": "web"},
        "alone": {"command": ["x"], "connects": ["one", "two", "peers", "data"]},
    }
    pair = {"c": {"command": ["x"], "connects": "data"}, "d": {"command": ["x"]}}
    experiment = experiment_of(groups={"g": {"processes": members}, "h": {"processes": pair}}, processes=processes)
    assert faults(experiment) == []
    env = containers_of(experiment, objects_of(experiment))
    assert env["many", "many"]["SYMPH_ATTEMPT"] == _FAILURES
    assert "SYMPH_ATTEMPT" not in env["store", "store"]
    # Processes of a pod reach each other in the pod.
    assert env["g", "b"]["SYMPH_ONE_ADDR"].startswith(_POD_IP)
