"""`symph export` prints an experiment in another tool's format and reports the fields that it loses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Symph
from tests.linting import lint_objects

pytestmark = pytest.mark.usefixtures("spec")


def objects(symph: Symph, *args: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(symph("export", "appwrapper", "exp.yaml", *args).stdout))


def test_an_appwrapper_holds_all_that_its_controller_may_create(symph: Symph) -> None:
    *before, wrapper = objects(symph)
    inside = [part["template"]["kind"] for part in wrapper["spec"]["components"]]
    assert inside == ["Service", "Service", "Job"]
    # Services and their conductor are beside it.
    beside = ["Job", "Job", "Role", "RoleBinding", "ServiceAccount"]
    assert sorted(item["kind"] for item in before) == ["ConfigMap", *beside]


_KEPT = ("--spec-set", "processes.server.until=uninstall")


def test_services_outside_of_a_wrapper_are_reported(symph: Symph) -> None:
    said = symph("export", "appwrapper", "exp.yaml", *_KEPT).stderr
    assert "ConfigMap/exp-environment-" in said
    assert "has not ended as long as this service runs\n  at:   StatefulSet/exp-server" in said


def test_strict_fails_for_what_does_not_come_over_as_it_is(symph: Symph) -> None:
    symph("export", "appwrapper", "exp.yaml", "--strict", *_KEPT, status=1)


def test_settings_that_no_chart_carries_are_lost(symph: Symph, spec: Path) -> None:
    spec.write_text("name: exp\nimage: a:1\nprocesses: {a: {command: [x]}, b: {command: [x], after: [a]}}\n")
    said = symph("export", "manifests", "exp.yaml").stderr
    assert "lost: the cluster starts all pods at once" in said
    assert "0 changed, 1 lost" in said
    strict = symph("export", "manifests", "exp.yaml", "--strict", status=1)
    assert (strict.stdout, "are lost, so nothing was written" in strict.stderr) == ("", True)


def test_everything_can_be_inside(symph: Symph) -> None:
    (wrapper,) = objects(symph, "--everything", *_KEPT)
    assert "ConfigMap" in {part["template"]["kind"] for part in wrapper["spec"]["components"]}


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_exported_objects_have_no_unknown_field(version: str, symph: Symph) -> None:
    made = objects(symph, "--api", version, "--release", "blue", "-n", "ml", "--set", "groups.client.retries=2")
    assert {item["apiVersion"] for item in made if item["kind"] == "AppWrapper"} == {
        f"workload.codeflare.dev/{version}"
    }
    assert not [one for one in lint_objects(made) if one.rule.startswith("schema")]


def test_mcad_waits_for_the_services_too(symph: Symph) -> None:
    *_, wrapper = objects(symph, "--api", "v1beta1", "--spec-set", "processes.client.min_replicas=2", *_KEPT)
    assert wrapper["spec"]["schedulingSpec"]["minAvailable"] == 3


def test_values_release_and_namespace_are_taken(symph: Symph) -> None:
    args = ("--release", "blue", "-n", "ml", "--set", "groups.client.replicas=5")
    *before, wrapper = objects(symph, *args)
    assert {item["metadata"]["namespace"] for item in (*before, wrapper)} == {"ml"}
    assert wrapper["metadata"]["name"].startswith("blue-exp-")
    assert wrapper["spec"]["components"][-1]["podSets"][0]["replicas"] == 5


def test_the_answer_goes_to_a_file_which_is_left_alone_where_it_is_the_same(symph: Symph, tmp_path: Path) -> None:
    args = ("export", "appwrapper", "exp.yaml", "--to", "out/aw.yaml")
    assert "wrote out/aw.yaml" in symph(*args).stderr
    assert "unchanged: out/aw.yaml" in symph(*args).stderr
    assert (tmp_path / "out/aw.yaml").read_text() == symph(*args[:-2]).stdout


def test_a_dry_run_writes_nothing(symph: Symph, tmp_path: Path) -> None:
    assert (
        "would write 7 objects to aw.yaml"
        in symph("export", "appwrapper", "exp.yaml", "--to", "aw.yaml", "--dry-run").stderr
    )
    assert not (tmp_path / "aw.yaml").exists()


def test_json_is_a_list_of_the_same_objects(symph: Symph) -> None:
    printed = json.loads(symph("export", "appwrapper", "exp.yaml", "-o", "json").stdout)
    assert printed["items"] == objects(symph)


def test_an_experiment_of_services_alone_is_refused(symph: Symph, tmp_path: Path) -> None:
    (tmp_path / "only.yaml").write_text(
        "name: only\nimage: a:1\nprocesses:\n  web: {command: [x], lifecycle: service}\n"
    )
    assert "needs a finite process" in symph("export", "appwrapper", "only.yaml", status=3).stderr


def test_manifests_are_the_objects_of_the_chart_in_one_stream(symph: Symph) -> None:
    made = list(yaml.safe_load_all(symph("export", "manifests", "exp.yaml", "-n", "rl").stdout))
    rendered = list(yaml.safe_load_all(symph("render", "exp.yaml").stdout))
    kinds = [item["kind"] for item in rendered if item["kind"] != "Pod"]
    assert sorted(item["kind"] for item in made) == sorted(kinds)
    assert {item["metadata"]["namespace"] for item in made} == {"rl"}
    assert not [finding for finding in lint_objects(made) if finding.severity == "error"]


def test_kustomize_is_a_folder_with_the_namespace_in_one_place(symph: Symph, tmp_path: Path) -> None:
    symph("export", "kustomize", "exp.yaml", "-n", "rl", "--to", "base")
    head = yaml.safe_load((tmp_path / "base/kustomization.yaml").read_text())
    assert head["namespace"] == "rl"
    assert sorted(path.name for path in (tmp_path / "base").iterdir()) == sorted(
        [*head["resources"], "kustomization.yaml"]
    )
    assert "namespace: rl" not in "".join((tmp_path / "base" / name).read_text() for name in head["resources"])
