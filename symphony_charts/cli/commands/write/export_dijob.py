"""`symph export dijob`: the experiment as a DIJob for one version of DI-orchestrator; `symph import` reads it."""

from __future__ import annotations

import argparse

from symphony_charts.cli.commands.write.exported import Exported

__all__ = ["configure", "export"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.spec.files import SpecFile


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this format."""
    parser.add_argument(
        "--operator",
        choices=("v0", "v1.0", "v1.1.0", "v1.1"),
        default=None,
        help="the version of DI-orchestrator; v1.1 is v1.1.1 and later (default: the spec's workload.dijob.operator)",
    )


def export(spec: SpecFile, args: argparse.Namespace) -> Exported:
    """The DIJob with its ConfigMap before it, and what its pods are reached by after it."""
    from symphony_charts.importers.dijob.export import dijob_objects
    from symphony_charts.spec.checks.finish import finish

    made = dijob_objects(finish(spec.experiment), args.operator)
    return Exported(objects=made.objects, notes=made.notes)
