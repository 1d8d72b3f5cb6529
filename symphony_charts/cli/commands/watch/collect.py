"""`symph collect`: bring logs, states and results here before they are gone."""

from __future__ import annotations

import argparse

from symphony_charts.cli import output
from symphony_charts.cli.commands.watch import watching
from symphony_charts.cli.options import common

__all__ = ["configure", "run"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from symphony_charts.backend.protocol import Watcher
    from symphony_charts.backend.status import ExperimentStatus, InstanceStatus


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph collect`."""
    common.add_experiment(parser)
    parser.add_argument(
        "--path", metavar="PATH", action="append", default=[], help="also this file or folder of each process"
    )
    parser.add_argument(
        "-p", "--process", metavar="PROCESS", action="append", default=[], help="only of these (default: of all)"
    )
    parser.add_argument("--to", metavar="FOLDER", default=None, help="where to (default: ./EXPERIMENT-RUN)")
    watching.add_target(parser)
    common.add_output(parser, ("table", "json", "yaml"))
    common.add_examples(parser, "symph collect rl", "symph collect rl --path /results -p learner --to out --on kube")


def run(args: argparse.Namespace) -> int:
    """Write `experiment.json` and `<process>/log`, `<process>/<path>` into a folder; the status is 1 if any is missing.

    A finished container gives its log alone: its files are gone from where anybody could read them.
    """
    import json
    from pathlib import Path

    from symphony_charts.cli.commands.watch.describe import record_of
    from symphony_charts.system.files import write_file

    watcher = watching.watcher_of(args)
    status = watching.find_status(args, watcher, events=True)
    folder = Path(args.to or f"{status.name}-{status.run or 'run'}")
    chosen = [one for word in args.process for one in watching.some_instances(status, word)] or list(status.instances)
    write_file(folder / "experiment.json", (json.dumps(record_of(status), indent=2) + "\n").encode())
    items = [item for one in chosen for item in _collect(watcher, status, one, args.path, folder)]
    columns = [output.Column("PROCESS", "name"), output.Column("WHAT", "what"), output.Column("RESULT", "result")]
    output.print_items(args, "Collected", items, columns)
    output.note(f"collected into {folder}")
    return int(any(not item["done"] for item in items))


def _collect(
    watcher: Watcher, status: ExperimentStatus, one: InstanceStatus, paths: list[str], folder: Path
) -> list[dict[str, object]]:
    from symphony_charts.backend.status import LogQuery
    from symphony_charts.errors import SymphError
    from symphony_charts.system.files import write_file

    place = folder / one.path
    text = "".join(line.text for line in watcher.logs(status.name, LogQuery(instances=(one.path,))))
    write_file(place / "log", text.encode())
    items: list[dict[str, object]] = [
        {"name": one.path, "what": "log", "result": f"{text.count(chr(10))} lines", "done": True}
    ]
    for path in paths:
        target = place / (path.strip("/").rpartition("/")[2] or "root")
        try:
            watcher.copy_out(status.name, one, path, target)
            items.append({"name": one.path, "what": path, "result": str(target), "done": True})
        except SymphError as error:
            items.append({"name": one.path, "what": path, "result": error.what, "done": False})
    return items
