"""Charts of drawn experiments: real helm's objects against ours, with other values, and in umbrellas."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from symphony_charts.chart.files import Chart
from symphony_charts.errors import SymphError
from symphony_charts.package import template
from symphony_charts.prepare import Prepared, Rendering, prepare
from symphony_charts.spec.files import read
from symphony_charts.spec.pods import pods_of
from symphony_charts.spec.sources import key_of
from tests.chart.harness import Objects, index, objects_in, run_helm, write_chart
from tests.chart.test_umbrella import objects_of, umbrella
from tests.e2e.fuzz.values import Said, say
from tests.spec.drawn_experiments import Drawn
from tests.tools import HELM_VERSIONS

_OVERRIDES = 2
_NOTHING = "(nothing)"


@dataclass(kw_only=True)
class Judge:
    """Compares, and counts the results; `folder` is private to it."""

    folder: Path
    counts: dict[str, int] = field(default_factory=dict)
    _charts: dict[str, Chart] = field(default_factory=dict)
    _named: set[str] = field(default_factory=set)
    _number: int = 0

    def faults(self, drawn: Drawn, chance: random.Random) -> list[str]:
        """Return the differences between helm and us for an experiment; empty if there are none."""
        self._number += 1
        folder = self.folder / str(self._number)
        folder.mkdir()
        spec = read(drawn.write(folder))
        sealed = {"encryptedData": {key_of(secret): "AgB1" for secret in spec.experiment.secrets}}
        is_sealed = bool(spec.experiment.secrets) and spec.experiment.secret_source.source == "sealed"
        prepared = prepare(spec, overrides={"secrets": sealed} if is_sealed else None, force=True)
        chart = prepared.chart(template())
        where = write_chart(chart, folder / "chart")
        schema = json.loads(chart.files["values.schema.json"])
        found = list(self._compared(where, prepared, Said(words=(), told="", values={}), is_own=True))
        for _ in range(_OVERRIDES):
            said = say(chance, schema, chart.values, folder)
            found += self._compared(where, prepared, said)
        others = [other for name, other in self._charts.items() if name != chart.name]
        if others and self._number % 5 == 0:
            found += self._umbrella(folder / "umbrella", others[-1], chart)
        self._charts[chart.name] = chart
        if any(pod.settings.names for pod in pods_of(prepared.experiment).values()):
            self._named.add(chart.name)
        return [f"{fault}\n  of {json.dumps(drawn.data)}" for fault in found]

    def _compared(self, where: Path, prepared: Prepared, said: Said, *, is_own: bool = False) -> Iterable[str]:
        rendering = _or_refusal(lambda: prepared.under(said.values, is_draft=False))
        release = prepared.own.release
        told = said.told or "its own values"
        for version in HELM_VERSIONS:
            words = ("--namespace", release.namespace, *said.words)
            ended = run_helm(version, "template", release.name, where, *words, check=False)
            if isinstance(rendering, str):
                self._count("refused by both" if ended.returncode else "refused by us alone")
                if is_own:
                    yield f"we refuse {told}: {rendering}"
            elif ended.returncode:
                yield f"helm {version} alone refuses {told}: {ended.stderr[-600:]}"
            else:
                self._count("equal")
                yield from _differences(objects_in(ended.stdout), _objects(rendering), f"helm {version} with {told}")

    def _umbrella(self, folder: Path, one: Chart, other: Chart) -> Iterable[str]:
        """Make two experiments dependencies of one chart, one of them twice unless it has names of its own."""
        names = {one.name: one, other.name: other}
        if one.name not in self._named:
            names["again"] = one
        wanted: Objects = {}
        for name, chart in names.items():
            wanted |= objects_of(chart, name)
        where = umbrella(folder, *((chart, name) for name, chart in names.items()))
        for version in HELM_VERSIONS:
            ended = run_helm(version, "template", "all", where, check=False)
            if ended.returncode:
                yield f"helm {version} refuses the umbrella of {list(names)}: {ended.stderr[-600:]}"
                continue
            self._count("umbrellas")
            yield from _differences(objects_in(ended.stdout), wanted, f"helm {version}, umbrella of {list(names)}")

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1


def _or_refusal(make: Callable[[], Rendering]) -> Rendering | str:
    try:
        return make()
    except SymphError as error:
        return str(error)


def _objects(rendering: Rendering) -> Objects:
    return index(json.loads(json.dumps(list(rendering.objects))))


def _differences(theirs: Objects, ours: Objects, where: str) -> Iterable[str]:
    if theirs.keys() != ours.keys():
        yield f"{where}: other objects: {sorted(theirs.keys() ^ ours.keys())}"
    for key in sorted(theirs.keys() & ours.keys()):
        if theirs[key] != ours[key]:
            path, his, mine = _first_difference(theirs[key], ours[key])
            yield f"{where}: {key} differs at {path}: helm {json.dumps(his)}, we {json.dumps(mine)}"


def _first_difference(his: object, mine: object, path: str = "") -> tuple[str, object, object]:
    if isinstance(his, dict) and isinstance(mine, dict):
        for key in [*his, *mine]:
            if his.get(key, _NOTHING) != mine.get(key, _NOTHING):
                return _first_difference(his.get(key, _NOTHING), mine.get(key, _NOTHING), f"{path}.{key}")
    if isinstance(his, list) and isinstance(mine, list) and len(his) == len(mine):
        for number, (one, other) in enumerate(zip(his, mine, strict=True)):
            if one != other:
                return _first_difference(one, other, f"{path}[{number}]")
    return path, his, mine
