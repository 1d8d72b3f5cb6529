"""Draw the nodes of a plan, with the pods packed in them, as one SVG.

Each node is two columns, CPU and memory, in which its groups are stacked to scale. Equal nodes are drawn once, with
their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape

from symphony_charts.formats.quantity import cores_text, gib_text
from symphony_charts.placement.fit.packing import Filled
from symphony_charts.placement.plan import Plan, PoolUse
from symphony_charts.placement.report import GPU, TPU, plan_sentence, total_line

WIDTH, MARGIN, GAP = 980, 24, 14
NODE_W, NODE_H, TOP = 222, 196, 40
COLUMN_H, CPU_W, MEM_W = 128, 128, 62
_STATE = {"PROVEN": "#2f855a", "PACKABLE": "#b7791f", "UNKNOWN": "#b7791f", "NO": "#c53030"}
_MOST_LEGENDS = 24
INK, MUTED, FRAME = "#1f2933", "#616e7c", "#cbd2d9"
# Distinct on white, also for most colour-blind people; repeated after twelve groups.
_PALETTE = (
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#86bcb6",
    "#d37295", "#a0cbe8",
)  # fmt: skip
_FONT = "font-family='DejaVu Sans, Helvetica, Arial, sans-serif'"


def draw_nodes(plan: Plan) -> str:
    parts: list[str] = [
        _text(MARGIN, 36, f"{plan.experiment or 'plan'} on {plan.source}", size=18, bold=True),
        _text(MARGIN, 56, _fitted(plan_sentence(plan), 930, 13), size=13, fill=_STATE[plan.verdict]),
        _text(MARGIN, 74, total_line(plan), size=12, fill=MUTED),
    ]
    y = _legend(plan, parts, 94)
    for use in plan.uses:
        y = _pool(plan, use, parts, y + 26)
    if not plan.uses:
        parts.append(_text(MARGIN, y + 30, "No pod fits on a node.", fill=MUTED))
        y += 40
    return _svg(WIDTH, y + MARGIN, parts, f"Plan of {plan.experiment}")


def _legend(plan: Plan, parts: list[str], y: float) -> float:
    groups = plan.groups[:_MOST_LEGENDS]
    for group in groups:
        parts.append(_box(MARGIN, y, 11, 11, fill=_color(group.demand), radius=2))
        name = f"{group.name} x{group.count}" if group.count > 1 else group.name
        parts.append(_text(MARGIN + 18, y + 10, _fitted(name, 180)))
        parts.append(_text(MARGIN + 205, y + 10, group.verdict, fill=_STATE[group.verdict], bold=True))
        parts.append(_text(MARGIN + 290, y + 10, _fitted(group.why, 660), fill=MUTED))
        y += 18
        if group.next:
            parts.append(_text(MARGIN + 290, y + 10, _fitted(f"next: {group.next}", 660), fill=MUTED))
            y += 18
    if len(plan.groups) > len(groups):
        parts.append(_text(MARGIN + 18, y + 10, f"and {len(plan.groups) - len(groups)} groups more", fill=MUTED))
        y += 18
    return y


def _pool(plan: Plan, use: PoolUse, parts: list[str], y: float) -> float:
    pool = use.pool
    price = "no price" if use.price is None else f"${use.price:.2f}/h"
    heading = f"{pool.name}  {pool.machine_type}".strip()
    parts.append(_text(MARGIN, y, heading, size=14, bold=True))
    detail = f"{use.nodes} of at most {pool.max_nodes} nodes, {price}"
    parts.append(_text(WIDTH - MARGIN, y, detail, fill=MUTED, anchor="end"))
    parts.append(f"<path d='M{MARGIN} {y + 8:g}H{WIDTH - MARGIN}' stroke='{FRAME}'/>")
    y += 20
    per_row = (WIDTH - 2 * MARGIN + GAP) // (NODE_W + GAP)
    for index, filled in enumerate(use.filled):
        column, row = index % per_row, index // per_row
        parts += _node(plan, filled, MARGIN + column * (NODE_W + GAP), y + row * (NODE_H + GAP))
    rows = -(-len(use.filled) // per_row)
    return y + rows * (NODE_H + GAP) - GAP


def _node(plan: Plan, filled: Filled, x: float, y: float) -> Iterator[str]:
    cluster = plan.cluster
    node = cluster.classes[filled.node]
    number = f"{filled.count} nodes alike" if filled.count > 1 else node.name or "1 node"
    yield _box(x, y, NODE_W, NODE_H, fill="#f8fafb", stroke=FRAME, radius=6)
    yield _text(x + 10, y + 18, _fitted(number, 120), bold=filled.count > 1)
    yield from _devices(plan, filled, x + NODE_W - 10, y + 18)
    columns = (("cpu", "CPU", x + 10, CPU_W), ("memory", "memory", x + 10 + CPU_W + 12, MEM_W))
    for resource, label, left, width in columns:
        dimension = cluster.dimensions.index(resource) if resource in cluster.dimensions else -1
        offered, free = (node.free[dimension], filled.free[dimension]) if dimension >= 0 else (0, 0)
        used = offered - free
        yield _box(left, y + TOP - 12, width, COLUMN_H, fill="#eef2f5", stroke=FRAME)
        yield from _stack(plan, filled, dimension, offered, left, y + TOP - 12, width, with_names=resource == "cpu")
        amounts = f"{gib_text(used)}/{gib_text(offered)}"
        if resource == "cpu":
            amounts = f"{cores_text(used)} of {cores_text(offered)}"
        yield _text(left, y + TOP + COLUMN_H + 2, amounts, size=10)
        yield _text(left, y + TOP + COLUMN_H + 15, label if resource == "cpu" else "GiB", size=10, fill=MUTED)


def _devices(plan: Plan, filled: Filled, right: float, y: float) -> Iterator[str]:
    node = plan.cluster.classes[filled.node]
    for dimension, name in enumerate(plan.cluster.dimensions):
        if name in (GPU, TPU) and node.free[dimension]:
            used = node.free[dimension] - filled.free[dimension]
            text = f"{used}/{node.free[dimension]} {name.split('/')[1].upper()}"
            yield _text(right, y, text, size=10, anchor="end")


def _stack(
    plan: Plan, filled: Filled, dimension: int, offered: int, x: float, y: float, width: float, *, with_names: bool
) -> Iterator[str]:
    """Yield a box per group, as high as its share of what the node offers."""
    bottom = y + COLUMN_H
    for demand, count in filled.contents if offered else ():
        height = plan.cluster.needs[demand][dimension] * count / offered * COLUMN_H
        bottom -= height
        label = plan.cluster.demands[demand].name + (f" x{count}" if count > 1 else "")
        yield _box(x, bottom, width, height, fill=_color(demand), stroke="#ffffff", title=label)
        if with_names and height >= 13:
            yield _text(x + 5, bottom + height / 2 + 4, _fitted(label, width - 8, 11), size=11, fill=_on(demand))


def _on(demand: int) -> str:
    shade = _color(demand).lstrip("#")
    red, green, blue = (int(shade[i : i + 2], 16) for i in (0, 2, 4))
    return INK if red * 299 + green * 587 + blue * 114 > 140_000 else "#ffffff"


def _color(number: int) -> str:
    return _PALETTE[number % len(_PALETTE)]


def _text(
    x: float, y: float, content: str, *, size: int = 12, fill: str = INK, bold: bool = False, anchor: str = "start"
) -> str:
    weight = " font-weight='600'" if bold else ""
    attributes = f"x='{x:g}' y='{y:g}' font-size='{size}' fill='{fill}' text-anchor='{anchor}'"
    return f"<text {attributes}{weight}>{escape(content)}</text>"


def _box(
    x: float, y: float, width: float, height: float, *, fill: str = "none", stroke: str = "none", radius: float = 0,
    title: str = "",
) -> str:  # fmt: skip
    """Return a rectangle; browsers show `title` as a tooltip."""
    shape = (
        f"<rect x='{x:g}' y='{y:g}' width='{max(width, 0):.2f}' height='{max(height, 0):.2f}' rx='{radius:g}' "
        f"fill='{fill}' stroke='{stroke}'"
    )
    return f"{shape}><title>{escape(title)}</title></rect>" if title else f"{shape}/>"


def _fitted(content: str, width: float, size: int = 12) -> str:
    room = int(width / (size * 0.6))
    if len(content) <= room:
        return content
    return content[: max(room - 1, 0)] + "…" if room > 1 else ""


def _svg(width: float, height: float, parts: Iterable[str], title: str) -> str:
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:g}' height='{height:g}' "
        f"viewBox='0 0 {width:g} {height:g}' {_FONT} role='img'>"
    )
    body = "\n".join(parts)
    return f"{head}\n<title>{escape(title)}</title>\n{_box(0, 0, width, height, fill='#ffffff')}\n{body}\n</svg>\n"
