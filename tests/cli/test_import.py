"""`symph import` prints an experiment that can be read back, and a report of the losses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from symphony_charts.cli.main import main
from symphony_charts.formats.yaml_read import load
from symphony_charts.spec import files
from symphony_charts.spec.data import from_data

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "import"
FILES = [
    ("torchx", "appdef.json"),
    ("dijob", "dijob-v0.yaml"),
    ("dijob", "dijob-v1.0.yaml"),
    ("dijob", "dijob-v1.1.0.yaml"),
    ("dijob", "dijob-v1.1.yaml"),
    ("compose", "compose.yaml"),
    ("symphony", "symphony-kube.yaml"),
    ("symphony", "symphony-tmux.yaml"),
]


@pytest.mark.parametrize(("kind", "name"), FILES)
def test_each_example_prints_an_experiment_that_reads_back(
    kind: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", kind, str(EXAMPLES / name)]) == 0
    out, err = capsys.readouterr()
    assert from_data(load(out)).processes or from_data(load(out)).groups
    assert f"from {EXAMPLES / name}" in err
    # The roles of the AppDef and the workers of the middle DIJob request both amounts themselves.
    asks = name in ("appdef.json", "dijob-v1.0.yaml")
    said = [
        word in err
        for word in ("have no capabilities", "do not get the token", "request 100m of cpu and 128Mi of memory")
    ]
    assert said == [True, True, not asks]


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_an_experiment_is_written_to_a_file_that_the_other_verbs_read(suffix: str, tmp_path: Path) -> None:
    target = tmp_path / f"made{suffix}"
    assert main(["import", "torchx", str(EXAMPLES / "appdef.json"), "--to", str(target)]) == 0
    assert files.read(target).experiment.name == "cifar"


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "made.yaml"
    assert main(["import", "torchx", str(EXAMPLES / "appdef.json"), "--to", str(target), "--dry-run"]) == 0
    assert not target.exists()
    assert f"would write {target}" in capsys.readouterr().err


def test_a_report_as_json_leaves_no_file_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "made.yaml"
    assert main(["import", "torchx", str(EXAMPLES / "appdef.json"), "--to", str(target), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["experiment"]["name"] == files.read(target).experiment.name


def test_json_holds_the_experiment_and_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "dijob", str(EXAMPLES / "dijob-v0.yaml"), "-o", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["kind"] == "Import"
    assert answer["experiment"]["name"] == "pong-dqn"
    report = answer["report"]
    assert list(report) == ["carried", "changed", "lost"]
    assert any("configs" in note["what"] for note in [*report["changed"], *report["lost"]])
    said = [*report["carried"], *(note["at"] for note in report["lost"])]
    assert all(place.startswith(f"{EXAMPLES / 'dijob-v0.yaml'}:") for place in said)


def test_strict_fails_for_a_loss_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = str(EXAMPLES / "appdef.json"), tmp_path / "made.yaml"
    assert main(["import", "torchx", source, "--strict", "--to", str(target)]) == 1
    out, err = capsys.readouterr()
    assert "lost: APPLICATION restarts more" in err
    assert (out, target.exists()) == ("", False)


def test_a_change_is_no_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "compose.yaml").write_text("services: {Web_X: {image: 'a:1', command: [run]}}")
    assert main(["import", "compose", str(tmp_path / "compose.yaml"), "--strict", "--name", "a_very" * 9]) == 0
    assert "is not a valid name" in capsys.readouterr().err
    assert main(["import", "dijob", str(EXAMPLES / "dijob-v1.1.0.yaml"), "--strict"]) == 0


def test_a_wrong_file_is_refused_with_name_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "app.json"
    file.write_text('{\n "name": "x",\n "roles": 7\n}')
    assert main(["import", "torchx", str(file)]) == 3
    assert f"{file}:3, roles" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_a_fault_of_the_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "dijob", "/nowhere/job.yaml"]) == 3
    assert "/nowhere/job.yaml" in capsys.readouterr().err


def test_run_options_are_applied(capsys: pytest.CaptureFixture[str]) -> None:
    cfg = "namespace=ml,coscheduler_name=gang"
    assert main(["import", "torchx", str(EXAMPLES / "appdef.json"), "--cfg", cfg]) == 0
    experiment = from_data(load(capsys.readouterr().out))
    assert (experiment.namespace, experiment.workload.scheduler_name) == ("ml", "gang")


def test_torchx_own_objects_are_printed_under_the_given_id(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["import", "torchx", str(EXAMPLES / "appdef.json"), "--compat", "torchx", "--app-id", "cifar-x1"]
    assert main(arguments[:-2]) == 2
    assert "--app-id" in capsys.readouterr().err
    assert main(arguments) == 0
    wrapper = load(capsys.readouterr().out)
    assert isinstance(wrapper, dict)
    assert (wrapper["kind"], wrapper["metadata"]["name"]) == ("AppWrapper", "cifar-x1")
    assert len(wrapper["spec"]["resources"]["GenericItems"]) == 7


def test_a_component_without_torchx_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main(["import", "torchx", "my.components:trainer"]) == 5
    assert re.search(r"next: install .* with the extra `torchx`: pip install .*\[torchx\]", capsys.readouterr().err)


def test_the_folder_of_a_compose_file_is_where_its_names_count_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "My Shop"
    folder.mkdir()
    (folder / ".env").write_text("TAG=7\n")
    (folder / "a.env").write_text("A=1\n")
    (folder / "compose.yaml").write_text("services: {a: {image: 'i:$TAG', env_file: a.env, volumes: ['./d:/d']}}")
    assert main(["import", "compose", str(folder / "compose.yaml")]) == 0
    experiment = from_data(load(capsys.readouterr().out))
    assert experiment.name == "my-shop"
    assert (experiment.processes["a"].image, experiment.processes["a"].env) == ("i:7", {"A": "1"})
    assert str(folder / "d") in str(experiment.volumes)


def test_runopts_lists_every_option_of_torchx(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "runopts", "kubernetes_mcad", "-o", "name"]) == 0
    names = "namespace image_repo service_account priority priority_class_name image_secret coscheduler_name network"
    assert capsys.readouterr().out.split() == names.split()


def test_runopts_says_type_default_and_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "runopts", "-o", "json"]) == 0
    items = {item["name"]: item for item in json.loads(capsys.readouterr().out)["items"]}
    assert (items["namespace"]["type"], items["namespace"]["default"]) == ("str", "default")
    assert items["coscheduler_name"]["becomes"] == "workload.scheduler_name, workload.gang: coscheduling"


@pytest.mark.parametrize(("format", "name"), [("torchx", "appdef.json"), ("dijob", "dijob-v1.1.yaml")])
def test_the_kind_of_the_result_is_chosen(format: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", format, str(EXAMPLES / name), "--kind", "jobset"]) == 0
    assert from_data(load(capsys.readouterr().out)).workload.kind == "jobset"


def test_faults_are_reported_at_the_option_and_ports_at_the_map(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "app.json"
    said = {"name": "x", "image": "i", "entrypoint": "sh", "port_map": {"http": 99999}}
    source.write_text(json.dumps({"name": "x", "roles": [said]}, indent=1))
    assert main(["import", "torchx", str(source), "--cfg", "priority=high"]) == 3
    assert "at:   --cfg priority\n" in capsys.readouterr().err
    assert main(["import", "torchx", str(source)]) == 3
    assert f"at:   {source}:8, roles[0].port_map\n" in capsys.readouterr().err


def test_torchxs_volcano_job_is_refused_with_the_alternative(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--app-id", "x1", "--compat", "torchx", "--kind", "volcano"]
    assert main(["import", "torchx", str(EXAMPLES / "appdef.json"), *words]) == 2
    assert "torchx run -s kubernetes --dryrun" in capsys.readouterr().err


def test_mounted_and_built_files_are_searched_for_names_of_services(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "web/conf").mkdir(parents=True)
    (tmp_path / "web/app.properties").write_text("url=jdbc:postgresql://db:5432/x\n")
    (tmp_path / "nginx.conf").write_text("proxy_pass http://web:8000;\n")
    (tmp_path / "compose.yaml").write_text(
        "services:\n  web: {build: web, expose: [8000]}\n  db: {image: postgres, expose: [5432]}\n"
        "  proxy: {image: nginx, volumes: ['./nginx.conf:/etc/nginx.conf:ro']}\n"
    )
    file = str(tmp_path / "compose.yaml")
    assert main(["import", "compose", file, "--image", "web=h/web:1", "-o", "json"]) == 0
    processes = json.loads(capsys.readouterr().out)["experiment"]["processes"]
    assert {name: process.get("names") for name, process in processes.items()} == {
        "web": ["web"],
        "db": ["db"],
        "proxy": None,
    }
