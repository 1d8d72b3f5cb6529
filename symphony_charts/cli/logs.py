"""`symph logs`: what processes printed, one or many, as a whole or as it comes."""

from __future__ import annotations

import argparse
import sys
import time

from symphony_charts.cli import common, output

__all__ = ["configure", "run"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from symphony_charts.cluster.local_store import Run

    Line = tuple[float, int, str]  # seconds since 1970, slot, text

# Colours of names in merged logs: one each, in turn.
_NAME_COLORS = ("36", "33", "35", "32", "34", "31")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph logs`."""
    parser.add_argument(
        "component_name", metavar="PROCESS", nargs="?", help="process, group/process, or an experiment for all of its"
    )
    common.add_experiment(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the run is over")
    parser.add_argument("-s", "--since", metavar="SECONDS", type=float, default=0, help="only the last so many seconds")
    parser.add_argument("-t", "--tail", metavar="LINES", type=int, default=-1, help="only the last so many lines")
    parser.add_argument("--timestamps", action="store_true", help="begin each line with its time")
    common.add_output(parser, ("table", "json"), headers=False)
    common.add_examples(
        parser,
        "symph logs learner",
        "symph logs -f ring",
        "symph logs team-a/worker-0 integrate --tail 20 --timestamps",
    )


def run(args: argparse.Namespace) -> int:
    """Print the lines of all chosen processes in order of time."""
    found, slots = _choose(args)
    names = {item["slot"]: _name(item) for item in found.state()["processes"]}
    since = time.time() - args.since if args.since else 0.0
    offsets = dict.fromkeys(slots, 0)
    lines = [line for line in sorted(_read(found, slots, offsets), key=_moment) if line[0] >= since]
    for line in lines[-args.tail :] if args.tail > 0 else lines if args.tail else []:
        _print(args, line, names, len(slots) > 1)
    while args.follow:
        over = not found.is_live
        for line in sorted(_read(found, slots, offsets, partial=over), key=_moment):
            _print(args, line, names, len(slots) > 1)
        if over:
            break
        sys.stdout.flush()
        time.sleep(0.05)
    return 0


def _moment(line: Line) -> float:
    """The key by which lines of several processes are merged; those of one stay in their order."""
    return line[0]


def _choose(args: argparse.Namespace) -> tuple[Run, list[int]]:
    """The run and slots that the words mean: `PROCESS [EXPERIMENT]`, or an experiment alone."""
    from symphony_charts.cluster.local_store import find_run, find_slots, live_runs, runs_of

    word, experiment = args.component_name, args.experiment_name
    everything = word is None or (experiment is None and runs_of(word) and not _is_process(word, live_runs()))
    found = find_run(word if everything and word is not None else experiment)
    if everything:
        return found, [item["slot"] for item in found.state()["processes"]]
    return found, find_slots(found, word)


def _is_process(word: str, runs: Sequence[Run]) -> bool:
    return len(runs) == 1 and any(item["name"] == word for item in runs[0].state()["processes"])


def _read(found: Run, slots: Sequence[int], offsets: dict[int, int], *, partial: bool = True) -> Iterator[Line]:
    """New lines since `offsets`, which move on; a last line without its end waits unless `partial`."""
    from symphony_charts.cluster.local_logs import stamped_lines

    for slot in slots:
        log = found.process_dir(slot) / "log"
        size = log.stat().st_size if log.exists() else 0
        if size == offsets[slot]:
            continue
        for offset, moment, text in stamped_lines(log, offsets[slot]):
            if offset == size and not partial and not _ends_whole(log, size):
                break
            offsets[slot] = offset
            yield moment, slot, text


def _ends_whole(log: object, size: int) -> bool:
    from pathlib import Path

    with Path(str(log)).open("rb") as file:
        file.seek(size - 1)
        return file.read(1) == b"\n"


def _name(item: dict[str, object]) -> str:
    return f"{item['group']}/{item['name']}" if item["group"] else str(item["name"])


def _print(args: argparse.Namespace, line: Line, names: dict[int, str], many: bool) -> None:
    moment, slot, text = line
    if args.output == "json":
        import json

        output.line(json.dumps({"time": moment, "process": names[slot], "line": text}, ensure_ascii=False))
        return
    stamp = ""
    if args.timestamps:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(moment)) + f".{int(moment % 1 * 1000):03d} "
    name = ""
    if many:
        width = max(map(len, names.values()))
        name = names[slot].ljust(width)
        if output.use_color(sys.stdout, getattr(args, "color", None)):
            name = f"\x1b[{_NAME_COLORS[slot % len(_NAME_COLORS)]}m{name}\x1b[0m"
        name += " | "
    output.line(f"{stamp}{name}{text}")
