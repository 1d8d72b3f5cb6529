"""The formats of `symph export`: a function each, which gives Kubernetes objects or files of an experiment.

To add a format, write the function, add a row to `EXPORTS`, and one with its options to `FORMATS` of
`symphony_charts.cli.options.study.export`.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from symphony_charts.chart.files.kustomize import kustomize_files
from symphony_charts.cli.commands.chart.render import is_test
from symphony_charts.cli.values import prepared_of
from symphony_charts.importers.common.report import Note
from symphony_charts.kinds.appwrapper_bundle import Whole, absorb
from symphony_charts.kinds.registry import kind_for
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.files import SpecFile
from symphony_charts.system.entry_points import entry_points

__all__ = ["Exported", "exported"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Kubernetes `objects` in the order in which they are applied, or the `files` of a folder by path.

    `notes` say what they do not carry of the experiment, or carry in another way.
    """

    objects: tuple[dict[str, object], ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


def _manifests(spec: SpecFile, args: argparse.Namespace) -> Exported:
    """All objects of the chart, in the order in which they are applied."""
    objects, notes = _chart_objects(spec, args)
    return Exported(objects=tuple(objects), notes=(*notes, *_secret_notes(spec)))


def _secret_notes(spec: SpecFile) -> tuple[Note, ...]:
    """What plain objects leave to others: the Secret of the experiment."""
    notes = []
    if spec.experiment.secrets and spec.experiment.secret_source.source == "existing":
        next_step = f"symph secrets push {spec.path}"
        notes.append(
            Note(path="secrets", what="the Secret is not among the objects: it is pushed apart", next=next_step)
        )
    if spec.experiment.secret_source.source == "sops":
        what = "the Secret is not among the objects: a publish writes it beside Flux's release"
        notes.append(Note(path="secret_source", what=what, next="use source: existing, or symph publish"))
    return tuple(notes)


def _kustomize(spec: SpecFile, args: argparse.Namespace) -> Exported:
    """A kustomization with a file for each object; the namespace stands in it once."""
    objects, notes = _chart_objects(spec, args, is_placed=False)
    return Exported(files=kustomize_files(objects, namespace=args.namespace), notes=(*notes, *_secret_notes(spec)))


def _appwrapper(spec: SpecFile, args: argparse.Namespace) -> Exported:
    """The AppWrapper, after the objects that it needs and its controller may not create."""
    workload = replace(spec.experiment.workload, kind="appwrapper")
    if args.api:
        workload = replace(workload, appwrapper=replace(workload.appwrapper, version=args.api))
    wrapped = dataclasses.replace(spec, experiment=replace(spec.experiment, workload=workload))
    objects, notes = _chart_objects(wrapped, args)
    whole = absorb(objects, everything=args.everything)
    return Exported(objects=whole.objects, notes=(*notes, *_appwrapper_notes(whole), *_secret_notes(spec)))


def _appwrapper_notes(whole: Whole) -> Iterator[Note]:
    for title in whole.outside:
        what = "it stands before the AppWrapper, whose controller may not create it"
        next_step = "--everything wraps it, too, where that controller has the rights"
        yield Note(path=title, what=what, next=next_step, verdict="changed")
    for title in whole.services:
        what = "the AppWrapper has not ended as long as this service runs"
        yield Note(path=title, what=what, next="delete the AppWrapper when the rest is done")


def _chart_objects(
    spec: SpecFile, args: argparse.Namespace, *, is_placed: bool = True
) -> tuple[list[dict[str, object]], list[Note]]:
    """Return the objects of the chart of `spec` under the values of the command line, and a note for each loss.

    The test pod is Helm's, so it is not among them. If `is_placed` is true, each object has its namespace.

    Raises:
        SpecError: No chart can be made.
    """
    prepared = prepared_of(args, spec, force=True)
    place = args.namespace or ""
    # What is applied by hand is not Helm's.
    rendering = prepared.under({}, release=args.release or "", namespace=place, service="symph", is_draft=False)
    lost = [Note(path=problem.path, what=problem.what, next=problem.next) for problem in prepared.losses]
    objects = [item for item in rendering.objects if not is_test(item)]
    # Workloads come after what they need.
    objects.sort(key=lambda item: kind_for(item) is not None)
    return [_placed(item, args.namespace if is_placed else None) for item in objects], lost


def _placed(item: dict[str, object], namespace: str | None) -> dict[str, object]:
    metadata = item["metadata"]
    if namespace is None or not isinstance(metadata, dict):
        return item
    return {**item, "metadata": {**metadata, "namespace": namespace}}


EXPORTS: dict[str, Callable[[SpecFile, argparse.Namespace], Exported]] = {
    "appwrapper": _appwrapper,
    "kustomize": _kustomize,
    "manifests": _manifests,
}


def exported(name: str, spec: SpecFile, args: argparse.Namespace) -> Exported:
    """Return the experiment in the format `name`, which may be that of an integration or another package."""
    if name in EXPORTS:
        return EXPORTS[name](spec, args)
    module: Any = entry_points("symph.exporters")[name].load()
    made = module.run(finish(spec.experiment), args)
    return Exported(objects=made.objects, notes=made.notes)
