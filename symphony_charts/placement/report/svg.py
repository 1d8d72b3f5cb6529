"""SVG pictures are put together from boxes, texts and colours; everything is inline, so that a picture is one file."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape

__all__ = ["FRAME", "INK", "MUTED", "box", "color", "fitted", "svg", "text"]

INK, MUTED, FRAME = "#1f2933", "#616e7c", "#cbd2d9"
# Distinct on white, also for most colour-blind eyes; repeated after twelve groups.
_PALETTE = (
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#86bcb6",
    "#d37295", "#a0cbe8",
)  # fmt: skip
_FONT = "font-family='DejaVu Sans, Helvetica, Arial, sans-serif'"


def color(number: int) -> str:
    """The colour of the n-th group."""
    return _PALETTE[number % len(_PALETTE)]


def text(
    x: float, y: float, content: str, *, size: int = 12, fill: str = INK, bold: bool = False, anchor: str = "start"
) -> str:
    """A line of text with its baseline at (x, y)."""
    weight = " font-weight='600'" if bold else ""
    attributes = f"x='{x:g}' y='{y:g}' font-size='{size}' fill='{fill}' text-anchor='{anchor}'"
    return f"<text {attributes}{weight}>{escape(content)}</text>"


def box(
    x: float, y: float, width: float, height: float, *, fill: str = "none", stroke: str = "none", radius: float = 0,
    title: str = "",
) -> str:  # fmt: skip
    """A rectangle; `title` is shown by browsers while the pointer rests on it."""
    shape = (
        f"<rect x='{x:g}' y='{y:g}' width='{max(width, 0):.2f}' height='{max(height, 0):.2f}' rx='{radius:g}' "
        f"fill='{fill}' stroke='{stroke}'"
    )
    return f"{shape}><title>{escape(title)}</title></rect>" if title else f"{shape}/>"


def fitted(content: str, width: float, size: int = 12) -> str:
    """`content` cut to about `width` at a font size; an ellipsis tells that something is missing."""
    room = int(width / (size * 0.6))
    if len(content) <= room:
        return content
    return content[: max(room - 1, 0)] + "…" if room > 1 else ""


def svg(width: float, height: float, parts: Iterable[str], title: str) -> str:
    """A whole picture on white."""
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:g}' height='{height:g}' "
        f"viewBox='0 0 {width:g} {height:g}' {_FONT} role='img'>"
    )
    body = "\n".join(parts)
    return f"{head}\n<title>{escape(title)}</title>\n{box(0, 0, width, height, fill='#ffffff')}\n{body}\n</svg>\n"
