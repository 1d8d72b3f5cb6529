"""Size and speed of charts, beside the chart of `helm create` and static charts of the same objects.

    python benchmarks/chart.py [--small]

Speed is CPU time: the fastest of several rounds, since everything slower is the machine's other work. Ratios compare
with a static chart in the same run. `--small` does everything once, to see that it runs.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from symphony_charts.chart.build.chart import BuiltChart, Release, build
from symphony_charts.chart.files import ChartTemplate
from symphony_charts.chart.lint import lint_release
from symphony_charts.placement.fit.demand import demands_of
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import allocate
from symphony_charts.system import package_data
from tests.chart.judge import write
from tests.chart.release_secret import release_kb
from tests.tools import HELM_VERSIONS, helm

SPEC = {
    "name": "exp",
    "image": "busybox:1.37.0",
    "processes": {
        "learner": {
            "command": ["python", "learner.py"],
            "binds": ["replay", "ps"],
            "exposes": "tb",
            "requests": {"cpu": "1", "memory": "1Gi"},
            "env": {"LR": "0.1", "BATCH": "32"},
        },
        "agent": {"command": ["python", "agent.py"], "connects": ["replay", "ps"], "replicas": 4},
        "store": {"command": ["store"], "binds": "store", "lifecycle": "service"},
        "eval": {"command": ["eval"], "connects": "ps"},
    },
    "configs": {"a.yaml": {"text": "x: 1\ny: 2\n" * 10}},
}
# A spec of `symph package` for the thousand.
MANY = """\
name: e{number}
image: busybox:1.37.0
processes:
  learner: {{command: [learn], binds: [replay, ps], exposes: board}}
  agent: {{command: [act], connects: [replay, ps], replicas: 4}}
"""
BUDGET_MS, BUDGET_DEMAND_MS, BUDGET_THOUSAND_S, BUDGET_AGAIN_S = 4.0, 2.0, 5.0, 0.5
BUDGET_RATIOS = {10: 1.3, 100: 2.0}
# Kubernetes limits a Secret to 1 MiB.
BUDGET_SECRETS_KB = {1: 45, 200: 1024}


def many(groups: int, replicas: int = 1) -> Experiment:
    """Return an experiment of groups that each connect to a service of the next group."""
    processes = {
        f"p{number}": {
            "command": ["run", f"--number={number}"],
            "binds": f"s{number}",
            "connects": f"s{(number + 1) % groups}",
            "replicas": replicas,
            "requests": {"cpu": "1", "memory": "1Gi"},
            "env": {"LR": "0.1"},
        }
        for number in range(groups)
    }
    return from_data({"name": "exp", "image": "busybox:1.37.0", "processes": processes})


def built(experiment: Experiment) -> BuiltChart:
    return build(experiment, allocate(experiment))


def cpu_ms(work: Callable[[], object], *, rounds: int) -> float:
    """Return the CPU milliseconds of one call, including children, in the fastest round."""
    best = float("inf")
    for _ in range(rounds):
        before = _spent_s()
        work()
        best = min(best, _spent_s() - before)
    return best * 1000


def _spent_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def template_of(version: str, folder: Path) -> str:
    argv = [str(helm(version)), "template", "r", str(folder)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def static_chart(printed: str, folder: Path) -> Path:
    """Write a chart whose templates are the printed objects."""
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: static\nversion: 0.1.0\n")
    for number, text in enumerate(re.split(r"^---\n", printed, flags=re.MULTILINE)[1:]):
        (folder / "templates" / f"{number}.yaml").write_text(text.replace("{{", '{{ "{{" }}'))
    return folder


def show_sizes(folder: Path) -> None:
    """Print files, lines and bytes of charts, and of the chart that `helm create` makes."""
    subprocess.run([str(helm(HELM_VERSIONS[-1])), "create", str(folder / "created")], capture_output=True, check=True)
    charts = {"helm create": folder / "created"}
    for groups in (4, 10, 100):
        charts[f"{groups} groups"] = write(built(many(groups)), folder / f"size{groups}")
    for title, chart in charts.items():
        files = [file for file in chart.rglob("*") if file.is_file() and file.name != "values.schema.json"]
        texts = [file.read_bytes() for file in files]
        lines, size = sum(text.count(b"\n") for text in texts), sum(map(len, texts))
        print(f"{title:12} {len(files):4} files {lines:6} lines {size / 1000:7.1f} kB")


def show_in_process(*, is_small: bool) -> None:
    """Print the time of each step from an experiment to its chart's archive, and of reading 100 pods' requests."""
    rounds = 1 if is_small else 10
    times = 1 if is_small else 30
    experiment = from_data(SPEC)
    allocated = allocate(experiment)
    chart, release = build(experiment, allocated), Release(name="exp")
    template = ChartTemplate(package_data.folder("chart-template"))
    pods = prepare_experiment(many(100)).objects

    def repeated(work: Callable[[], object]) -> float:
        return cpu_ms(lambda: [work() for _ in range(times)], rounds=rounds) / times

    def packed() -> None:
        prepared = prepare_experiment(experiment)
        files, own = prepared.chart(template), prepared.own
        lint_release(files, own.chart, own.values, own.objects)
        _ = files.archive, files.digest

    parts = {
        "spec -> trees": repeated(lambda: build(experiment, allocated)),
        "trees -> templates": repeated(chart.texts),
        "trees -> objects": repeated(lambda: chart.objects(chart.values, release)),
    }
    print(f"\nobjects              {len(chart.objects(chart.values, release))}")
    for title, took in parts.items():
        print(f"{title:20} {took:.2f} ms")
    total = sum(parts.values())
    print(f"all                  {total:.2f} ms   {verdict(total, BUDGET_MS)}")
    print(f"with lint, archive   {repeated(packed):.2f} ms")
    demand = repeated(lambda: demands_of(pods))
    print(f"100 pods -> demand   {demand:.2f} ms   {verdict(demand, BUDGET_DEMAND_MS)}")


def show_thousand(folder: Path, *, is_small: bool) -> None:
    """Print the time of `symph package` for a thousand specs, then again without changes."""
    specs = [f"e{number}.yaml" for number in range(2 if is_small else 1000)]
    folder.mkdir()
    for number, name in enumerate(specs):
        (folder / name).write_text(MANY.format(number=number))
    argv = [sys.executable, "-m", "symphony_charts", "package", *specs, "-d", "out"]
    env = {**os.environ, "SYMPH_STATE_DIR": str(folder)}
    for title, budget in ((f"{len(specs):,} charts", BUDGET_THOUSAND_S), ("unchanged", BUDGET_AGAIN_S)):
        work = partial(subprocess.run, argv, cwd=folder, stdout=subprocess.DEVNULL, check=True, env=env)
        took = cpu_ms(work, rounds=1) / 1000
        print(f"{title:20} {took:.2f} s    {verdict(took, budget)}")


def show_helm(folder: Path, *, is_small: bool) -> None:
    """Print the time of `helm template` beside a static chart of the same objects."""
    print()
    for version in HELM_VERSIONS:
        for groups in (4,) if is_small else (4, 10, 100):
            chart = write(built(many(groups)), folder / f"{version}-{groups}")
            still = static_chart(template_of(version, chart), folder / f"{version}-{groups}-static")
            rounds = 1 if is_small else 12
            ours, theirs = (cpu_ms(partial(template_of, version, path), rounds=rounds) for path in (chart, still))
            budget = BUDGET_RATIOS.get(groups)
            verdict_text = f"   {verdict(ours / theirs, budget)}" if budget else ""
            times = f"{ours:4.0f} ms, static {theirs:4.0f} ms, {ours / theirs:.2f} x"
            print(f"helm {version}, {groups:3} groups: {times}{verdict_text}")


def show_secrets(folder: Path, *, is_small: bool) -> None:
    """Print the size of helm's record of a release."""
    template = ChartTemplate(package_data.folder("chart-template"))
    print()
    for groups, budget in BUDGET_SECRETS_KB.items():
        prepared = prepare_experiment(many(min(groups, 2) if is_small else groups, replicas=4))
        printed = template_of(HELM_VERSIONS[-1], write(prepared.built, folder / f"secret{groups}"))
        size = release_kb(prepared.chart(template), printed)
        print(f"release, {groups:3} groups: {size:.0f} kB   {verdict(size, budget)}")


def verdict(figure: float, budget: float) -> str:
    """Return the budget and the verdict on the figure."""
    return f"budget {budget:g}: {'ok' if figure <= budget else 'MISSED'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="everything once, with few")
    is_small = parser.parse_args().small
    with tempfile.TemporaryDirectory() as name:
        show_sizes(Path(name))
        show_in_process(is_small=is_small)
        show_thousand(Path(name, "thousand"), is_small=is_small)
        show_helm(Path(name), is_small=is_small)
        show_secrets(Path(name), is_small=is_small)


if __name__ == "__main__":
    main()
