"""Every container finds exactly the environment that `network` promises on every backend."""

from __future__ import annotations

from symphony_charts.environment.variables import Address, identity_environment, service_environment
from symphony_charts.spec.pods import ProcessRef, pods_of, processes_of
from symphony_charts.spec.services import allocate
from tests.chart.harness import chart_of, experiment_of, native_objects

# What a pod learns only when it runs, by the field that tells it.
POD_IP = "<status.podIP>"
INDEX = "<index>"


def found(objects: dict[tuple[str, str], dict[str, object]], ref: ProcessRef) -> dict[str, str]:
    """The environment of a container: the ConfigMap of addresses with its own entries over it, references resolved."""
    (addresses,) = [item["data"] for key, item in objects.items() if key[0] == "ConfigMap" and "addresses" in key[1]]
    env: dict[str, str] = dict(addresses)  # type: ignore[call-overload]  # parsed objects
    for item in objects.values():
        template = item["spec"]["template"] if item["kind"] in ("Job", "StatefulSet") else None  # type: ignore[index]  # parsed objects
        if template is None or template["metadata"]["labels"]["symph.dev/group"] != ref.pod:
            continue
        run = template["metadata"]["labels"]["symph.dev/run"]
        members = [*template["spec"].get("initContainers", []), *template["spec"]["containers"]]
        (container,) = [member for member in members if member["name"] == ref.process]
        for entry in container["env"]:
            field = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
            known = {"status.podIP": POD_IP, "metadata.labels['symph.dev/run']": run, "": entry.get("value")}
            env[entry["name"]] = str(known.get(field, INDEX)).replace("$(SYMPH_RUN)", run)
    return env


def test_the_environment_is_the_contract() -> None:
    experiment = experiment_of(
        groups={"g": {"processes": {"a": {"binds": "one"}, "b": {"lifecycle": "service", "binds": "two"}}}},
        processes={
            "many": {"binds": "peers", "replicas": 3},
            "store": {"lifecycle": "service", "replicas": 2, "binds": "data", "exposes": "web"},
            "alone": {"connects": ["one", "two", "peers", "data"]},
        },
    )
    objects = native_objects(chart_of(experiment))
    run = next(key[1].rpartition("-")[2] for key in objects if key[0] == "Job")
    services = allocate(experiment)
    replicas = {
        "peers": [f"r1-exp-many-{run}-{index}.r1-exp-many-pods" for index in range(3)],
        "data": [f"r1-exp-store-{index}.r1-exp-store-pods" for index in range(2)],
        "web": [f"r1-exp-store-{index}.r1-exp-store-pods" for index in range(2)],
    }
    addresses = {
        service.name: Address(
            host=f"r1-exp-{service.name}",
            hosts=tuple(replicas.get(service.name, [f"r1-exp-{service.name}"])),
            port=service.port,
        )
        for service in services
    }
    pods = pods_of(experiment)
    promised = {}
    for ref, _ in processes_of(experiment):
        count = pods[ref.pod].settings.replicas
        identity = identity_environment(experiment.name, ref, 0, count)
        identity |= {"SYMPH_INDEX": INDEX if count > 1 else "0", "SYMPH_RUN": run}
        promised[ref] = identity | service_environment(services, addresses, ref, POD_IP)
    assert {ref: found(objects, ref) for ref in promised} == promised
