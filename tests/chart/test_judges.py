"""Charts made of trees compared with real Helm, Kubernetes' schemas and upgrades, under drawn experiments and values.

`SYMPH_SOAK` is the number of experiments to draw and `SYMPH_SEED` the first seed.
"""

from __future__ import annotations

import base64
import itertools
import os
import random
import re
from functools import cache
from pathlib import Path

import pytest

from symphony_charts.chart.build.chart import BuiltChart, Release, build
from symphony_charts.chart.build.registry import KINDS
from symphony_charts.chart.lint.kubernetes import check_schemas
from symphony_charts.chart.tree import constant
from symphony_charts.errors import SpecError
from symphony_charts.spec import files as specfile
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import allocate
from tests.chart.draws import ODD, RELEASES, Overrides, charts, overrides
from tests.chart.harness import EXAMPLES, experiment_of, run_helm
from tests.chart.judge import Instance, Judge, write
from tests.chart.lines import useless_lines
from tests.chart.test_build_kinds import dijob_experiment
from tests.chart.test_dijob_gate import OF_OPERATOR
from tests.chart.upgrades import frozen, run_of, upgrade_faults
from tests.tools import HELM_VERSIONS

_SOAK = int(os.environ.get("SYMPH_SOAK") or 0)
_SEED = int(os.environ.get("SYMPH_SEED") or 1)
_BATCH = 12

AWKWARD = {
    "crlf.txt": b"a\r\nb\r\n",
    "bom.txt": b"\xef\xbb\xbfa\n",
    "two-boms.txt": b"\xef\xbb\xbf\xef\xbb\xbfa\n",
    "digits.bin": base64.b64decode("1234"),
    "separator.txt": "a\u2028b\n".encode(),
    "nel.txt": "a\u0085b \u0085 c\n".encode(),
    "tabs.txt": b"\ta\n\tb\n",
    "leading.txt": b"  a\nb\n",
    "none.txt": b"a",
    "three.txt": b"a\n\n\n",
    "blank.txt": b"\n\n",
    "braces.txt": b"{{ .Values.x }} }} {{\n",
    "binary.bin": bytes(range(256)),
    "empty.txt": b"",
    "long.txt": b"word " * 60 + b"\n",
    "only-blanks.txt": b"a\n   \n b\n",
}


@cache
def examples() -> list[BuiltChart]:
    """Return the charts of the examples whose kind is made of trees."""
    experiments = [
        finish(specfile.read(path).experiment, for_cluster=True)
        for path in EXAMPLES
        if not path.name.endswith(".lock.yaml")
    ]
    return [_built(experiment) for experiment in experiments if experiment.workload.kind in KINDS]


def _built(experiment: Experiment) -> BuiltChart:
    return build(experiment, allocate(experiment))


@cache
def drawn_charts(first: int, *, has_overlays: bool = True) -> list[BuiltChart]:
    """Return the charts of a batch of generated experiments."""
    return charts(first, _BATCH, has_overlays=has_overlays)


def instances(rng: random.Random, made: list[BuiltChart]) -> list[Instance]:
    """Return each chart twice, below two aliases and with other values."""
    return [
        Instance(alias=f"{chart.frame.chart}-{letter}", chart=chart, overrides=overrides(rng, chart.values))
        for chart in made
        for letter in "ab"
    ]


def verdict(judge: Judge, capsys: pytest.CaptureFixture[str]) -> None:
    """Fail with the first faults; print the counts of a soak."""
    if _SOAK:
        with capsys.disabled():
            print(f"\n{dict(judge.counts)}")  # noqa: T201 - what a soak is read for
    assert not judge.faults, f"SYMPH_SEED={_SEED}: {len(judge.faults)} faults\n" + "\n".join(judge.faults[:5])
    assert judge.counts["equal"] or judge.counts["refused by both"]


def test_helm_prints_the_objects_of_the_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judge = Judge(tmp_path, HELM_VERSIONS)
    rng = random.Random(_SEED)
    plain = [Instance(alias=f"{chart.frame.chart}-c", chart=chart) for chart in examples()]
    judge.compare([*plain, *instances(rng, examples())], "r1")
    verdict(judge, capsys)


@pytest.mark.parametrize("number", range(max(_SOAK // _BATCH, 1)))
def test_helm_prints_the_objects_of_drawn_experiments(
    number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = Judge(tmp_path, HELM_VERSIONS)
    rng = random.Random(_SEED + number)
    for _ in range(2):
        judge.compare(instances(rng, drawn_charts(_SEED + number)), rng.choice(RELEASES))
    verdict(judge, capsys)


def test_every_odd_text_arrives_in_annotations_variables_arguments_and_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chart = next(chart for chart in examples() if chart.frame.chart == "rl")
    judge = Judge(tmp_path, HELM_VERSIONS)
    made = [
        {
            "podAnnotations": {"note": text},
            "runKey": text,
            "groups": {"agent": {"containers": {"agent": {"env": {"A": text}, "args": [text, "x"]}}}},
        }
        for text in ODD
    ]
    judge.compare(
        [Instance(alias=f"rl-{number}", chart=chart, overrides=Overrides(values=v)) for number, v in enumerate(made)],
        "r",
    )
    verdict(judge, capsys)


@pytest.mark.parametrize("release", ["7", "1x"])
def test_names_that_services_cannot_have_are_refused_by_both(
    release: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = Judge(tmp_path, HELM_VERSIONS)
    judge.compare([Instance(alias="ring", chart=examples()[0])], release)
    verdict(judge, capsys)
    assert judge.counts["refused by both"] == len(HELM_VERSIONS)


def test_files_arrive_byte_for_byte(tmp_path: Path) -> None:
    configs = {name: {"base64": base64.b64encode(content).decode()} for name, content in AWKWARD.items()}
    experiment = experiment_of(processes={"a": {"command": ["x"]}}, configs=configs)
    chart = build(experiment, allocate(experiment))
    judge = Judge(tmp_path, HELM_VERSIONS)
    judge.compare([Instance(alias="exp", chart=chart)], "r")
    assert not judge.faults, judge.faults
    maps = [item for item in chart.objects(chart.values, Release(name="r")) if item["kind"] == "ConfigMap"]
    found = {key: text.encode() for item in maps for key, text in item.get("data", {}).items()}
    found |= {key: base64.b64decode(text) for item in maps for key, text in item.get("binaryData", {}).items()}
    assert {name: found[name] for name in AWKWARD} == AWKWARD


def test_no_upgrade_changes_an_immutable_field_or_begins_an_idle_run() -> None:
    rng = random.Random(_SEED)
    made = [*examples(), *drawn_charts(_SEED)]
    faults, counts = upgrade_faults(rng, made, max(10 * _SOAK, 400))
    assert not faults, f"{len(faults)} of {dict(counts)}\n" + "\n".join(faults[:5])
    assert counts["new runs"] > counts["pairs"] / 10


def _with_args(*args: object) -> dict[str, object]:
    """Return values with these arguments of the agent."""
    return {"groups": {"agent": {"containers": {"agent": {"args": list(args)}}}}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"commonLabels": {"team": "a"}}),
        ({}, {"networkPolicy": {"enabled": False}}),
        ({}, {"tests": {"image": {"tag": "other"}}}),
        ({}, {"commonAnnotations": {"a": "b"}}),
        ({}, {"serviceAccount": {"annotations": {"a": "b"}}}),
        ({}, {"services": {"tensorboard": {"annotations": {"a": "b"}, "type": "NodePort"}}}),
        ({}, {"global": {"imageRegistry": ""}}),
        ({"services": {"replay-server": {"port": 7001}}}, {"services": {"replay-server": {"port": "7001"}}}),
        ({"groups": {"agent": {"replicas": 3}}}, {"groups": {"agent": {"replicas": "3"}}}),
        ({"podAnnotations": {"a": True}}, {"podAnnotations": {"a": "true"}}),
        (_with_args(1.5, 7), _with_args("1.5", "7")),
    ],
)
def test_a_run_does_not_depend_on_what_no_pod_sees(before: dict[str, object], after: dict[str, object]) -> None:
    assert _run(before) == _run(after)


@pytest.mark.parametrize(
    "changed",
    [
        {"podLabels": {"a": "b"}},
        {"podAnnotations": {"a": "b"}},
        {"runKey": "2"},
        {"services": {"replay-server": {"port": 7009}}},
        _with_args("a,b"),
        _with_args("a", "b"),
        _with_args("a:7"),
        _with_args("01"),
        {"serviceAccount": {"name": "other"}},
        {"global": {"imageRegistry": "mirror"}},
        {"conductor": {"image": {"tag": "other"}}},
        {"conductor": {"serviceAccountName": "other"}},
    ],
)
def test_a_run_depends_on_what_its_pods_see(changed: dict[str, object]) -> None:
    others: list[dict[str, object]] = [
        {},
        {"podLabels": {"a": "c"}},
        _with_args("a", "", "b"),
        _with_args('a:"7"'),
        _with_args("1"),
    ]
    assert _run(changed) not in [_run(other) for other in others]


@pytest.mark.parametrize("kind", ["jobs", "jobset"])
def test_how_a_run_ends_is_fixed_in_it(kind: str) -> None:
    server = {"command": ["serve"], "lifecycle": "service", "exposes": "web"}
    processes = {"learner": {"command": ["learn"]}, "actor": {"command": ["act"]}, "server": server}
    changes: list[dict[str, object]] = [
        {},
        {"linger": 30},
        {"on_failure": "continue"},
        {"done_when": "learner"},
        {"processes": {**processes, "server": {**server, "until": "run"}}},
    ]
    # What a JobSet does after a failure, and when it ends services, is its own.
    changes = [each for each in changes if kind == "jobs" or not {"linger", "on_failure"} & each.keys()]
    made = []
    for change in changes:
        experiment = experiment_of(**{"processes": processes, "workload": {"kind": kind}, **change})
        made.append(Instance(alias="exp", chart=build(experiment, allocate(experiment))).objects("r"))
    assert len({run_of(objects) for objects in made}) == len(made)
    for old, new in itertools.permutations(map(frozen, made), 2):
        assert all(old[key] == new[key] for key in old.keys() & new.keys())


@cache
def _subject() -> BuiltChart:
    """Return a chart with all values that the tests of runs change."""
    experiment = experiment_of(
        processes={
            "learner": {"command": ["learn"], "binds": "replay-server", "exposes": "tensorboard"},
            "agent": {"command": ["act"], "connects": "replay-server"},
        },
        service_account="runner",
        security={"network_policy": True},
    )
    return build(experiment, allocate(experiment))


def _run(values: dict[str, object]) -> str | None:
    return run_of(Instance(alias="exp", chart=_subject(), overrides=Overrides(values=values)).objects("r"))


def test_releases_of_one_namespace_share_no_name() -> None:
    rng = random.Random(_SEED)
    for chart in [*examples(), *drawn_charts(_SEED, has_overlays=False)]:
        first, second = rng.sample([*RELEASES, "a" * 52 + "b", "a" * 52 + "c"], 2)
        values = Instance(alias="", chart=chart, overrides=overrides(rng, chart.values)).values()
        names = [_names(chart, {**values, "fullnameOverride": ""}, release) for release in (first, second)]
        assert not names[0] & names[1]
        assert all(len(name) <= 63 for _, name in names[0] | names[1])


def _names(chart: BuiltChart, values: dict[str, object], release: str) -> set[tuple[str, str]]:
    """Return kind and name of each object, except those whose full names the user sets."""
    try:
        made = chart.objects(values, Release(name=release))
    except SpecError:
        return set()
    return {(item["kind"], name) for item in made if not (name := item["metadata"]["name"]).startswith(("db-", "x"))}


def test_objects_fit_the_schemas_of_kubernetes() -> None:
    rng = random.Random(_SEED)
    for chart in [*examples(), *drawn_charts(_SEED, has_overlays=False)]:
        values = Instance(alias="", chart=chart, overrides=overrides(rng, chart.values)).values()
        made = chart.objects({**values, "fullnameOverride": ""}, Release(name="r", is_draft=True))
        assert not [finding for finding in check_schemas(made) if finding.severity == "error"]


_ARGO = {"parameters": ["LR"], "needs": {"data": []}, "schedules": ["@daily"], "timezone": "UTC", "retries": 1}
_OF_KIND: dict[str, dict[str, object]] = {
    "jobset": {"jobset": {"max_restarts": 2}},
    "appwrapper": {"appwrapper": {"annotations": {"a": "b"}}, "retries": 1},
    "mcad": {"kind": "appwrapper", "appwrapper": {"version": "v1beta1"}, "priority": 7},
    "volcano": {"queue": "q", "volcano": {"plugins": {"ssh": []}}, "retries": 1},
    "argo": {"argo": _ARGO},
}


def _of_kind(name: str) -> BuiltChart:
    """Return a chart of another kind of workload, or of DI-orchestrator's version `name`."""
    if name in OF_OPERATOR:
        return _built(dijob_experiment(name))
    processes = {
        "learner": {"command": ["learn"], "binds": "ps", "env": {"LR": "1"}},
        "actor": {"command": ["act"], "connects": "ps", "replicas": 2, "min_replicas": 1, "deadline": 60},
        "board": {"command": ["show"], "lifecycle": "service", "exposes": "web"},
        "again": {"command": ["x"], "restart": "on-failure", "retries": 2},
    }
    workload = {"kind": name, **_OF_KIND[name]}
    return _built(finish(experiment_of(processes=processes, done_when="learner", workload=workload), for_cluster=True))


@pytest.mark.parametrize(
    "name",
    [*_OF_KIND, *OF_OPERATOR, *(each.frame.chart for each in examples())] if _SOAK else ["rl", "ring-group", "gpu"],
)
def test_every_line_of_a_template_matters(name: str, tmp_path: Path) -> None:
    chart = next((chart for chart in examples() if chart.frame.chart == name), None) or _of_kind(name)
    count, only = None if _SOAK else 8, chart.draft.kind.file
    _, useless = useless_lines(chart, tmp_path, HELM_VERSIONS[-1], random.Random(_SEED), count, only)
    assert not useless, "\n".join(useless)


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_helm_lint_accepts_the_charts(version: str, tmp_path: Path) -> None:
    folders = [write(chart, tmp_path / chart.frame.chart) for chart in [*examples(), *drawn_charts(_SEED)]]
    run_helm(version, "lint", "--strict", *folders)


# The first keys of an object and of its parts, in the order of Kubernetes' documentation.
_ORDER = ("apiVersion", "kind", "metadata", "immutable", "spec", "data", "binaryData")
_NEEDLESS = re.compile(r"""^\s*(?:- )?[\w.-]+: (['"])(?P<text>[A-Za-z/][-\w/.]*)\1$""")


@pytest.mark.parametrize("name", [chart.frame.chart for chart in examples()])
def test_templates_read_as_if_a_person_had_written_them(name: str, tmp_path: Path) -> None:
    chart = next(chart for chart in examples() if chart.frame.chart == name)
    for file, text in chart.texts().items():
        assert "\t" not in text
        for line in text.splitlines():
            assert (len(line) - len(line.lstrip(" "))) % 2 == 0 or file in ("NOTES.txt", "_helpers.tpl"), line
            needless = _NEEDLESS.match(line)
            assert needless is None or needless["text"] != constant(needless["text"]), f"{file}: {line}"
    printed = run_helm(HELM_VERSIONS[-1], "template", "r", write(chart, tmp_path)).stdout
    outside = re.sub(r"^( *)[\w.-]+: \|\n(?:\1 +.*\n|\s*\n)+", "", printed, flags=re.MULTILINE)
    assert not re.search(r'\{"|: \{\}$|: null$|[^ ] +$', outside, flags=re.MULTILINE)
    for item in chart.objects(chart.values, Release(name="r")):
        ranks = [_ORDER.index(key) for key in item if key in _ORDER]
        assert ranks == sorted(ranks), list(item)
