"""Compare the objects of two versions or environments, and report what Argo CD does with each difference."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from symphony_charts.chart.build.chart import Release
from symphony_charts.errors import NotFound
from symphony_charts.formats.data import Values, sub
from symphony_charts.gitops.base import pointer_or_none
from symphony_charts.gitops.pointer import Move, Pointer, move_between
from symphony_charts.gitops.published import objects_of
from symphony_charts.gitops.snapshot import Snapshot
from symphony_charts.kinds.registry import RUNS, kind_of
from symphony_charts.placement.fit.demand import demands_of
from symphony_charts.settings.project import Destination

Objects: TypeAlias = Iterable[Mapping[str, object]]
Kind: TypeAlias = Literal["added", "removed", "changed", "unchanged"]

_HASHED = re.compile(r"-[0-9a-f]{8}\Z")
_ABSENT = object()
# Fields that only name the run of an object: they change with every run and mean nothing else.
_NOISE = re.compile(
    r"metadata\.name\Z|(^|\.)(labels|selector|matchLabels)\.symph\.dev/run\Z|(^|\.)labels\.helm\.sh/chart\Z"
    # A DIJob's pods are selected by its name, and get their run in a variable.
    r"|(^|\.)(selector|matchLabels)\.(diengine/job|dijob-name)\Z|\.env\.SYMPH_RUN\Z"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One field by its dotted path; `before` or `after` is None if the field is absent."""

    path: str
    before: object = None
    after: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One object on both sides: `before` and `after` are its names, empty if absent.

    `has_other_pods` is also true if the pods differ only by their run; `fields` omit that difference.
    """

    kind: str
    change: Kind
    before: str = ""
    after: str = ""
    fields: tuple[FieldChange, ...] = ()
    has_other_pods: bool = False

    @property
    def name(self) -> str:
        """``Kind/name`` without the digits of a run."""
        name = self.after or self.before
        return f"{self.kind}/{_HASHED.sub('', name) if self.is_renamed else name}"

    @property
    def is_renamed(self) -> bool:
        """True if the name of the object changes."""
        return bool(self.before and self.after and self.before != self.after)


def compare(before: Objects, after: Objects) -> tuple[Difference, ...]:
    """Return the differences of all objects: those in `after` in its order, then removed ones.

    Objects are the same if kind and name match, ignoring the hash suffix of objects that are replaced instead of
    changed.
    """
    old, new = _keyed(before), _keyed(after)
    differences = [_difference(old.get(key), item) for key, item in new.items()]
    differences += [_difference(item, None) for key, item in old.items() if key not in new]
    return tuple(differences)


def _keyed(objects: Objects) -> dict[tuple[str, str, str], Mapping[str, object]]:
    keyed: dict[tuple[str, str, str], Mapping[str, object]] = {}
    for item in objects:
        group = str(item.get("apiVersion", "")).rpartition("/")[0]
        key = (group, str(item.get("kind")), _HASHED.sub("", _name(item)))
        # If two objects have the same key by accident, use the whole name.
        keyed[key if key not in keyed else (group, str(item.get("kind")), _name(item))] = item
    return keyed


def _difference(before: Mapping[str, object] | None, after: Mapping[str, object] | None) -> Difference:
    kind = kind_of(after or before or {})
    if before is None or after is None:
        change: Kind = "removed" if after is None else "added"
        return Difference(kind=kind, change=change, before=_name(before or {}), after=_name(after or {}))
    runs = _run_of(before), _run_of(after)
    seen = _with_text(before, *runs) if all(runs) else before
    fields = tuple(change for change in _walk(seen, after, "") if not _NOISE.search(change.path))
    is_same = before == after
    return Difference(
        kind=kind,
        change="unchanged" if is_same else "changed",
        before=_name(before),
        after=_name(after),
        fields=fields,
        has_other_pods=sub(before, "spec", "template") != sub(after, "spec", "template"),
    )


def _run_of(item: Mapping[str, object]) -> str:
    return str(sub(item, "metadata", "labels").get("symph.dev/run") or "")


def _with_text(value: object, old: str, new: str) -> object:
    match value:
        case str():
            return value.replace(old, new)
        case dict():
            return {key: _with_text(item, old, new) for key, item in value.items()}
        case list():
            return [_with_text(item, old, new) for item in value]
    return value


def _name(item: Mapping[str, object]) -> str:
    metadata = item.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, Mapping) else ""


def _walk(before: object, after: object, path: str) -> Iterator[FieldChange]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys([*before, *after]):
            yield from _walk(before.get(key, _ABSENT), after.get(key, _ABSENT), f"{path}.{key}" if path else str(key))
        return
    named = _by_name(before), _by_name(after)
    if named[0] is not None and named[1] is not None:
        yield from _walk(named[0], named[1], path)
        return
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _walk(old, new, f"{path}[{index}]")
        return
    if before != after or type(before) is not type(after):
        yield FieldChange(
            path=path, before=None if before is _ABSENT else before, after=None if after is _ABSENT else after
        )


def _by_name(value: object) -> dict[str, object] | None:
    """Return a list of items with unique names as a map by name; None for any other value."""
    if not isinstance(value, list) or not value:
        return None
    names = [item.get("name") if isinstance(item, Mapping) else None for item in value]
    if any(not isinstance(name, str) for name in names) or len(set(names)) != len(names):
        return None
    return {str(name): _plain(item) for name, item in zip(names, value, strict=True)}


def _plain(item: Mapping[str, object]) -> object:
    """Return a named item without its name; a single remaining value replaces the item, as in ``env.LR``."""
    rest = {key: value for key, value in item.items() if key != "name"}
    return rest["value"] if list(rest) == ["value"] else rest


# A model of Argo CD, limited to: automated sync with pruning and without self-healing, one wave, objects that are
# applied if they differ and pruned if they are gone. Sources: argoproj/argo-cd, gitops-engine/pkg/sync;
# kubernetes/kubernetes, pkg/apis/batch/validation, pkg/apis/apps/validation, pkg/apis/core/validation.

Effect: TypeAlias = Literal["nothing", "created", "pruned", "new run", "restarted", "updated", "fails"]
Outcome: TypeAlias = Literal["nothing", "in place", "new run", "fails"]


def effect_of(difference: Difference) -> tuple[Effect, str]:
    """Return what Argo CD does with one object, and the reason."""
    kind = RUNS.get(difference.kind)
    if difference.change == "unchanged":
        return "nothing", ""
    if difference.change == "added":
        return "created", ""
    if difference.change == "removed":
        return "pruned", _ends(difference)
    if difference.is_renamed:
        if kind and kind.is_finite:
            return "new run", _reason(difference)
        return "created", "under a new name; Argo CD prunes the old one"
    frozen = _frozen_fields(difference)
    if frozen:
        return (
            "fails",
            f"{frozen[0]} of a live {difference.kind} is immutable: give it another name, or remove it first",
        )
    if kind and not kind.is_finite and difference.has_other_pods:
        return "restarted", "a rolling update replaces its pods"
    if kind and kind.on_change and difference.fields:
        return "updated", f"in place: {kind.on_change}"
    return "updated", "in place" if difference.fields else "with the run"


def effect_of_move(difference: Difference, *, ends: bool) -> tuple[Effect, str]:
    """Return what Argo CD does with one object if its application moves to another destination.

    With `ends` the destination is in the same cluster, where Argo CD prunes everything that the project still allows;
    in another cluster nothing is pruned. Source: argoproj/argo-cd, controller/state.go (GetManagedLiveObjs queries only
    the cluster of the destination).
    """
    if difference.change == "removed":
        return ("pruned", _ends(difference)) if ends else ("nothing", "")
    if difference.change == "added":
        return "created", ""
    kind = RUNS.get(difference.kind)
    return ("new run" if kind and kind.is_finite else "created"), "in the new place"


def outcome_of(differences: Sequence[Difference]) -> Outcome:
    """Return the most severe effect on any object."""
    effects = {effect_of(difference)[0] for difference in differences}
    if "fails" in effects:
        return "fails"
    if "new run" in effects:
        return "new run"
    return "nothing" if effects <= {"nothing"} else "in place"


def _reason(difference: Difference) -> str:
    paths = [field.path for field in difference.fields]
    if not paths:
        return "another part of the run changed"
    if any(path.startswith("spec.template") for path in paths):
        return "pod template changed"
    return f"{paths[0]} changed"


def _ends(difference: Difference) -> str:
    return "its pods end" if RUNS.get(difference.kind) else ""


def _frozen_fields(difference: Difference) -> list[str]:
    if difference.kind == "ConfigMap":
        # ConfigMaps of our charts are immutable and have names derived from their content.
        return [field.path for field in difference.fields if field.path.startswith(("data", "binaryData"))]
    kind = RUNS.get(difference.kind)
    if kind is None or kind.mutable is None:
        return []
    # Each path stands for itself and all below it; `*` matches any name.
    roots = "|".join(re.escape(root).replace(r"\*", r"[^.\[]+") for root in kind.mutable)
    mutable = re.compile(rf"(?:{roots})(?:[.\[]|\Z)")
    specs = [field.path for field in difference.fields if field.path.startswith("spec.")]
    return [path for path in specs if not mutable.match(path)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One rendering: its title and objects. `notes` describe differences that the objects may not show.

    `destination` is where they run; None if the two sides are only compared and nothing can move.
    """

    title: str
    objects: tuple[Mapping[str, object], ...]
    destination: Destination | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    difference: Difference
    effect: Effect
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The result of a comparison.

    `amounts` are requests of all pods before and after (CPU in millicores, memory in bytes, others as counts). `move`
    describes a change of destination: from, to, and if the old run ends; None without one.
    """

    before: str
    after: str
    lines: tuple[Line, ...]
    outcome: Outcome
    amounts: dict[str, tuple[int, int]]
    notes: tuple[str, ...] = field(default=())
    move: Move | None = None

    @property
    def summary(self) -> str:
        if self.move:
            return f"everything {self.move.text(' and ')}"
        runs, fails, restarts, gone = (
            [line.difference.name for line in self.lines if line.effect == effect]
            for effect in ("new run", "fails", "restarted", "pruned")
        )
        parts = []
        if fails:
            parts.append(f"the sync fails at {', '.join(fails)}")
        if runs:
            parts.append(f"a new run: the old {', '.join(runs)} {_are(runs)} pruned, and new ones start together")
        if restarts:
            parts.append(f"pods of {', '.join(restarts)} are replaced")
        if gone:
            parts.append(f"{', '.join(gone)} {_are(gone)} pruned")
        if not parts:
            return "nothing restarts" if any(line.effect != "nothing" for line in self.lines) else "nothing happens"
        return "; ".join([*parts, "nothing else restarts"] if not fails else parts)


def compare_sides(before: Side, after: Side) -> Comparison:
    """Return the changes from `before` to `after`. Raises SpecError for unreadable pods."""
    differences = compare(_kept(before.objects), _kept(after.objects))
    places = before.destination, after.destination
    move = None if places[0] is None or places[1] is None else move_between(places[0], places[1])
    lines = []
    for difference in differences:
        effect, why = effect_of(difference) if move is None else effect_of_move(difference, ends=move.ends)
        lines.append(Line(difference=difference, effect=effect, why=why))
    totals = _totals(before.objects), _totals(after.objects)
    names = dict.fromkeys(["cpu", "memory", *totals[0], *totals[1]])
    return Comparison(
        before=before.title,
        after=after.title,
        lines=tuple(lines),
        outcome=outcome_of(differences) if move is None else "new run",
        amounts={name: (totals[0].get(name, 0), totals[1].get(name, 0)) for name in names if name != "pods"},
        notes=tuple(dict.fromkeys((*before.notes, *after.notes))),
        move=move,
    )


def _kept(objects: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Return the objects without helm's test hooks, which Argo CD omits."""
    return [item for item in objects if "helm.sh/hook" not in str(item.get("metadata"))]


def _totals(objects: Iterable[Mapping[str, object]]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for demand in demands_of(_kept(objects)):
        for name, amount in demand.shape.requests:
            totals[name] = totals.get(name, 0) + amount * demand.count
    return totals


def _are(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def side_of_pointer(tip: Snapshot, pointer: Pointer) -> Side:
    """Return what an environment runs, with its own values. Raises NotFound if the chart is missing."""
    release = Release(name=pointer.name, namespace=pointer.destination.namespace)
    side = side_of_chart(tip, f"{pointer.version} in {pointer.env}", pointer.chart, pointer.values, release)
    return replace(side, destination=pointer.destination)


def side_of(tip: Snapshot, env: str, team: str, name: str) -> Side:
    """Return what an environment runs of an experiment, perhaps nothing."""
    pointer = pointer_or_none(tip, env, team, name)
    if pointer is None or tip.entry(pointer.chart) is None:
        return Side(title=f"nothing in {env}", objects=())
    return side_of_pointer(tip, pointer)


def side_of_chart(tip: Snapshot, title: str, chart: str, env_values: Values, release: Release) -> Side:
    """Return the side of a published chart with the given values. Raises NotFound if it is missing."""
    if tip.entry(chart) is None:
        published = ", ".join(sorted(tip.folder(chart.rpartition("/")[0]))) or "none"
        step = f"see what ran: symph history {release.name}"
        raise NotFound(f"the repository has no {chart}", f"published versions: {published}", step)
    objects, note = objects_of(tip.below(chart), chart, env_values, replace(release, is_draft=True))
    return Side(title=title, objects=tuple(objects), notes=(note,) if note else ())
