"""`symph export manifests`: the experiment's objects as one stream for `kubectl apply`."""

from __future__ import annotations

import argparse

from symphony_charts.cli.commands.write.exported import Exported, add_chart_options, chart_objects

__all__ = ["configure", "export", "notes_of"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.importers.common.report import Note
    from symphony_charts.spec.files import SpecFile


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this format."""
    add_chart_options(parser)


def export(spec: SpecFile, args: argparse.Namespace) -> Exported:
    """All objects of the chart, in the order in which they are applied."""
    return Exported(objects=tuple(chart_objects(spec, args)), notes=notes_of(spec))


def notes_of(spec: SpecFile) -> tuple[Note, ...]:
    """What plain objects leave to others: the Secret of the experiment."""
    from symphony_charts.importers.common.report import Note

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
