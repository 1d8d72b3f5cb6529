"""A comparison is written for people: fields under names that fit a line, amounts, and all of it as Markdown."""

from __future__ import annotations

import json

from symphony_charts.formats.quantity import cores_text, gib_text
from symphony_charts.gitops.diff.comparison import Comparison, Line

__all__ = ["amounts_text", "change_text", "is_dull", "markdown_of", "shown_fields"]


def markdown_of(comparison: Comparison, *, has_all: bool = False) -> str:
    """The comparison as Markdown; with `has_all` also the objects that only follow others."""
    lines = [f"**{comparison.before} -> {comparison.after}**: {comparison.summary}", ""]
    lines += ["| object | effect | fields |", "| --- | --- | --- |"]
    for line in comparison.lines:
        if is_dull(line) and not has_all:
            continue
        fields = "<br>".join(f"`{path}` {_cell(change_text(old, new))}" for path, old, new in shown_fields(line))
        lines.append(f"| {line.difference.name} | {line.effect} | {fields} |")
    lines += ["", amounts_text(comparison), *(text for note in comparison.notes for text in ("", f"> {note}"))]
    return "\n".join(lines)


def is_dull(line: Line) -> bool:
    """Whether an object only follows what happens to others."""
    return line.effect == "nothing" or (line.effect == "updated" and not line.difference.fields)


def shown_fields(line: Line) -> list[tuple[str, object, object]]:
    """The fields under names that fit a line: ``agent.env.LR`` of a pod template's container."""
    shown = []
    for field in line.difference.fields:
        path = field.path.removeprefix("spec.template.spec.").removeprefix("containers.")
        shown.append((path, field.before, field.after))
    return shown


def change_text(old: object, new: object) -> str:
    if old is None:
        return f"+{_text(new)}"
    if new is None:
        return f"-{_text(old)}"
    return f"{_text(old)} -> {_text(new)}"


def _text(value: object) -> str:
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False, sort_keys=True)
    text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:79]}…"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def amounts_text(comparison: Comparison) -> str:
    parts = []
    for name, (old, new) in comparison.amounts.items():
        if name == "cpu":
            parts.append(f"CPU {cores_text(old)} -> {cores_text(new)}")
        elif name == "memory":
            parts.append(f"memory {gib_text(old)} -> {gib_text(new)} GiB")
        elif not name.startswith("ephemeral"):
            parts.append(f"{'GPU' if name == 'nvidia.com/gpu' else name} {old} -> {new}")
    return "   ".join(parts)
