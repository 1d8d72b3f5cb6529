"""References between parts must resolve: `after`, `order`, `done_when`, `prepare`, selected secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from symphony_charts.errors import Problem
from symphony_charts.formats.paths import nearest
from symphony_charts.spec.added_kinds import used_kinds
from symphony_charts.spec.checks.entries import ProcessEntry
from symphony_charts.spec.model import Experiment

__all__ = ["name_hint", "reference_faults"]


def reference_faults(experiment: Experiment, entries: list[ProcessEntry]) -> Iterator[Problem]:
    """Yield references that are unknown, ambiguous or circular."""
    table = _Table(entries)
    graph: dict[str, list[ProcessEntry]] = {}
    for entry in entries:
        if entry.process.after:
            targets = [table.find(ref, f"{entry.path}.after[{i}]") for i, ref in enumerate(entry.process.after)]
            graph[entry.path] = [other for other in targets if other is not None]
    for index, ref in enumerate(experiment.done_when):
        end = table.find(ref, f"done_when[{index}]")
        if end is not None and end.process.lifecycle == "service":
            what = f'"{ref}" is a service and never ends by itself'
            yield Problem(what=what, path=f"done_when[{index}]", next="name finite processes")
    yield from _order_faults(experiment.order, table)
    for index, secret in enumerate(experiment.secrets):
        for number, ref in enumerate(secret.only):
            table.find(ref, f"secrets[{index}].only[{number}]")
    pods = {*experiment.groups, *experiment.processes}
    for name, step in experiment.prepare.items():
        for index, pod in enumerate(step.groups):
            if pod not in pods:
                what, next_step = f'no group or lone process is called "{pod}"', name_hint(pod, pods)
                yield Problem(what=what, path=f"prepare.{name}.groups[{index}]", next=next_step)
    for kind in used_kinds(experiment.workload).values():
        yield from kind.faults(experiment)
    yield from table.problems
    yield from _circle_faults(graph, [entry for entry in entries if entry.path in graph])


class _Table:
    """Processes by bare name and by ``group/process``."""

    def __init__(self, entries: list[ProcessEntry]) -> None:
        self.problems: list[Problem] = []
        self._by_name: dict[str, list[ProcessEntry]] = {}
        for entry in entries:
            self._by_name.setdefault(entry.ref.process, []).append(entry)
            self._by_name.setdefault(f"{entry.ref.pod}/{entry.ref.process}", []).append(entry)

    def knows(self, ref: str) -> bool:
        """Return True if exactly one process has this name."""
        return len(self._by_name.get(ref, [])) == 1

    def find(self, ref: str, path: str) -> ProcessEntry | None:
        """Return the process that `ref` means; None, and a problem, unless that is exactly one."""
        matches = self._by_name.get(ref, [])
        if len(matches) == 1:
            return matches[0]
        if matches:
            choices = ", ".join(f"{entry.ref.pod}/{entry.ref.process}" for entry in matches)
            what = f'"{ref}" fits several processes: {choices}'
            self.problems.append(Problem(what=what, path=path, next="name it as group/process"))
        else:
            names = [name for name in self._by_name if "/" not in name]
            what = f'no process is called "{ref}"'
            self.problems.append(Problem(what=what, path=path, next=name_hint(ref, names)))
        return None


def _order_faults(order: Sequence[str], table: _Table) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, ref in enumerate(order):
        # A bare name is a lone process where there is one: `order` tells members of groups by ``group/process``.
        lone = f"{ref}/{ref}"
        entry = table.find(lone if "/" not in ref and table.knows(lone) else ref, f"order[{index}]")
        if entry is None:
            continue
        if entry.path in seen:
            yield Problem(what=f'"{ref}" stands twice in the order', path=f"order[{index}]", next="drop one of them")
        seen.add(entry.path)


def _circle_faults(graph: Mapping[str, Sequence[ProcessEntry]], starts: Sequence[ProcessEntry]) -> Iterator[Problem]:
    """Yield one fault for each circle of `after`, at the first process of it.

    `graph` is keyed by path. It is walked with a stack of its own: chains may be longer than Python's.
    """
    done: set[str] = set()
    for start in starts:
        if start.path in done:
            continue
        trail = {start.path: start}
        branches = [iter(graph[start.path])]
        while branches:
            following = next(branches[-1], None)
            if following is None:
                branches.pop()
                done.add(trail.popitem()[0])
            elif following.path in trail:
                yield _circle([*trail.values()], following)
            elif following.path not in done:
                trail[following.path] = following
                branches.append(iter(graph.get(following.path, ())))


def _circle(trail: list[ProcessEntry], again: ProcessEntry) -> Problem:
    first = next(index for index, entry in enumerate(trail) if entry.path == again.path)
    names = " -> ".join(str(entry.ref) for entry in [*trail[first:], again])
    what = f"processes wait for each other: {names}"
    return Problem(what=what, path=f"{again.path}.after", next="let one of them start first")


def name_hint(name: str, choices: Sequence[str] | set[str]) -> str:
    """Return the step after an unknown name: the one that was probably meant, or a list of all."""
    meant = nearest(name, choices)
    return f'did you mean "{meant}"?' if meant else f"there are: {', '.join(sorted(choices)[:12]) or 'none'}"
