"""A command line puts files into values: maps for `-f`, any text for `--set-file`; ``-`` is stdin."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from symphony_charts.errors import SpecError
from symphony_charts.formats.data import Values
from symphony_charts.formats.yaml_read import load

__all__ = ["read_text", "read_values"]


def read_values(path: str) -> Values:
    """Return the values file `path`. Raises SpecError when it cannot be read, or holds anything but a map."""
    try:
        values = load(_read(path).decode("utf-8"))
    except (OSError, ValueError) as error:
        raise SpecError.one(
            f"cannot read values: {getattr(error, 'strerror', None) or error}", at=path, next="give a YAML or JSON file"
        ) from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise SpecError.one("a values file holds a map", at=path, next="begin it with KEY: VALUE")
    if "processes" in values:
        # No value of a chart is called so.
        what = f"{path} is an experiment, and -f takes values of its chart"
        raise SpecError.one(
            what, at=path, next="give it without -f; a value of its chart: --set groups.NAME.replicas=2"
        )
    return values


def read_text(path: str) -> str:
    """Return the text of the file `path`. Raises SpecError if it cannot be read or is not UTF-8."""
    try:
        return _read(path).decode("utf-8")
    except UnicodeDecodeError as error:
        # Helm would print another character in its place.
        what = f"the file of --set-file is not UTF-8 text: {error.reason} at byte {error.start}"
        raise SpecError.one(what, at=path, next="put it under `configs` in the spec, which takes any bytes") from error
    except (OSError, ValueError) as error:
        raise SpecError.one(f"cannot read the file of --set-file: {error}", at=path, next="name a file") from error


def _read(path: str) -> bytes:
    return _stdin() if path.strip() == "-" else Path(path).read_bytes()


@cache
def _stdin() -> bytes:
    """Return all of stdin, which can be read once and may be needed again."""
    return sys.stdin.buffer.read()
