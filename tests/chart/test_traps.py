"""The 25 rules learnt from prototypes of values-driven charts; each test fails when its rule is broken.

Rules 5, 9, 10 and 25 concern commands and clusters; this module tests the chart's part, other tests the rest.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from symphony_charts.chart.files import Chart
from symphony_charts.errors import SpecError
from symphony_charts.kinds.base import is_conductor, is_service
from tests.chart.harness import Objects, chart_of, experiment_of, native_objects, run_helm, write_chart
from tests.linting import lint
from tests.tools import HELM_VERSIONS

PAIR = {
    "server": {"command": ["serve"], "binds": "data", "lifecycle": "service"},
    "client": {"command": ["work"], "connects": "data"},
}


def pair(**changes: dict[str, object]) -> Chart:
    """Return a service and a finite client, with changes by process."""
    return chart_of(experiment_of(processes={name: {**PAIR[name], **changes.get(name, {})} for name in PAIR}))


def one(objects: Objects, kind: str, part: str = "") -> dict[str, object]:
    """Return the object of that kind whose name contains `part`."""
    (found,) = [item for key, item in objects.items() if key[0] == kind and part in key[1]]
    return found


def dig(value: object, *path: object) -> object:
    for step in path:
        value = value[step]  # type: ignore[index]  # parsed objects
    return value


def run_label(objects: Objects) -> object:
    return dig(one(objects, "Job", "client"), "metadata", "labels", "symph.dev/run")


def env_of(objects: Objects, kind: str, part: str = "") -> dict[str, object]:
    """Return the environment entries of the first container."""
    entries = dig(one(objects, kind, part), "spec", "template", "spec", "containers", 0, "env")
    return {str(dig(entry, "name")): entry for entry in entries}  # type: ignore[attr-defined]  # a list


# --- runs and hashes -------------------------------------------------------------------------------------------------


def test_rule_1_hosts_of_finite_replicas_contain_the_run() -> None:
    objects = native_objects(pair(server={"lifecycle": "finite", "replicas": 2}))
    env = env_of(objects, "Job", "client")
    run = dig(env["SYMPH_RUN"], "value")
    assert env["SYMPH_DATA_HOSTS"] == {
        "name": "SYMPH_DATA_HOSTS",
        "value": f"r1-exp-server-{run}-0.r1-exp-server-pods:7000,r1-exp-server-{run}-1.r1-exp-server-pods:7000",
    }


def test_rule_1_a_list_of_hosts_too_long_for_a_program_is_found() -> None:
    findings = lint(pair(server={"replicas": 6000}))
    assert "env-size" in {finding.rule for finding in findings}


def test_rule_2_services_are_selected_by_run_but_not_named_by_it() -> None:
    before, after = native_objects(pair()), native_objects(pair(), ["runKey=2"])
    assert run_label(before) != run_label(after)
    name = ("Service", "r1-exp-data")
    assert dig(before[name], "spec", "selector", "symph.dev/run") == run_label(before)
    assert dig(after[name], "spec", "selector", "symph.dev/run") == run_label(after)


def test_rule_3_a_service_that_stays_is_of_no_run() -> None:
    objects = native_objects(pair(server={"until": "uninstall"}))
    labels = dig(one(objects, "StatefulSet"), "spec", "template", "metadata", "labels")
    selector = dig(objects["Service", "r1-exp-data"], "spec", "selector")
    assert not {"symph.dev/run"} & {*labels, *selector}  # type: ignore[misc]  # maps


SLEEP: dict[str, object] = {"cmds": ["sleep 9"]}
SERVICE: dict[str, object] = {**SLEEP, "lifecycle": "service"}
STAYS: dict[str, object] = {**SERVICE, "until": "uninstall"}


def services(sets: list[str], **processes: dict[str, object]) -> dict[object, object]:
    """Return the complete StatefulSets, and the Jobs of services, of such processes by their group."""
    objects = native_objects(chart_of(experiment_of(processes=processes)), sets)
    found = [item for item in objects.values() if item["kind"] == "StatefulSet" or is_service(item)]
    return {dig(item, "metadata", "labels", "symph.dev/group"): item for item in found}


def replaced(change: str, **processes: dict[str, object]) -> set[object]:
    """Return the services whose pods a change of a value replaces."""
    before, after = services([], **processes), services([change], **processes)
    return {name for name in before if before[name] != after[name]}


@pytest.mark.parametrize("change", ["runKey=2", "groups.actor.replicas=3", "groups.actor.containers.actor.image.tag=2"])
def test_rule_3_a_service_to_which_nothing_of_a_run_connects_goes_on(change: str) -> None:
    actor = {**SLEEP, "connects": ["replay"], "binds": "frames"}
    processes = {
        "actor": actor,
        "replay": {**STAYS, "binds": "replay"},
        "board": {**SERVICE, "exposes": "web", "connects": ["replay"]},
        "store": SERVICE,
        "shown": {**SERVICE, "exposes": "shown", "until": "run"},
    }
    assert replaced(change, **processes) == {"store", "shown"}


def test_rule_3_services_that_only_meet_each_other_begin_anew_one_by_one() -> None:
    processes = {"web": {**SERVICE, "connects": ["db"]}, "db": {**SERVICE, "binds": "db"}, "cache": SERVICE}
    for name in processes:
        assert replaced(f"groups.{name}.containers.{name}.env.X=1", **processes) == {name}
    assert replaced("runKey=2", **processes) == set()


def test_rule_3_what_is_told_the_pods_of_a_run_begins_anew_with_it() -> None:
    processes = {"actor": {**SLEEP, "binds": "frames", "replicas": 2}, "board": {**STAYS, "connects": ["frames"]}}
    assert replaced("runKey=2", **processes) == {"board"}
    objects = native_objects(chart_of(experiment_of(processes=processes)))
    run = dig(one(objects, "StatefulSet"), "spec", "template", "metadata", "labels", "symph.dev/run")
    assert str(run) in str(env_of(objects, "StatefulSet")["SYMPH_FRAMES_HOSTS"])


def test_rule_4_a_new_chart_version_alone_keeps_the_run() -> None:
    chart = pair()
    assert run_label(native_objects(chart)) == run_label(native_objects(chart.with_version("9.9.9")))


def test_rules_5_and_9_the_readme_and_notes_say_what_helm_does(tmp_path: Path) -> None:
    chart = pair(server={"until": "uninstall"})
    assert b"--cleanup-on-fail" in chart.files["README.md"]
    assert b"rollback" in chart.files["README.md"]
    where = write_chart(chart, tmp_path)
    shown = run_helm("4.3", "install", "r1", where, "--dry-run=client").stdout
    assert "These groups run until you uninstall the release: server" in shown


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_rule_6_values_of_another_version_are_refused(version: str, tmp_path: Path) -> None:
    old = tmp_path / "old.yaml"
    old.write_bytes(pair().files["values.yaml"])
    where = write_chart(pair(client={"command": ["other"]}), tmp_path)
    ended = run_helm(version, "template", "r1", where, "-f", old, check=False)
    assert ended.returncode != 0
    assert "--reset-then-reuse-values" in ended.stderr


def test_rule_7_what_runs_on_is_a_warning() -> None:
    warned = [
        finding.path for finding in lint(pair(server={"until": "uninstall", "gpus": 1})) if finding.rule == "runs-on"
    ]
    assert warned == ["groups.server.containers.server"]


# --- values and templates --------------------------------------------------------------------------------------------


def test_rule_11_containers_keep_their_order_and_references_come_last() -> None:
    processes = {"zeta": {"command": ["z"]}, "alpha": {"command": ["a"], "env": {"A": "$(Z)", "Z": "1"}}}
    chart = chart_of(experiment_of(groups={"g": {"processes": processes}}))
    template = dig(one(native_objects(chart), "Job"), "spec", "template")
    assert [dig(item, "name") for item in dig(template, "spec", "containers")] == ["zeta", "alpha"]  # type: ignore[attr-defined]  # a list
    assert dig(template, "metadata", "annotations", "kubectl.kubernetes.io/default-container") == "zeta"
    names = [dig(entry, "name") for entry in dig(template, "spec", "containers", 1, "env")]  # type: ignore[attr-defined]  # a list
    assert names.index("Z") < names.index("A") == len(names) - 1


def test_rule_17_default_values_hold_no_null() -> None:
    def nulls(value: object) -> bool:
        if isinstance(value, dict):
            return any(nulls(item) for item in value.values())
        return any(nulls(item) for item in value) if isinstance(value, list) else value is None

    assert not nulls(pair().values)


def test_rule_17_a_null_in_an_overlay_is_refused() -> None:
    with pytest.raises(SpecError, match="null"):
        pair(client={"container_overlay": {"lifecycle": {"preStop": None}}})


def test_rule_20_workload_names_stay_below_52_and_never_meet() -> None:
    experiment = experiment_of(processes={"a" * 39 + "1": {"command": ["x"]}, "a" * 39 + "2": {"command": ["x"]}})
    objects = native_objects(chart_of(experiment), release="release" + "-long" * 8)
    names = [key[1] for key, item in objects.items() if key[0] == "Job" and not is_conductor(item)]
    assert len(names) == 2
    assert all(len(key[1]) <= 63 for key in objects)
    assert max(map(len, names)) <= 52


def test_rule_21_a_group_and_a_service_of_one_name_do_not_meet() -> None:
    experiment = experiment_of(processes={"data": {"command": ["x"], "binds": "data", "lifecycle": "service"}})
    names = [key[1] for key in native_objects(chart_of(experiment)) if key[0] == "Service"]
    assert sorted(names) == ["r1-exp-data", "r1-exp-data-pods"]


def test_rule_21_two_objects_of_one_name_are_found() -> None:
    processes = {
        "data": {"command": ["x"], "binds": "data-pods", "lifecycle": "service"},
        "client": {"command": ["y"], "connects": "data-pods"},
    }
    with pytest.raises(SpecError, match="two objects of the chart have the name Service/exp-data-pods"):
        lint(chart_of(experiment_of(processes=processes)))


def test_rule_22_a_bound_port_is_probed() -> None:
    container = dig(one(native_objects(pair()), "Job", "server"), "spec", "template", "spec", "initContainers", 0)
    assert dig(container, "readinessProbe") == {"tcpSocket": {"port": "data"}}


@pytest.mark.parametrize(("last", "warned"), [("python a.py", True), ("exec python a.py", False)])
def test_rule_24_a_last_command_that_is_not_execed_is_found(last: str, warned: bool) -> None:
    experiment = experiment_of(processes={"p": {"cmds": ["cd /", last]}})
    rules = {finding.rule for finding in lint(chart_of(experiment))}
    assert ("cmds-exec" in rules) is warned


@pytest.mark.parametrize(
    ("said", "warned"),
    [({}, True), ({"shell": "bash"}, False), ({"cmds": None, "command": ["env"]}, False), ({"env": {"A": "x"}}, False)],
)
def test_a_variable_that_sh_does_not_hand_on_to_lines_is_found(said: dict[str, object], warned: bool) -> None:
    process = {"cmds": ["exec env"], "env": {"discovery.type": "single"}, **said}
    experiment = experiment_of(processes={"p": {key: value for key, value in process.items() if value is not None}})
    found = [finding.what for finding in lint(chart_of(experiment)) if finding.rule == "cmds-env"]
    assert ["discovery.type" in what for what in found] == [True] * warned


@pytest.mark.parametrize(
    ("line", "count"), [("kill $$", 1), ("kill $$$$", 0), ("echo $$(date)", 0), ("echo $x $(y)", 0), ("echo $$x", 1)]
)
def test_two_dollars_for_a_shell_are_warned_of(line: str, count: int) -> None:
    experiment = experiment_of(processes={"p": {"cmds": [line]}})
    assert sum(finding.rule == "cmds-dollars" for finding in lint(chart_of(experiment))) == count
