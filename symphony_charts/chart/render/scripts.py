"""Shell that the chart puts into containers, read from ``files/scripts`` as its templates do."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from symphony_charts.system.package_data import chart_file

__all__ = ["attempt_script", "dial_script", "hold_script", "rank_script"]


def attempt_script() -> str:
    """Runs its arguments as a process that is told which try it is: one more than were before."""
    return _script("attempt")


def dial_script() -> str:
    """Connects to each host:port of its arguments, for up to a minute each, and says which failed."""
    return _script("dial")


def rank_script() -> str:
    """Runs its arguments as the process of a rank: the first of its group, and its index more."""
    return _script("rank")


def hold_script(ports: Iterable[int]) -> str:
    """Runs its arguments and, after they succeeded, listens on `ports` in their place until it is stopped."""
    return _script("hold").replace("@PORTS@", "".join(f" {port}" for port in ports))


@cache
def _script(name: str) -> str:
    return chart_file(f"files/scripts/{name}.sh").removesuffix("\n")
