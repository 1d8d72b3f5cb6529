"""Symphony's errors are raised, each of which is one of ours as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from symphony_charts.errors import Conflict, NotFound

__all__ = ["MissingError", "ResourceExistsError", "symphonys"]


class ResourceExistsError(Conflict):
    """An experiment of that name runs, or is saved, already."""


class MissingError(NotFound, ValueError, KeyError):
    """No such experiment, process or group; Symphony raised ValueError or KeyError."""

    __str__ = NotFound.__str__


@contextmanager
def symphonys() -> Iterator[None]:
    """Raise what Symphony raised where ours would say that something is there already, or is not there."""
    try:
        yield
    except (ResourceExistsError, MissingError):
        raise
    except Conflict as error:
        raise ResourceExistsError(error.what, error.at, error.next) from error
    except NotFound as error:
        raise MissingError(error.what, error.at, error.next) from error
