"""A plot of a sweep as SVG: a metric over the steps of each trial, and its last value over each setting."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape

__all__ = ["plot"]

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BELOW = 480, 300, 70, 30, 20, 40
_COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf")

Points = Sequence[tuple[float, float]]


def plot(
    metric: str, over_steps: Mapping[str, Points], settings: Mapping[str, Mapping[str, str]], last: Mapping[str, float]
) -> str:
    """The picture: one panel for the steps, and one for each setting that trials with a last value have."""
    panels = [_panel("step", metric, [(name, points, True) for name, points in over_steps.items() if points])]
    keys = dict.fromkeys(key for name in last for key in settings[name])
    for key in keys:
        chosen = {name: settings[name][key] for name in last if key in settings[name]}
        places = _places(list(chosen.values()))
        points = [(places[text], last[name]) for name, text in chosen.items()]
        ticks = {} if _are_numbers(chosen.values()) else {place: text for text, place in places.items()}
        panels.append(_panel(key, metric, [("", points, False)], ticks))
    body = "".join(f'<g transform="translate(0 {index * _HEIGHT})">{panel}</g>\n' for index, panel in enumerate(panels))
    size = f'width="{_WIDTH}" height="{_HEIGHT * len(panels)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{body}</svg>\n'
    )


def _are_numbers(texts: Iterable[str]) -> bool:
    try:
        return all(math.isfinite(float(text)) for text in texts)
    except ValueError:
        return False


def _places(texts: Sequence[str]) -> dict[str, float]:
    """Where each value of a setting stands: numbers at themselves, other texts one after the other."""
    if _are_numbers(texts):
        return {text: float(text) for text in texts}
    return {text: float(index) for index, text in enumerate(dict.fromkeys(texts))}


def _panel(
    below: str, beside: str, lines: Sequence[tuple[str, Points, bool]], ticks: Mapping[float, str] | None = None
) -> str:
    """Axes with the ends of what is shown, and lines or dots."""
    everything = [point for _, points, _ in lines for point in points]
    low_x, high_x = _ends([x for x, _ in everything])
    low_y, high_y = _ends([y for _, y in everything])
    across, down = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BELOW

    def at(x: float, y: float) -> tuple[str, str]:
        right, up = (x - low_x) / (high_x - low_x), (y - low_y) / (high_y - low_y)
        return f"{_LEFT + right * across:.1f}", f"{_TOP + (1 - up) * down:.1f}"

    bottom = _TOP + down
    parts = [
        f'<path d="M{_LEFT} {_TOP}V{bottom}H{_LEFT + across}" fill="none" stroke="black"/>',
        f'<text x="{_LEFT}" y="{_TOP - 10}">{escape(beside)}</text>',
        f'<text x="{_LEFT + across / 2:.0f}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(below)}</text>',
        f'<text x="{_LEFT - 5}" y="{_TOP + 4}" text-anchor="end">{high_y:.4g}</text>',
        f'<text x="{_LEFT - 5}" y="{bottom}" text-anchor="end">{low_y:.4g}</text>',
    ]
    for place, text in (ticks or {low_x: f"{low_x:.4g}", high_x: f"{high_x:.4g}"}).items():
        parts.append(f'<text x="{at(place, low_y)[0]}" y="{bottom + 14}" text-anchor="middle">{escape(text)}</text>')
    for index, (name, points, is_line) in enumerate(lines):
        color, spots = _COLORS[index % len(_COLORS)], [at(x, y) for x, y in points]
        title = f"<title>{escape(name)}</title>" if name else ""
        if is_line and len(spots) > 1:
            path = " ".join(f"{x},{y}" for x, y in spots)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{color}">{title}</polyline>')
        else:
            parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{color}">{title}</circle>' for x, y in spots]
    return "".join(parts)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """The lowest and the highest, apart from each other."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
