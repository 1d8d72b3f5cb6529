"""CPU milliseconds to turn a TorchX AppDef into an experiment, by number of roles and replicas.

    python benchmarks/importers.py

Prints the ratio to reading the same AppDef as JSON, in one run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from symphony_charts.importers.report import Imported, Log
from symphony_charts.integrations.torchx.appdef import read_appdef
from symphony_charts.integrations.torchx.importer import experiment_of
from symphony_charts.integrations.torchx.options import RunOptions


def app(roles: int, replicas: int) -> dict[str, object]:
    """Return an AppDef whose roles have arguments, variables, a port and resources."""
    role = {
        "image": "busybox:1",
        "entrypoint": "python",
        "args": ["main.py", "--rank", "${replica_id}"],
        "env": {"LR": "0.1"},
        "num_replicas": replicas,
        "port_map": {"c10d": 29500},
        "resource": {"cpu": 2, "gpu": 1, "memMB": 4096, "capabilities": {}, "devices": {}},
    }
    ports = ({"port_map": {f"p{number}": 29500 + number}} for number in range(roles))
    return {"name": "app", "roles": [{**role, "name": f"r{number}", **port} for number, port in enumerate(ports)]}


def imported(data: object) -> Imported:
    """Return the experiment of an AppDef without run options."""
    log = Log()
    return experiment_of(read_appdef(data, log), RunOptions(), log)


def best_ms(action: Callable[[], object], runs: int = 15) -> float:
    """Return the least CPU time of several runs, in milliseconds."""
    times = []
    for _ in range(runs):
        started = time.process_time()
        action()
        times.append(time.process_time() - started)
    return 1000 * min(times)


def main() -> None:
    print(f"{'roles':>5} {'replicas':>8} {'ms':>7} {'x json':>7}")
    for roles, replicas in ((1, 1), (1, 1000), (20, 1), (20, 1000)):
        data = app(roles, replicas)
        text = json.dumps(data)
        ours, floor = best_ms(lambda data=data: imported(data)), best_ms(lambda text=text: json.loads(text))
        print(f"{roles:>5} {replicas:>8} {ours:>7.2f} {ours / floor:>7.0f}")


if __name__ == "__main__":
    main()
