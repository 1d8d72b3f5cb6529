"""`symph package`: experiments as Helm charts and archives."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from symphony_charts import package
from symphony_charts.chart import folder as chart_folder
from symphony_charts.cli import options, output, publish, push, validate
from symphony_charts.cli import specs as cli_specs
from symphony_charts.errors import CheckFailed, UsageError
from symphony_charts.formats import data
from symphony_charts.kinds import registry
from symphony_charts.kubernetes.releases import helm_client
from symphony_charts.oci import images as oci_images
from symphony_charts.settings import project
from symphony_charts.spec import files
from symphony_charts.spec import pods as spec_pods

LATE = (helm_client, publish, push)  # they take 150 ms, as long as the rest


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_specs(parser)
    parser.add_argument("-d", "--dest", metavar="DIR", default="dist", help="folder to write to (default: dist)")
    options.add_output(parser, headers=False)
    parser.add_argument("--version", metavar="V", help="the chart's version (default: by what changed)")
    parser.add_argument(
        "--template",
        metavar="DIR|URL@REF",
        help="a fork of the chart template: its folder, or a Git repository at a tag or commit; no hook of it runs"
        " (default: `template` of .symph.yaml; '' is the template of this installation)",
    )
    options.add_values(parser)
    options.add_placement(parser)
    options.add_flag(parser, "--push", help="also publish them; accepts --env and other options of `publish`")
    options.add_publish_options(parser)
    options.add_change_options(parser, is_alone=False)
    parser.add_argument(
        "--workspace",
        metavar="DIR",
        help="put the files of DIR (without those of its .dockerignore) into the working folder of every image",
    )
    parser.add_argument("--image-repo", metavar="HOST/PATH", help="repository to push the images with the workspace to")
    text = "keep only this platform of the images; may be repeated (default: all of Linux)"
    options.add_list(parser, "--platform", metavar="OS/ARCH", help=text)
    options.add_registry(parser)
    options.add_dry_run(parser)
    options.add_examples(
        parser,
        "symph package experiment.yaml",
        "symph package experiment.yaml --pools cluster.tf.json",
        "symph package experiments/*.yaml -d charts",
        "symph package rl.yaml --set groups.agent.replicas=32 --version 1.0.0",
        "symph package rl.yaml --dry-run -o json",
        "symph package rl.yaml --push --env dev",
        "symph package rl.yaml --template https://git.example.org/ml/chart-template.git@v3",
        "symph package rl.yaml --workspace . --image-repo registry.example.org/rl/images",
    )


def check_fork(item: package.Packaged, fork: str) -> None:
    """Warn about the objects that differ from those of the built-in template.

    Raises:
        CheckFailed: Helm's lint refuses the chart.
        ToolFailed: Helm cannot render it.
        ToolMissing: There is no helm.
    """
    chart, prepared, release = item.chart, item.prepared, item.prepared.own.release
    linted = helm_client.lint_chart(chart.name, chart.files)
    if linted.status:
        text = f"{linted.text}\n{linted.error_text}".strip()
        raise CheckFailed(f"helm lint refuses the chart that {fork} makes:\n{text}", next="fix the template")
    # Helm renders a chart that still lacks its sealed secrets with another name of the Secret.
    secrets, source = data.sub(prepared.values, "secrets"), prepared.experiment.secret_source.source
    is_open = source == "sealed" and secrets and not (secrets.get("encryptedData") or secrets.get("name"))
    values: data.Values = {"secrets": {"name": "sealed-later"}} if is_open else {}
    # Helm adds this label to its own objects.
    native = json.dumps(prepared.under(values, service="Helm", version=chart.version).objects)
    theirs = _by_name(
        helm_client.template_chart(chart.name, chart.files, release.name, namespace=release.namespace, values=values)
    )
    ours = _by_name(json.loads(native))
    other = sorted(name for name in theirs.keys() | ours.keys() if theirs.get(name) != ours.get(name))
    names = ", ".join(other[:5]) + (", ..." if len(other) > 5 else "")
    said = f"all {len(theirs)} objects are those of symph's own template"
    if other:
        said = f"{len(other)} of {len(theirs)} objects are not those of symph's own template ({names})"
    output.warn(f"{chart.name}: {said}; render, lint, plan and diff speak of symph's own")


def _by_name(objects: list[dict[str, object]]) -> dict[str, dict[str, object]]:
    return {f"{item.get('kind')}/{data.sub(item, 'metadata').get('name')}": item for item in objects}


# Options that only the push of a workspace uses.
_REGISTRY = ("plain-http", "ca-file", "cert-file", "key-file", "insecure-skip-tls-verify", "username", "password-stdin")


def run(args: argparse.Namespace) -> int:
    """Package all specs or none; with `--push`, publish them afterwards."""
    images, specs = oci_images.Images(), cli_specs.specs_of(args.specs)
    named = project.settings_of_spec(Path(specs[0])).template
    args.template = named if args.template is None else args.template
    if args.push and (args.template or named):
        what = "--push always uses the built-in chart template"
        raise UsageError(what, next="package with --template, and publish the folder by your own means")
    if args.workspace is not None or args.image_repo is not None or args.platform:
        images = push.push_workspace(args, specs)
    elif flags := [f"--{name}" for name in _REGISTRY if getattr(args, name.replace("-", "_"))]:
        what = f"{', '.join(flags)}: no registry is asked here, since no image is pushed"
        raise UsageError(what, next="leave it out, or give --workspace and --image-repo")
    if len(specs) == 1 and args.output in ("table", "wide"):
        (item,) = _prepare_all(args, specs, images)
        _print_one(item, _record(item, 0 if args.dry_run else package.write(item), images), dry_run=args.dry_run)
    else:
        columns = [
            *output.columns("name", "version"),
            output.Column("WAS", "last"),
            *output.columns("written", "change"),
            output.Column("DIGEST", "digest", is_wide=True),
            output.Column("ARCHIVE", "archive", is_wide=True),
        ]
        output.print_items(args, "Chart", _package_many(args, specs, images), columns)
    if args.push:
        publish.publish(args, specs, cli_specs.user_values_of(args), images.by_base)
    return 0


def _package_many(args: argparse.Namespace, specs: list[str], images: oci_images.Images) -> list[dict[str, object]]:
    """Return the records of all charts, in order; unchanged specs are not read again."""
    given = {"overrides": cli_specs.user_values_of(args), "version": args.version, "changes": args.spec_set}
    cache = chart_folder.PackageCache(Path(args.dest), given)
    # The fit depends on files that the cache does not track; so does a fork of the template.
    folders = {Path(spec).absolute().parent for spec in specs}
    has_pools = args.pools or any(project.find_settings(folder).pools for folder in folders)
    cached = [] if has_pools or images.by_base or args.template else specs
    fresh = {spec: record for spec in cached if (record := cache.fresh(spec)) is not None}
    stale = [spec for spec in specs if spec not in fresh]
    packaged = dict(zip(stale, _prepare_all(args, stale, images), strict=True))
    records: dict[str, dict[str, object]] = {spec: {**record, "written": 0} for spec, record in fresh.items()}
    with output.progress("writing", len(packaged)) as advance:
        for spec, item in packaged.items():
            records[spec] = _record(item, 0 if args.dry_run else package.write(item), images)
            if not (args.dry_run or item.prepared.own.fit or images.by_base or args.template):
                cache.remember(spec, {**records[spec], "last": item.chart.version, "change": ""})
            advance(1)
    cli_specs.refuse_twins([(spec, str(records[spec]["name"])) for spec in specs])
    if not args.dry_run:
        cache.save()
    return [records[spec] for spec in specs]


def _prepare_all(args: argparse.Namespace, paths: Sequence[str], images: oci_images.Images) -> list[package.Packaged]:
    filled = package.template(args.template)
    is_other = bool(args.template) and filled.makes != package.template().makes

    def prepare(path: str) -> package.Packaged:
        spec = oci_images.with_images(files.read(path, args.spec_set), images.by_base)
        prepared = cli_specs.prepared_of(args, spec, force=True)
        dest, is_forced = Path(args.dest), args.force_unschedulable
        packaged = package.package(prepared, spec, dest, filled, version=args.version, is_forced=is_forced)
        if is_other:
            check_fork(packaged, args.template)
        return packaged

    packaged = cli_specs.each_spec(paths, prepare)
    cli_specs.refuse_twins([(str(item.spec.path), item.chart.name) for item in packaged])
    for item in packaged:
        _say_missing(item)
    validate.note_warnings([item.verdict for item in packaged])
    return packaged


def _say_missing(item: package.Packaged) -> None:
    """Note missing secret files: the chart only names them, and its pods wait for the Secret."""
    experiment, folder = item.spec.experiment, item.spec.path.parent
    missing = [each.file for each in experiment.secrets if not (folder / Path(each.file).expanduser()).is_file()]
    # Secrets in an external store need no file.
    if missing and experiment.secret_source.source != "external":
        verb = "seal" if experiment.secret_source.source == "sealed" else "push"
        step = f"symph secrets {verb} {item.spec.path}, where they are: the pods wait for them"
        output.note(f"not here, and not needed for the chart: secret files {', '.join(missing)}\n  next: {step}")


def _record(item: package.Packaged, touched: int, images: oci_images.Images) -> dict[str, object]:
    used = oci_images.images_of(item.spec.experiment) if images.records else []
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
        "afterRun": item.prepared.own.after_run.data,
        "onFailure": registry.failure_difference(item.prepared.experiment),
        **({"images": [record for record in images.records if record["image"] in used]} if used else {}),
    }


def _print_one(item: package.Packaged, record: dict[str, object], *, dry_run: bool) -> None:
    pods = spec_pods.pods_of(item.spec.experiment)
    processes = sum(len(pod.processes) for pod in pods.values())
    services = output.counted(len(item.prepared.services), "service")
    counts = f"{output.counted(processes, 'process')} in {output.counted(len(pods), 'pod')}, {services}"
    was = "   new" if item.last is None else f"   was {item.last}"
    if item.change is not None:
        was += f": {item.change.describe()}"
    elif item.last == item.chart.version:
        was = "   unchanged"
    output.line(f"{item.chart.name} {item.chart.version}   {counts}{was}")
    written = "nothing to write" if not dry_run and not record["written"] else "schema and README generated"
    if dry_run:
        written = f"{len(item.plan.writes)} would be written"
    output.line(f"  chart    {item.folder}/   {len(item.chart.files)} files, {written}")
    size = f"{len(item.chart.archive) / 1000:.1f} kB"
    output.line(f"  archive  {item.archive_path}   {size}   {item.chart.digest[:19]}…")
    if item.prepared.own.fit:
        output.line(f"  fit      {item.prepared.own.fit}")
    if text := item.prepared.own.after_run.text:
        output.line(f"  note     {text}")
    if record["onFailure"]:
        output.line(f"  note     {record['onFailure']}")
    name = item.chart.name
    output.next_step(f"symph up {item.spec.path} (here)", f"helm install {name} {item.folder}")
