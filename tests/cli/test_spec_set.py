"""`--spec-set PATH=VALUE` changes a spec before it is read, for every verb that reads one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.chart.harness import Objects, index
from tests.cli.conftest import Symph
from tests.cli.grammar import all_commands

SPEC = """\
name: exp
image: busybox:1.37.0
processes:
  server: &base {command: [serve], binds: data, lifecycle: service, env: {LR: "0.1", MODE: fast}}
  client: {command: [work], connects: data, replicas: 2}
  twin: *base
groups:
  pair:
    processes:
      first: {command: [one]}
      second: {command: [two]}
"""


@pytest.fixture(autouse=True)
def spec(tmp_path: Path) -> Path:
    file = tmp_path / "exp.yaml"
    file.write_text(SPEC.replace("  twin: *base\n", ""))
    return file


def rendered(symph: Symph, *args: str, spec: str = "exp.yaml") -> Objects:
    return index(json.loads(symph("render", spec, "-o", "json", *args).stdout)["items"])


def job(objects: Objects, group: str) -> str:
    return next(json.dumps(item) for (kind, name), item in objects.items() if kind == "Job" and f"-{group}-" in name)


def test_every_verb_that_reads_a_spec_has_the_option() -> None:
    lacking = set()
    for command in all_commands():
        names = {action.dest for action in command.parser._actions}
        metavars = {str(action.metavar) for action in command.parser._actions}
        if names & {"spec", "specs"} or any("SPEC" in metavar for metavar in metavars):
            lacking |= {" ".join(command.words)} if "spec_set" not in names else set()
    assert lacking == set()


def test_a_field_of_a_process_is_changed(symph: Symph) -> None:
    assert '"completions": 5' in job(rendered(symph, "--spec-set", "processes.client.replicas=5"), "client")


def test_fields_that_are_not_values_can_be_changed(symph: Symph) -> None:
    objects = rendered(symph, "--spec-set", "workload.kind=jobset", "--spec-set", "groups.pair.processes.first.cwd=/x")
    assert any(kind == "JobSet" and '"workingDir": "/x"' in json.dumps(item) for (kind, _), item in objects.items())


def test_values_have_the_syntax_of_set(symph: Symph) -> None:
    text = r"processes.client.args={a,b\,c},processes.client.env.N=7,labels.example\.com/team=rl"
    made = job(rendered(symph, "--spec-set", text), "client")
    assert '"args": ["a", "b,c"]' in made
    assert '{"name": "N", "value": "7"}' in made
    assert '"example.com/team": "rl"' in made


def test_null_removes_a_key(symph: Symph) -> None:
    objects = rendered(symph, "--spec-set", "processes.client.replicas=null,processes.server.env.LR=null")
    assert '"completions": 2' not in job(objects, "client")
    text = json.dumps(list(objects.values()))
    assert '"MODE"' in text
    assert '"LR"' not in text


def test_a_process_that_shares_an_anchor_is_left_as_it_is(symph: Symph, spec: Path) -> None:
    spec.write_text(SPEC.replace("binds: data, ", "").replace("connects: data, ", ""))
    objects = rendered(symph, "--spec-set", "processes.twin.env.MODE=slow")
    assert '"fast"' in job(objects, "server")
    assert '"slow"' in job(objects, "twin")


def test_a_python_spec_is_changed_alike(symph: Symph, tmp_path: Path) -> None:
    text = "experiment = {'name': 'exp', 'image': 'busybox', 'processes': {'client': {'command': ['work']}}}\n"
    (tmp_path / "exp.py").write_text(text)
    objects = rendered(symph, "--spec-set", "processes.client.replicas=5", spec="exp.py")
    assert '"completions": 5' in job(objects, "client")


def test_packaging_again_without_the_change_takes_it_back(symph: Symph, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("name: other\nimage: busybox\nprocesses: {a: {command: [a]}}\n")
    values = tmp_path / "dist/exp/values.yaml"
    for _ in range(2):
        symph("package", "exp.yaml", "other.yaml")
    before = values.read_text()
    symph("package", "exp.yaml", "--spec-set", "processes.client.replicas=5")
    assert "replicas: 5" in values.read_text()
    symph("package", "exp.yaml", "other.yaml")
    assert values.read_text() == before


@pytest.mark.parametrize(
    ("text", "what", "step"),
    [
        ("processes.clint.replicas=2", 'processes has no "clint"', "did you mean processes.client?"),
        ("processes.first.cwd=/x", 'processes has no "first"', "did you mean groups.pair.processes.first?"),
        ("groups.pair.processes.fist.cwd=/x", 'has no "fist"', "did you mean groups.pair.processes.first?"),
        ("prepare.fetch.image=x", 'prepare has no "fetch"', "the spec has no prepare"),
        ("processes.client.replcas=2", "replcas", "did you mean"),
        ("processes.client.replicas=many", "replicas", ""),
    ],
)
def test_a_mistake_is_named_with_the_option(symph: Symph, text: str, what: str, step: str) -> None:
    said = symph("render", "exp.yaml", "--spec-set", text, status=3).stderr
    assert what in said
    assert step in said
    assert f"at:   --spec-set {text}" in said


def test_a_fault_of_the_file_keeps_its_line(symph: Symph, spec: Path) -> None:
    spec.write_text(SPEC.replace("  twin: *base\n", "  bad: {comand: [x]}\n"))
    said = symph("render", "exp.yaml", "--spec-set", "processes.client.replicas=2", status=3).stderr
    assert "exp.yaml:6, processes.bad" in said


def test_a_text_without_a_value_is_wrong_usage(symph: Symph) -> None:
    said = symph("render", "exp.yaml", "--spec-set", "processes.client.replicas", status=2).stderr
    assert "at:   --spec-set processes.client.replicas" in said


def test_a_chart_has_no_spec_to_change(symph: Symph) -> None:
    symph("package", "exp.yaml")
    said = symph("install", "dist/exp", "--spec-set", "processes.client.replicas=2", status=2).stderr
    assert "package its spec again" in said


def variables(symph: Symph, *args: str) -> dict[str, set[str | None]]:
    """Return the values of each variable that `args` set, in all processes."""
    told = json.loads(symph("local", "render", "exp.yaml", *args, "-o", "json").stdout)
    found: dict[str, set[str | None]] = {}
    for process in told["processes"]:
        for name in ("LR", "NEW", "A", "HOME"):
            found.setdefault(name, set()).add(process["env"].get(name))
    return found


def test_a_variable_is_set_in_every_process(symph: Symph, tmp_path: Path) -> None:
    (tmp_path / "a.env").write_text("# a comment\nexport A='a, b'\nNEW=2\n")
    found = variables(symph, "-E", "LR=1,2=3", "--env-file", "a.env", "--setenv", "NEW=3", "-E", "HOME")
    assert found == {"LR": {"1,2=3"}, "NEW": {"3"}, "A": {"a, b"}, "HOME": {str(tmp_path)}}


def test_a_variable_of_the_command_line_beats_local_ones(symph: Symph, tmp_path: Path) -> None:
    file = tmp_path / "exp.yaml"
    file.write_text(
        f"local: {{env: {{A: x}}}}\n{SPEC}".replace("  twin: *base\n", "").replace(
            "[work]", "[work], local: {env: {LR: z}}"
        )
    )
    found = variables(symph, "-E", "A=1", "-E", "LR=2")
    assert (found["A"], found["LR"]) == ({"1"}, {"2"})


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("-E", "NOT_SET"), 2, '"NOT_SET" is not KEY=VALUE'),
        (("-E", "=1"), 2, '"=1" is not KEY=VALUE'),
        (("--env-file", "no.env"), 2, "cannot read no.env"),
        (("--env-file", "bad.env"), 2, 'bad.env:2 is not KEY=VALUE: "just words"'),
        (("-E", "SYMPH_RUN=1"), 3, "at:   -E SYMPH_RUN=1, processes.server.env.SYMPH_RUN"),
    ],
)
def test_a_variable_that_cannot_be_set_is_refused(
    symph: Symph, tmp_path: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    (tmp_path / "bad.env").write_text("A=1\njust words\n")
    done = symph("validate", "exp.yaml", *words, status=status)
    assert said in done.stderr


@pytest.mark.parametrize("verb", ["run", "up", "install", "publish", "sweep"])
def test_verbs_that_start_experiments_take_variables(verb: str) -> None:
    flags = next(command.flags for command in all_commands() if command.words == (verb,))
    assert {"--setenv", "--env-file"} <= set(flags)
