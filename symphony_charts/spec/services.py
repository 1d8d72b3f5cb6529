"""The services of an experiment are allocated: who listens on each of them, and on which port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from symphony_charts.errors import Problem, SpecError
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import ProcessRef, processes_of

__all__ = ["Service", "allocate", "pins_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A named port: `listener` is the process that binds or exposes it; `port` is the same on every backend."""

    name: str
    port: int
    listener: ProcessRef
    is_bound: bool
    is_exposed: bool


@dataclass(slots=True)
class _Claim:
    listener: ProcessRef
    port: int | None
    is_bound: bool = False
    is_exposed: bool = False


def allocate(experiment: Experiment, pinned: Mapping[str, int] | None = None) -> tuple[Service, ...]:
    """Return all services with their ports, exposed ones first, then bound ones, each in order of declaration.

    Ports that the experiment fixes are kept; then ports that `pinned` (the lock file) remembers, while they are
    free and inside the range; the rest get the lowest free number of `port_range` in that same order, which for an
    empty `pinned` is Symphony's own allocation (SurrealAI/symphony: symphony/kube/experiment.py, declare_services).

    Raises SpecError when the range is used up.
    """
    claims = _claims(experiment)
    taken = {claim.port for claim in claims.values() if claim.port is not None}
    low, high = experiment.port_range
    for name, port in (pinned or {}).items():
        claim = claims.get(name)
        if claim is not None and claim.port is None and low <= port <= high and port not in taken:
            claim.port = port
            taken.add(port)
    free = (port for port in range(low, high + 1) if port not in taken)
    return tuple(
        Service(
            name=name,
            port=claim.port if claim.port is not None else _next(free, experiment, name),
            listener=claim.listener,
            is_bound=claim.is_bound,
            is_exposed=claim.is_exposed,
        )
        for name, claim in claims.items()
    )


def pins_of(services: tuple[Service, ...]) -> dict[str, int]:
    """What the lock file remembers: the port of each service, by name."""
    return {service.name: service.port for service in sorted(services, key=lambda service: service.name)}


def _claims(experiment: Experiment) -> dict[str, _Claim]:
    """Exposed services first, then bound ones; a service that is both keeps its first place and any fixed port."""
    claims: dict[str, _Claim] = {}
    declared = list(processes_of(experiment))
    for ref, process in declared:
        for name, port in process.exposes.items():
            claims.setdefault(name, _Claim(ref, port)).is_exposed = True
    for ref, process in declared:
        for name, port in process.binds.items():
            claim = claims.setdefault(name, _Claim(ref, port))
            claim.is_bound = True
            claim.port = port if port is not None else claim.port
    return claims


def _next(free: Iterator[int], experiment: Experiment, name: str) -> int:
    try:
        return next(free)
    except StopIteration:
        low, high = experiment.port_range
        problem = Problem(
            what=f'no port left for service "{name}"',
            path="port_range",
            next=f"widen `port_range` (now {low}-{high})",
        )
        raise SpecError([problem]) from None
