"""The gate would notice a damaged data file: templates and Python read the same table, and helm's copy differs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.chart.files.chart import Chart
from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_text import load
from symphony_charts.kinds.registry import KINDS
from tests.chart.harness import Objects, native_objects, objects_in, run_helm, write_chart
from tests.chart.rich import rich

pytestmark = pytest.mark.slow

_NAME = "agroupwhosenameisaslongasthat"
# Names so long that every bound of them shows, and a service of that group.
_LONG = (
    "fullnameOverride=areleasewhosenameislongerthananyboundofthenamesofobjects",
    f"groups.{_NAME}.replicas=2",
    f"groups.{_NAME}.containers.c.image=a",
    f"services.peers.group={_NAME}",
    "services.peers.process=c",
    "services.peers.port=9000",
)
# Of a DIJob the two together are refused: its tasks keep their names.
_LONG_TASK = _LONG[1:]
_PLAIN = ("workload.gang=none", "workload.queue=null")
_DIJOB = (*_PLAIN, "networks=null", "networkPolicy.enabled=false", "groups.mixed.replicas=0")
_V0 = (*_DIJOB, "workload.dijob.operator=v0", "groups.many.replicas=0")
_V10 = (*_DIJOB, "workload.dijob.operator=v1.0")
_GANG = ("workload.gang=volcano", "workload.gangScope=group")
# Values under which each part of a kind's row shows.
_ROWS: dict[str, tuple[tuple[str, ...], ...]] = {
    "jobs": ((*_PLAIN, *_LONG), _GANG, ("groups.many.backoffLimit=2",), ("groups.many.replicas=4",), ("hold=true",)),
    "jobset": ((*_PLAIN, *_LONG), (*_PLAIN, "workload.jobset.maxRestarts=1")),
    "appwrapper": ((*_PLAIN, *_LONG), ("workload.gang=none",), _GANG),
    "volcano": (
        (*_PLAIN, *_LONG),
        ("workload.gang=none",),
        ("workload.gang=native",),
        _GANG,
        ("workload.volcano.plugins.x={y}", *_PLAIN),
    ),
    "argo": (
        (*_PLAIN, *_LONG),
        (*_PLAIN, "workload.argo.parameters={PLAIN}"),
        (*_PLAIN, "workload.argo.parameters={PLAIN}", "groups.many.containers.many.env.PLAIN=x{{"),
        (*_PLAIN, "workload.argo.parameters={NONE}"),
        (*_PLAIN, "workload.argo.parameters={PLAIN}", "groups.mixed.containers.first.env.PLAIN=2"),
    ),
    "dijob": (
        (*_DIJOB, *_LONG_TASK),
        (*_DIJOB, *_LONG),
        (*_DIJOB, _LONG[0]),
        (*_DIJOB, "workload.order={many}"),
        (*_DIJOB, "groups.many.backoffLimit=1"),
        (*_DIJOB, "workload.gang=volcano"),
        (*_DIJOB, "workload.queue=q"),
        (*_DIJOB, "networks={a}"),
        (*_PLAIN, "networks=null"),
        (*_DIJOB, *_LONG_TASK, "workload.dijob.tasks.many=learner", f"workload.dijob.tasks.{_NAME}=learner"),
        (*_DIJOB, *_LONG_TASK, "workload.dijob.operator=v1.1.0"),
        (*_DIJOB, "workload.dijob.operator=v1.1.0", "networkPolicy.enabled=true"),
        _V10,
        (*_V10, *_LONG_TASK),
        _V0,
        (*_V0, *_LONG_TASK),
        (*_V0, "groups.coordinator.containers.c.image=a", "groups.coordinator.replicas=2"),
        (
            *_V0,
            "groups.coordinator.containers.c.image=a",
            "services.coordinator.group=coordinator",
            "services.coordinator.port=1",
            "services.coordinator.process=c",
        ),
        (
            *_V0,
            "groups.coordinator.containers.c.image=a",
            "groups.collector.containers.c.image=a",
            "groups.collector.replicas=2",
            "services.collector.group=collector",
            "services.collector.port=1",
            "services.collector.process=c",
        ),
        *(
            (
                *_V0,
                "groups.coordinator.containers.c.image=a",
                f"groups.{role}.containers.x.image=a",
                "services.peers.group=coordinator",
                "services.peers.process=c",
                "services.peers.port=1",
            )
            for role in ("collector", "learner", "aggregator")
        ),
    ),
}
_CHECKS = (
    ("workload.queue=null",),
    ("workload.gang=none",),
    ("workload.gang=none", "workload.queue=null", "workload.queuePriority=high"),
    ("workload.gang=native", "workload.queue=null"),
    ("workload.gang=coscheduling", "workload.queue=null"),
    ("workload.gang=volcano",),
    (),
    ("workload.queuePriority=high",),
    ("workload.kind=volcano", "workload.gang=none"),
    ("workload.gang=native", "workload.queue=null", "workload.gangVersion=v1alpha2"),
    ("workload.gang=coscheduling", "workload.queue=null", "defaults.schedulerName=co"),
)


def leaves_of(data: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in `data` that hold no others."""
    if isinstance(data, dict) or (isinstance(data, list) and data):
        items = data.items() if isinstance(data, dict) else enumerate(data)
        for key, value in items:
            yield from leaves_of(value, (*path, key))
    else:
        yield path


def damaged(data: Any, path: tuple[Any, ...]) -> bytes:
    """`data` with another value at `path`."""
    copy = json.loads(json.dumps(data))
    holder = copy
    for key in path[:-1]:
        holder = holder[key]
    before = holder[path[-1]]
    if isinstance(before, bool):
        holder[path[-1]] = not before
    else:
        holder[path[-1]] = (
            before - 1 if isinstance(before, int) else ["backoffLimit"] if before == [] else f"x{before[1:]}"
        )
    return json.dumps(copy).encode() + b"\n"


@cache
def wanted_of(sets: tuple[str, ...]) -> Objects | tuple[str, ...]:
    """The objects of the rich chart by `assemble`, or why it refuses the values."""
    try:
        return native_objects(rich(), sets)
    except SpecError as error:
        return tuple(f"{one.path}: {one.what}" for one in error.problems)


def agree(folder: Path, sets: tuple[str, ...]) -> bool:
    """Whether helm gives these objects, or refuses the values for the same reasons."""
    ended = run_helm("4.3", "template", "r1", folder, *(word for text in sets for word in ("--set", text)), check=False)
    wanted = wanted_of(sets)
    if isinstance(wanted, tuple):
        return bool(ended.returncode) and all(reason in ended.stderr for reason in wanted)
    try:
        return not ended.returncode and objects_in(ended.stdout) == wanted
    except AssertionError:
        return False  # two objects of one name


def with_file(file: str, content: bytes, folder: Path) -> Path:
    """The rich chart on disk with another content of one file."""
    chart = rich()
    files = {**chart.files, file: content}
    return write_chart(Chart(name=chart.name, version=chart.version, values=chart.values, files=files), folder)


def unnoticed(file: str, where: tuple[Any, ...], rows: tuple[tuple[str, ...], ...], folder: Path) -> list[Any]:
    """The values below `where` in a data file whose change shows under none of `rows`."""
    whole: Any = load(rich().files[file].decode())
    data = whole
    for key in where:
        data = data[key]
    assert all(agree(with_file(file, rich().files[file], folder / "whole"), row) for row in rows)
    copies = {leaf: with_file(file, damaged(whole, leaf), folder / str(leaf)) for leaf in leaves_of(data, where)}
    # Neighbours show under the same values: what told the last damage from the original is tried first.
    likely = list(rows)
    unseen = []
    for leaf, copy in copies.items():
        row = next((row for row in likely if not agree(copy, row)), None)
        if row is None:
            unseen.append(leaf)
        else:
            likely.remove(row)
            likely.insert(0, row)
    return unseen


@pytest.mark.parametrize("kind", _ROWS)
def test_every_value_in_the_row_of_a_kind_is_noticed(kind: str, tmp_path: Path) -> None:
    rows = tuple((f"workload.kind={kind}", *row) for row in _ROWS[kind])
    # Between a DIJob and its pods are no objects: what their names would be stands in no chart. The notes of a release
    # alone name the resources. Names of a DIJob's tasks are never cut: what is too long is refused before that.
    inert = [("kinds", kind, "resources"), *(("kinds", kind, key) for key in ("workload", "member") if kind == "dijob")]
    unseen = unnoticed("files/kinds.yaml", ("kinds", kind), rows, tmp_path)
    assert [leaf for leaf in unseen if leaf != inert[0]] == inert[1:]


def test_resources_are_what_kubectl_calls_the_objects_of_a_kind() -> None:
    table: Any = load(rich().files["files/kinds.yaml"].decode())
    for name, kind in KINDS.items():
        said = (table["kinds"][name] or {}).get("resources") or table["usual"]["resources"]
        words = {resource.partition(".")[0] for resource in said.split(",")}
        assert words >= {f"{word.lower()}s" for _, word in kind.gvks}, name


def test_every_usual_value_of_kinds_is_noticed(tmp_path: Path) -> None:
    rows = tuple((f"workload.kind={kind}", *row) for kind in ("jobs", "appwrapper", "jobset") for row in _ROWS[kind])
    assert unnoticed("files/kinds.yaml", ("usual",), rows, tmp_path) == [("usual", "resources")]


def test_every_check_is_noticed(tmp_path: Path) -> None:
    assert not unnoticed("files/checks.yaml", (), _CHECKS, tmp_path)


@pytest.mark.parametrize(("script", "sets"), [("dial", ()), ("rank", ("compat=di-engine",)), ("hold", ("hold=true",))])
def test_every_line_of_a_script_is_noticed(script: str, sets: tuple[str, ...], tmp_path: Path) -> None:
    file = f"files/scripts/{script}.sh"
    lines = rich().files[file].splitlines(keepends=True)
    for index in range(len(lines)):
        left = b"".join([*lines[:index], *lines[index + 1 :]])
        assert not agree(with_file(file, left, tmp_path / str(index)), sets)


@pytest.mark.parametrize("file", ["files/kinds.yaml", "files/checks.yaml"])
def test_a_chart_without_a_data_file_is_refused(file: str, tmp_path: Path) -> None:
    folder = with_file(file, b"", tmp_path)
    (folder / file).unlink()
    assert run_helm("4.3", "template", "r1", folder, check=False).returncode
