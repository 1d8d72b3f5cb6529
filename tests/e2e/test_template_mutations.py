"""The gate would notice: each statement of a template that sets a field is taken out once, and the objects differ."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from symphony_charts.chart.files.chart import Chart
from tests.chart.harness import Objects, helm_objects, native_objects, write_chart
from tests.chart.rich import ARGO, COMMON, DIJOB, LIMITS, OLD, RANKS, ROLES, rich

pytestmark = pytest.mark.slow

_SET = re.compile(r"^\{\{- \$_ := set \$?\.?(?!group \"workload\")\S+ .*-\}\}\n", re.MULTILINE)
_MUTATED = (
    "_names.tpl",
    "_containers.tpl",
    "_pods.tpl",
    "_model.tpl",
    "_workloads.tpl",
    "_kinds.tpl",
    "_gang.tpl",
    "_appwrapper.tpl",
    "_tasks.tpl",
    "_argo.tpl",
)

_PORT = (
    "workload.kind=dijob",
    "workload.dijob.operator=v0",
    "workload.gang=none",
    "workload.queue=null",
    "networks=null",
    "groups.mixed.replicas=0",
    "groups.many.replicas=0",
    "services.serve.group=serve",
    "services.serve.process=serve",
    "services.serve.port=9001",
)
_RESTARTED = ("groups.serve.keep=false",)
_HOOKS = ("groups.many.containers.many.lifecycleHooks.preStop.sleep.seconds=1",)
# Values under which a mutated file is rendered, too: one row for each branch that the experiment itself does not take.
_FURTHER: dict[str, tuple[tuple[str, ...], ...]] = {
    "_model.tpl": (
        ("workload.kind=jobset",),
        ("workload.kind=jobset", "workload.jobset.maxRestarts=2"),
        ("workload.gang=coscheduling", "workload.queue=null", "defaults.schedulerName=co", "workload.gangScope=group"),
        ("workload.kind=volcano", "workload.gang=none"),
        COMMON,
        DIJOB,
        RANKS,
        _RESTARTED,
        (*DIJOB, *_RESTARTED),
        ("groups.serve.containers.serve.connects={peers}",),
    ),
    "_names.tpl": (COMMON,),
    "_containers.tpl": (
        DIJOB,
        RANKS,
        ("groups.keep.containers.keep.securityContext.privileged=true",),
        LIMITS,
        _HOOKS,
        _PORT,
    ),
    "_workloads.tpl": (("networkPolicy.egress=true",), DIJOB, RANKS, _RESTARTED),
    "_tasks.tpl": (DIJOB,),
    "_argo.tpl": (ARGO,),
    "_kinds.tpl": (("workload.kind=jobset",), ("workload.queuePriority=high",), OLD),
    "_gang.tpl": (
        ("workload.gang=coscheduling", "workload.queue=null", "defaults.schedulerName=co", "workload.gangScope=group"),
    ),
    "_appwrapper.tpl": (("workload.kind=appwrapper", "workload.appwrapper.version=v1beta1"),),
}
# Values that helm refuses: one row for each statement that does nothing else.
_REFUSED: dict[str, tuple[tuple[str, ...], ...]] = {
    "_model.tpl": (
        ("groups.keep.names={r1-exp-api}",),
        ("groups.keep.names={r1-exp-many-pods}",),
        ("groups.keep.names={kept}", "groups.many.names={kept}"),
    ),
}
# And those under which the lines of an object are taken out, each of which shows under some of them.
_OBJECTS: dict[str, tuple[tuple[str, ...], ...]] = {
    **dict.fromkeys(("jobs", "statefulsets", "configmaps", "networkpolicies"), ((),)),
    "services": (
        (),
        (
            "services.web.nodePort=30080",
            "services.web.externalTrafficPolicy=Local",
            "services.web.loadBalancerClass=example.com/inner",
        ),
        ("groups.keep.names={kept}", "groups.many.names={found}", "services.peers=null"),
    ),
    "jobset": (("workload.kind=jobset", "workload.jobset.maxRestarts=2"),),
    "appwrapper": (
        ("workload.kind=appwrapper",),
        (
            "workload.kind=appwrapper",
            "workload.appwrapper.version=v1beta1",
            "workload.priority=3",
            "groups.many.minReplicas=2",
        ),
    ),
    "volcano": (
        (
            "workload.kind=volcano",
            "workload.gang=none",
            "defaults.priorityClassName=high",
            "groups.mixed.restartPolicy=OnFailure",
            "groups.mixed.backoffLimit=2",
        ),
    ),
    "argo": (ARGO, (*ARGO, "workload.argo.schedules={@daily}", "workload.argo.timezone=UTC")),
    "dijob": (
        DIJOB,
        OLD,
        (*DIJOB, "workload.dijob.operator=v1.0", "workload.dijob.topology=mesh", "workload.dijob.parallelWorkers=2"),
        ROLES,
    ),
}


def mutations(chart: Chart) -> list[tuple[str, int]]:
    """File and position of every statement to take out."""
    return [
        (name, match.start())
        for name in _MUTATED
        for match in _SET.finditer(chart.files[f"charts/symph/templates/{name}"].decode())
    ]


def without(chart: Chart, name: str, position: int) -> Chart:
    """The chart with one statement less."""
    path = f"charts/symph/templates/{name}"
    text = chart.files[path].decode()
    end = text.index("\n", position) + 1
    files = {**chart.files, path: (text[:position] + text[end:]).encode()}
    return Chart(name=chart.name, version=chart.version, values=chart.values, files=files)


def is_refused(folder: Path, sets: tuple[str, ...]) -> bool:
    """Whether the chart's own words stop helm at these values."""
    try:
        helm_objects("4.3", folder, *(word for text in sets for word in ("--set", text)))
    except AssertionError as error:
        # Two objects of one name are an error of the harness.
        return "execution error" in str(error)
    return False


def renders(folder: Path, sets: tuple[str, ...], wanted: Objects) -> bool:
    """Whether helm prints the objects that are wanted."""
    return helm_objects("4.3", folder, *(word for text in sets for word in ("--set", text))) == wanted


def test_every_statement_that_sets_a_field_is_noticed(tmp_path: Path) -> None:
    chart = rich()
    rows = {(), *(row for further in _FURTHER.values() for row in further)}
    wanted = {row: native_objects(chart, row) for row in rows}
    whole = write_chart(chart, tmp_path / "whole")
    assert renders(whole, (), wanted[()])
    assert all(is_refused(whole, row) for rows in _REFUSED.values() for row in rows)
    unnoticed = []
    for number, (name, position) in enumerate(mutations(chart)):
        folder = write_chart(without(chart, name, position), tmp_path / str(number))
        try:
            same = all(renders(folder, row, wanted[row]) for row in ((), *_FURTHER.get(name, ())))
        except AssertionError:
            continue  # helm itself refused the mutated chart
        if same and all(is_refused(folder, row) for row in _REFUSED.get(name, ())):
            line = chart.files[f"charts/symph/templates/{name}"].decode()[position:].partition("\n")[0]
            unnoticed.append(f"{name}: {line}")
    assert not unnoticed


@pytest.mark.parametrize("kind", _OBJECTS)
def test_every_line_of_an_object_is_noticed(kind: str, tmp_path: Path) -> None:
    chart, file = rich(), f"{kind}.yaml"
    wanted = {row: native_objects(chart, row) for row in _OBJECTS[kind]}
    text = chart.files[f"templates/{file}"].decode()
    lines = [
        index
        for index, line in enumerate(text.split("\n"))
        if re.match(r"\s+(?:- )?[\w-]+: \S", line) and "{{- if" not in line
    ]
    unnoticed = []
    for index in lines:
        kept = [line for number, line in enumerate(text.split("\n")) if number != index]
        files = {**chart.files, f"templates/{file}": "\n".join(kept).encode()}
        folder = write_chart(
            Chart(name=chart.name, version=chart.version, values=chart.values, files=files), tmp_path / str(index)
        )
        try:
            same = all(renders(folder, row, objects) for row, objects in wanted.items())
        except (AssertionError, KeyError):
            continue
        if same:
            unnoticed.append(text.split("\n")[index])
    assert not unnoticed
