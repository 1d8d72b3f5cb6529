"""`-f` and `--set` wherever a spec is read, and the spec prepared with them."""

from __future__ import annotations

import argparse

from symphony_charts.cli import common

__all__ = ["add_values", "overrides_of", "prepared_of"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from symphony_charts.adapters.specfile import SpecFile
    from symphony_charts.chart.values import Values
    from symphony_charts.prepare import Prepared


def add_values(parser: argparse.ArgumentParser) -> None:
    """Add `-f FILE` and `--set KEY=VALUE`, which change values as they do for helm."""
    parser.add_argument(
        "-f", "--values", metavar="FILE", action="append", default=[], help="values to put over the experiment's"
    )
    common.add_set(parser)


def overrides_of(args: argparse.Namespace) -> Values:
    """What `-f` and `--set` say, the latter over the former."""
    from pathlib import Path

    from symphony_charts.chart.merge import merge, parse_set
    from symphony_charts.cluster.packaging import read_values

    values: Values = {}
    for file in args.values:
        values = merge(values, read_values(Path(file)))
    return merge(values, parse_set(args.set))


def prepared_of(args: argparse.Namespace, spec: SpecFile, *, force: bool | None = None) -> Prepared:
    """`spec` prepared with the command line's values and node pools.

    `force` goes on where a group cannot be scheduled (None: as `--force-unschedulable` says). Raises as `prepare` does.
    """
    from symphony_charts.prepare import prepare

    is_forced = bool(getattr(args, "force_unschedulable", False)) if force is None else force
    variables: dict[str, object] = dict(common.parse_assignments(getattr(args, "var", []), "--var"))
    pools = getattr(args, "pools", ())
    return prepare(spec, overrides=overrides_of(args), pools=pools, variables=variables, force=is_forced)
