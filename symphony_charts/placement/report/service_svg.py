"""One SVG draws the processes of an experiment and the services between them.

Processes stand in columns: who dials is left of whom it dials, as far as there is no circle. Groups are framed; an
arrow carries the name of the service. Arrows over several columns run in lanes above the boxes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from symphony_charts.placement.report.svg import FRAME, INK, MUTED, box, color, fitted, svg, text
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import ProcessRef, pods_of

__all__ = ["draw_graph"]

BOX_W, BOX_H, MARGIN, COLUMN, ROW, LANE, HEAD = 190, 64, 30, 400, 92, 24, 62
_MOST, _LABEL_W = 60, 130


Edge = tuple[ProcessRef, ProcessRef, str]  # who dials, who binds, the service


@dataclass(frozen=True, slots=True)
class _Place:
    column: int
    x: float
    y: float


def draw_graph(experiment: Experiment, colors: Mapping[str, int] | None = None) -> str:
    """The SVG text; `colors` gives each pod the number of its colour in the plan's picture."""
    pods = pods_of(experiment)
    members = [
        (ProcessRef(pod.name, name), process) for pod in pods.values() for name, process in pod.processes.items()
    ]
    shown = members[:_MOST]
    binders = {service: ref for ref, process in shown for service in (*process.binds, *process.exposes)}
    edges: list[Edge] = [
        (ref, binders[service], service)
        for ref, process in shown
        for service in process.connects
        if service in binders and binders[service] != ref
    ]
    columns = _columns([ref for ref, _ in shown], [(a, b) for a, b, _ in edges])
    lanes = list(dict.fromkeys(edge[1:] for edge in edges if columns[edge[1]] - columns[edge[0]] > 1))
    places, width, height = _layout(columns, HEAD + LANE * len(lanes))
    parts = [_ARROW, text(MARGIN, 36, f"{experiment.name}: processes and services", size=18, bold=True)]
    parts += _edges(edges, lanes, places)
    for ref, process in shown:
        outside = ", ".join(f"{name}:{port}" if port else name for name, port in process.exposes.items())
        number = (colors or {}).get(ref.pod, 0)
        parts += _process(places[ref], str(ref), pods[ref.pod].settings.replicas, process.lifecycle, outside, number)
    if len(members) > len(shown):
        parts.append(text(MARGIN, height - 12, f"and {len(members) - len(shown)} processes more", fill=MUTED))
    return svg(width, height, parts, f"Processes and services of {experiment.name}")


_ARROW = (
    "<defs><marker id='tip' viewBox='0 0 10 10' refX='9' refY='5' markerWidth='7' markerHeight='7' orient='auto'>"
    f"<path d='M0 0L10 5L0 10z' fill='{MUTED}'/></marker></defs>"
)


def _columns(refs: list[ProcessRef], edges: list[tuple[ProcessRef, ProcessRef]]) -> dict[ProcessRef, int]:
    """The column of each process: the length of the longest chain of dials that leads to it, five at most."""
    depth = dict.fromkeys(refs, 0)
    for _ in refs:
        changed = False
        for dialler, dialled in edges:
            wanted = depth[dialler] + 1
            # A circle of dials would push its members on for ever; the second way round is drawn backwards.
            if depth[dialled] < wanted < len(refs) and (dialled, dialler) not in edges:
                depth[dialled], changed = wanted, True
        if not changed:
            break
    used = sorted(set(depth.values()))
    return {ref: min(used.index(depth[ref]), 4) for ref in refs}


def _layout(columns: Mapping[ProcessRef, int], top: float) -> tuple[dict[ProcessRef, _Place], float, float]:
    """Places with each column centred below `top`, and the size of the picture."""
    rows: dict[int, list[ProcessRef]] = {}
    for ref, column in columns.items():
        rows.setdefault(column, []).append(ref)
    tallest = max((len(column) for column in rows.values()), default=1)
    places = {}
    for number, members in rows.items():
        start = top + (tallest - len(members)) * ROW / 2
        for row, ref in enumerate(members):
            places[ref] = _Place(number, MARGIN + number * COLUMN, start + row * ROW)
    width = MARGIN * 2 + max(rows, default=0) * COLUMN + BOX_W + 170
    return places, max(width, 520), top + tallest * ROW + 20


def _edges(
    edges: list[Edge], lanes: list[tuple[ProcessRef, str]], places: Mapping[ProcessRef, _Place]
) -> Iterator[str]:
    """All arrows, then their labels, so that no line crosses a label.

    Every arrow leaves its box at a point of its own; those to one service arrive together, and share a lane.
    """
    labels: dict[object, str] = {}
    for number, edge in enumerate(edges):
        start, end = places[edge[0]], places[edge[1]]
        leaving = [other for other in edges if other[0] == edge[0]]
        coming = list(dict.fromkeys(other[2] for other in edges if other[1] == edge[1]))
        y1 = start.y + BOX_H * (leaving.index(edge) + 1) / (len(leaving) + 1)
        y2 = end.y + BOX_H * (coming.index(edge[2]) + 1) / (len(coming) + 1)
        key: object = edge
        if end.column - start.column > 1:
            key = edge[1:]
            lane = HEAD + LANE * lanes.index(edge[1:]) - 2
            path, x, y = _over(start.x + BOX_W, y1, end.x, y2, lane)
        elif end.column > start.column:
            path, x, y = _across(start.x + BOX_W, y1, end.x, y2, number, _label_width(edge[2]))
        else:
            path, x, y = _back(start.x + BOX_W, y1, end.x + BOX_W, y2, number)
        yield f"<path d='{path}' fill='none' stroke='{MUTED}' stroke-width='1.4' marker-end='url(#tip)'/>"
        labels[key] = _label(edge[2], x, y)
    yield from labels.values()


def _over(x1: float, y1: float, x2: float, y2: float, lane: float) -> tuple[str, float, float]:
    path = f"M{x1:g} {y1:g}C{x1 + 70:g} {y1:g} {x1 + 30:g} {lane:g} {x1 + 110:g} {lane:g}"
    return f"{path}L{x2 - 110:g} {lane:g}C{x2 - 30:g} {lane:g} {x2 - 70:g} {y2:g} {x2:g} {y2:g}", x2 - 170, lane


def _across(x1: float, y1: float, x2: float, y2: float, number: int, label: float) -> tuple[str, float, float]:
    """To the next column; the label stands a third or so along, where arrows that cross have parted."""
    middle, edge = (x1 + x2) / 2, (label / 2 + 26) / (x2 - x1)
    share = min(max((0.36, 0.5, 0.64)[number % 3], edge), 1 - edge)
    path = f"M{x1:g} {y1:g}C{middle:g} {y1:g} {middle:g} {y2:g} {x2:g} {y2:g}"
    ease = 3 * share**2 - 2 * share**3
    return path, x1 + (x2 - x1) * share, y1 + (y2 - y1) * ease


def _back(x1: float, y1: float, x2: float, y2: float, number: int) -> tuple[str, float, float]:
    """Back, or within a column: round the right side."""
    bend = 60 + 26 * (number % 4)
    path = f"M{x1:g} {y1:g}C{x1 + bend:g} {y1:g} {x2 + bend:g} {y2:g} {x2:g} {y2:g}"
    return path, max(x1, x2) + bend * 0.75, (y1 + y2) / 2


def _label_width(service: str) -> float:
    return len(fitted(service, _LABEL_W, 11)) * 6.6 + 8


def _label(service: str, x: float, y: float) -> str:
    name, width = fitted(service, _LABEL_W, 11), _label_width(service)
    ground = box(x - width / 2, y - 8, width, 16, fill="#ffffff", radius=3)
    return ground + text(x, y + 4, name, size=11, fill=INK, anchor="middle")


def _process(place: _Place, name: str, count: int, lifecycle: str, outside: str, number: int) -> list[str]:
    shown = f"{name} x{count}" if count > 1 else name
    kind = "service" if lifecycle == "service" else "runs to its end"
    parts = [
        box(place.x, place.y, BOX_W, BOX_H, fill="#ffffff", stroke=FRAME, radius=6, title=shown),
        box(place.x, place.y, 6, BOX_H, fill=color(number), radius=2),
        text(place.x + 16, place.y + 22, fitted(shown, BOX_W - 24, 13), size=13, bold=True),
        text(place.x + 16, place.y + 38, kind, size=11, fill=MUTED),
    ]
    if outside:
        parts.append(text(place.x + 16, place.y + 54, fitted(f"open: {outside}", BOX_W - 20, 11), size=11))
    return parts
