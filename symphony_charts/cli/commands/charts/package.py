"""`symph package`: experiments as Helm charts and archives."""

from __future__ import annotations

import argparse
from pathlib import Path

from symphony_charts.cli import output
from symphony_charts.cli.options import common
from symphony_charts.cli.options.values import add_values, prepared_of, user_values_of

__all__ = ["configure", "located", "refuse_twins", "run", "specs_of"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from symphony_charts.cli.commands.charts.workspace import Images
    from symphony_charts.errors import Problem
    from symphony_charts.package import Packaged


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph package`."""
    from symphony_charts.cli.commands.charts.workspace import add_workspace
    from symphony_charts.cli.commands.git.publish import add_publish_options
    from symphony_charts.cli.options.gitops import add_change_options

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
    common.add_placement(parser)
    parser.add_argument("--push", action="store_true", help="publish them, too; takes --env and the like of `publish`")
    add_publish_options(parser)
    add_change_options(parser, is_alone=False)
    add_workspace(parser)
    common.add_dry_run(parser)
    common.add_examples(
        parser,
        "symph package experiment.yaml",
        "symph package experiment.yaml --pools cluster.tf.json",
        "symph package experiments/*.yaml -o charts",
        "symph package rl.yaml --set groups.agent.replicas=32 --version 1.0.0",
        "symph package rl.yaml --dry-run -o json",
        "symph package rl.yaml --push --env dev",
        "symph package rl.yaml --workspace . --image-repo registry.example.org/rl/images",
    )


def run(args: argparse.Namespace) -> int:
    """Package every spec; nothing is written unless all of them can be. With `--push` they are published then."""
    from symphony_charts.cli.commands.charts.workspace import push_workspace

    images = push_workspace(args, specs_of(args.specs))
    status = _package(args, images)
    if args.push:
        from symphony_charts.cli.commands.git.publish import publish

        publish(args, specs_of(args.specs), user_values_of(args), images.by_base)
    return status


def _package(args: argparse.Namespace, images: Images) -> int:
    dest = Path(_destination(args))
    specs = specs_of(args.specs)
    if len(specs) == 1 and args.output in ("table", "wide"):
        (item,) = _prepare_all(args, specs, dest, images)
        _print_one(item, _record(item, 0 if args.dry_run else _write(item), images), dry_run=args.dry_run)
    else:
        output.print_items(args, "Chart", _package_many(args, specs, dest, images), _columns())
    return 0


def specs_of(paths: Sequence[str]) -> list[str]:
    """The spec files among `paths`: the lock files that a pattern like ``*.yaml`` catches as well are left out."""
    specs = [path for path in paths if not path.endswith(".lock.yaml")]
    return specs or list(paths)


def _package_many(args: argparse.Namespace, specs: list[str], dest: Path, images: Images) -> list[dict[str, object]]:
    """The records of all charts, in order; what has not changed since the last time is not even read."""
    from symphony_charts.chart.files.package_cache import PackageCache

    cache = PackageCache(dest, {"overrides": user_values_of(args), "version": args.version})
    # What fits depends on files that the cache does not know.
    known = [] if args.pools or images.by_base else specs
    fresh = {spec: record for spec in known if (record := cache.fresh(spec)) is not None}
    stale = [spec for spec in specs if spec not in fresh]
    made = dict(zip(stale, _prepare_all(args, stale, dest, images), strict=True))
    records: dict[str, dict[str, object]] = {spec: {**record, "written": 0} for spec, record in fresh.items()}
    with output.progress("writing", len(made)) as advance:
        for spec, item in made.items():
            records[spec] = _record(item, 0 if args.dry_run else _write(item), images)
            if not args.dry_run and not item.prepared.own.fit and not images.by_base:
                cache.remember(spec, {**records[spec], "last": item.chart.version, "change": ""})
            advance(1)
    refuse_twins([(spec, str(records[spec]["name"])) for spec in specs])
    if not args.dry_run:
        cache.save()
    return [records[spec] for spec in specs]


def _write(item: Packaged) -> int:
    from symphony_charts.package import write

    return write(item)


def _destination(args: argparse.Namespace) -> str:
    if args.output not in common.FORMATS:
        folder, args.output = args.output, "table"
        return str(args.dest or folder)
    return str(args.dest or "dist")


def _prepare_all(args: argparse.Namespace, specs: Sequence[str], dest: Path, images: Images) -> list[Packaged]:
    from symphony_charts.errors import SpecError
    from symphony_charts.oci.workspace import with_images
    from symphony_charts.package import package, template
    from symphony_charts.spec import files as specfile

    filled = template()
    packaged: list[Packaged] = []
    faults: list[Problem] = []
    with output.progress("packaging", len(specs)) as advance:
        for path in specs:
            try:
                spec = with_images(specfile.read(path), images.by_base)
                packaged.append(package(prepared_of(args, spec), spec, dest, filled, version=args.version))
            except SpecError as error:
                if len(specs) == 1:
                    raise
                faults += [located(problem, path) for problem in error.problems]
            advance(1)
    if faults:
        raise SpecError(faults)
    refuse_twins([(str(item.spec.path), item.chart.name) for item in packaged])
    return packaged


def located(problem: Problem, path: str) -> Problem:
    """The problem with the file that has it, where it does not say so itself."""
    from symphony_charts.errors import Problem

    if problem.path.startswith(path):
        return problem
    where = ", ".join(part for part in (path, problem.path) if part)
    return Problem(what=problem.what, path=where, next=problem.next)


def refuse_twins(charts: Sequence[tuple[str, str]]) -> None:
    """Raise SpecError where two specs make a chart of one name: the second would overwrite the first."""
    from symphony_charts.errors import Problem, SpecError

    first: dict[str, str] = {}
    problems = []
    for path, name in charts:
        other = first.setdefault(name, path)
        if other != path:
            what = f'{other} and {path} both make the chart "{name}"'
            problems.append(Problem(what=what, path="name", next="rename one, or package them apart"))
    if problems:
        raise SpecError(problems)


def _record(item: Packaged, touched: int, images: Images) -> dict[str, object]:
    from symphony_charts.oci.workspace import images_of

    used = images_of(item.spec.experiment) if images.records else []
    return {
        "name": item.chart.name,
        "version": item.chart.version,
        "last": item.last,
        "change": item.change.describe() if item.change is not None else "",
        "digest": item.chart.digest,
        "fit": item.prepared.own.fit,
        "folder": str(item.folder),
        "archive": str(item.archive_path),
        "files": len(item.chart.files),
        "bytes": len(item.chart.archive),
        "written": touched,
        "runsOn": _runs_on(item),
        **({"images": [record for record in images.records if record["image"] in used]} if used else {}),
    }


def _runs_on(item: Packaged) -> list[str]:
    from symphony_charts.chart.render.model import build_model
    from symphony_charts.kinds.leftovers import runs_on

    model = build_model(item.prepared.values, item.prepared.own.release)
    left = runs_on(model.values, model.groups, model.kind_name)
    return [group if group == process else f"{group}/{process}" for group, process in left]


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
    services = _count(len(item.prepared.services), "service")
    counts = f"{_count(processes, 'process')} in {_count(len(pods), 'pod')}, {services}"
    output.line(f"{item.chart.name} {item.chart.version}   {counts}{_was(item)}")
    written = "nothing to write" if not dry_run and not record["written"] else "schema and README generated"
    if dry_run:
        written = f"{len(item.plan.writes)} would be written"
    output.line(f"  chart    {item.folder}/   {len(item.chart.files)} files, {written}")
    size = f"{len(item.chart.archive) / 1000:.1f} kB"
    output.line(f"  archive  {item.archive_path}   {size}   {item.chart.digest[:19]}…")
    if item.prepared.own.fit:
        output.line(f"  fit      {item.prepared.own.fit}")
    runs_on = record["runsOn"]
    if isinstance(runs_on, list) and runs_on:
        output.line(f"  note     runs on after the end, until `helm uninstall`: {', '.join(runs_on)}")
    name = item.chart.name
    output.next_step(f"symph up {item.spec.path} (here)", f"helm install {name} {item.folder}")


def _was(item: Packaged) -> str:
    if item.last is None:
        return "   new"
    if item.change is None:
        return "   unchanged" if item.last == item.chart.version else f"   was {item.last}"
    return f"   was {item.last}: {item.change.describe()}"


def _count(number: int, word: str) -> str:
    return f"{number} {word if number == 1 else word + ('es' if word.endswith('s') else 's')}"
