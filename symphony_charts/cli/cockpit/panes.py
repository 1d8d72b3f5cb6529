"""The two panes of the cockpit: a table of rows and a pane of lines; each draws only what is seen of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from symphony_charts.cli.cockpit.rows import Row, cut, layout, titles_of
from symphony_charts.formats.printable import printable_line

__all__ = ["Lines", "Table"]

_COLORS = {
    "running": "green",
    "succeeded": "green",
    "failed": "red",
    "lost": "red",
    "damaged": "red",
    "queued": "yellow",
    "pending": "yellow",
    "stopping": "yellow",
    "stopped": "bright_black",
}
_TITLE, _FOUND = Style(bold=True, color="bright_black"), Style(reverse=True)


# Keys are the screen's own: those of a `ScrollView` would scroll what is too high, where another row is to be chosen.
class Table(ScrollView, can_focus=True, inherit_bindings=False):
    """Rows below fixed titles, one of them chosen."""

    class Chosen(Message):
        """Another row is chosen: `path` is its instance."""

        def __init__(self, path: str) -> None:
            self.path = path
            super().__init__()

    def __init__(self) -> None:
        super().__init__()
        self._rows: Sequence[Row] = ()
        self._widths: tuple[int, ...] = ()
        self.chosen = ""

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows; the chosen one stays where it is there."""
        self._rows, self._widths = rows, layout(rows, self.size.width - 1)
        self.virtual_size = Size(self.size.width, len(rows) + 1)
        if rows and self.chosen not in [row.path for row in rows]:
            self._choose(0)
        self.refresh()

    def on_resize(self) -> None:
        """Lay out the rows for the new width."""
        self.show(self._rows)

    def move(self, by: int) -> None:
        """Choose another row."""
        paths = [row.path for row in self._rows]
        if paths:
            place = paths.index(self.chosen) if self.chosen in paths else 0
            self._choose(min(max(place + by, 0), len(paths) - 1))

    def _choose(self, place: int) -> None:
        self.chosen = self._rows[place].path
        top, height = int(self.scroll_offset.y), max(self.size.height - 1, 1)
        if not top <= place < top + height:
            self.scroll_to(y=place if place < top else place - height + 1, animate=False, force=True)
        self.refresh()
        self.post_message(self.Chosen(self.chosen))

    def render_line(self, y: int) -> Strip:
        """One line of the screen: the titles, then the rows from the scroll offset on."""
        width = self.size.width
        place = y - 1 + int(self.scroll_offset.y)
        if y == 0:
            return Strip([Segment(self._text(titles_of(self._rows)), _TITLE)]).adjust_cell_length(width)
        if place >= len(self._rows):
            return Strip.blank(width)
        row = self._rows[place]
        is_chosen = row.path == self.chosen
        style = Style(color=_COLORS.get(row.phase), reverse=is_chosen, bold=is_chosen)
        return Strip([Segment(self._text(row.cells, ">" if is_chosen else " "), style)]).adjust_cell_length(
            width, style
        )

    def _text(self, cells: Sequence[str], mark: str = " ") -> str:
        texts = [cut(cell, width).ljust(width) for cell, width in zip(cells, self._widths, strict=False)]
        return mark + "  ".join(texts)

    async def on_click(self, event: object) -> None:
        """Choose the row that is clicked."""
        place = int(getattr(event, "y", 0)) - 1 + int(self.scroll_offset.y)
        if 0 <= place < len(self._rows):
            self._choose(place)


class Lines(ScrollView, can_focus=False):
    """Lines of a log, at the end of which it stays while it follows; what is searched for is marked."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: Sequence[str] = ()
        self.searched: re.Pattern[str] | None = None
        self.follows = True

    def show(self, lines: Sequence[str]) -> None:
        """Show these lines."""
        self._lines = lines
        self.virtual_size = Size(self.size.width, len(lines))
        if self.follows:
            # Without force it does not scroll before it has drawn that there is more than fits.
            self.scroll_end(animate=False, immediate=True, force=True)
        self.refresh()

    def on_resize(self) -> None:
        """Stay at the end in the new height too."""
        self.show(self._lines)

    def search(self, pattern: str) -> bool:
        """Mark what `pattern` finds and go to the last line with it; whether there is one. Raises re.error."""
        self.searched = re.compile(pattern) if pattern else None
        return self.next_match(from_end=True) if self.searched else True

    def next_match(self, *, from_end: bool = False) -> bool:
        """Go to the line above with what is searched for, and from the first one to the last."""
        if self.searched is None:
            return False
        found = [place for place, line in enumerate(self._lines) if self.searched.search(printable_line(line))]
        here = len(self._lines) if from_end else int(self.scroll_offset.y)
        if found:
            self.follows = False
            self.scroll_to(y=max([place for place in found if place < here] or found), animate=False, force=True)
        self.refresh()
        return bool(found)

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        place, width = y + int(self.scroll_offset.y), self.size.width
        if place >= len(self._lines):
            return Strip.blank(width)
        text = printable_line(self._lines[place])
        return Strip(self._marked(text)).adjust_cell_length(width)

    def _marked(self, text: str) -> list[Segment]:
        if self.searched is None:
            return [Segment(text)]
        segments, end = [], 0
        for match in self.searched.finditer(text):
            segments += [Segment(text[end : match.start()]), Segment(match.group(), _FOUND)]
            end = match.end()
        return [*segments, Segment(text[end:])]
