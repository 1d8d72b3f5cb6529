"""`symph package`: experiments as Helm charts and archives."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from symphony_charts.cli import common, output

__all__ = ["add_values", "configure", "run"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from symphony_charts.chart.values import Values
    from symphony_charts.cluster.packaging import Packaged


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph package`."""
    common.add_specs(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR|FORMAT",
        default="table",
        help=f"folder to write to (default: dist), or a format of the answer: {', '.join(common.FORMATS)}",
    )
    parser.add_argument("-d", "--dest", metavar="DIR", default=None, help="folder to write to, whatever it is called")
    parser.add_argument("--version", metavar="V", default=None, help="the chart's version (default: by what changed)")
    add_values(parser)
    common.add_dry_run(parser)
    common.add_examples(
        parser,
        "symph package experiment.yaml",
        "symph package experiments/*.yaml -o charts",
        "symph package rl.yaml --set groups.agent.replicas=32 --version 1.0.0",
        "symph package rl.yaml --dry-run -o json",
    )


def add_values(parser: argparse.ArgumentParser) -> None:
    """Add `-f FILE` and `--set KEY=VALUE`, which change values as they do for helm."""
    parser.add_argument(
        "-f", "--values", metavar="FILE", action="append", default=[], help="values to put over the experiment's"
    )
    common.add_set(parser)


def overrides_of(args: argparse.Namespace) -> Values:
    """What `-f` and `--set` say, the latter over the former."""
    from symphony_charts.chart.merge import merge, parse_set
    from symphony_charts.cluster.packaging import read_values

    values: Values = {}
    for file in args.values:
        values = merge(values, read_values(Path(file)))
    return merge(values, parse_set(args.set))


def run(args: argparse.Namespace) -> int:
    """Package every spec; nothing is written unless all of them can be."""
    dest = Path(_destination(args))
    packaged = _prepare_all(args, dest)
    touched = {id(item): 0 for item in packaged}
    if not args.dry_run:
        from symphony_charts.cluster.packaging import write

        with output.progress("writing", len(packaged)) as advance:
            for item in packaged:
                touched[id(item)] = write(item)
                advance(1)
    records = [_record(item, touched[id(item)]) for item in packaged]
    if len(packaged) == 1 and args.output in ("table", "wide"):
        _print_one(packaged[0], records[0], dry_run=args.dry_run)
    else:
        output.print_items(args, "Chart", records, _columns())
    return 0


def _destination(args: argparse.Namespace) -> str:
    if args.output not in common.FORMATS:
        folder, args.output = args.output, "table"
        return str(args.dest or folder)
    return str(args.dest or "dist")


def _prepare_all(args: argparse.Namespace, dest: Path) -> list[Packaged]:
    from symphony_charts.adapters import specfile
    from symphony_charts.cluster.packaging import prepare, template
    from symphony_charts.errors import SpecError

    overrides, filled = overrides_of(args), template()
    packaged: list[Packaged] = []
    faults: list[SpecError] = []
    with output.progress("packaging", len(args.specs)) as advance:
        for path in args.specs:
            try:
                spec = specfile.read(path)
                packaged.append(prepare(spec, dest, filled, overrides=overrides, version=args.version))
            except SpecError as error:
                faults.append(error)
            advance(1)
    _refuse(faults, packaged, total=len(args.specs))
    return packaged


def _refuse(faults: Sequence[Exception], packaged: Sequence[Packaged], total: int) -> None:
    """Raise the faults of all specs as one error; also where two specs make a chart of one name."""
    from symphony_charts.errors import Problem, SpecError

    seen: dict[str, Path] = {}
    twice = []
    for item in packaged:
        other = seen.setdefault(item.chart.name, item.spec.path)
        if other != item.spec.path:
            what = f'{other} and {item.spec.path} both make the chart "{item.chart.name}"'
            twice.append(SpecError([Problem(what=what, path="name", next="rename one, or package them apart")]))
    every = [*faults, *twice]
    if len(every) == 1 and total == 1:
        raise every[0]
    if every:
        for fault in every[:-1]:
            sys.stderr.write(f"error: {fault}\n")
        raise every[-1]


def _record(item: Packaged, touched: int) -> dict[str, object]:
    return {
        "name": item.chart.name,
        "version": item.chart.version,
        "last": item.last,
        "change": item.change.describe() if item.change is not None else "",
        "digest": item.chart.digest,
        "folder": str(item.folder),
        "archive": str(item.archive_path),
        "files": len(item.chart.files),
        "bytes": len(item.chart.archive),
        "written": touched,
        "runsOn": _runs_on(item),
    }


def _runs_on(item: Packaged) -> list[str]:
    """The processes that nothing stops on kind `jobs` when the experiment is done."""
    from symphony_charts.spec.pods import pods_of, processes_of

    experiment = item.spec.experiment
    pods = pods_of(experiment)
    done = {name.rpartition("/")[2] for name in experiment.done_when}
    runs_on = []
    for ref, process in processes_of(experiment):
        is_sidecar = pods[ref.pod].is_finite and process.lifecycle == "service"
        if not is_sidecar and (process.lifecycle == "service" or (done and ref.process not in done)):
            runs_on.append(str(ref))
    return runs_on


def _columns() -> list[output.Column]:
    return [
        output.Column("NAME", "name"),
        output.Column("VERSION", "version"),
        output.Column("WAS", "last"),
        output.Column("WRITTEN", "written"),
        output.Column("CHANGE", "change"),
        output.Column("DIGEST", "digest", is_wide=True),
        output.Column("ARCHIVE", "archive", is_wide=True),
    ]


def _print_one(item: Packaged, record: dict[str, object], *, dry_run: bool) -> None:
    from symphony_charts.spec.pods import pods_of

    pods = pods_of(item.spec.experiment)
    processes = sum(len(pod.processes) for pod in pods.values())
    counts = f"{_count(processes, 'process')} in {_count(len(pods), 'pod')}, {_count(len(item.services), 'service')}"
    output.line(f"{item.chart.name} {item.chart.version}   {counts}{_was(item)}")
    written = "nothing to write" if not dry_run and not record["written"] else "schema and README generated"
    if dry_run:
        written = f"{len(item.plan.writes)} would be written"
    output.line(f"  chart    {item.folder}/   {len(item.chart.files)} files, {written}")
    size = f"{len(item.chart.archive) / 1000:.1f} kB"
    output.line(f"  archive  {item.archive_path}   {size}   {item.chart.digest[:19]}…")
    runs_on = record["runsOn"]
    if isinstance(runs_on, list) and runs_on:
        output.line(f"  note     runs on after the end, until `symph down` or `retire`: {', '.join(runs_on)}")
    name = item.chart.name
    output.next_step(f"symph up {item.spec.path} (here)", f"symph publish {name}", f"helm install {name} {item.folder}")


def _was(item: Packaged) -> str:
    if item.last is None:
        return "   new"
    if item.change is None:
        return "   unchanged" if item.last == item.chart.version else f"   was {item.last}"
    return f"   was {item.last}: {item.change.describe()}"


def _count(number: int, word: str) -> str:
    return f"{number} {word if number == 1 else word + ('es' if word.endswith('s') else 's')}"
