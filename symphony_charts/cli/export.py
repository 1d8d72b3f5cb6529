"""`symph export`: print or write an experiment in the format of another tool."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from symphony_charts.chart import folder
from symphony_charts.cli import options, output, specs, validate
from symphony_charts.errors import CheckFailed, UsageError
from symphony_charts.formats import data, yaml_write
from symphony_charts.importers import report as importers_report
from symphony_charts.kinds import appwrapper, registry
from symphony_charts.spec import files as spec_files
from symphony_charts.spec.checks import finish
from symphony_charts.system import files as system_files
from symphony_charts.system.launching import entry_points


def configure(parser: argparse.ArgumentParser) -> None:
    formats = parser.add_subparsers(dest="format", metavar="FORMAT", required=True)
    ours = {name: (add_options, summary) for name, (add_options, summary, _) in FORMATS.items()}
    added = {name: (module.configure, module.SUMMARY) for name, module in _added().items()}
    for name, (add_options, summary) in sorted((ours | added).items()):
        one = formats.add_parser(name, help=summary, description=f"Export {summary}.")
        options.add_specs(one, many=False)
        one.add_argument(
            "--to",
            "--file",
            dest="file",
            metavar="FILE|-",
            default="-",
            help="where it goes; a folder for several files (-: stdout)",
        )
        options.add_output(one, ("yaml", "json"), default="yaml", headers=False)
        options.add_flag(one, "--strict", help="fail (1) and write nothing if anything is lost")
        options.add_dry_run(one, "say what would be written and write nothing")
        add_options(one)
    options.add_examples(
        parser,
        "symph export appwrapper experiment.yaml --to appwrapper.yaml",
        "symph export manifests experiment.yaml -n rl | kubectl apply -f -",
        "symph export kustomize experiment.yaml --to base/",
        "symph export dijob experiment.yaml --operator v1.1 | kubectl create -f -",
        "symph export appwrapper experiment.yaml --set groups.agent.replicas=32 | kubectl apply -f -",
    )


def _add_release(parser: argparse.ArgumentParser) -> None:
    options.add_release(parser)
    parser.add_argument("-n", "--namespace", help="a namespace to write into every object")
    options.add_values(parser)


def _add_appwrapper(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--api",
        choices=("v1beta2", "v1beta1"),
        help="the version that the cluster serves; v1beta1 is MCAD's (default: the spec's workload.appwrapper.version)",
    )
    options.add_flag(parser, "--everything", help="also wrap what the controller's own role does not let it create")
    _add_release(parser)


def _added() -> dict[str, Any]:
    return {name: entry.load() for name, entry in entry_points("symph.exporters").items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Kubernetes `objects` in the order to apply them, or the `files` of a folder by path.

    `notes` list the parts of the experiment that the export lacks or changes.
    """

    objects: tuple[dict[str, object], ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[importers_report.Note, ...] = ()


def _manifests(spec: spec_files.SpecFile, args: argparse.Namespace) -> Exported:
    objects, notes = _chart_objects(spec, args)
    return Exported(objects=tuple(objects), notes=tuple(notes))


# Sources of secrets whose Secret is not among the objects: path, reason and next step.
_APART = {
    "existing": ("secrets", "it is pushed apart", "symph secrets push SPEC"),
    "sops": ("secret_source", "a publish writes it beside Flux's release", "use source: existing, or symph publish"),
}


def _secret_notes(spec: spec_files.SpecFile) -> tuple[importers_report.Note, ...]:
    source = spec.experiment.secret_source.source
    if not spec.experiment.secrets or source not in _APART:
        return ()
    path, why, step = _APART[source]
    what, step = f"the Secret is not among the objects: {why}", step.replace("SPEC", str(spec.path))
    return (importers_report.Note(path=path, what=what, next=step),)


def _kustomize(spec: spec_files.SpecFile, args: argparse.Namespace) -> Exported:
    """Return a kustomization with a file for each object; only the kustomization sets the namespace."""
    objects, notes = _chart_objects(spec, args, is_placed=False)
    return Exported(files=folder.kustomize_files(objects, namespace=args.namespace), notes=tuple(notes))


def _appwrapper(spec: spec_files.SpecFile, args: argparse.Namespace) -> Exported:
    """Return the AppWrapper, after the objects that it needs and its controller may not create."""
    workload = msgspec.structs.replace(spec.experiment.workload, kind="appwrapper")
    if args.api:
        workload = msgspec.structs.replace(
            workload, appwrapper=msgspec.structs.replace(workload.appwrapper, version=args.api)
        )
    wrapped = dataclasses.replace(spec, experiment=msgspec.structs.replace(spec.experiment, workload=workload))
    objects, notes = _chart_objects(wrapped, args)
    whole = appwrapper.absorb(objects, everything=args.everything)
    for title in whole.outside:
        what = "it comes before the AppWrapper, whose controller may not create it"
        step = "--everything wraps it, too, where that controller has the rights"
        notes.append(importers_report.Note(path=title, what=what, next=step, verdict="changed"))
    for title in whole.services:
        what = "the AppWrapper has not ended as long as this service runs"
        notes.append(importers_report.Note(path=title, what=what, next="delete the AppWrapper when the rest is done"))
    return Exported(objects=whole.objects, notes=tuple(notes))


def _chart_objects(
    spec: spec_files.SpecFile, args: argparse.Namespace, *, is_placed: bool = True
) -> tuple[list[dict[str, object]], list[importers_report.Note]]:
    """Return the objects of the chart of `spec` under the values of the command line, and a note for each loss.

    The test pod is excluded because it is Helm's. If `is_placed` is true, each object has its namespace.

    Raises:
        SpecError: No chart can be made.
    """
    prepared = specs.prepared_of(args, spec, force=True)
    place = args.namespace or ""
    # Objects applied by hand are not managed by Helm.
    rendering = prepared.under({}, release=args.release or "", namespace=place, service="symph", is_draft=False)
    lost = [
        importers_report.Note(path=problem.path, what=problem.what, next=problem.next) for problem in prepared.losses
    ]
    objects = [item for item in rendering.objects if not validate.is_test(item)]
    # Workloads follow the objects that they need.
    objects.sort(key=lambda item: registry.kind_for(item) is not None)
    if is_placed and place:
        objects = [{**item, "metadata": {**data.sub(item, "metadata"), "namespace": place}} for item in objects]
    return objects, lost


# Per format: a function that adds options, one line of help, and the export function.
FORMATS = {
    "appwrapper": (_add_appwrapper, "one AppWrapper with all that runs, for kubectl and CodeFlare", _appwrapper),
    "kustomize": (_add_release, "a folder that kubectl kustomize builds to the chart's objects", _kustomize),
    "manifests": (_add_release, "the chart's objects as one stream, for kubectl apply", _manifests),
}


def run(args: argparse.Namespace) -> int:
    spec = spec_files.read(args.spec, args.spec_set)
    if args.format in FORMATS:
        *_, make = FORMATS[args.format]
        exported = make(spec, args)
        notes = (*exported.notes, *_secret_notes(spec))
    else:
        made = _added()[args.format].run(finish.finish(spec.experiment), args)
        exported, notes = Exported(objects=made.objects), made.notes
    report = importers_report.Report(notes=notes)
    is_refused = args.strict and bool(report.lost)
    if not is_refused:
        _write(args, exported)
    output.print_report(report)
    if is_refused:
        what = f"{len(report.lost)} things of {args.spec} are lost, so nothing was written"
        raise CheckFailed(what, next="change the experiment, or go without --strict")
    return 0


def _write(args: argparse.Namespace, exported: Exported) -> None:
    files, objects, is_stdout = exported.files, exported.objects, args.file == "-"
    if files and is_stdout:
        raise UsageError(f"{args.format} is a folder of {len(files)} files", next="give one: --to FOLDER")
    if args.dry_run:
        count = f"{len(files)} files" if files else f"{len(objects)} objects"
        output.note(f"would write {count}" + ("" if is_stdout else f" to {args.file}"))
    elif files:
        changed = system_files.write_tree(Path(args.file), files)
        output.note(f"wrote {len(changed)} of {len(files)} files below {args.file}; the others are unchanged")
    else:
        document = objects[0] if len(objects) == 1 else validate.list_of(objects)
        text = f"{json.dumps(document, indent=2)}\n" if args.output == "json" else yaml_write.dump_all(objects)
        if is_stdout:
            sys.stdout.write(text)
        else:
            has_changed = system_files.write_file(Path(args.file), text.encode())
            output.note(f"{'wrote' if has_changed else 'unchanged:'} {args.file}")
