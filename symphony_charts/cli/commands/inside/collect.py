"""`symph collect`: bring logs, states and results here before they are gone."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from symphony_charts.backend.protocol import Watcher
from symphony_charts.backend.status import ExperimentStatus, InstanceStatus, LogQuery
from symphony_charts.cli import experiments, output
from symphony_charts.cli.commands.look.describe import record_of
from symphony_charts.errors import SymphError
from symphony_charts.system.files import write_file

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Write `experiment.json` and `<process>/log`, `<process>/<path>` into a folder; the status is 1 if any is missing.

    A finished container gives its log alone: its files are gone from where anybody could read them.
    """
    watcher = experiments.watcher_of(args)
    status = experiments.find_status(args, watcher, events=True)
    folder = Path(args.to or f"{status.name}-{status.run or 'run'}")
    chosen = [instance for word in args.process for instance in experiments.some_instances(status, word)] or list(
        status.instances
    )
    write_file(folder / "experiment.json", (json.dumps(record_of(status), indent=2) + "\n").encode())
    items = [item for one in chosen for item in _collect(watcher, status, one, args.path, folder)]
    columns = [output.Column("PROCESS", "name"), output.Column("WHAT", "what"), output.Column("RESULT", "result")]
    output.print_items(args, "Collected", items, columns)
    output.note(f"collected into {folder}")
    return int(any(not item["done"] for item in items))


def _collect(
    watcher: Watcher, status: ExperimentStatus, one: InstanceStatus, paths: list[str], folder: Path
) -> list[dict[str, object]]:
    place = folder / one.path
    text = "".join(line.text for line in watcher.logs(status.name, LogQuery(instances=(one.path,))))
    write_file(place / "log", text.encode())
    items: list[dict[str, object]] = [
        {"name": one.path, "what": "log", "result": f"{text.count(chr(10))} lines", "done": True}
    ]
    for path in paths:
        target = place / (path.strip("/").rpartition("/")[2] or "root")
        try:
            # Into the folder, where an earlier one is copied over.
            watcher.copy_out(status.name, one, path, place)
            items.append({"name": one.path, "what": path, "result": str(target), "done": True})
        except SymphError as error:
            items.append({"name": one.path, "what": path, "result": error.what, "done": False})
    return items
