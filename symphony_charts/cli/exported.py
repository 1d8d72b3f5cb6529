"""What an export gives, whatever its format, and what the formats share that are made of the chart's objects."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field

from symphony_charts.cli.values_options import add_values

__all__ = ["Exported", "add_chart_options", "chart_objects"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.adapters.specfile import SpecFile
    from symphony_charts.importers.report import Note


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Kubernetes `objects` in the order in which they are applied, or the `files` of a folder by path.

    `notes` say what they do not carry of the experiment, or carry in another way.
    """

    objects: tuple[dict[str, object], ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


def add_chart_options(parser: argparse.ArgumentParser) -> None:
    """Add what says which release the objects are of, and under which values."""
    parser.add_argument("--release", metavar="NAME", default=None, help="the release (default: the experiment's name)")
    parser.add_argument("-n", "--namespace", default=None, help="a namespace to write into every object")
    add_values(parser, "--values")


def chart_objects(
    spec: SpecFile, args: argparse.Namespace, values: Mapping[str, object] | None = None
) -> list[dict[str, object]]:
    """The objects of the chart of `spec` under the values of the command line and `values` over them, without tests.

    Raises SpecError for what cannot be packaged.
    """
    from symphony_charts.chart.assemble import Release, assemble
    from symphony_charts.chart.merge import merge
    from symphony_charts.chart.package import build_chart
    from symphony_charts.cli.values_options import user_values_of
    from symphony_charts.cluster.packaging import template
    from symphony_charts.cluster.pools import place
    from symphony_charts.network.services import allocate

    settled, _ = place(spec, force=True)
    services = allocate(settled.experiment, settled.pins)
    chart = build_chart(settled.experiment, services, settled.lock.version or "0.1.0", template())
    merged = merge(merge(merge(chart.values, user_values_of(args)), {"tests": {"enabled": False}}), values or {})
    release = Release(
        name=args.release or chart.name,
        chart_name=chart.name,
        chart_version=chart.version,
        service="symph",  # what is applied by hand is not Helm's
    )
    return [_placed(item, args.namespace) for item in assemble(merged, release)]


def _placed(item: dict[str, object], namespace: str | None) -> dict[str, object]:
    metadata = item["metadata"]
    if namespace is None or not isinstance(metadata, dict):
        return item
    return {**item, "metadata": {**metadata, "namespace": namespace}}
