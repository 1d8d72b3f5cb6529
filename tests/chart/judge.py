"""Comparison of real Helm and the evaluator: many charts in one umbrella, object for object."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from symphony_charts.chart.build.chart import BuiltChart, Release
from symphony_charts.chart.release import Overrides as Words
from symphony_charts.chart.release import merge, user_values
from symphony_charts.chart.schema import ValuesSchema, check_values, values_text
from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_write import dump
from tests.chart.draws import Overrides
from tests.chart.harness import object_in, run_helm

Objects = list[dict[str, Any]]

_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SOURCE = re.compile(r"# Source: umbrella/charts/([^/]+)/")


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A chart below an alias in the umbrella, with a user's changes."""

    alias: str
    chart: BuiltChart
    overrides: Overrides = field(default_factory=Overrides)

    def values(self) -> dict[str, Any]:
        """Return the complete values, as Helm gives them to a subchart."""
        words = {
            flag: tuple(text for each, text in self.overrides.sets if each == flag)
            for flag in ("--set", "--set-string")
        }
        files = (self.overrides.values,)
        user = user_values(Words(files=files, sets=words["--set"], strings=words["--set-string"]))
        return {"global": {}, **merge(self.chart.values, user)}

    def objects(self, release: str) -> Objects:
        """Return the objects by the evaluator. Raises SpecError if the schema or the release refuses the values."""
        values = copy.deepcopy(self.values())
        check_values(schema_of(self.chart), values)
        return self.chart.objects(values, Release(name=release, alias=self.alias))


_SCHEMAS: dict[int, tuple[BuiltChart, ValuesSchema]] = {}


def schema_of(chart: BuiltChart) -> ValuesSchema:
    """Return the cached schema of the values of `chart`."""
    return _SCHEMAS.setdefault(id(chart), (chart, ValuesSchema(chart)))[1]


def write(chart: BuiltChart, folder: Path) -> Path:
    texts = {f"templates/{name}": text for name, text in chart.texts().items()}
    texts["Chart.yaml"] = f"apiVersion: v2\nname: {chart.frame.chart}\nversion: 0.1.0\n"
    texts["values.yaml"] = values_text(chart.values)
    texts["values.schema.json"] = schema_of(chart).text.decode()
    for name, content in {**chart.frame.files, **{name: text.encode() for name, text in texts.items()}}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def file_text(values: Mapping[str, Any]) -> str:
    """Return a values file that Helm reads without losing a character."""
    text = json.dumps(values, ensure_ascii=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def write_umbrella(instances: Sequence[Instance], folder: Path) -> list[str]:
    """Write a chart whose subcharts are `instances`; return the arguments of helm after the release."""
    names = {instance.chart.frame.chart: instance.chart for instance in instances}
    for name, chart in names.items():
        if not (folder / "charts" / name).exists():
            write(chart, folder / "charts" / name)
    dependencies = [
        {"name": instance.chart.frame.chart, "version": "0.1.0", "alias": instance.alias} for instance in instances
    ]
    head = {"apiVersion": "v2", "name": "umbrella", "version": "1.0.0", "dependencies": dependencies}
    (folder / "Chart.yaml").write_text(dump(head))
    (folder / "over.json").write_text(file_text({each.alias: each.overrides.values for each in instances}))
    sets = [word for each in instances for flag, text in each.overrides.sets for word in (flag, f"{each.alias}.{text}")]
    return [str(folder), "-f", str(folder / "over.json"), *sets]


def rendered(version: str, release: str, arguments: Sequence[str]) -> dict[str, Objects] | str:
    """Return the objects of `helm template` by alias, or its error."""
    ended = run_helm(version, "template", release, *arguments, check=False)
    if ended.returncode:
        return ended.stderr
    found: dict[str, Objects] = {}
    for document in re.split(r"^---\n", ended.stdout, flags=re.MULTILINE):
        source = _SOURCE.match(document)
        if source:
            item = object_in(document)
            found.setdefault(source[1], []).extend([item] if item else [])
    return found


def canonical(objects: Objects) -> list[str]:
    """Return each object as one text, in which 1 and true, and 1000000 and 1e+06, differ."""
    return sorted(json.dumps(item, sort_keys=True) for item in objects)


def integers(value: Any) -> Any:
    """Return `value` with whole floats as integers: Helm must print them so."""
    if isinstance(value, dict):
        return {key: integers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [integers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@dataclass
class Judge:
    """Compares instances with `helm template` and counts the cases."""

    folder: Path
    versions: Sequence[str]
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    _umbrellas: int = 0

    def compare(self, instances: Sequence[Instance], release: str) -> None:
        """Compare all `instances` in one umbrella; those that the evaluator refuses are tried alone."""
        ours: dict[str, Objects] = {}
        for instance in instances:
            try:
                ours[instance.alias] = integers(instance.objects(release))
            except SpecError as error:
                self._refused(instance, release, str(error))
        self._compare([instance for instance in instances if instance.alias in ours], release, ours)

    def _arguments(self, instances: Sequence[Instance]) -> list[str]:
        self._umbrellas += 1
        return write_umbrella(instances, self.folder / f"u{self._umbrellas}")

    def _refused(self, instance: Instance, release: str, reason: str) -> None:
        arguments = self._arguments([instance])
        for version in self.versions:
            if isinstance(rendered(version, release, arguments), str):
                self.counts["refused by both"] += 1
            else:
                self.faults.append(f"helm {version} accepts {release}, {instance.overrides}: {reason}")

    def _compare(self, instances: Sequence[Instance], release: str, ours: Mapping[str, Objects]) -> None:
        if not instances:
            return
        arguments = self._arguments(instances)
        for version in self.versions:
            theirs = rendered(version, release, arguments)
            if not isinstance(theirs, str):
                for instance in instances:
                    self._differences(version, instance, release, theirs.get(instance.alias, []), ours[instance.alias])
            elif len(instances) > 1:
                half = len(instances) // 2
                self._compare(instances[:half], release, ours)
                self._compare(instances[half:], release, ours)
                return
            else:
                self.faults.append(f"helm {version} refuses {release}, {instances[0].overrides}: {theirs[-600:]}")

    def _differences(self, version: str, instance: Instance, release: str, theirs: Objects, ours: Objects) -> None:
        his, mine = canonical(theirs), canonical(ours)
        self.counts["objects"] += len(mine)
        self.counts["equal" if his == mine else "different"] += 1
        if his != mine:
            pair = [sorted(set(his) - set(mine)), sorted(set(mine) - set(his))]
            first = [lines[0] if lines else "(nothing)" for lines in pair]
            at = next((number for number, (a, b) in enumerate(zip(*first, strict=False)) if a != b), 0)
            shown = " | ".join(text[max(0, at - 80) : at + 120] for text in first)
            self.faults.append(f"helm {version}, {release}, {instance.overrides}: {first[0][:90]} … {shown}")
