"""Print comparisons for people and programs: text, Markdown and data."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from symphony_charts.cli import output
from symphony_charts.formats.quantity import cores_text, gib_text
from symphony_charts.gitops import diff

_COLORS = {
    **dict.fromkeys(("updated", "restarted", "new run"), "busy"),
    **dict.fromkeys(("pruned", "fails"), "bad"),
    "nothing": "dim",
    "created": "good",
}
# Longer texts are compared line by line; so many lines are shown of each.
_LONGEST = 80
_MOST_LINES = 60


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison, as it is printed; with `has_all` also objects that change only with others."""

    of: diff.Comparison
    has_all: bool = False

    def text(self) -> str:
        lines = [f"{self.of.before} -> {self.of.after}"]
        for line in self._lines():
            why = f": {line.why}" if line.why else ""
            lines.append(f"{line.difference.name}   {output.paint(line.effect, _COLORS[line.effect])}{why}")
            for path, text, changed in _fields(line):
                lines.append(f"  {path:<16}  {text if changed is None else ''}".rstrip())
                lines += [f"    {each}" for each in changed or ()]
        return "\n".join([*lines, f"under Argo CD: {self.of.summary}", self._amounts()])

    def markdown(self) -> str:
        lines = [f"**{self.of.before} -> {self.of.after}**: {self.of.summary}", ""]
        lines += ["| object | effect | fields |", "| --- | --- | --- |"]
        blocks: list[str] = []
        for line in self._lines():
            cells = []
            for path, text, changed in _fields(line):
                safe = text.replace("|", "\\|").replace("<", "&lt;")
                cells.append(f"`{path}` {safe if changed is None else 'see below'}")
                if changed is not None:
                    blocks += [
                        "",
                        f"`{path}` of {line.difference.name}:",
                        "",
                        output.fenced("\n".join(changed), "diff"),
                    ]
            lines.append(f"| {line.difference.name} | {line.effect} | {'<br>'.join(cells)} |")
        notes = [text for note in self.of.notes for text in ("", f"> {note}")]
        return "\n".join([*lines, *blocks, "", self._amounts(), *notes])

    @property
    def record(self) -> dict[str, object]:
        return {
            "before": self.of.before,
            "after": self.of.after,
            "outcome": self.of.outcome,
            "summary": self.of.summary,
            "move": self.of.move.record if self.of.move else None,
            "objects": [
                {
                    **{name: getattr(line.difference, name) for name in ("kind", "before", "after", "change")},
                    "name": line.difference.name.partition("/")[2],
                    "effect": line.effect,
                    "why": line.why,
                    "fields": [asdict(field) for field in line.difference.fields],
                }
                for line in self.of.lines
            ],
            "amounts": {name: {"before": old, "after": new} for name, (old, new) in self.of.amounts.items()},
            "notes": list(self.of.notes),
        }

    def _lines(self) -> Iterator[diff.Line]:
        for line in self.of.lines:
            is_dull = line.effect == "nothing" or (line.effect == "updated" and not line.difference.fields)
            if self.has_all or not is_dull:
                yield line

    def _amounts(self) -> str:
        parts = []
        for name, (old, new) in self.of.amounts.items():
            if name == "cpu":
                parts.append(f"CPU {cores_text(old)} -> {cores_text(new)}")
            elif name == "memory":
                parts.append(f"memory {gib_text(old)} -> {gib_text(new)} GiB")
            elif not name.startswith("ephemeral"):
                parts.append(f"{'GPU' if name == 'nvidia.com/gpu' else name} {old} -> {new}")
        return "   ".join(parts)


def _fields(line: diff.Line) -> Iterator[tuple[str, str, list[str] | None]]:
    """Yield changed fields: short name (``agent.env.LR`` of a pod template), change, and changed lines if long."""
    for field in line.difference.fields:
        name = field.path.removeprefix("spec.template.spec.").removeprefix("containers.")
        yield name, change_text(field.before, field.after), _changed_lines(field.before, field.after)


def change_text(old: object, new: object) -> str:
    """Return a change of a short value in one line."""
    if old is None:
        return f"+{_text(new)}"
    return f"-{_text(old)}" if new is None else f"{_text(old)} -> {_text(new)}"


def _changed_lines(old: object, new: object) -> list[str] | None:
    """Return the lines that differ, each with two lines around it; None for short values, which fit in one line."""
    if all("\n" not in text and len(text) <= _LONGEST for text in (_plain(old), _plain(new))):
        return None
    sides = [_plain(value, indent=1).splitlines() for value in (old, new)]
    if all(len(side) == 1 for side in sides):
        # A long command in one line: a word in each line.
        sides = [re.findall(r"\S+\s*", side[0]) for side in sides]
    lines = list(difflib.unified_diff(sides[0], sides[1], n=2, lineterm=""))[2:]
    more = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], *([f"... {more} lines more"] if more > 0 else [])]


def _text(value: object) -> str:
    return _plain(value) or json.dumps(value)


def _plain(value: object, indent: int | None = None) -> str:
    """Return a text as it is, nothing for None, and any other value as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, indent=indent)
