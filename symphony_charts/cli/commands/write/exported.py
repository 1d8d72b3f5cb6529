"""What an export gives, whatever its format, and what the formats share that are made of the chart's objects."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field

from symphony_charts.cli.options.values import add_values, prepared_of

__all__ = ["Exported", "add_chart_options", "chart_objects"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.importers.common.report import Note
    from symphony_charts.spec.files import SpecFile


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
    add_values(parser)


def chart_objects(
    spec: SpecFile, args: argparse.Namespace, values: Mapping[str, object] | None = None
) -> list[dict[str, object]]:
    """The objects of the chart of `spec` under the values of the command line and `values` over them, without tests.

    Raises SpecError for what cannot be packaged.
    """
    from symphony_charts.chart.values.merge import merge

    prepared = prepared_of(args, spec, force=True)
    # What is applied by hand is not Helm's.
    over = merge({"tests": {"enabled": False}}, values or {})
    rendering = prepared.under(over, release=args.release or "", service="symph")
    return [_placed(item, args.namespace) for item in rendering.objects]


def _placed(item: dict[str, object], namespace: str | None) -> dict[str, object]:
    metadata = item["metadata"]
    if namespace is None or not isinstance(metadata, dict):
        return item
    return {**item, "metadata": {**metadata, "namespace": namespace}}
