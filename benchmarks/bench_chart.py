"""How long charts take: CPU milliseconds per chart of 12 objects, and a thousand of them as a whole process.

    python benchmarks/bench_chart.py

CPU time is what counts; the fastest of several rounds is shown, since everything slower is the machine's other work.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from symphony_charts.chart.compile.experiment import compile_values
from symphony_charts.chart.files.chart import ChartTemplate
from symphony_charts.chart.lint import lint_release
from symphony_charts.chart.render.assemble import Release, assemble
from symphony_charts.placement.fit.demand import demands_of
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.data import from_data
from symphony_charts.spec.services import allocate
from symphony_charts.system import package_data

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
BUDGET_MS, BUDGET_DEMAND_MS, BUDGET_MANY_S, BUDGET_AGAIN_S = 3.0, 2.0, 4.0, 0.5


def cpu_ms(work: Callable[[], object], rounds: int = 10, times: int = 30) -> float:
    """CPU milliseconds of one call, of the fastest round."""
    work()
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(times):
            work()
        best = min(best, (time.process_time() - start) / times)
    return best * 1000


def in_process() -> None:
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
    print(f"spec -> values       {cpu_ms(lambda: compile_values(experiment, services)):.2f} ms")
    print(f"values -> objects    {cpu_ms(lambda: assemble(values, release)):.2f} ms")
    print(f"spec -> files        {cpu_ms(lambda: prepare_experiment(experiment).chart(template)):.2f} ms")
    total = cpu_ms(everything)
    print(f"all with lint, pack  {total:.2f} ms   budget {BUDGET_MS} {_verdict(total, BUDGET_MS)}")


def demand() -> None:
    """What a hundred pods of different requests ask of the cluster, read from their objects."""
    processes = {
        f"p{number}": {"command": ["run"], "requests": {"cpu": f"{100 + number}m", "memory": f"{64 + number}Mi"}}
        for number in range(100)
    }
    objects = prepare_experiment(from_data({**SPEC, "processes": processes})).objects
    took = cpu_ms(lambda: demands_of(objects), times=10)
    print(f"100 pods -> demand   {took:.2f} ms   budget {BUDGET_DEMAND_MS} {_verdict(took, BUDGET_DEMAND_MS)}")


MANY = """\
name: e{number}
image: busybox:1.37.0
processes:
  learner: {{command: [learn], binds: [replay, ps], exposes: board}}
  agent: {{command: [act], connects: [replay, ps], replicas: 4}}
"""


def thousand() -> None:
    """A whole `symph package` of a thousand specs, then again with nothing changed."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder in memory, so that the disk is not measured
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        specs = [f"e{number}.yaml" for number in range(1000)]
        for number, name in enumerate(specs):
            (Path(folder) / name).write_text(MANY.format(number=number))
        argv = [sys.executable, "-m", "symphony_charts", "package", *specs, "-o", "out"]
        env = {**os.environ, "SYMPH_STATE_DIR": folder}
        for title, budget in (("1,000 new charts", BUDGET_MANY_S), ("again, unchanged", BUDGET_AGAIN_S)):
            before, start = os.times(), time.perf_counter()
            subprocess.run(argv, cwd=folder, stdout=subprocess.DEVNULL, check=True, env=env)
            after, wall = os.times(), time.perf_counter() - start
            cpu = after.children_user + after.children_system - before.children_user - before.children_system
            print(f"{title}     {cpu:.2f} s CPU, {wall:.2f} s   budget {budget} {_verdict(cpu, budget)}")


def _verdict(measured: float, budget: float) -> str:
    return "kept" if measured <= budget else "EXCEEDED"


if __name__ == "__main__":
    in_process()
    demand()
    thousand()
