"""`symph package`: experiments as Helm charts and archives."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from symphony_charts.chart.files.package_cache import PackageCache
from symphony_charts.cli import output
from symphony_charts.cli.commands.chart.fork import check_fork
from symphony_charts.cli.findings import note_warnings
from symphony_charts.cli.specs import each_spec, refuse_twins, specs_of
from symphony_charts.cli.values import prepared_of, user_values_of
from symphony_charts.errors import UsageError
from symphony_charts.kinds.leftovers import failure_difference, runs_on
from symphony_charts.oci.images import Images, images_of, with_images
from symphony_charts.package import Packaged, package, template, write
from symphony_charts.settings.project import settings_of_spec
from symphony_charts.spec import files as specfile
from symphony_charts.spec.pods import pods_of

__all__ = ["run"]

# What only the push of a workspace reads.
_REGISTRY = {
    "--plain-http": "plain_http",
    "--ca-file": "ca_file",
    "--cert-file": "cert_file",
    "--key-file": "key_file",
    "--insecure-skip-tls-verify": "insecure_skip_tls_verify",
    "--username": "username",
    "--password-stdin": "password_stdin",
}


def run(args: argparse.Namespace) -> int:
    """Package every spec; nothing is written unless all of them can be. With `--push` they are published then."""
    images = Images()
    named = settings_of_spec(Path(specs_of(args.specs)[0])).template
    args.template = named if args.template is None else args.template
    if args.push and (args.template or named):
        what = "what is published is made by the template of this installation"
        raise UsageError(what, next="package with --template, and publish the folder by your own means")
    if args.workspace is not None or args.image_repo is not None or args.platform:
        # The client of registries takes 28 ms to import, of the 250 in which a chart is packaged.
        from symphony_charts.cli.commands.chart.workspace import push_workspace

        images = push_workspace(args, specs_of(args.specs))
    elif flags := [flag for flag, name in _REGISTRY.items() if getattr(args, name)]:
        what = f"{', '.join(flags)}: no registry is asked here, since no image is pushed"
        raise UsageError(what, next="leave it out, or give --workspace and --image-repo")
    status = _package(args, images)
    if args.push:
        # The store takes 45 ms to import, likewise.
        from symphony_charts.cli.commands.gitops.publish import publish

        publish(args, specs_of(args.specs), user_values_of(args), images.by_base)
    return status


def _package(args: argparse.Namespace, images: Images) -> int:
    dest = Path(args.dest)
    specs = specs_of(args.specs)
    if len(specs) == 1 and args.output in ("table", "wide"):
        (item,) = _prepare_all(args, specs, dest, images)
        _print_one(item, _record(item, 0 if args.dry_run else write(item), images), dry_run=args.dry_run)
    else:
        output.print_items(args, "Chart", _package_many(args, specs, dest, images), _columns())
    return 0


def _package_many(args: argparse.Namespace, specs: list[str], dest: Path, images: Images) -> list[dict[str, object]]:
    """The records of all charts, in order; what has not changed since the last time is not even read."""
    cache = PackageCache(dest, {"overrides": user_values_of(args), "version": args.version, "changes": args.spec_set})
    # What fits depends on files that the cache does not know, as does a fork of the template.
    has_pools = args.pools or any(settings_of_spec(Path(spec)).pools for spec in specs)
    cached = [] if has_pools or images.by_base or args.template else specs
    fresh = {spec: record for spec in cached if (record := cache.fresh(spec)) is not None}
    stale = [spec for spec in specs if spec not in fresh]
    packaged = dict(zip(stale, _prepare_all(args, stale, dest, images), strict=True))
    records: dict[str, dict[str, object]] = {spec: {**record, "written": 0} for spec, record in fresh.items()}
    with output.progress("writing", len(packaged)) as advance:
        for spec, item in packaged.items():
            records[spec] = _record(item, 0 if args.dry_run else write(item), images)
            if not (args.dry_run or item.prepared.own.fit or images.by_base or args.template):
                cache.remember(spec, {**records[spec], "last": item.chart.version, "change": ""})
            advance(1)
    refuse_twins([(spec, str(records[spec]["name"])) for spec in specs])
    if not args.dry_run:
        cache.save()
    return [records[spec] for spec in specs]


def _prepare_all(args: argparse.Namespace, paths: Sequence[str], dest: Path, images: Images) -> list[Packaged]:
    filled = template(args.template)
    is_other = bool(args.template) and filled.makes != template().makes

    def prepare(path: str) -> Packaged:
        spec = with_images(specfile.read(path, args.spec_set), images.by_base)
        prepared = prepared_of(args, spec, force=True)
        packaged = package(prepared, spec, dest, filled, version=args.version, is_forced=args.force_unschedulable)
        if is_other:
            check_fork(packaged, args.template)
        return packaged

    packaged = each_spec(paths, prepare)
    refuse_twins([(str(item.spec.path), item.chart.name) for item in packaged])
    for item in packaged:
        _say_missing(item)
    note_warnings([item.verdict for item in packaged])
    return packaged


def _say_missing(item: Packaged) -> None:
    """Say which secret files are not here: the chart only names them, and its pods wait for the Secret."""
    experiment, folder = item.spec.experiment, item.spec.path.parent
    missing = [each.file for each in experiment.secrets if not (folder / Path(each.file).expanduser()).is_file()]
    # What an external store holds is read from there.
    if missing and experiment.secret_source.source != "external":
        verb = "seal" if experiment.secret_source.source == "sealed" else "push"
        step = f"symph secrets {verb} {item.spec.path}, where they are: the pods wait for them"
        output.note(f"not here, and not needed for the chart: secret files {', '.join(missing)}\n  next: {step}")


def _record(item: Packaged, touched: int, images: Images) -> dict[str, object]:
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
        "onFailure": failure_difference(item.prepared.experiment),
        **({"images": [record for record in images.records if record["image"] in used]} if used else {}),
    }


def _runs_on(item: Packaged) -> list[str]:
    left = runs_on(item.prepared.own.chart, item.prepared.values)
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
    pods = pods_of(item.spec.experiment)
    processes = sum(len(pod.processes) for pod in pods.values())
    services = output.counted(len(item.prepared.services), "service")
    counts = f"{output.counted(processes, 'process')} in {output.counted(len(pods), 'pod')}, {services}"
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
    if record["onFailure"]:
        output.line(f"  note     {record['onFailure']}")
    name = item.chart.name
    output.next_step(f"symph up {item.spec.path} (here)", f"helm install {name} {item.folder}")


def _was(item: Packaged) -> str:
    if item.last is None:
        return "   new"
    if item.change is None:
        return "   unchanged" if item.last == item.chart.version else f"   was {item.last}"
    return f"   was {item.last}: {item.change.describe()}"
