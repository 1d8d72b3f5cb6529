"""The addresses of the pods of a run on this machine, and the ports that differ from the pod's."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from symphony_charts.errors import Conflict, ToolFailed
from symphony_charts.local.plan.records import ONE_ADDRESS, AddressRange, candidate_ranges
from symphony_charts.local.plan.replicas import replicas_here
from symphony_charts.local.runs import home, live_plans
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import Service, pods_of, processes_of
from symphony_charts.system import file_locks
from symphony_charts.system.sockets import has_address, holder_of, is_free


class RunAddresses(Struct, frozen=True, kw_only=True):
    """The addresses of a run, and the port at each replica for services that moved; `notes` are for users."""

    addresses: AddressRange
    moved: Mapping[str, tuple[int, ...]] = {}
    notes: tuple[str, ...] = ()


class _Listener(NamedTuple):
    """A service at the pod with this address number."""

    service: Service
    number: int


def port_lock(experiment: Experiment) -> contextlib.AbstractContextManager[None]:
    """Hold the lock for choosing ports at the one address; started runs have recorded theirs."""
    if experiment.local.ports == "own":
        return contextlib.nullcontext()
    return file_locks.exclusive("ports")


def choose_addresses(experiment: Experiment, services: Sequence[Service], *, strict: bool) -> RunAddresses:
    """Return the experiment's usual addresses if its ports are free there, else the next free ones.

    A port that is taken on every address moves, unless the experiment fixes it: then, if `strict`, Conflict names its
    holder. All pods are at 127.0.0.1, with other ports where these collide, if `local.ports` requests it or there are
    no other addresses.
    """
    listeners = list(_listeners(experiment, services))
    pods = sum(replicas_here(pod) for pod in pods_of(experiment).values())
    ranges = list(candidate_ranges(experiment.name, pods, str(home())))
    if experiment.local.ports == "moved":
        return _at_one_address(experiment, listeners, ())
    if not has_address(ranges[0].address(0)):
        why = f"this machine has no address {ranges[0].address(0)}, so all pods use {ONE_ADDRESS.address(0)}"
        return _at_one_address(experiment, listeners, (why,))
    used = {plan.base_address for plan in live_plans()}
    unused = [candidate for candidate in ranges if candidate.address(0) not in used]
    notes: tuple[str, ...] = ()
    for candidate in unused:
        taken = next((listener for listener in listeners if not _is_free(candidate, listener)), None)
        if taken is None:
            return RunAddresses(addresses=candidate, notes=notes)
        notes = notes or (f"the experiment uses another address: {_conflict_words(candidate, taken)}",)
    if not unused:
        what = f"other runs use all {len(ranges)} address ranges"
        raise ToolFailed(what, next="list them: symph ls; end one: symph down NAME")
    return _with_moves(experiment, unused[0], listeners, strict=strict)


def _listeners(experiment: Experiment, services: Sequence[Service]) -> Iterator[_Listener]:
    names = [pod.name for pod in pods_of(experiment).values() for _ in range(replicas_here(pod))]
    for number, name in enumerate(names):
        yield from (_Listener(service, number) for service in services if service.listener.pod == name)


def _is_free(addresses: AddressRange, listener: _Listener) -> bool:
    return is_free(addresses.address(listener.number), listener.service.port)


def _conflict_words(addresses: AddressRange, listener: _Listener) -> str:
    address, port = addresses.address(listener.number), listener.service.port
    holder = holder_of(address, port) or "another process"
    return f'{address}:{port} of service "{listener.service.name}" is in use by {holder}'


def _with_moves(
    experiment: Experiment, addresses: AddressRange, listeners: Sequence[_Listener], *, strict: bool
) -> RunAddresses:
    taken = {listener.service.name: listener for listener in listeners if not _is_free(addresses, listener)}
    fixed = {
        name
        for _, process in processes_of(experiment)
        for name, port in (*process.binds.items(), *process.exposes.items())
        if port is not None
    }
    ports = _other_ports(experiment, {listener.service.port for listener in listeners})
    moved, notes = {}, []
    for name, blocked in taken.items():
        if name in fixed and strict:
            step = "end that process, or let symph choose free ports: `local: {ports: moved}`"
            raise Conflict(_conflict_words(addresses, blocked), next=step)
        numbers = [other.number for other in listeners if other.service.name == name]
        port = next(port for port in ports if all(is_free(addresses.address(number), port) for number in numbers))
        moved[name] = (port,) * len(numbers)
        notes.append(f"{_conflict_words(addresses, blocked)}; this run uses {port}")
    return RunAddresses(addresses=addresses, moved=moved, notes=tuple(notes))


def _at_one_address(experiment: Experiment, listeners: Sequence[_Listener], notes: tuple[str, ...]) -> RunAddresses:
    """Put all pods at 127.0.0.1; ports that other programs or pods of this run use there move."""
    given = {
        port
        for plan in live_plans()
        if plan.base_address == ONE_ADDRESS.address(0)
        for name, usual in plan.ports.items()
        for port in plan.moved.get(name, (usual,))
    }
    others = _other_ports(experiment, {listener.service.port for listener in listeners} | given)
    ports: dict[str, list[int]] = {}
    for wanted in listeners:
        port = usual = wanted.service.port
        if usual in given or not _is_free(ONE_ADDRESS, wanted):
            port = next(other for other in others if is_free(ONE_ADDRESS.address(0), other))
            if usual not in given:
                notes = (*notes, f"{_conflict_words(ONE_ADDRESS, wanted)}; this run uses {port}")
        given.add(port)
        ports.setdefault(wanted.service.name, []).append(port)
    own = {listener.service.name: listener.service.port for listener in listeners}
    moved = {name: tuple(numbers) for name, numbers in ports.items() if set(numbers) != {own[name]}}
    return RunAddresses(addresses=ONE_ADDRESS, moved=moved, notes=notes)


def _other_ports(experiment: Experiment, avoid: set[int]) -> Iterator[int]:
    """Yield ports that the experiment does not use, those of its own range first."""
    low, high = experiment.port_range
    for port in itertools.chain(range(low, high + 1), range(20000, 32000)):
        if port not in avoid:
            yield port
    raise ToolFailed("no free port is left", next="widen `port_range`")
