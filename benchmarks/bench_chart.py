"""How long charts take: CPU milliseconds per chart of 12 objects, a thousand of them as a whole process, and helm.

`helm template` of a chart stands beside that of a chart whose templates are the same objects, in the same run; what
helm keeps of a release is what it puts into its Secret.

    python benchmarks/bench_chart.py [--small]

CPU time is what counts; the fastest of several rounds is shown, since everything slower is the machine's other work.
`--small` does everything once, with few, to see that it runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from symphony_charts.chart.compile.experiment import compile_values
from symphony_charts.chart.files.chart import Chart, ChartTemplate
from symphony_charts.chart.lint import lint_release
from symphony_charts.chart.render.assemble import Release, assemble
from symphony_charts.formats.yaml_text import dump
from symphony_charts.placement.fit.demand import demands_of
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.data import from_data
from symphony_charts.spec.services import allocate
from symphony_charts.system import package_data
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
BUDGET_HELM, BUDGET_TINY_KB, BUDGET_SECRET_KB = 4.0, 45, 1024
BUDGET_MS, BUDGET_DEMAND_MS, BUDGET_MANY_S, BUDGET_AGAIN_S = 3.0, 2.0, 4.0, 0.5


def cpu_ms(work: Callable[[], object], *, is_small: bool, times: int = 30) -> float:
    """CPU milliseconds of one call, of the fastest round."""
    rounds, times = (1, 1) if is_small else (10, times)
    work()
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(times):
            work()
        best = min(best, (time.process_time() - start) / times)
    return best * 1000


def in_process(*, is_small: bool) -> None:
    """The steps of one chart."""
    experiment = from_data(SPEC)
    services = allocate(experiment)
    values = compile_values(experiment, services)
    template = ChartTemplate(package_data.folder("chart-template"))
    release = Release(name="exp", chart_name="exp")

    def everything() -> None:
        prepared = prepare_experiment(experiment)
        chart, own = prepared.chart(template), prepared.own
        lint_release(chart, own.values, own.model, own.objects)
        _ = chart.archive, chart.digest

    print(f"objects              {len(assemble(values, release))}")
    print(f"spec -> values       {cpu_ms(lambda: compile_values(experiment, services), is_small=is_small):.2f} ms")
    print(f"values -> objects    {cpu_ms(lambda: assemble(values, release), is_small=is_small):.2f} ms")
    files = cpu_ms(lambda: prepare_experiment(experiment).chart(template), is_small=is_small)
    print(f"spec -> files        {files:.2f} ms")
    total = cpu_ms(everything, is_small=is_small)
    print(f"all with lint, pack  {total:.2f} ms   budget {BUDGET_MS} {_verdict(total, BUDGET_MS)}")


def demand(*, is_small: bool) -> None:
    """What a hundred pods of different requests ask of the cluster, read from their objects."""
    processes = {
        f"p{number}": {"command": ["run"], "requests": {"cpu": f"{100 + number}m", "memory": f"{64 + number}Mi"}}
        for number in range(100)
    }
    objects = prepare_experiment(from_data({**SPEC, "processes": processes})).objects
    took = cpu_ms(lambda: demands_of(objects), is_small=is_small, times=10)
    print(f"100 pods -> demand   {took:.2f} ms   budget {BUDGET_DEMAND_MS} {_verdict(took, BUDGET_DEMAND_MS)}")


MANY = """\
name: e{number}
image: busybox:1.37.0
processes:
  learner: {{command: [learn], binds: [replay, ps], exposes: board}}
  agent: {{command: [act], connects: [replay, ps], replicas: 4}}
"""


def thousand(*, is_small: bool) -> None:
    """A whole `symph package` of a thousand specs, then again with nothing changed."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder in memory, so that the disk is not measured
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        specs = [f"e{number}.yaml" for number in range(2 if is_small else 1000)]
        for number, name in enumerate(specs):
            (Path(folder) / name).write_text(MANY.format(number=number))
        argv = [sys.executable, "-m", "symphony_charts", "package", *specs, "-d", "out"]
        env = {**os.environ, "SYMPH_STATE_DIR": folder}
        for title, budget in ((f"{len(specs):,} new charts", BUDGET_MANY_S), ("again, unchanged", BUDGET_AGAIN_S)):
            before, start = os.times(), time.perf_counter()
            subprocess.run(argv, cwd=folder, stdout=subprocess.DEVNULL, check=True, env=env)
            after, wall = os.times(), time.perf_counter() - start
            cpu = after.children_user + after.children_system - before.children_user - before.children_system
            print(f"{title}     {cpu:.2f} s CPU, {wall:.2f} s   budget {budget} {_verdict(cpu, budget)}")


def large(groups: int, replicas: int = 1) -> Chart:
    """The chart of so many groups, each with a service that its neighbour dials."""
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
    experiment = from_data({"name": "exp", "image": "busybox:1.37.0", "processes": processes})
    return prepare_experiment(experiment).chart(ChartTemplate(package_data.folder("chart-template")))


def static(chart: Chart) -> dict[str, bytes]:
    """A chart that holds the objects of `chart` as they are."""
    objects = assemble(chart.values, Release(name="exp", chart_name="exp"))
    text = "".join(f"---\n{dump(one)}" for one in objects)
    return {"Chart.yaml": b"apiVersion: v2\nname: exp\nversion: 0.1.0\n", "templates/all.yaml": text.encode()}


def write(files: Mapping[str, bytes], folder: Path) -> Path:
    """The files of a chart below `folder`."""
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder


def helm_cpu_s(program: Path, chart: Path, rounds: int = 5) -> tuple[float, str]:
    """CPU seconds of the fastest `helm template` of some, and what it printed."""
    best, printed = float("inf"), ""
    for _ in range(rounds):
        before = os.times()
        ended = subprocess.run([program, "template", "exp", chart], capture_output=True, text=True, check=True)
        after, printed = os.times(), ended.stdout
        best = min(best, after.children_user + after.children_system - before.children_user - before.children_system)
    return best, printed


def helms(*, is_small: bool) -> None:
    """helm's time beside that of a static chart, and what it keeps of a release."""
    with tempfile.TemporaryDirectory() as folder:
        for version in HELM_VERSIONS:
            program = helm(version)
            if program is None:
                print(f"helm {version} is not unpacked: python -m tests.tools")
                continue
            for groups in (1,) if is_small else (1, 100, 500):
                chart = large(groups)
                ours, _ = helm_cpu_s(program, write(chart.packed, Path(folder, version, f"ours-{groups}")))
                plain, _ = helm_cpu_s(program, write(static(chart), Path(folder, version, f"static-{groups}")))
                ratio = ours / plain
                print(
                    f"helm {version}, {groups:3} groups  {ours:.2f} s CPU, static {plain:.2f} s: {ratio:.1f}x"
                    f"   budget {BUDGET_HELM:.0f}x {_verdict(ratio, BUDGET_HELM)}"
                )
            for title, chart, budget in (
                ("tiny", large(1), BUDGET_TINY_KB),
                ("200 x 4", large(2 if is_small else 200, replicas=4), BUDGET_SECRET_KB),
            ):
                _, printed = helm_cpu_s(program, write(chart.packed, Path(folder, version, title)), rounds=1)
                size = release_kb(chart, printed)
                print(f"release, {title:8}    {size:.0f} kB   budget {budget} {_verdict(size, budget)}")


def _verdict(measured: float, budget: float) -> str:
    return "kept" if measured <= budget else "EXCEEDED"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    is_small = parser.parse_args().small
    for part in (in_process, demand, thousand, helms):
        part(is_small=is_small)
