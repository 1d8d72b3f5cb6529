"""How fast the planner is, and how many nodes it needs, beside a first-fit and OR-tools CP-SAT.

    python benchmarks/placement.py [--full] [--no-solver] [--small]

First-fit takes one pod at a time and the first node of the first pool that has room, as Symphony's dispatcher did.
CP-SAT (``pip install ortools``, for this benchmark alone) minimises nodes with a time limit; it is given only the
sizes that it can do.
"""

from __future__ import annotations

import argparse
import gc
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from symphony_charts.cli.main import GARBAGE_AFTER
from symphony_charts.placement.catalog import default_catalog
from symphony_charts.placement.fit.demand import Demand, Shape
from symphony_charts.placement.plan import Plan, plan_demands
from symphony_charts.placement.pools.pool import Pools
from symphony_charts.placement.pools.readers import pools_of_data
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.model import Experiment, Process

MIB = 1 << 20


@dataclass(frozen=True)
class Case:
    pools: Pools
    demands: list[Demand]

    @property
    def pods(self) -> int:
        return sum(demand.count for demand in self.demands)


def make_case(pods: int, shapes: int, pools: int, seed: int = 1, most_nodes: int = 400) -> Case:
    """Return random machines of the catalogue and random shapes, with enough nodes."""
    rng = random.Random(seed)
    machines = sorted(
        m.name
        for m in default_catalog().machines.values()
        if not (m.gpus or m.chips or m.shared) and 4 <= m.vcpu <= 96 and m.arch == "amd64" and m.memory_mib >= 8192
    )
    rows = [
        {
            "name": f"p{i:04}",
            "machine_type": rng.choice(machines),
            "max_nodes": rng.randint(most_nodes // 10, most_nodes),
        }
        for i in range(pools)
    ]
    demands = [
        Demand(Shape(requests=tuple(sorted(_asks(rng).items()))), [(f"g{i:03}", pods // shapes)]) for i in range(shapes)
    ]
    return Case(pools_of_data({"pools": rows}), demands)


def _asks(rng: random.Random) -> dict[str, int]:
    cpu = rng.randint(1, 30) * 100
    return {"cpu": cpu, "memory": cpu * rng.randint(1, 6) * MIB, "pods": 1}


def one_pool(pods: int, shapes: int, seed: int = 1) -> Case:
    """Return the solver's case: one pool of n1-standard-16, with enough nodes for first-fit."""
    rng = random.Random(seed)
    pools = pools_of_data({"pools": [{"name": "p", "machine_type": "n1-standard-16", "max_nodes": pods}]})
    demands = [
        Demand(Shape(requests=tuple(sorted(_asks(rng).items()))), [(f"g{i:03}", pods // shapes)]) for i in range(shapes)
    ]
    return Case(pools, demands)


def timed(work: Callable[[], object]) -> tuple[float, object]:
    """Return CPU seconds (the work has one thread, and other programs may run on the machine) and the result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def first_fit(case: Case, limit_s: float = 120.0) -> tuple[int, int, bool]:
    """Return opened nodes, pods left over, and True if it finished: one pod at a time, pools in order of the file."""
    start, opened, left = time.perf_counter(), 0, 0
    nodes: list[list[list[int]]] = [[] for _ in case.pools.pools]
    usable = [(pool.usable["cpu"], pool.usable["memory"], pool.usable["pods"]) for pool in case.pools.pools]
    for demand in case.demands:
        need = tuple(demand.shape.amount(name) for name in ("cpu", "memory", "pods"))
        for _ in range(demand.count):
            if time.perf_counter() - start > limit_s:
                return opened, left, False
            place = _first(nodes, usable, need, case)
            if place is None:
                left += 1
                continue
            pool, node = place
            if node is None:
                nodes[pool].append([have - want for have, want in zip(usable[pool], need, strict=True)])
                opened += 1
            else:
                node[:] = [have - want for have, want in zip(node, need, strict=True)]
    return opened, left, True


def _first(
    nodes: list[list[list[int]]], usable: list[tuple[int, int, int]], need: tuple[int, ...], case: Case
) -> tuple[int, list[int] | None] | None:
    for number, pool in enumerate(case.pools.pools):
        for node in nodes[number]:
            if all(have >= want for have, want in zip(node, need, strict=True)):
                return number, node
        fits = all(have >= want for have, want in zip(usable[number], need, strict=True))
        if fits and len(nodes[number]) < pool.max_nodes:
            return number, None
    return None


def solve(case: Case, limit_s: float, slots: int) -> str:
    """Return CP-SAT's result within `limit_s`: nodes and seconds of its best solution, and its bound."""
    try:
        from ortools.sat.python import cp_model  # type: ignore[import-not-found]  # for this benchmark alone
    except ImportError:
        return "skipped: OR-tools is not installed (pip install ortools)"
    model = cp_model.CpModel()
    usable = case.pools.pools[0].usable
    used = [model.new_bool_var(f"u{n}") for n in range(slots)]
    counts = [
        [model.new_int_var(0, demand.count, f"x{n}_{i}") for i, demand in enumerate(case.demands)] for n in range(slots)
    ]
    for i, demand in enumerate(case.demands):
        model.add(sum(row[i] for row in counts) == demand.count)
    for node, row in zip(used, counts, strict=True):
        for name, unit in (("cpu", 1), ("memory", MIB), ("pods", 1)):
            asked = [-(-demand.shape.amount(name) // unit) for demand in case.demands]
            model.add(sum(a * x for a, x in zip(asked, row, strict=True)) <= usable[name] // unit * node)
    for first, second in pairwise(used):
        model.add(first >= second)
    model.minimize(sum(used))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = limit_s
    solver.parameters.num_workers = 2
    started = time.perf_counter()
    status = solver.solve(model)
    seconds = time.perf_counter() - started
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return f"no solution in {seconds:.0f} s, bound {solver.best_objective_bound:.0f}"
    word = "optimal" if status == cp_model.OPTIMAL else "best so far"
    return f"{solver.objective_value:.0f} nodes in {seconds:.1f} s ({word}, bound {solver.best_objective_bound:.0f})"


def nodes_of(plan: object) -> int:
    return sum(use.nodes for use in plan.uses) if isinstance(plan, Plan) else 0


def verdicts_of(plan: object) -> str:
    words = [group.verdict for group in plan.groups] if isinstance(plan, Plan) else []
    return ", ".join(f"{words.count(word)} {word}" for word in sorted(set(words)))


def large(pods: int, shapes: int, pools: int) -> None:
    """Print one line: a plan of a large case, in this process."""
    case = make_case(pods, shapes, pools)
    seconds, plan = timed(lambda: plan_demands(case.demands, case.pools))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{case.pods:>7} pods {shapes:>4} shapes {pools:>5} pools   plan and proof {seconds:6.2f} CPU-s   "
        f"{nodes_of(plan):>6} nodes   {memory:4.0f} MiB   {verdicts_of(plan)}"
    )


def lone(processes: int, pools: int) -> None:
    """Print one line: the same from a rendered experiment of `processes` separately declared processes."""
    case = make_case(200, 200, pools)
    texts = [(f"{d.shape.amount('cpu')}m", f"{d.shape.amount('memory') // MIB}Mi") for d in case.demands]
    experiment = Experiment(
        name="many",
        processes={
            f"p{i}": Process(image="i", requests={"cpu": texts[i % 200][0], "memory": texts[i % 200][1]})
            for i in range(processes)
        },
    )
    seconds, plan = timed(lambda: prepare_experiment(experiment, pools=case.pools, force=True).plan)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{processes:>7} processes of their own   {pools:>5} pools   plan and proof {seconds:6.2f} CPU-s   "
        f"{nodes_of(plan):>6} nodes   {memory:4.0f} MiB   {verdicts_of(plan)}"
    )


def beside_first_fit(pods: int, shapes: int, pools: int) -> None:
    """Print one line: our planner beside one pod at a time."""
    case = make_case(pods, shapes, pools)
    ours, plan = timed(lambda: plan_demands(case.demands, case.pools))
    theirs, result = timed(lambda: first_fit(case))
    opened, left, ended = result if isinstance(result, tuple) else (0, 0, False)
    state = f"{opened} nodes, {left} left over" if ended else "stopped"
    print(
        f"{pods:>7} pods {pools:>5} pools   ours {nodes_of(plan)} nodes in {ours:.2f} s   "
        f"first-fit {state} in {theirs:.1f} s   {theirs / ours:.0f}x"
    )


def beside_solver(pods: int, shapes: int, limit_s: float) -> None:
    """Print one line: our planner beside CP-SAT on one pool."""
    case = one_pool(pods, shapes)
    seconds, plan = timed(lambda: plan_demands(case.demands, case.pools))
    told = solve(case, limit_s, nodes_of(plan) + 2)
    print(f"{pods:>7} pods {shapes:>4} shapes   ours {nodes_of(plan)} nodes in {seconds * 1000:.1f} ms   CP-SAT {told}")


def main() -> int:
    """Print all comparisons; each large case runs in a separate process, so that its memory can be measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="let CP-SAT take 120 s for each size instead of 20")
    parser.add_argument("--no-solver", action="store_true", help="leave CP-SAT out")
    parser.add_argument("--small", action="store_true", help="a hundredth of each size, to see that it runs")
    parser.add_argument("--large", nargs=3, type=int, metavar=("PODS", "SHAPES", "POOLS"), help=argparse.SUPPRESS)
    parser.add_argument("--lone", nargs=2, type=int, metavar=("PROCESSES", "POOLS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    gc.set_threshold(GARBAGE_AFTER)  # as the command does
    if options.large:
        large(*options.large)
        return 0
    if options.lone:
        lone(*options.lone)
        return 0
    share = 100 if options.small else 1
    pools = 1000 // share
    for pods, shapes in ((1_000, 20), (10_000, 50), (100_000, 200)):
        argv = [sys.executable, __file__, "--large", str(pods // share), str(min(shapes, pods // share)), str(pools)]
        subprocess.run(argv, check=True, timeout=600)
    subprocess.run([sys.executable, __file__, "--lone", str(100_000 // share), str(pools)], check=True, timeout=600)
    beside_first_fit(1_000 // share, 20 if share == 1 else 2, pools)
    beside_first_fit(10_000 // share, 50 if share == 1 else 5, pools)
    if not options.no_solver:
        for pods, shapes in ((200, 10), (1_000, 20), (3_000, 30)):
            beside_solver(pods, shapes, 120.0 if options.full else 20.0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
