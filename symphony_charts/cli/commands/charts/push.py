"""`symph push`: packaged charts into an OCI registry, or into a folder with an index."""

from __future__ import annotations

import argparse
from pathlib import Path

from symphony_charts.cli import output
from symphony_charts.cli.options import common

__all__ = ["configure", "run"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.chart.files.read import PackedChart


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `symph push`."""
    parser.add_argument(
        "charts", metavar="CHART", nargs="+", help="a chart's archive or folder; `symph package` makes both"
    )
    parser.add_argument(
        "target", metavar="TARGET", help="oci://HOST/PATH, or a folder that holds (or gets) an index.yaml"
    )
    parser.add_argument(
        "--url", default="", help="where the folder is served (default: addresses relative to the index)"
    )
    parser.add_argument(
        "--sign", metavar="KEY", default=None, help="make a .prov with this key of gpg; helm verifies it"
    )
    common.add_output(parser, ("table", "json", "yaml", "name"))
    common.add_dry_run(parser)
    common.add_examples(
        parser,
        "symph push dist/rl-0.2.0.tgz oci://registry.example.org/charts",
        "symph push dist/*.tgz ./site --url https://charts.example.org",
        "symph push dist/rl-0.2.0.tgz oci://localhost:5000/charts --sign ann@example.org",
    )


def run(args: argparse.Namespace) -> int:
    """Push every chart, in order; what is there already is left alone."""
    from symphony_charts.chart.files.read import read_chart
    from symphony_charts.secrets.leaks import Guard

    charts = [read_chart(Path(path).expanduser()) for path in args.charts]
    guard = Guard({})
    for chart in charts:
        guard.refuse({f"{chart.file_name}:{path}": content for path, content in chart.files.items()})
    charts = [_signed(chart, args.sign) if args.sign and not args.dry_run else chart for chart in charts]
    items = []
    with output.progress("pushing", len(charts)) as advance:
        for chart in charts:
            items.append(_push(args, chart))
            advance(1)
    columns = [
        output.Column("NAME", "name"),
        output.Column("VERSION", "version"),
        output.Column("PLACE", "place"),
        output.Column("STATE", "state"),
        output.Column("DIGEST", "digest"),
    ]
    output.print_items(args, "Pushed", items, columns, name="place")
    return 0


def _push(args: argparse.Namespace, chart: PackedChart) -> dict[str, object]:
    from symphony_charts.oci.client import parse_reference
    from symphony_charts.oci.push import add_to_folder, push_chart

    if args.target.startswith("oci://"):
        pushed = push_chart(chart, parse_reference(args.target), dry_run=args.dry_run)
    else:
        pushed = add_to_folder(chart, Path(args.target).expanduser(), args.url, dry_run=args.dry_run)
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
    from dataclasses import replace

    from symphony_charts.oci.chart_artifact import provenance_text
    from symphony_charts.system.signing import clear_sign

    text = provenance_text(chart.metadata, chart.file_name, chart.archive)
    return replace(chart, provenance=clear_sign(text, key))
