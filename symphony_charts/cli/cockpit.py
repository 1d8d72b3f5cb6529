"""The screen of `symph top`: the state of each process, the log of one, and keys to act on them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, OptionList, Static

from symphony_charts.backend.protocol import Watcher
from symphony_charts.cli.cockpit_rows import (
    SORTS,
    Looker,
    Picture,
    Wish,
    arranged,
    columns_of,
    head_of,
    items_of,
    why_text,
)
from symphony_charts.cli.experiments import phase_color
from symphony_charts.cli.output import format_table
from symphony_charts.formats.printable import printable_line

_COLORS = {"good": "green", "busy": "yellow", "bad": "red", "dim": "bright_black"}
_TITLE, _FOUND = Style(bold=True, color="bright_black"), Style(reverse=True)


# The screen has its own keys: those of `ScrollView` would scroll instead of moving the selection.
class Table(ScrollView, can_focus=True, inherit_bindings=False):
    """Rows below fixed titles, one of them selected."""

    class Chosen(Message):
        """Posted when another row is selected; `path` is its instance."""

        def __init__(self, path: str) -> None:
            self.path = path
            super().__init__()

    def __init__(self) -> None:
        super().__init__(id="table")
        self._items: Sequence[Mapping[str, Any]] = ()
        self._lines: Sequence[str] = ()
        self.chosen = ""

    def show(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Show these items; keep the selection if its instance is among them."""
        before = self._place()
        self._items = items
        self._lines = format_table(items, columns_of(items), color=False, room=self.size.width - 1).split("\n")
        self.virtual_size = Size(self.size.width, len(self._lines))
        place = self._place()
        if items and place is None:
            self._choose(0)
        elif place != before:
            self._reveal()
        self.refresh()

    def on_resize(self) -> None:
        # The reason of a failed row takes lines from the table, maybe that of the row itself.
        self.show(self._items)
        self._reveal()

    def _place(self) -> int | None:
        return next((place for place, item in enumerate(self._items) if item["name"] == self.chosen), None)

    def _reveal(self) -> None:
        """Scroll as far as needed to show the selected row."""
        place, top, height = self._place(), int(self.scroll_offset.y), max(self.size.height - 1, 1)
        if place is not None and not top <= place < top + height:
            self.scroll_to(y=place if place < top else place - height + 1, animate=False, force=True)

    def move(self, by: int) -> None:
        if self._items:
            self._choose(min(max((self._place() or 0) + by, 0), len(self._items) - 1))

    def _choose(self, place: int) -> None:
        self.chosen = self._items[place]["name"]
        self._reveal()
        self.refresh()
        self.post_message(self.Chosen(self.chosen))

    def render_line(self, y: int) -> Strip:
        """Return line `y` of the screen: the titles, then the rows from the scroll offset on."""
        width, place = self.size.width, y + int(self.scroll_offset.y) if y else 0
        if place >= len(self._lines):
            return Strip.blank(width)
        mark, style = " ", _TITLE
        if place:
            item = self._items[place - 1]
            is_chosen = item["name"] == self.chosen
            mark, style = ">" if is_chosen else " ", Style(color=_COLORS.get(phase_color(item)), reverse=is_chosen)
        return Strip([Segment(f"{mark}{self._lines[place]}", style)]).adjust_cell_length(width, style)

    async def on_click(self, event: object) -> None:
        place = int(getattr(event, "y", 0)) - 1 + int(self.scroll_offset.y)
        if 0 <= place < len(self._items):
            self._choose(place)


class Lines(ScrollView, can_focus=False):
    """Lines of a log, with matches highlighted; scrolled to the end while `follows` is true.

    While `wraps` is true, a line that is longer than the screen takes several rows.
    """

    def __init__(self) -> None:
        super().__init__(id="lines")
        self._lines: Sequence[str] = ()
        # The texts of the rows, and the first row of each line.
        self._rows: list[str] = []
        self._starts: list[int] = []
        self.searched: re.Pattern[str] | None = None
        self.follows = self.wraps = True

    def show(self, lines: Sequence[str]) -> None:
        self._lines, self._rows, self._starts = lines, [], []
        width = max(self.size.width, 1)
        for line in lines:
            text = printable_line(line)
            self._starts.append(len(self._rows))
            self._rows += chop_cells(text, width) if self.wraps and cell_len(text) > width else [text]
        self.virtual_size = Size(width, len(self._rows))
        if self.follows:
            # Without `force`, Textual does not scroll until it has drawn the longer content.
            self.scroll_end(animate=False, immediate=True, force=True)
        self.refresh()

    def on_resize(self) -> None:
        self.show(self._lines)

    def search(self, pattern: str) -> bool:
        """Highlight the matches of `pattern` and go to the last; return True if there is one. Raises re.error."""
        self.searched = re.compile(pattern) if pattern else None
        return self.next_match(from_end=True) if self.searched else True

    def next_match(self, *, from_end: bool = False) -> bool:
        """Go to the previous matching line; wrap around from the first to the last."""
        if self.searched is None:
            return False
        found = [
            start
            for start, line in zip(self._starts, self._lines, strict=True)
            if self.searched.search(printable_line(line))
        ]
        here = len(self._rows) if from_end else int(self.scroll_offset.y)
        if found:
            self.follows = False
            self.scroll_to(y=max([place for place in found if place < here] or found), animate=False, force=True)
        self.refresh()
        return bool(found)

    def render_line(self, y: int) -> Strip:
        place, width = y + int(self.scroll_offset.y), self.size.width
        if place >= len(self._rows):
            return Strip.blank(width)
        return Strip(self._marked(self._rows[place])).adjust_cell_length(width)

    def _marked(self, text: str) -> list[Segment]:
        if self.searched is None:
            return [Segment(text)]
        segments, end = [], 0
        for match in self.searched.finditer(text):
            segments += [Segment(text[end : match.start()]), Segment(match.group(), _FOUND)]
            end = match.end()
        return [*segments, Segment(text[end:])]


_LAST_KEYS = "? keys  q leave"
_KEYS = ("r restart", "s stop", "a attach", "x exec", "/ filter", "S sort", "l find", "o open", "c copy")
_ALL_KEYS = """\
up, down, j, k  another process         r  restart it (on this machine)
home, end       the first, the last     s  end the experiment (it asks)
/               only rows with a text   a  attach to it (on this machine)
S               rows by another column  x  a shell where it runs
pgup, pgdn      scroll its lines        o  open a service in the browser
l  n            search them, again      c  copy the address of a service
f               only with a pattern     w  wrap long lines or cut them
F               follow the end or stay  q  leave; everything runs on
tab             the next experiment"""


def key_line(width: int) -> str:
    """Return the keys that fit into `width` cells, in any case those for help and to leave."""
    shown = list(_KEYS)
    while shown and len("  ".join(["", *shown, _LAST_KEYS])) > width:
        shown.pop()
    return " " + "  ".join([*shown, _LAST_KEYS])


_ACTIONS = {
    "q": "leave",
    "up,k": "move(-1)",
    "down,j": "move(1)",
    "home": "move(-1_000_000)",
    "end": "move(1_000_000)",
    "pageup": "scroll(-1)",
    "pagedown": "scroll(1)",
    "slash": "ask('rows')",
    "S": "sort",
    "l": "ask('search')",
    "w": "wrap",
    "n": "again",
    "f": "ask('filter')",
    "F": "follow",
    "r": "restart",
    "s": "stop",
    "a": "attach",
    "x": "shell",
    "o": "service('visit')",
    "c": "service('copy')",
    "tab": "next_experiment",
    "question_mark": "help",
}
_STEERING = frozenset(action.partition("(")[0] for action in _ACTIONS.values()) - {"next_experiment"}


_QUESTIONS = {"rows": "rows with", "search": "search", "filter": "only lines with"}


class _Choice(ModalScreen[int | None]):
    """A question with a few answers; returns the index of the chosen one, or None."""

    CSS = "_Choice {align: center middle;} OptionList {width: 78; max-height: 16; border: round $primary;}"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "leave", "leave")]

    def __init__(self, answers: Sequence[str]) -> None:
        super().__init__()
        self._answers = answers

    def compose(self) -> ComposeResult:
        yield OptionList(*self._answers, markup=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)

    def action_leave(self) -> None:
        self.dismiss(None)


class Cockpit(App[None]):
    """The screen of one experiment at a time, out of those of `watcher`. Verbs that keys run get `flags`."""

    CSS = """
    #head {height: 1; text-style: bold;}
    #table {height: 1fr; overflow-x: hidden;}
    #title {height: 1; color: $text-muted;}
    #why {height: auto; max-height: 4; color: $text-warning; display: none;}
    #lines {height: 1fr; overflow-x: hidden;}
    #keys {height: 1; color: $text-muted;}
    #ask {height: 1; border: none; padding: 0; display: none;}
    """
    # All with priority: other bindings are handled after those of the focused widget, so keys could overtake each
    # other.
    BINDINGS: ClassVar[list[BindingType]] = [Binding(key, action, priority=True) for key, action in _ACTIONS.items()]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, watcher: Watcher, name: str, flags: Sequence[str], interval_s: float) -> None:
        super().__init__(ansi_color=True)
        self._watcher, self._flags = watcher, list(flags)
        self._wish = Wish(name=name)
        self._picture: Picture | None = None
        self._asked = ""
        self._said = ""
        self._sort = ""
        self._rows: re.Pattern[str] | None = None
        self._looker = Looker(watcher, self._wish, self._shown, interval_s)

    def compose(self) -> ComposeResult:
        """Yield the head, the table, the reason for the selected row, the log, and a line for keys or a question."""
        yield Static(id="head", markup=False)
        yield Table()
        yield Static(id="title", markup=False)
        yield Static(id="why", markup=False)
        yield Lines()
        yield Input(id="ask")
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(Table).focus()
        self._looker.start()

    def on_resize(self) -> None:
        """Redraw the title; the panes resize themselves."""
        self.query_one("#keys", Static).update(key_line(self.size.width))
        self.call_after_refresh(self._title)

    def on_unmount(self) -> None:
        self._looker.stop()

    def _shown(self, picture: Picture) -> None:
        # The app may have exited while the picture was fetched.
        if self.is_running:
            self.call_from_thread(self._show, picture)

    def _show(self, picture: Picture) -> None:
        if picture.wish != self._wish:
            return
        self._picture = picture
        if picture.status is None:
            self._say(picture.fault)
            return
        self.query_one("#head", Static).update(f" {head_of(picture.status, picture.usage, picture.now)}")
        table = self.query_one(Table)
        items = items_of(picture.status, picture.usage, picture.last, picture.now)
        table.show(arranged(items, self._sort, self._rows))
        why = self.query_one("#why", Static)
        why.update(text := why_text(picture.status, table.chosen))
        why.display = bool(text)
        self.query_one(Lines).show(picture.lines)
        self._title()

    def _title(self) -> None:
        lines = self.query_one(Lines)
        rows = f"  rows /{self._rows.pattern}/" if self._rows else ""
        rows += f"  by {'age' if self._sort == 'seconds' else self._sort}" if self._sort else ""
        only = f"  only /{self._wish.regex}/" if self._wish.regex else ""
        searched = f"  /{lines.searched.pattern}/" if lines.searched else ""
        mode = "follows" if lines.follows else "stays"
        said = f"  {self._said}" if self._said else ""
        chosen = self.query_one(Table).chosen or "no process"
        text = f" {chosen}{rows}{only}{searched}  {mode}{said} "
        self.query_one("#title", Static).update(f"──{text}".ljust(self.size.width, "─"))

    def _say(self, text: str) -> None:
        self._said = text
        self._title()

    def _want(self, wish: Wish) -> None:
        self._wish, self._said = wish, ""
        self._looker.wish(wish)

    def on_table_chosen(self, event: Table.Chosen) -> None:
        self.query_one(Lines).follows = True
        self._want(replace(self._wish, path=event.path))

    def action_move(self, by: int) -> None:
        self.query_one(Table).move(by)

    def action_scroll(self, by: int) -> None:
        lines = self.query_one(Lines)
        lines.follows = False
        lines.scroll_relative(y=by * max(lines.size.height - 1, 1), animate=False)
        self._title()

    def action_follow(self) -> None:
        lines = self.query_one(Lines)
        lines.follows = not lines.follows
        self._looker.wish(self._wish)
        self._title()

    def action_wrap(self) -> None:
        lines = self.query_one(Lines)
        lines.wraps = not lines.wraps
        lines.on_resize()

    def action_sort(self) -> None:
        self._sort = SORTS[(SORTS.index(self._sort) + 1) % len(SORTS)]
        self._redraw()

    def _redraw(self) -> None:
        self._said = ""
        if self._picture is not None:
            self._show(self._picture)

    def action_again(self) -> None:
        self._say("" if self.query_one(Lines).next_match() else "not found")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Disable action keys while a pattern is typed or a question is open."""
        del parameters
        is_busy = isinstance(self.focused, Input) or isinstance(self.screen, ModalScreen)
        return action not in _STEERING or not is_busy

    def action_leave(self) -> None:
        """Exit; the experiment keeps running."""
        self.exit()

    def action_ask(self, what: str) -> None:
        """Ask for a pattern. Keys typed right behind the shortcut belong to it: `r` must not restart a process."""
        self._asked = what
        ask = self.query_one("#ask", Input)
        ask.value = ""
        ask.placeholder = f"{_QUESTIONS[what]}: a regular expression"
        ask.display = True
        self.query_one("#keys").display = False
        self.screen.set_focus(ask)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.input.display = False
        self.query_one("#keys").display = True
        self.query_one(Table).focus()
        try:
            pattern = re.compile(event.value, re.IGNORECASE)
        except re.error as error:
            self._say(f"no regular expression: {error}")
            return
        if self._asked == "rows":
            self._rows = pattern if event.value else None
            self._redraw()
        elif self._asked == "search":
            self._say("" if self.query_one(Lines).search(event.value) else "not found")
        else:
            self._want(replace(self._wish, regex=event.value))

    def action_next_experiment(self) -> None:
        names = self._picture.names if self._picture else ()
        if len(names) < 2:
            self._say("there is no other experiment")
            return
        place = names.index(self._wish.name) if self._wish.name in names else -1
        self._want(Wish(name=names[(place + 1) % len(names)]))

    def action_help(self) -> None:
        self.push_screen(_Choice(_ALL_KEYS.splitlines()))

    def action_service(self, what: str) -> None:
        """Let the user choose a service, then open its URL or copy its address."""
        services = self._picture.status.services if self._picture and self._picture.status else ()
        if not services:
            self._say("it has no services")
            return

        def chosen(number: int | None) -> None:
            if number is None:
                return
            if what == "copy":
                self.copy_to_clipboard(services[number].outside or services[number].address)
                self._say(f"copied {services[number].outside or services[number].address}")
            else:
                self._run("visit", services[number].name, self._wish.name)

        self.push_screen(_Choice([f"{one.name}  {one.outside or one.address}" for one in services]), chosen)

    def action_stop(self) -> None:
        def chosen(number: int | None) -> None:
            if number == 1 and self._watcher.backend == "tmux":
                self._run("down", self._wish.name)
            elif number == 1:
                self._run("delete", self._wish.name, "--yes")

        self.push_screen(_Choice([f"leave {self._wish.name} running", f"end {self._wish.name}"]), chosen)

    def action_restart(self) -> None:
        if self._watcher.backend != "tmux":
            self._say("only processes of this machine can be restarted by hand")
            return
        self._run("restart", self.query_one(Table).chosen, "-e", self._wish.name)

    def action_attach(self) -> None:
        if self._watcher.backend != "tmux":
            self._say("only processes of this machine have a terminal to attach to; x opens a shell")
            return
        self._beside("attach", self._wish.name, "-p", self.query_one(Table).chosen)

    def action_shell(self) -> None:
        """Open a shell in the environment of the selected process, then return."""
        self._beside("ssh", self.query_one(Table).chosen, self._wish.name)

    def _beside(self, *words: str) -> None:
        with self.suspend():
            subprocess.run(self._argv(*words), check=False)

    def _run(self, *words: str) -> None:
        self._say(f"{words[0]}...")
        self.run_worker(lambda: self._done(*words), thread=True)

    def _done(self, *words: str) -> None:
        done = subprocess.run(
            self._argv(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False
        )
        told = [line for line in done.stderr.splitlines() if line.strip()]
        text = f"{words[0]}: done" if done.returncode == 0 else (told[0] if told else f"{words[0]} failed")
        self.call_from_thread(self._say, text)

    def _argv(self, *words: str) -> list[str]:
        own = [] if words[0] in ("down", "restart", "attach") else self._flags
        return [sys.executable, "-m", "symphony_charts", *words, *own]
