"""A group of a release: what every kind of workload is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Group"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group that runs, as `values` describe it, and what follows from them.

    `base` is the name of its objects without the run, `pods` the headless Service that gives its replicas their names.
    An indexed group has several replicas that end; a kept one outlives a new run. `set` is the JobSet that it is part
    of, by its name without the run, and `member` its own name there.
    """

    name: str
    values: Mapping[str, object]
    replicas: int
    is_finite: bool
    keep: bool
    base: str
    set: str = ""
    member: str = ""

    @property
    def is_indexed(self) -> bool:
        """Whether its replicas are told apart by a Job."""
        return self.is_finite and self.replicas > 1

    def workload(self, run: str) -> str:
        """The name of its Job in `run`, which in a JobSet is the set's, its own and 0, or of its StatefulSet."""
        if not self.is_finite:
            return self.base
        return f"{self.set}-{run}-{self.member}-0" if self.set else f"{self.base}-{run}"

    @property
    def pods(self) -> str:
        """The headless Service of the group."""
        return f"{self.base}-pods"
