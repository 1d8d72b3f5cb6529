"""Spec files include other files, and their errors name file and line."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.spec import files as specfile
from symphony_charts.spec.sources import EnvSource


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def refusal(path: Path) -> str:
    """Return the error of `read` for a bad file."""
    with pytest.raises(SpecError) as caught:
        specfile.read(path)
    return str(caught.value)


LAUNCH = """
from symphony_charts import Cluster
cluster = Cluster.new('kube')
exp = cluster.new_experiment('rl')
exp.new_process('a')
cluster.launch(exp)
"""
YAML = "name: rl\nprocesses:\n  a: {cmds: [x], binds: r}\n"


def test_yaml_and_json_and_python_give_the_same_experiment(tmp_path: Path) -> None:
    yaml = write(tmp_path / "a.yaml", YAML)
    json = write(tmp_path / "b.json", '{"name": "rl", "processes": {"a": {"cmds": ["x"], "binds": "r"}}}')
    python = write(
        tmp_path / "c.py",
        "from symphony_charts import Cluster\n"
        "experiment = Cluster.new('tmux').new_experiment('rl')\n"
        "experiment.new_process('a', cmds=['x']).binds('r')\n",
    )
    first, second, third = map(specfile.read, (yaml, json, python))
    assert first.experiment == second.experiment == third.experiment


@pytest.mark.parametrize(
    "source",
    [
        "def experiment():\n    return {'name': 'rl', 'processes': {'a': {}}}\n",
        "def main():\n    return {'name': 'rl', 'processes': {'a': {}}}\n",
        "import symphony_charts as s\nexperiment = s.Experiment(name='rl', processes={'a': s.Process()})\n",
        LAUNCH,
    ],
    ids=["function", "main", "record", "launch"],
)
def test_a_python_file_says_its_experiment_in_several_ways(tmp_path: Path, source: str) -> None:
    assert specfile.read(write(tmp_path / "x.py", source)).experiment.name == "rl"


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("x.yaml", "name: rl\nprocesses:\n  a:\n    cmds: [x]\n    connects: [ghost]\n", "5, processes.a.connects[0]"),
        ("x.yaml", "name: rl\nprocesses: {a: [\n", "3"),
        ("x.json", '{\n  "name": "rl",\n  "processes": {"a": {"replicas": "3"}}\n}', "3, processes.a.replicas"),
    ],
)
def test_a_fault_names_file_line_and_path(tmp_path: Path, name: str, text: str, place: str) -> None:
    path = write(tmp_path / name, text)
    assert f"at:   {path}:{place}\n" in refusal(path)


@pytest.mark.parametrize("text", ["{", '{"a": 1, "a": 2}', "[" * 100_000, '{"name": NaN}', ""])
def test_json_that_is_broken_is_refused(tmp_path: Path, text: str) -> None:
    assert str(tmp_path / "x.json") in refusal(write(tmp_path / "x.json", text))


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        ("x = 1\nraise RuntimeError('boom')\n", 2, "RuntimeError: boom"),
        ("def experiment():\n    return 1 / 0\n", 2, "ZeroDivisionError"),
        ("import sys\nsys.exit(3)\n", 2, "exit(3)"),
        ("x = (\n", 1, "SyntaxError"),
        ("from symphony_charts import Cluster\nCluster.new('tmux').new_experiment('a', secret=1)\n", 2, "secrets"),
    ],
)
def test_a_fault_of_a_python_file_names_the_users_line(tmp_path: Path, source: str, line: int, words: str) -> None:
    path = write(tmp_path / "x.py", source)
    assert f"{path}:{line}" in refusal(path)
    assert words in refusal(path)


def test_a_python_file_that_launches_two_is_refused(tmp_path: Path) -> None:
    source = (
        "from symphony_charts import Cluster\nfor name in 'ab':\n    cluster = Cluster.new('tmux')\n"
        "    exp = cluster.new_experiment(name)\n    exp.new_process('p')\n    cluster.launch(exp)\n"
    )
    assert "launches 2 experiments" in refusal(write(tmp_path / "x.py", source))


def test_python_files_find_their_own_neighbours(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name / "settings.py", f"NAME = '{name}'\n")
        write(
            tmp_path / name / "x.py",
            "import settings\nexperiment = {'name': settings.NAME, 'processes': {'a': {}}}\n",
        )
    before = list(sys.path)
    names = [specfile.read(tmp_path / name / "x.py").experiment.name for name in ("one", "two")]
    assert names == ["one", "two"]
    assert "settings" not in sys.modules
    assert sys.path == before


def test_config_files_are_read_from_the_folder_of_the_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "a.yaml").write_text("x: é\n")
    (tmp_path / "conf" / "b.bin").write_bytes(b"\xff\x00")
    (tmp_path / "conf" / "c.txt").write_text("a\x7f")
    spec = YAML + "configs: {a: {file: conf/a.yaml, mode: '0600'}, b: {file: conf/b.bin}, c: {file: conf/c.txt}}\n"
    path = write(tmp_path / "x.yaml", spec)
    monkeypatch.chdir("/")
    configs = specfile.read(path).experiment.configs
    assert (configs["a"].text, configs["a"].mode, configs["a"].file) == ("x: é\n", "0600", None)
    assert configs["b"].base64 == base64.b64encode(b"\xff\x00").decode()
    assert configs["c"].base64 == base64.b64encode(b"a\x7f").decode()


def test_config_files_that_are_missing_are_all_named_with_their_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "x.yaml", YAML + "configs:\n  a: {file: one}\n  b: {file: two}\n")
    text = refusal(path)
    assert f"{path}:5, configs.a.file" in text
    assert f"{path}:6, configs.b.file" in text


def test_a_config_file_too_large_for_a_configmap_is_refused(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * (1024 * 1024 + 1))
    assert "1 MiB" in refusal(write(tmp_path / "x.yaml", YAML + "configs: {a: {file: big}}\n"))


def test_secret_files_have_absolute_paths_and_keys(tmp_path: Path) -> None:
    path = write(tmp_path / "x.yaml", YAML + "secrets: [~/.mjkey.txt, keys/other]\n")
    secrets = specfile.read(path).experiment.secrets
    assert [(secret.file, secret.key) for secret in secrets] == [
        (str(Path.home() / ".mjkey.txt"), ".mjkey.txt"),
        (str(tmp_path / "keys" / "other"), "other"),
    ]


def test_pins_come_from_the_lock_file_beside_the_spec(tmp_path: Path) -> None:
    path = write(tmp_path / "x.yaml", YAML)
    spec = specfile.read(path)
    assert (spec.pins, spec.lock_path) == ({}, tmp_path / "x.lock.yaml")
    write(spec.lock_path, "ports: {r: 7005}\n")
    assert specfile.read(path).pins == {"r": 7005}
    write(spec.lock_path, "ports: 7\n")
    assert "x.lock.yaml" in refusal(path)


@pytest.mark.parametrize("name", ["ghost.yaml", "ghost.py", "."])
def test_a_file_that_cannot_be_read_is_a_fault_of_the_input(tmp_path: Path, name: str) -> None:
    with pytest.raises(SpecError, match=r"does not exist|is no experiment|has no experiment.yaml"):
        specfile.read(tmp_path / name)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe")
    assert "UTF-8" in refusal(tmp_path / "x.yaml")


@pytest.mark.parametrize("suffix", ["yaml", "py"])
def test_a_lock_file_is_told_from_its_experiment(suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"rl.{suffix}").touch()
    (tmp_path / "rl.lock.yaml").write_text("ports: {a: 7000}\n")
    with pytest.raises(SpecError, match="this is the lock file of an experiment") as refused:
        specfile.read(tmp_path / "rl.lock.yaml")
    assert f"give {tmp_path / 'rl'}.{suffix}" in str(refused.value)


MANY = """\
name: rl
image: python:3.12-slim
processes:
  learner:
    comand: python
    env: {X: yes}
    connects: [nothere]
  other: {command: [x], replicas: two, retries: -1, binds: 7}
configs: {a: {file: nofile}}
"""


def test_faults_of_words_types_content_and_files_are_told_in_one_pass(tmp_path: Path) -> None:
    (tmp_path / "exp.yaml").write_text(MANY)
    with pytest.raises(SpecError) as caught:
        specfile.read(tmp_path / "exp.yaml")
    found = [problem.path.removeprefix(f"{tmp_path}/") for problem in caught.value.problems]
    assert found == [
        "exp.yaml:6, processes.learner.env.X",
        "exp.yaml:5, processes.learner.comand",
        "exp.yaml:8, processes.other.replicas",
        "exp.yaml:8, processes.other.binds",
        "exp.yaml:8, processes.other.retries",
        "exp.yaml:9, configs.a.file",
    ]  # that nobody binds "nothere" may follow from `binds: 7`


@pytest.mark.parametrize(
    ("fault", "others"),
    [
        ("bind: nothere", ["retries"]),
        ("volumes: {x: 3}", ["retries"]),
        ("replica: 2", ["connects[0]", "retries"]),
        ("cwds: /x", ["connects[0]", "retries"]),
    ],
)
def test_a_fault_that_follows_from_another_is_not_told(tmp_path: Path, fault: str, others: list[str]) -> None:
    text = f"name: rl\nimage: x\nprocesses: {{a: {{command: [x], connects: nothere, retries: -1, {fault}}}}}\n"
    (tmp_path / "exp.yaml").write_text(text)
    with pytest.raises(SpecError) as caught:
        specfile.read(tmp_path / "exp.yaml")
    assert [problem.path.rpartition(".")[2] for problem in caught.value.problems][1:] == others


def test_variables_of_the_experiment_and_of_its_files_are_those_of_every_process_that_has_no_own(
    tmp_path: Path,
) -> None:
    write(tmp_path / "common.env", "# comment\nexport A=file\nB='of file' # '1'\nC=file # 2\nD=$(A) $$ $x\nE= # 3\n")
    text = (
        "name: x\nenv: {A: exp, NUM: 3, F: {field: spec.nodeName}}\nenv_file: common.env\nprepare: {s: {cmds: [x]}}\n"
    )
    path = write(tmp_path / "a.yaml", f"{text}processes: {{p: {{cmds: [x], env: {{C: own}}}}, q: {{cmds: [x]}}}}\n")
    experiment = specfile.read(path).experiment
    shared = {
        "A": "exp",
        "B": "of file",
        "C": "file",
        "D": "$$(A) $$$ $x",
        "E": "",
        "NUM": "3",
        "F": EnvSource(field="spec.nodeName"),
    }
    assert experiment.processes["p"].env == {**shared, "C": "own"}
    assert experiment.processes["q"].env == experiment.prepare["s"].env == shared
    assert (experiment.env, experiment.env_file) == ({}, [])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("env_file: [gone.env]", ("a.yaml:2, env_file[0]", 'cannot read "gone.env"')),
        ("env_file: bad.env", ('"bad.env" sets 1X, SYMPH_RUN', "NAME=value")),
        ("env: {SYMPH_RUN: a}", ("a.yaml:2, env.SYMPH_RUN", "cannot set it")),
    ],
)
def test_faults_of_shared_variables_name_their_place(text: str, words: tuple[str, ...], tmp_path: Path) -> None:
    write(tmp_path / "bad.env", "1X=a\nSYMPH_RUN=b\nGOOD=c\n")
    told = refusal(write(tmp_path / "a.yaml", f"name: x\n{text}\nprocesses: {{a: {{cmds: [x]}}}}\n"))
    assert all(word in told for word in words), told
