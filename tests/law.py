"""The law of one road: all verbs that read a spec agree on its objects, its faults, and whether it fits.

Each verb runs through the command itself, in this process; `disagreements` compares the answers.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from symphony_charts.chart.build.chart import Release
from symphony_charts.chart.release import Overrides, merge_values, open_chart, render_release, user_values
from symphony_charts.chart.schema import ValuesSchema
from symphony_charts.cli.main import main
from symphony_charts.errors import SymphError
from symphony_charts.formats.yaml_read import load
from symphony_charts.kubernetes.releases.releases import chart_of
from tests.chart.strategies import experiments

# Nodes on which some generated experiments fit and others do not.
POOLS = {
    "pools": [
        {"name": "plain", "machine_type": "n1-standard-16", "max_nodes": 30, "labels": {"pool": "n", "disk": "ssd"}},
        {
            "name": "rich",
            "allocatable": {"cpu": "60", "memory": "200Gi", "nvidia.com/gpu": "8", "rdma/ib": "1Gi"},
            "nodes": 12,
            "labels": {"pool": "n", "x": "y"},
        },
    ]
}
_FAULTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An experiment, the values on the command line, and the text of the file of node pools."""

    data: dict[str, Any]
    sets: tuple[str, ...] = ()
    values: dict[str, Any] | None = None
    pools: str = json.dumps(POOLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A verb's answer: its exit status, stdout (parsed if it is JSON), and stderr."""

    status: int
    data: Any
    error: str


def disagreements(case: Case, folder: Path, repository: Path) -> list[str]:
    """Return the disagreements of the verbs for one case; empty if the law holds."""
    answers = ask(case, folder, repository)
    return [*_faults(answers), *_objects(answers, str(folder)), *_verdicts(answers)]


def ask(case: Case, folder: Path, repository: Path) -> dict[str, Answer]:
    spec, options = _write(case, folder, repository)
    pools = ("--pools", str(folder / "pools.yaml"))
    return {
        "render": _run("render", spec, *options, "-o", "json"),
        "validate": _run("validate", spec, *options, "-o", "json"),
        "export": _run("export", "manifests", spec, *options),
        "plan": _run("plan", spec, *options, *pools, "-o", "json"),
        "package": _run("package", spec, *options, "--dry-run", "-o", "json"),
        "package on pools": _run("package", spec, *options, *pools, "--dry-run", "-o", "json"),
        "sweep": _run("sweep", spec, *options, *pools, "-g", "workload.run_key=a", "--dry-run", "-o", "json"),
        "publish": _run("publish", spec, *options, *pools, "--chart-only", "--dry-run", "-o", "json"),
        "install": _install(spec, case, ()),
        "install on pools": _install(spec, case, (str(folder / "pools.yaml"),)),
    }


def _write(case: Case, folder: Path, repository: Path) -> tuple[str, list[str]]:
    folder.mkdir(parents=True, exist_ok=True)
    spec = folder / "experiment.json"
    spec.write_text(json.dumps(case.data))
    (folder / "pools.yaml").write_text(case.pools)
    settings = {"team": "ml", "repository": {"url": str(repository), "author": "u <u@example.org>"}}
    (folder / ".symph.yaml").write_text(json.dumps(settings))
    options = [word for text in case.sets for word in ("--set", text)]
    if case.values is not None:
        (folder / "values.json").write_text(json.dumps(case.values))
        options += ["--values", str(folder / "values.json")]
    return str(spec), options


def _run(*words: str) -> Answer:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words)
    text = out.getvalue()
    with contextlib.suppress(ValueError):
        return Answer(status=status, data=json.loads(text), error=err.getvalue())
    return Answer(status=status, data=text, error=err.getvalue())


def _install(spec: str, case: Case, pools: Sequence[str]) -> Answer:
    """Return the objects that `install` would pass to helm, for the chart's own values and the command line's."""
    files = () if case.values is None else (case.values,)
    values = user_values(Overrides(files=files, sets=case.sets))
    try:
        with chart_of(spec, values, pools) as source:
            own = {
                path.relative_to(source.chart).as_posix(): path.read_bytes()
                for path in source.chart.rglob("*")
                if path.is_file()
            }
            chart = open_chart(own, source.name)
            made = render_release(chart, merge_values(ValuesSchema(chart), values), Release(name=source.name))
            return Answer(status=0, data={"items": json.loads(json.dumps(made))}, error="")
    except SymphError as error:
        return Answer(status=error.exit_code, data=None, error=f"error: {error}\n")


def _faults(answers: dict[str, Answer]) -> Iterator[str]:
    refused = {verb: answer for verb, answer in answers.items() if answer.status == _FAULTS}
    if refused and len(refused) < len(answers):
        fine = {verb: answer.status for verb, answer in answers.items() if verb not in refused}
        yield f"{sorted(refused)} refuse it ({next(iter(refused.values())).error.strip()[:300]}), and not {fine}"
    if len({_said(answer) for answer in refused.values()}) > 1:
        yield "they refuse it in other words: " + json.dumps({verb: _said(one) for verb, one in refused.items()})
    strange = {verb: answer for verb, answer in answers.items() if answer.status not in (0, 1, _FAULTS, 4)}
    yield from (f"{verb} ended with {answer.status}: {answer.error[-500:]}" for verb, answer in strange.items())


def _said(answer: Answer) -> str:
    lines = [line.replace("error: ", "", 1).rstrip() for line in answer.error.splitlines()]
    return "\n".join(line for line in lines if line and not line.startswith(("reading", "packaging", "linting")))


def _objects(answers: dict[str, Answer], where: str) -> Iterator[str]:
    """Yield the differences of the objects, except for the managed-by label and objects that only helm runs."""
    if answers["render"].status != 0:
        return
    wanted = _index(answers["render"].data["items"])
    others = {
        "export": list(_documents(answers["export"].data)),
        "install": (answers["install"].data or {"items": []})["items"],
    }
    for verb, items in others.items():
        if answers[verb].status == 0 and _index(items) != wanted:
            yield f"{verb} makes other objects than render in {where}: {_difference(wanted, _index(items))}"


def _documents(text: object) -> Iterator[Any]:
    for part in re.split(r"(?m)^---\n", str(text)):
        if part.strip():
            yield load(part)


def _index(items: list[Any]) -> dict[str, Any]:
    found = {}
    for item in items:
        notes = item["metadata"].get("annotations") or {}
        if "helm.sh/hook" in notes:
            continue
        text = json.dumps(item, sort_keys=True)
        # Also inside the texts of a Workflow, whose quotes are escaped.
        text = re.sub(r'(managed-by\\*":\s*\\*")symph', r"\1Helm", text)
        found[f"{item['kind']}/{item['metadata']['name']}"] = text
    return found


def _difference(wanted: dict[str, Any], got: dict[str, Any]) -> str:
    changed = [name for name in {*wanted, *got} if wanted.get(name) != got.get(name)]
    name = sorted(changed)[0]
    return f"{len(changed)} objects, {name}: {wanted.get(name)} and {got.get(name)}"


def _verdicts(answers: dict[str, Answer]) -> Iterator[str]:
    plan = answers["plan"]
    if plan.status not in (0, 4):
        return
    verdict = plan.data["verdict"]
    if (verdict == "NO") != (plan.status == 4):
        yield f"plan says {verdict} and exits with {plan.status}"
    lint, publish = answers["validate"], answers["publish"]
    for verb in ("package on pools", "install on pools", "sweep"):
        # A dry run of a sweep makes no chart; the other verbs refuse one with lint errors.
        wanted = 1 if lint.status == 1 and verb != "sweep" else plan.status
        if answers[verb].status != wanted:
            yield f"{verb} ends with {answers[verb].status} instead of {wanted}: {answers[verb].error}"
    packaged = answers["package on pools"]
    if packaged.status == 0 and not packaged.data["items"][0]["fit"].startswith(verdict):
        yield f"plan says {verdict}, package {packaged.data['items'][0]['fit']}"
    # Argo CD's project refuses rights that the chart would grant itself; such a chart is installed by hand.
    is_refused_by_argo = "takes no Role" in publish.error
    if lint.status == 0 and publish.status != (1 if is_refused_by_argo else plan.status):
        yield f"plan ends with {plan.status}, publish with {publish.status}: {publish.error}"
    if lint.status == 1 and publish.status != 1:
        yield f"lint finds errors, publish ends with {publish.status}"


_OVERLAYS: tuple[dict[str, Any], ...] = (
    {"spec": {"containers": [{"name": "proxy", "image": "envoy:1", "resources": {"requests": {"cpu": "12"}}}]}},
    {"spec": {"initContainers": [{"name": "fetch", "image": "git:1", "resources": {"requests": {"cpu": "13"}}}]}},
    {"spec": {"initContainers": [{"name": "side", "image": "log:1", "restartPolicy": "Always"}]}},
    {"spec": {"tolerations": [{"key": "team", "operator": "Exists"}]}},
    {"spec": {"hostNetwork": True}},
    {"spec": {"nodeSelector": {"disk": "ssd"}}},
    {"spec": {"runtimeClassName": "gvisor"}},
    {"spec": {"nodeName": "n1"}},
    {"spec": {"schedulerName": "other"}},
    {"spec": {"securityContext": {"fsGroup": 1000}}},
    {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "x"}}},
    {"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "gone", "operator": "Exists"}]}]}}}}},
)  # fmt: skip
_CONTAINER_OVERLAYS: tuple[dict[str, Any], ...] = (
    {"resources": {"requests": {"cpu": "15"}}},
    {"env": [{"name": "MODE", "value": "fast"}]},
    {"args": ["other"], "workingDir": "/elsewhere"},
    {"securityContext": {"runAsUser": 1000}},
    {"ports": [{"containerPort": 9000, "hostPort": 9000}]},
)
_SETS = (
    "groups.a.replicas=3",
    "groups.a.replica=3",
    "groups.agent.replicas=100",
    "runKey=again",
    "tests.hold=true",
    "workload.kind=jobset",
    "services.x.port=70000",
    "networkPolicy.enable=true",
    "networkPolicy.enabled=true",
    "image.tag=7",
    "groups.a.tolerations[0].operator=Exists",
    "groups.a.nodeSelector.disk=ssd",
    "commonLabels.team=b",
)
_VALUES: tuple[dict[str, Any] | None, ...] = (
    None,
    None,
    None,
    {"runKey": "file"},
    {"commonAnnotations": {"x": "y"}},
    {"podLabels": {"x": "y"}},
    {"nothing": 1},
)
_KINDS = ("jobs", "jobs", "jobs", "jobset", "appwrapper", "volcano", "argo", "dijob")


@st.composite
def cases(draw: st.DrawFn) -> Case:
    data: dict[str, Any] = draw(experiments())
    data.setdefault("workload", {})["kind"] = draw(st.sampled_from(_KINDS))
    for pod in [*data.get("groups", {}).values(), *data.get("processes", {}).values()]:
        if draw(st.integers(0, 2)) == 0:
            pod["pod_overlay"] = draw(st.sampled_from(_OVERLAYS))
        processes = pod.get("processes", {"": pod}).values()
        for process in processes:
            if draw(st.integers(0, 3)) == 0:
                process["container_overlay"] = draw(st.sampled_from(_CONTAINER_OVERLAYS))
    if draw(st.integers(0, 49)) == 0:
        data.pop("image", None)
    sets = tuple(draw(st.lists(st.sampled_from(_SETS), max_size=1)))
    if data.get("secret_source", {}).get("source") == "sealed":
        # Some verbs inspect values that are not sealed; verbs that hand objects on refuse them.
        sets += tuple(f"secrets.encryptedData.{key}=AgB1" for key in ("token", "key"))
    return Case(data=data, sets=sets, values=draw(st.sampled_from(_VALUES)))
