"""Every field of an AppDef and every run option has a place in the experiment, or a documented reason to have none."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from symphony_charts.integrations.torchx.appdef import AppDef, Resource, Role
from symphony_charts.integrations.torchx.options import OPTIONS, RunOptions
from symphony_charts.spec.data import to_data
from tests.importers.samples import app, import_appdef, notes_of, role

DOCS = Path(__file__).resolve().parents[2] / "docs" / "torchx.md"

# TorchX field -> its place in the experiment, or in its process if it begins with a dot
CARRIED: list[tuple[str, dict[str, object], str, object]] = [
    ("AppDef.name", {"app": {"name": "N"}}, "name", "n"),
    ("AppDef.metadata", {"app": {"metadata": {"k": "v"}}}, "annotations", {"torchx.pytorch.org/metadata-k": "v"}),
    ("Role.name", {"role": {"name": "trainer"}}, ".labels.torchx.pytorch.org/role-name", "trainer"),
    ("Role.image", {"role": {"image": "i:2"}}, ".image", "i:2"),
    ("Role.entrypoint", {"role": {"entrypoint": "bash"}}, ".command", ["bash"]),
    ("Role.args", {"role": {"args": ["a b", "${replica_id}"]}}, ".args", ["a b", "$(SYMPH_INDEX)"]),
    ("Role.env", {"role": {"env": {"A": "${replica_id}"}}}, ".env.A", "$(SYMPH_INDEX)"),
    ("Role.num_replicas", {"role": {"num_replicas": 4}}, ".replicas", 4),
    ("Role.min_replicas", {"role": {"num_replicas": 4, "min_replicas": 2}}, ".min_replicas", 2),
    ("Role.max_retries", {"role": {"max_retries": 3}}, ".retries", 3),
    ("Role.port_map", {"role": {"port_map": {"http": 80}}}, ".binds.http", 80),
    ("Role.metadata", {"role": {"metadata": {"k": "v"}}}, ".annotations.torchx.pytorch.org/metadata-k", "v"),
    ("Role.mounts", {"role": {"mounts": ["type=bind,src=/a,dst=/b"]}}, ".mounts.1", {"volume": "mount-0", "at": "/b"}),
    ("Resource.cpu", {"role": {"resource": {"cpu": 2, "gpu": 0, "memMB": 0}}}, ".requests.cpu", "2000m"),
    ("Resource.gpu", {"role": {"resource": {"cpu": 0, "gpu": 2, "memMB": 0}}}, ".gpus", 2),
    ("Resource.memory_mb", {"role": {"resource": {"cpu": 0, "gpu": 0, "memMB": 9}}}, ".limits.memory", "9M"),
    (
        "Resource.capabilities",
        {"role": {"resource": {"capabilities": {"node.kubernetes.io/instance-type": "p4"}}}},
        ".capabilities",
        {"node.kubernetes.io/instance-type": "p4"},
    ),
    ("Resource.devices", {"role": {"resource": {"devices": {"x.com/d": 1}}}}, ".limits.x.com/d", "1"),
    ("RunOptions.namespace", {"cfg": {"namespace": "ml"}}, "namespace", "ml"),
    ("RunOptions.image_repo", {"cfg": {"image_repo": "r/x"}, "role": {"image": "sha256:1"}}, ".image", "r/x:1"),
    ("RunOptions.service_account", {"cfg": {"service_account": "sa"}}, "service_account", "sa"),
    ("RunOptions.priority", {"cfg": {"priority": 0, "appwrapper_version": "v1beta1"}}, "workload.priority", 0),
    (
        "RunOptions.appwrapper_version",
        {"cfg": {"appwrapper_version": "v1beta1"}},
        "workload.appwrapper.version",
        "v1beta1",
    ),
    ("RunOptions.priority_class_name", {"cfg": {"priority_class_name": "pc"}}, "workload.priority_class", "pc"),
    ("RunOptions.image_secret", {"cfg": {"image_secret": "s"}}, "image_pull_secrets", ["s"]),
    (
        "RunOptions.coscheduler_name",
        {"cfg": {"coscheduler_name": "c"}},
        "workload",
        {"gang": "coscheduling", "scheduler_name": "c"},
    ),
    ("RunOptions.network", {"cfg": {"network": "n"}}, "networks", ["n"]),
    ("RunOptions.queue", {"cfg": {"queue": "q"}}, "workload.queue", "q"),
    (
        "RunOptions.reserved_millicpu",
        {"cfg": {"reserved_millicpu": 100}, "role": {"resource": {"cpu": 2, "gpu": 0, "memMB": 0}}},
        ".requests.cpu",
        "1900m",
    ),
    (
        "RunOptions.reserved_memmb",
        {"cfg": {"reserved_memmb": 24}, "role": {"resource": {"cpu": 0, "gpu": 0, "memMB": 100}}},
        ".requests.memory",
        "76M",
    ),
    ("RunOptions.efa_device_count", {"cfg": {"efa_device_count": 3}}, ".limits.vpc.amazonaws.com/efa", "3"),
    ("RunOptions.kind", {"cfg": {"kind": "jobset"}}, "workload.kind", "jobset"),
    ("RunOptions.gang", {"cfg": {"gang": "kueue"}}, "workload.gang", "kueue"),
    ("RunOptions.reserve", {"cfg": {"reserve": "true"}}, ".reserve", True),
]

# TorchX field without a place in an experiment -> text of the report
NOTED: list[tuple[str, dict[str, object], str]] = [
    ("Role.retry_policy", {"max_retries": 1, "retry_policy": "APPLICATION"}, "restarts more than the failed replica"),
    ("Role.base_image", {"base_image": "b"}, "`base_image` has no effect on Kubernetes"),
    ("Role.workspace", {"workspace": {"projects": {"a": "b"}}}, "the workspace is not in the image"),
    ("Resource.tags", {"resource": {"tags": {"a": "b"}}}, "`tags` of a resource are not carried over"),
]
STRUCTURE = {"AppDef.roles", "Role.resource", "Role.path"}


def lookup(data: object, path: str) -> object:
    """Return the value at a dotted path whose keys may contain dots."""
    while path:
        if isinstance(data, list):
            index, _, path = path.partition(".")
            data = data[int(index)]
            continue
        assert isinstance(data, dict)
        key = max((key for key in data if path == key or path.startswith(f"{key}.")), key=len)
        data, path = data[key], path[len(key) + 1 :]
    return data


@pytest.mark.parametrize(("name", "said", "place", "expected"), CARRIED, ids=[row[0] for row in CARRIED])
def test_each_field_stands_in_the_experiment(
    name: str, said: dict[str, dict[str, object]], place: str, expected: object
) -> None:
    data = app(role(**said.get("role", {})), **{"name": "train", **said.get("app", {})})  # type: ignore[arg-type] # the table's fields are the function's
    experiment = to_data(import_appdef(data, said.get("cfg")).experiment)
    assert lookup(experiment, f"processes.trainer{place}" if place[0] == "." else place) == expected


@pytest.mark.parametrize(("name", "said", "text"), NOTED, ids=[row[0] for row in NOTED])
def test_each_field_without_a_place_is_reported(name: str, said: dict[str, object], text: str) -> None:
    assert text in notes_of(import_appdef(app(role(**said))))


def test_the_tables_cover_every_field_there_is() -> None:
    known = {
        f"{record.__name__}.{field.name}" for record in (AppDef, Role, Resource, RunOptions) for field in fields(record)
    }
    assert known == {row[0] for row in CARRIED} | {row[0] for row in NOTED} | STRUCTURE


def test_every_option_is_listed_by_runopts() -> None:
    assert [option.name for option in OPTIONS] == [field.name for field in fields(RunOptions)]


@pytest.mark.parametrize("name", [row[0] for row in CARRIED] + [row[0] for row in NOTED])
def test_each_field_is_explained_in_the_documentation(name: str) -> None:
    assert f"`{name.partition('.')[2].replace('memory_mb', 'memMB')}`" in DOCS.read_text()
