"""DIJobs of every operator version, recognised by their fields, because three formats share one version name."""

from __future__ import annotations

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.formats.data import sub
from symphony_charts.formats.yaml_read import load
from symphony_charts.importers.input_file import from_data, read
from symphony_charts.importers.report import Imported
from symphony_charts.integrations.dijob.export import dijob_objects
from symphony_charts.integrations.dijob.importer import import_dijob
from symphony_charts.integrations.dijob.settings import settings_of
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.sources import ConfigFile, Mount, Probe
from tests.importers.samples import EXAMPLES, import_yaml, notes_of


def example(name: str) -> Experiment:
    return import_dijob(read((EXAMPLES / name).read_bytes(), name)).experiment


def tasks(body: str, spec: str = "") -> str:
    """Return a v1.1 job whose one task `t` has the container fields of `body`."""
    return f"""
apiVersion: diengine.opendilab.org/v2alpha1
kind: DIJob
metadata: {{name: job}}
spec:
  backoffLimit: 0
  {spec}
  tasks:
  - name: t
    type: none
    template:
      spec:
        containers:
        - name: di-container
          image: img
          {body}
"""


@pytest.mark.parametrize(
    ("name", "dialect", "processes"),
    [
        ("dijob-v0.yaml", "v0", ["coordinator", "collector", "learner", "aggregator"]),
        ("dijob-v1.0.yaml", "v1.0", ["worker"]),
        ("dijob-v1.1.0.yaml", "v1.1.0", ["serial"]),
        ("dijob-v1.1.yaml", "v1.1", ["learner", "collector", "evaluator"]),
    ],
)
def test_each_operator_version_is_recognised(name: str, dialect: str, processes: list[str]) -> None:
    experiment = example(name)
    assert settings_of(experiment.workload).operator == dialect
    assert list(experiment.processes) == processes
    assert experiment.workload.kind == "dijob"


def test_the_configuration_written_by_the_script_is_a_config_and_compiling_it_a_step_of_the_coordinator() -> None:
    experiment = example("dijob-v0.yaml")
    text = experiment.configs["pong_config.py"].text or ""
    assert (text.startswith("from easydict import EasyDict\n"), "EOF" in text) == (True, False)
    step = experiment.prepare["coordinator-config"]
    assert step.cmds == [
        'cat < "$SYMPH_CONFIG_DIR/pong_config.py" > pong_config.py',
        "ding -m dist --module config -P k8s -c pong_config.py -s 0",
    ]
    assert (step.groups, step.mounts) == (["coordinator"], [Mount(volume="work-dir", at="/ding")])
    cmds = ["ding -m dist --module coordinator -c /ding/pong_config.py.pkl -s 0 -cdp $COORDINATOR_PORT"]
    assert experiment.processes["coordinator"].cmds == cmds
    assert experiment.processes["coordinator"].shell == step.shell == ["/bin/bash", "-c"]


def test_compiling_stays_in_the_script_where_its_result_may_not_be_on_a_volume() -> None:
    text = (EXAMPLES / "dijob-v0.yaml").read_text().replace("-c /ding/pong_config.py.pkl", "-c pong_config.py.pkl")
    experiment = import_yaml(text).experiment
    assert not experiment.prepare
    assert len(experiment.processes["coordinator"].cmds or []) == 3


def test_of_v0_the_coordinator_alone_decides_and_the_configuration_says_the_replicas() -> None:
    experiment = example("dijob-v0.yaml")
    assert experiment.done_when == ["coordinator"]
    made = {name: (process.lifecycle, process.replicas) for name, process in experiment.processes.items()}
    served = {"collector": ("service", 2), "learner": ("service", 1), "aggregator": ("service", 1)}
    assert made == {"coordinator": ("finite", 1), **served}


def test_a_role_s_usual_port_under_another_name_is_one_port() -> None:
    text = (EXAMPLES / "dijob-v0.yaml").read_text().replace("name: di-port", "name: coordinator")
    assert import_yaml(text).experiment.processes["coordinator"].binds == {"coordinator": 22273}


def test_a_config_map_in_the_file_is_copied_to_where_the_tasks_look() -> None:
    experiment = example("dijob-v1.1.yaml")
    assert experiment.configs == {"config.py": ConfigFile(text="batch_size = 64\n")}
    step = experiment.prepare["files-config-py"]
    assert step.cmds == ['cp "$SYMPH_CONFIG_DIR/config.py" "/mnt/files-config-py/config.py"']
    assert step.groups == ["learner", "collector", "evaluator"]
    assert Mount(volume="files-config-py", at="/etc/config") in experiment.processes["learner"].mounts
    assert "config-py" not in experiment.volumes


def test_a_config_map_outside_of_the_file_stays_a_volume() -> None:
    text = (EXAMPLES / "dijob-v1.1.yaml").read_text().partition("\n---\n")[0]
    experiment = import_yaml(text).experiment
    assert "config-py" in experiment.volumes
    assert not experiment.configs


@pytest.mark.parametrize(("line", "retries"), [("backoffLimit: 0", 0), ("backoffLimit: null", 100), ("", 3)])
def test_retries_are_by_default_those_of_the_crd(line: str, retries: int) -> None:
    assert import_yaml(tasks("").replace("backoffLimit: 0", line)).experiment.workload.retries == retries


def test_several_containers_become_a_group() -> None:
    text = tasks("command: [a]\n        - {name: side, image: img, command: [b]}")
    assert list(import_yaml(text).experiment.groups["t"].processes) == ["di-container", "side"]


def test_another_workload_kind_gives_the_variables_that_the_operator_gave() -> None:
    imported = import_yaml((EXAMPLES / "dijob-v1.1.yaml").read_text(), kind="jobset")
    assert (imported.experiment.workload.kind, imported.experiment.compat) == ("jobset", "di-engine")


def test_of_older_operators_another_workload_kind_says_what_they_did() -> None:
    assert "DI_*_ARG" in notes_of(import_yaml((EXAMPLES / "dijob-v1.0.yaml").read_text(), kind="jobs"))


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (("backoffLimit: 0", "backoffLimit: 2"), "gets another DI_RANK"),
        (("backoffLimit: 0", "preemptible: true"), "no released operator creates pods"),
        (("backoffLimit: 0", "cleanPodPolicy: All"), "applies only to workload.kind dijob"),
        (("backoffLimit: 0", "priority: high"), "no operator uses `priority`"),
        (("image: img", "image: img\n          ports: [{name: http, containerPort: 80}]"), "one headless Service"),
        (("      spec:", "      metadata: {labels: {a: b}}\n      spec:"), "drops labels and annotations"),
        (("{name: job}", "{name: run.v1}"), 'is named "run-v1"'),
        (("backoffLimit: 0", "backoffLimit: 0\n  minReplicas: 2"), "is a field of operator v1.0"),
        (("backoffLimit: 0", 'preemptible: "no"'), "is text, read as false"),
        (("backoffLimit: 0", "backoffLimit: 0\n  group: g"), "the import assumes v1.1.0"),
        (("backoffLimit: 0", "backoffLimit: 0\n  group: g\n  volumes: []"), "is a field of operators before v1.1.1"),
    ],
)
def test_what_means_something_else_or_is_read_in_another_way_is_noted(change: tuple[str, str], note: str) -> None:
    assert note in notes_of(import_yaml(tasks("").replace(*change, 1)))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("v2alpha1", "v3"), "is not a version of the DIJob API"),
        (("kind: DIJob", "kind: Job"), "the file has no DIJob"),
        (("{name: job}", "{}"), "the DIJob has no name"),
        (("type: none", "type: boss"), "is not a type of task"),
        (("name: t\n", "note: t\n"), "needs a name"),
        (("        containers:", "        contain:"), "no containers"),
        (("  backoffLimit: 0", "  cleanPodPolicy: Some"), "is not a clean-up policy"),
        (("backoffLimit: 0", "cleanPodPolicy: ALWAYS"), "is not a clean-up policy"),
        (("backoffLimit: 0", 'backoffLimit: "3"'), "the number of restarts is text"),
        (("type: none", "type: none\n    replicas: 0"), "replicas"),
        (("image: img", "image: img\n          volumeMounts: [{name: v, mountPath: /v}]"), 'unknown volume "v"'),
    ],
)
def test_what_is_wrong_is_refused(change: tuple[str, str], what: str) -> None:
    with pytest.raises(SpecError, match=what):
        import_yaml(tasks("").replace(*change, 1))


def test_of_several_jobs_one_is_chosen_by_name() -> None:
    text = tasks("") + "---" + tasks("").replace("name: job", "name: other")
    assert import_yaml(text, job="other").experiment.name == "other"
    with pytest.raises(SpecError, match="the file has 2 DIJobs: job, other"):
        import_yaml(text)


def test_faults_of_two_tasks_are_reported_at_once_with_their_lines() -> None:
    text = tasks("imagePullPolicy: [1]").replace("type: none", "type: boss")
    source = read(text.encode(), "job.yaml")
    with pytest.raises(SpecError) as caught:
        import_dijob(source)
    assert [problem.path for problem in source.with_location(caught.value).problems] == [
        "job.yaml:10, spec.tasks[0].type",
        "job.yaml:16, spec.tasks[0].template.spec.containers[0].imagePullPolicy",
    ]


ROLES = """
apiVersion: diengine.opendilab.org/v1alpha1
kind: DIJob
metadata: {name: job}
spec:
  coordinator: {template: {spec: {containers: [{name: coordinator, image: i, command: [x]}]}}}
  collector:
    template:
      spec:
        restartPolicy: OnFailure
        containers:
        - {name: shell, image: i, command: [sleep]}
        - {name: di-container, image: i, command: [x], ports: [{name: di-port, containerPort: 23001}]}
"""


def test_of_several_containers_the_one_that_operator_v0_looks_at_has_the_port() -> None:
    experiment = import_yaml(ROLES).experiment
    # A container called after its role stays so called.
    assert settings_of(experiment.workload).containers == {"coordinator": "coordinator"}
    inner = experiment.groups["collector"].processes
    assert (inner["shell"].binds, inner["di-container"].binds) == ({}, {"collector": 23001})
    assert {process.env["COLLECTOR_PORT"] for process in inner.values()} == {"23001"}


def test_what_tools_wrote_into_the_metadata_is_left_out_and_said() -> None:
    labels = "{app.kubernetes.io/managed-by: Helm, helm.sh/chart: c-1, mine: x}"
    annotations = "{meta.helm.sh/release-name: r, mine: y}"
    text = tasks("").replace("{name: job}", f"{{name: job, labels: {labels}, annotations: {annotations}}}")
    imported = import_yaml(text)
    assert (imported.experiment.labels, imported.experiment.annotations) == ({"mine": "x"}, {"mine": "y"})
    assert [note.path for note in imported.report.lost] == [
        "metadata.labels.app.kubernetes.io/managed-by",
        "metadata.labels.helm.sh/chart",
        "metadata.annotations.meta.helm.sh/release-name",
    ]


def test_a_probe_of_a_named_port_means_its_number() -> None:
    body = """ports: [{name: http, containerPort: 8080}]
          readinessProbe: {httpGet: {port: http, path: /}}
          livenessProbe: {tcpSocket: {port: http}}"""
    process = import_yaml(tasks(body)).experiment.processes["t"]
    assert isinstance(process.ready, Probe)
    assert process.ready.http is not None
    assert process.ready.http.port == 8080
    assert process.container_overlay["livenessProbe"] == {"tcpSocket": {"port": 8080}}


def test_replicas_that_start_what_their_image_says_are_noted_where_ranks_need_a_command() -> None:
    text = tasks("").replace("type: none", "type: none\n    replicas: 2")
    imported = import_dijob(read(text.encode(), "job.yaml"), kind="jobset")
    assert "set the rank of each replica before its command" in notes_of(imported)


def of_task(imported: Imported, index: int, field: str = "name") -> list[str]:
    """Return the notes at a field of a task."""
    return [note.what for note in imported.notes if note.path == f"spec.tasks[{index}].{field}"]


def test_a_job_and_a_task_keep_their_names_as_long_as_the_operators_names_can_hold_it() -> None:
    name = "collector-of-random-episodes-x"
    imported = import_yaml(tasks("command: [x]").replace("name: t", f"name: {name}"))
    assert list(imported.experiment.processes) == [name]
    assert of_task(imported, 0) == []
    assert import_yaml(tasks("").replace("{name: job}", f"{{name: {'a' * 53}}}")).experiment.name == "a" * 53


def test_a_task_with_another_name_is_said_to_have_another_variable_too() -> None:
    text = tasks("command: [x]").replace("name: t", "name: collector-of-episodes-of-a-random-policy")
    imported = import_yaml(text)
    (name,) = imported.experiment.processes
    assert len(name) == 30
    cut, told = of_task(imported, 0)
    assert "has 40 characters, and at most 30 are allowed" in cut
    assert told.endswith("has its nodes, not DI_COLLECTOR_OF_EPISODES_OF_A_RANDOM_POLICY_NODES")


def test_two_tasks_without_a_type_are_two_of_type_none() -> None:
    text = tasks("command: [x]").replace("    type: none\n", "")
    second = text[text.index("  - name: t") :].replace("name: t\n", "name: u\n")
    assert of_task(import_yaml(text + second), 1, "type") == []


def test_names_are_shortened_until_the_operator_takes_them() -> None:
    long_task = f"name: {'task-' * 7}x\n    replicas: 120\n"
    text = tasks("command: [x]").replace("name: job", f"name: {'job-' * 14}x").replace("name: t\n", long_task)
    imported = import_yaml(text)
    assert [note.path for note in imported.notes if '"job-job-' in note.what] == ["metadata.name"]
    (job,) = (item for item in dijob_objects(imported.experiment).objects if item["kind"] == "DIJob")
    pod = f"{sub(job, 'metadata')['name']}-{next(iter(imported.experiment.processes))}-119"
    assert len(pod) <= 63


def test_a_claim_that_is_read_only_a_binary_file_and_a_list_come_over() -> None:
    mounts = "command: [x]\n          volumeMounts: [{name: c, mountPath: /c}, {name: m, mountPath: /m}]"
    claim = "{name: c, persistentVolumeClaim: {claimName: c, readOnly: true}}"
    job = tasks(mounts, f"volumes: [{claim}, {{name: m, configMap: {{name: m}}}}]")
    data = [
        load(job),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "binaryData": {"b": "AAE="}},
    ]
    imported = import_dijob(from_data({"apiVersion": "v1", "kind": "List", "items": data}, "list"))
    assert imported.report.lost == ()
    assert imported.experiment.processes["t"].mounts[0] == Mount(volume="c", at="/c", read_only=True)
    assert imported.experiment.configs == {"b": ConfigFile(base64="AAE=")}
