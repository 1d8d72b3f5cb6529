"""`symph process`: the processes of an experiment on this machine."""

from __future__ import annotations

import argparse
import time

from symphony_charts.cli import common, output

__all__ = ["configure", "run"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from symphony_charts.cluster.local_store import Run

_STATES = {"running": "good", "done": "good", "failed": "bad", "backoff": "bad", "waiting": "busy", "stopped": "dim"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph process`."""
    common.add_experiment(parser)
    parser.add_argument("-w", "--watch", action="store_true", help="print again whenever something changes")
    common.add_output(parser)
    common.add_examples(parser, "symph process", "symph process ring -o json", "symph p -w ring")


def run(args: argparse.Namespace) -> int:
    """List them once, or again at each change until the run is over."""
    from symphony_charts.cluster.local_store import find_run

    found = find_run(args.experiment_name)
    _supervised(found)
    _show(args, found)
    shown = (found.folder / "state.json").stat().st_mtime_ns
    while args.watch and found.is_live:
        time.sleep(0.2)
        changed = (found.folder / "state.json").stat().st_mtime_ns
        if changed != shown:
            output.line()
            _show(args, found)
            shown = changed
    return 0


def _supervised(found: Run) -> None:
    """Give the run a supervisor if it lost its own; the common case must not import what that takes."""
    if found.is_live and not found.is_supervised:
        from symphony_charts.cluster.local_run import ensure_supervised

        ensure_supervised(found)


def _show(args: argparse.Namespace, found: Run) -> None:
    from symphony_charts.cluster.local_store import process_items

    def colour(item: Mapping[str, object]) -> str:
        return _STATES.get(str(item["phase"]), "")

    columns = [
        output.Column("GROUP", "group"),
        output.Column("NAME", "name"),
        output.Column("READY", lambda item: "1" if item["ready"] else "0"),
        output.Column("RESTARTS", "restarts"),
        output.Column("STATE", "state", state=colour),
        output.Column("POD", "pod", is_wide=True),
        output.Column("LAST LINE", lambda item: _last_line(found, item), is_wide=True),
    ]
    output.print_items(args, "Process", process_items(found), columns)


def _last_line(found: Run, item: Mapping[str, object]) -> str:
    log = found.process_dir(int(str(item["slot"]))) / "log"
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 400))
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:80] if lines else ""
