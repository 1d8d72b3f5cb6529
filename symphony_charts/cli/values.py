"""The values and specs that a command line gives: read, put over one another, prepared for a backend."""

from __future__ import annotations

import argparse
import csv

from symphony_charts.chart.values.set_values import Overrides, paths_of, user_values
from symphony_charts.cli.options import common
from symphony_charts.errors import UsageError
from symphony_charts.formats.data import Values
from symphony_charts.prepare import Prepared, prepare
from symphony_charts.settings.values_files import read_text, read_values
from symphony_charts.spec.files import SpecFile

__all__ = ["overrides_of", "prepared_of", "user_values_of"]


def overrides_of(args: argparse.Namespace) -> Overrides:
    """What the options say, with the content of every file that they name."""
    return Overrides(
        files=tuple(read_values(path) for path in _split(args.values)),
        json=tuple(args.set_json),
        sets=tuple(args.set),
        strings=tuple(args.set_string),
        from_files=tuple(args.set_file),
        literals=tuple(args.set_literal),
        contents={path: read_text(path) for text in args.set_file for path in paths_of(text)},
    )


def user_values_of(args: argparse.Namespace) -> Values:
    """What the options say by themselves."""
    return user_values(overrides_of(args))


def prepared_of(args: argparse.Namespace, spec: SpecFile, *, force: bool | None = None) -> Prepared:
    """`spec` prepared with the command line's values and node pools.

    `force` goes on where a group cannot be scheduled (None: as `--force-unschedulable` says). Raises as `prepare` does.
    """
    is_forced = bool(getattr(args, "force_unschedulable", False)) if force is None else force
    variables: dict[str, object] = dict(common.parse_assignments(getattr(args, "var", []), "--var"))
    pools, system = getattr(args, "pools", ()), getattr(args, "system", None)
    return prepare(
        spec, overrides=user_values_of(args), pools=pools, variables=variables, system=system, force=is_forced
    )


def _split(texts: list[str]) -> list[str]:
    """The files of `-f a.yaml,b.yaml -f c.yaml`, which for helm are lines of CSV."""

    try:
        return [path for line in csv.reader(texts, strict=True) for path in line]
    except csv.Error as error:
        raise UsageError(f"-f cannot be split at its commas: {error}", next="give each file a -f of its own") from error
