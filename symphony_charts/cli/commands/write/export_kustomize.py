"""`symph export kustomize`: the experiment's objects as a folder that `kubectl kustomize` builds."""

from __future__ import annotations

import argparse

from symphony_charts.cli.commands.write.export_manifests import notes_of
from symphony_charts.cli.commands.write.exported import Exported, add_chart_options, chart_objects

__all__ = ["configure", "export"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.spec.files import SpecFile


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this format."""
    add_chart_options(parser)


def export(spec: SpecFile, args: argparse.Namespace) -> Exported:
    """A kustomization with a file for each object; the namespace stands in it once."""
    from symphony_charts.chart.files.kustomize import kustomize_files

    namespace, args.namespace = args.namespace, None
    return Exported(files=kustomize_files(chart_objects(spec, args), namespace=namespace), notes=notes_of(spec))
