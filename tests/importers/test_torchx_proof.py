"""Only pods that the installed TorchX makes, and that ours equal, say that everything of an application came over."""

from __future__ import annotations

import importlib.util
from typing import Any

import msgspec
import pytest

pytest.importorskip("torchx")

from symphony_charts.importers.common.input_file import from_data
from symphony_charts.importers.common.report import Imported, Log
from symphony_charts.importers.torchx.importer import experiment_of, import_torchx
from symphony_charts.importers.torchx.options import RunOptions
from symphony_charts.importers.torchx.proof import compared
from tests.importers.samples import app, appdef, role

TRAINER: dict[str, Any] = {
    "args": ["-c", "echo ${replica_id} of ${app_id} $${${rank0_env}:=localhost}", "a $(NAME) $$(NAME)"],
    "env": {"NAME": "of ${replica_id}", "EMPTY": ""},
    "num_replicas": 3,
    "max_retries": 2,
    "retry_policy": "REPLICA",
    "port_map": {"c10d": 29500},
    "resource": {"cpu": 2, "gpu": 1, "memMB": 2048, "devices": {"x.com/nic": 2}},
    "mounts": ["type=bind,src=/a,dst=/b,readonly", "type=volume,src=c,dst=/d", "type=device,src=/dev/fuse"],
}
OPTIONS = "image_secret=pull,service_account=sa,priority_class_name=high,coscheduler_name=gang"


def imported_of(*roles: dict[str, object], **options: str) -> Imported:
    return import_torchx(from_data(app(*roles), "app.json"), **options)


def test_equal_pods_are_proof_that_everything_came_over() -> None:
    report = imported_of(role(**TRAINER), role(name="reader"), cfg=OPTIONS).report
    assert (report.like, report.notes) == ("TorchX", ())
    assert "everything came over; the pods are TorchX's own; ours also have" in report.summary()


@pytest.mark.parametrize("kind", ["jobset", "appwrapper", "volcano", "argo"])
def test_on_every_kind_nothing_is_lost_without_a_word(kind: str) -> None:
    said = {**TRAINER, "max_retries": 0}
    report = imported_of(role(**said), cfg="service_account=sa", kind=kind).report
    assert (report.like, report.notes) == ("TorchX", ())


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"args": []}, "roles[0].command"),
        ({"env": {}}, "roles[0].env"),
        ({"limits": {}}, "roles[0].resources.limits"),
        ({"mounts": []}, "roles[0].volumeMounts"),
        ({"image": "other:1"}, "roles[0].image"),
        ({"binds": {"c10d": 4}}, "roles[0].ports"),
        ({"capabilities": {}}, "roles[0].nodeSelector"),
    ],
)
def test_what_an_import_forgets_is_found(change: dict[str, Any], place: str) -> None:
    resource = {"cpu": 2, "capabilities": {"node.kubernetes.io/instance-type": "p4d"}}
    said = appdef(role(**{**TRAINER, "resource": resource}))
    whole = experiment_of(said, RunOptions(), Log())
    process = msgspec.structs.replace(whole.experiment.processes["trainer"], **change)
    worse = Imported(experiment=msgspec.structs.replace(whole.experiment, processes={"trainer": process}))
    assert place in {note.path for note in compared(worse, said, RunOptions(), ["trainer"]).report.notes}


def test_a_field_that_only_newer_releases_fill_in_differs_from_the_installed_one() -> None:
    report = imported_of(role(env={"NODE": "[FIELD_PATH]spec.nodeName"})).report
    assert [(note.path, note.verdict) for note in report.notes] == [("roles[0].env", "changed")]


def test_without_torchx_nothing_is_called_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    report = imported_of(role()).report
    assert report.unproven == "TorchX's own pods: the package torchx is not installed"
    assert "everything" not in report.summary()


def test_a_pod_overlay_is_not_compared() -> None:
    report = imported_of(role(metadata={"kubernetes": {"spec": {"nodeSelector": {"zone": "a"}}}})).report
    assert "everything" not in report.summary()
