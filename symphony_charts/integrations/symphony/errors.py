"""Symphony's errors; each is also an error of this package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from symphony_charts.errors import Conflict, NotFound

__all__ = ["MissingError", "ResourceExistsError", "symphonys"]


class ResourceExistsError(Conflict):
    """An experiment of that name is running or saved already."""


class MissingError(NotFound, ValueError, KeyError):
    """No such experiment, process or group; Symphony raised ValueError or KeyError."""

    __str__ = NotFound.__str__


@contextmanager
def symphonys() -> Iterator[None]:
    """Convert Conflict and NotFound to the errors that Symphony raised."""
    try:
        yield
    except (ResourceExistsError, MissingError):
        raise
    except Conflict as error:
        raise ResourceExistsError(error.what, error.at, error.next) from error
    except NotFound as error:
        raise MissingError(error.what, error.at, error.next) from error
