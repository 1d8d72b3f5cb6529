"""`symph push`: packaged charts into an OCI registry, or into a folder with an index."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from symphony_charts.chart.files.read import PackedChart, read_chart
from symphony_charts.cli import output
from symphony_charts.cli.registry import access_of
from symphony_charts.errors import SpecError
from symphony_charts.formats.urls import address_fault
from symphony_charts.oci.chart_artifact import provenance_text
from symphony_charts.oci.client import parse_reference
from symphony_charts.oci.push import Pushed, add_to_folder, push_charts
from symphony_charts.secrets.leaks import Guard
from symphony_charts.settings.project import find_settings
from symphony_charts.system.signing import clear_sign

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Push every chart, in order; what is there already is left alone."""
    if fault := address_fault(args.url, "--url"):
        raise SpecError([fault])
    charts = [read_chart(Path(path).expanduser()) for path in args.charts]
    guard = Guard({}, allowed=find_settings(Path.cwd()).allowed_leaks)
    for chart in charts:
        guard.refuse({f"{chart.file_name}:{path}": content for path, content in chart.files.items()})
    charts = [_signed(chart, args.sign) if args.sign and not args.dry_run else chart for chart in charts]
    items = [_record(args, chart, each) for chart, each in zip(charts, _pushed(args, charts), strict=True)]
    columns = [
        output.Column("NAME", "name"),
        output.Column("VERSION", "version"),
        output.Column("PLACE", "place"),
        output.Column("STATE", "state"),
        output.Column("DIGEST", "digest"),
    ]
    output.print_items(args, "Pushed", items, columns, name="place")
    return 0


def _pushed(args: argparse.Namespace, charts: list[PackedChart]) -> list[Pushed]:
    with output.progress("pushing", len(charts)) as advance:
        if args.target.startswith("oci://"):
            target = parse_reference(args.target)
            access = access_of(args, host=target.host)
            return push_charts(charts, target, access=access, dry_run=args.dry_run, advance=advance)
        folder, pushed = Path(args.target).expanduser(), []
        for chart in charts:
            pushed.append(add_to_folder(chart, folder, args.url, dry_run=args.dry_run))
            advance(1)
        return pushed


def _record(args: argparse.Namespace, chart: PackedChart, pushed: Pushed) -> dict[str, object]:
    state = "would be pushed" if args.dry_run else "pushed" if pushed.is_new else "there already"
    return {
        "name": chart.name,
        "version": chart.version,
        "place": pushed.place,
        "digest": pushed.digest,
        "state": state,
        "bytes": len(chart.archive),
    }


def _signed(chart: PackedChart, key: str) -> PackedChart:
    text = provenance_text(chart.metadata, chart.file_name, chart.archive)
    return replace(chart, provenance=clear_sign(text, key))
