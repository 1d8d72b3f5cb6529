"""What `symph run` prints of an experiment, wherever that runs: its lines, and how it ended."""

from __future__ import annotations

import argparse
import json
import time

from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import ExperimentStatus, LogQuery
from symphony_charts.cli import experiments, output
from symphony_charts.cli.following import Follower
from symphony_charts.cli.log_lines import LinePrinter
from symphony_charts.formats.age import age
from symphony_charts.placement.plan import Plan
from symphony_charts.placement.report.money import price_per_hour

__all__ = ["follow", "left_running", "say_end"]


def follow(args: argparse.Namespace, watcher: Watcher, name: str, *, run: str = "") -> Follower:
    """A follower of the processes that `-p` names (default: of all) that is to be started."""
    status = watcher.describe(name, events=False)
    chosen = [one.path for word in args.process for one in experiments.some_instances(status, word)]
    paths = tuple(dict.fromkeys(chosen))
    printer = LinePrinter(
        paths or tuple(instance.path for instance in status.instances),
        form=args.output,
        color=getattr(args, "color", None),
        has_times=args.timestamps,
        is_live=True,
    )
    query = LogQuery(instances=paths, follow=True, is_one_run=bool(run))
    return Follower(watcher, name, printer, query, run)


def say_end(
    args: argparse.Namespace,
    status: ExperimentStatus | None,
    name: str,
    code: int,
    began: float,
    plan: Plan | None,
) -> None:
    """Print one line: how it ended, how long it took, the price of the plan's nodes per hour, and how to read the logs.

    `plan` is None if no node pools are known.
    """
    took = (status.ended if status and status.ended else time.time()) - (status.started if status else began)
    phase = status.phase if status else "deleted"
    price = price_per_hour(plan) if plan else None
    if args.output == "json":
        record: dict[str, object] = {"time": time.time(), "name": name, "phase": phase, "status": code}
        record |= {"seconds": round(took, 3), "pricePerHour": price}
        output.line(json.dumps(record, ensure_ascii=False))
        return
    where = "" if args.backend == "tmux" else " --on kube"
    logs = f"   logs: symph logs {name}{where}" if status else ""
    rate = f"   ${price:.2f}/h as planned on {plan.source}" if plan and price else ""
    output.note(f"{name} {phase} after {_span(took)}{rate}{logs}")


def left_running(args: argparse.Namespace, name: str) -> None:
    """Say how to come back to an experiment that runs on."""
    where = "" if args.backend == "tmux" else " --on kube"
    end = f"symph down {name}" if args.backend == "tmux" else f"symph rm {name}{where}"
    output.note(f"{name} runs on")
    output.next_step(f"symph logs -f {name}{where}", end)


def _span(seconds: float) -> str:
    """A time span to the second, and to a tenth of one where that is much."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return age(seconds) if seconds >= 3600 else f"{int(seconds // 60)} m {int(seconds % 60)} s"
