"""TorchX applications lose only reported fields, and TorchX's own faults are fixed."""

from __future__ import annotations

import json

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_read import load
from symphony_charts.importers.input_file import read
from symphony_charts.integrations.torchx.importer import import_torchx
from symphony_charts.spec.data import from_data, to_yaml
from symphony_charts.spec.sources import ClaimVolume, EnvSource
from tests.importers.samples import EXAMPLES, app, import_appdef, import_role, notes_of, role

RANK0 = ["-c", "torchrun --rdzv_endpoint $${${rank0_env}:=localhost}:29500 x.py"]


def test_the_example_gives_an_experiment_that_reads_back_as_it_was() -> None:
    imported = import_torchx(read((EXAMPLES / "appdef.json").read_bytes(), "appdef.json"))
    assert list(imported.experiment.processes) == ["trainer", "reader"]
    assert from_data(load(to_yaml(imported.experiment))) == imported.experiment


def test_options_on_the_command_line_win_over_those_of_the_dry_run() -> None:
    text = json.dumps({"cfg": {"namespace": "ml"}, "app": app()})
    experiment = import_torchx(read(text.encode(), "run.json"), "namespace=other,service_account=x").experiment
    assert (experiment.namespace, experiment.security.service_account_token) == ("other", True)
    assert not import_appdef(app()).experiment.security.service_account_token


def test_a_lone_replica_is_told_that_it_is_rank_0_without_a_shell_or_a_service() -> None:
    process = import_role(entrypoint="bash", args=RANK0, env={"TORCHX_RANK0_HOST": "elsewhere"})
    assert process.env["TORCHX_RANK0_HOST"] == "localhost"
    assert (process.preamble, process.binds) == ([], {})


def test_a_first_role_without_ports_has_torchx_own_when_another_replica_asks_for_its_host() -> None:
    imported = import_appdef(app(role(entrypoint="bash", args=RANK0, num_replicas=2)))
    assert imported.experiment.processes["trainer"].binds == {"rank0": 29500}
    assert [note.path for note in imported.report.changed] == ["roles[0].port_map"]


def test_more_replicas_than_the_list_of_their_hosts_has_room_for_are_refused() -> None:
    with pytest.raises(SpecError, match="too many for an environment variable") as refusal:
        import_appdef(app(role(port_map={"c10d": 29500}, num_replicas=3000)))
    assert refusal.value.problems[0].path == "roles[0].num_replicas"
    assert import_role(num_replicas=3000).replicas == 3000
    # No port is promised to be open.
    assert import_role(port_map={"c10d": 29500}, num_replicas=2).ready == "none"


def test_port_names_that_two_roles_use_carry_the_name_of_their_role() -> None:
    roles = role(name="a", port_map={"http": 80}), role(name="b", port_map={"http": 80, "grpc": 90})
    processes = import_appdef(app(*roles)).experiment.processes
    assert processes["a"].binds == {"a-http": 80}
    assert processes["b"].binds == {"b-http": 80, "grpc": 90}


def test_roles_of_one_name_after_cleaning_are_kept_apart() -> None:
    imported = import_appdef(app(role(name="My Role"), role(name="my_role")))
    assert list(imported.experiment.processes) == ["my-role", "my-role-2"]
    assert "appears twice" in notes_of(imported)


def test_torchx_reserve_for_the_node_is_taken_off_only_when_asked_and_never_more_than_half() -> None:
    resource = {"cpu": 0.05, "gpu": 0, "memMB": 100}
    cfg: dict[str, object] = {"reserved_millicpu": 100, "reserved_memmb": 1024}
    process = import_appdef(app(role(resource=resource)), cfg).experiment.processes["trainer"]
    assert process.requests == {"cpu": "25m", "memory": "50M"}
    assert process.limits == {"cpu": "50m", "memory": "100M"}
    unsaid = import_role(resource={"cpu": -1, "gpu": -1, "memMB": -1})
    assert (unsaid.requests, unsaid.limits, unsaid.gpus) == ({}, {}, 0)


def test_a_mount_on_dev_shm_takes_the_place_of_torchx_own() -> None:
    process = import_role(mounts=["type=volume,src=big,dst=/dev/shm"])
    assert [mount.at for mount in process.mounts] == ["/dev/shm"]


def test_roles_share_one_volume_for_one_source() -> None:
    mounts = ["type=volume,src=claim,dst=/c"]
    experiment = import_appdef(app(role(name="a", mounts=mounts), role(name="b", mounts=mounts))).experiment
    assert [volume for volume in experiment.volumes.values() if isinstance(volume, ClaimVolume)] == [
        ClaimVolume(claim="claim")
    ]


def test_values_that_name_a_field_of_the_pod_are_taken_from_it() -> None:
    assert import_role(env={"NODE": "[FIELD_PATH]spec.nodeName"}).env["NODE"] == EnvSource(field="spec.nodeName")


def test_pod_overlays_become_overlays_and_say_what_differs() -> None:
    overlay: dict[str, object] = {
        "spec": {"nodeSelector": {"a": "b"}, "__put__:schedulingGates": [], "__del__:hostNetwork": None}
    }
    imported = import_appdef(app(role(metadata={"kubernetes": overlay})))
    trainer = imported.experiment.processes["trainer"]
    assert (trainer.node_selector, trainer.pod_overlay) == ({"a": "b"}, {"spec": {"schedulingGates": []}})
    assert "an overlay cannot remove a field" in notes_of(imported)


def test_a_patched_image_without_repository_is_refused() -> None:
    with pytest.raises(SpecError, match="exists only on this machine"):
        import_appdef(app(role(image="sha256:abc")))


def test_restarting_everything_is_noted_with_the_kind_that_does_it() -> None:
    (note,) = import_appdef(app(role(max_retries=2))).notes
    assert note.path == "roles[0].retry_policy"
    assert "jobset" in note.next


def test_a_kind_that_restarts_everything_is_noted_where_one_replica_is_meant() -> None:
    wrapped: dict[str, object] = {"kind": "appwrapper"}
    assert import_appdef(app(role(max_retries=2, retry_policy="APPLICATION")), wrapped).notes == ()
    (note,) = import_appdef(app(role(max_retries=2, retry_policy="REPLICA")), wrapped).notes
    assert "whole application" in note.what


def test_a_job_set_starts_the_whole_application_again() -> None:
    both = app(role(name="a", max_retries=2), role(name="b", max_retries=3))
    imported = import_appdef(both, {"kind": "jobset"})
    assert imported.experiment.workload.jobset.max_restarts == 3
    assert {process.retries for process in imported.experiment.processes.values()} == {None}
    assert imported.notes == ()
    one_alone = app(role(name="a", max_retries=2), role(name="b", max_retries=3, retry_policy="REPLICA"))
    imported = import_appdef(one_alone, {"kind": "jobset"})
    assert imported.experiment.workload.jobset.max_restarts == 0
    assert [process.retries for process in imported.experiment.processes.values()] == [2, 3]


@pytest.mark.parametrize("cfg", [{}, {"kind": "appwrapper"}, {"appwrapper_version": "v1beta2"}])
def test_a_priority_that_no_queue_reads_is_lost(cfg: dict[str, object]) -> None:
    imported = import_appdef(app(role()), {"priority": 3, **cfg})
    assert [note.path for note in imported.report.lost] == ["cfg.priority"]
    assert imported.experiment.workload.priority is None


def test_the_version_of_app_wrappers_that_mcad_reads_carries_the_priority() -> None:
    imported = import_appdef(app(role()), {"priority": -3, "appwrapper_version": "v1beta1"})
    workload = imported.experiment.workload
    assert (workload.kind, workload.appwrapper.version, workload.priority) == ("appwrapper", "v1beta1", -3)
    assert imported.notes == ()


@pytest.mark.parametrize(
    ("cfg", "fault"),
    [
        ({"appwrapper_version": "v1"}, "is not a version of AppWrappers"),
        ({"appwrapper_version": "v1beta1", "kind": "jobs"}, "is not an AppWrapper"),
        ({"coscheduler_name": "gang", "kind": "volcano"}, "has its own scheduler"),
    ],
)
def test_run_options_that_cannot_go_together_are_refused(cfg: dict[str, object], fault: str) -> None:
    with pytest.raises(SpecError, match=fault):
        import_appdef(app(role()), cfg)


def test_the_app_id_is_that_of_the_release_and_its_run() -> None:
    process = import_role(args=["--id=${app_id}"])
    assert process.args == ["--id=$(TORCHX_RELEASE)-$(TORCHX_RUN)"]
    assert process.env["TORCHX_RELEASE"] == EnvSource(field="metadata.labels['app.kubernetes.io/instance']")
    assert process.env["TORCHX_RUN"] == EnvSource(field="metadata.labels['symph.dev/run']")
    assert "TORCHX_RUN" not in import_role(args=["$${app_id}"]).env


def test_a_macro_in_metadata_is_said_to_stay() -> None:
    imported = import_appdef(app(role(metadata={"path": "s3://x/${app_id}"})))
    assert [note.path for note in imported.report.lost] == ["roles[0].metadata.path"]


def test_capabilities_that_are_labels_of_nodes_are_carried_and_others_noted() -> None:
    capabilities = {"node.kubernetes.io/instance-type": "p4d", "topology.kubernetes.io/zone": "a", "aws.efa": True}
    imported = import_appdef(app(role(resource={"cpu": 1, "gpu": 0, "memMB": 1, "capabilities": capabilities})))
    assert set(imported.experiment.processes["trainer"].capabilities) == {
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
    }
    assert "aws.efa" in notes_of(imported)


def test_an_unknown_option_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(SpecError, match="unknown option") as caught:
        import_appdef(app(), {"namespce": "x"})
    assert caught.value.next == 'did you mean "namespace"?'


def test_a_value_with_a_comma_stays_whole() -> None:
    source = read(json.dumps(app()).encode(), "a.json")
    assert import_torchx(source, "network=a,b,namespace=ml").experiment.networks == ["a,b"]


def test_all_faults_of_an_application_are_reported_at_once_with_file_and_line() -> None:
    broken = app(role(num_replicas="many", retry_policy="NEVER"), role(name="", port_map={"http": "x"}))
    source = read(json.dumps(broken, indent=1).encode(), "a.json")
    with pytest.raises(SpecError) as caught:
        import_torchx(source)
    located = source.with_location(caught.value)
    assert [problem.path.partition(", ")[2] for problem in located.problems] == [
        "roles[0].num_replicas",
        "roles[0].retry_policy",
        "roles[1].name",
        "roles[1].port_map.http",
    ]
    assert all(problem.path.startswith("a.json:") for problem in located.problems)


def test_a_fault_that_only_the_experiment_shows_is_reported_at_the_role() -> None:
    with pytest.raises(SpecError) as caught:
        import_appdef(app(role(name="a", port_map={"x": 99999})))
    assert caught.value.problems[0].path.startswith("roles[0]")


def test_a_least_number_of_replicas_that_nothing_waits_for_is_lost() -> None:
    made = app(role(num_replicas=4, min_replicas=2))
    assert [note.path for note in import_appdef(made).report.lost] == ["roles[0].min_replicas"]
    assert import_appdef(made, {"gang": "kueue"}).report.lost == ()
    assert import_appdef(made, {"kind": "volcano"}).report.lost == ()
