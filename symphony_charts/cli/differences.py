"""Print comparisons for people: text and Markdown."""

from __future__ import annotations

import json
from collections.abc import Sequence

from symphony_charts.errors import NotFound
from symphony_charts.formats.quantity import cores_text, gib_text
from symphony_charts.gitops.base import Change
from symphony_charts.gitops.diff import Comparison, Line, Published, Side, compare_sides
from symphony_charts.gitops.store.store import Store


def markdown_of(comparison: Comparison, *, has_all: bool = False) -> str:
    """Return the comparison as Markdown; with `has_all` also objects that change only with others."""
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
    """Return True if an object does not change by itself."""
    return line.effect == "nothing" or (line.effect == "updated" and not line.difference.fields)


def shown_fields(line: Line) -> list[tuple[str, object, object]]:
    """Return the changed fields under short names: ``agent.env.LR`` of a pod template's container."""
    return [
        (field.path.removeprefix("spec.template.spec.").removeprefix("containers."), field.before, field.after)
        for field in line.difference.fields
    ]


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


def difference_text(before: Store, after: Store, changes: Sequence[Change]) -> str:
    """Return Markdown that compares each changed experiment between the branches `before` and `after`."""
    texts = []
    for change in changes:
        env, team, name = (str(change.facts.get(key) or "") for key in ("env", "team", "name"))
        if env and team and name:
            sides = [_side(store, env, team, name) for store in (before, after)]
            texts.append(markdown_of(compare_sides(sides[0], sides[1])))
    return "\n\n".join(texts)


def _side(store: Store, env: str, team: str, name: str) -> Side:
    try:
        return Published(store.tip(), team, name).in_environment(env)
    except NotFound:
        return Side(title=f"nothing in {env}", objects=())
