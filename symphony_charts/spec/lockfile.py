"""The lock file beside a spec keeps the ports once given, and the version and digest last packaged.

Written by programs, read by people in a review: one service a line keeps diffs small.
"""

from __future__ import annotations

import msgspec

from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_read import load
from symphony_charts.formats.yaml_write import dump

__all__ = ["Lock", "parse", "render"]

_HEADER = "# Written by symph: ports stay as they are when services come and go. Commit it beside the spec.\n"


class Lock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is remembered of an experiment: `ports` by service, and the last packaged `version` and its `digest`."""

    ports: dict[str, int] = {}
    version: str | None = None
    digest: str | None = None


def parse(text: str) -> Lock:
    """Return the lock in `text`; an empty text is an empty lock.

    Raises SpecError for anything else that is no lock file.
    """
    data = load(text)
    try:
        lock = msgspec.convert({} if data is None else data, Lock)
    except msgspec.ValidationError as error:
        raise SpecError.one(f"not a lock file: {error}", next="restore it from Git, or delete it") from error
    for service, port in lock.ports.items():
        if not 1 <= port <= 65535:
            raise SpecError.one(f"the port {port} is no port", f"ports.{service}", "restore the file from Git")
    return lock


def render(lock: Lock) -> str:
    """Return the text of `lock`, the same for equal locks: services by name."""
    data: dict[str, object] = {"ports": dict(sorted(lock.ports.items()))}
    if lock.version is not None:
        data["version"] = lock.version
    if lock.digest is not None:
        data["digest"] = lock.digest
    return _HEADER + dump(data)
