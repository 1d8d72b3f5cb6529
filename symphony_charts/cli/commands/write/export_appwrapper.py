"""`symph export appwrapper`: the experiment as one AppWrapper, with all that its controller may create."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from symphony_charts.cli.commands.write.exported import Exported, add_chart_options, chart_objects

__all__ = ["configure", "export"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.importers.common.report import Note
    from symphony_charts.kinds.appwrapper_bundle import Whole
    from symphony_charts.spec.files import SpecFile


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this format."""
    parser.add_argument(
        "--api",
        choices=("v1beta2", "v1beta1"),
        default=None,
        help="the version that the cluster serves; v1beta1 is MCAD's (default: the spec's workload.appwrapper.version)",
    )
    parser.add_argument(
        "--everything", action="store_true", help="also wrap what the controller's own role does not let it create"
    )
    add_chart_options(parser)


def export(spec: SpecFile, args: argparse.Namespace) -> Exported:
    """The AppWrapper, after the objects that it needs and its controller may not create."""
    from symphony_charts.kinds.appwrapper_bundle import absorb

    workload: dict[str, object] = {"kind": "appwrapper"}
    if args.api:
        workload["appwrapper"] = {"version": args.api}
    whole = absorb(chart_objects(spec, args, {"workload": workload}), everything=args.everything)
    return Exported(objects=whole.objects, notes=tuple(_notes(whole)))


def _notes(whole: Whole) -> Iterator[Note]:
    from symphony_charts.importers.common.report import Note

    for title in whole.outside:
        what = "it stands before the AppWrapper, whose controller may not create it"
        yield Note(path=title, what=what, next="--everything wraps it, too, where that controller has the rights")
    for title in whole.services:
        what = "the AppWrapper has not ended as long as this service runs"
        yield Note(path=title, what=what, next="delete the AppWrapper when the rest is done")
