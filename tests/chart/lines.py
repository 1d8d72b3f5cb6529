"""Lines of templates that change no output: remove each line, or each pair of a condition and its end, in turn."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from symphony_charts.chart.build.chart import BuiltChart
from symphony_charts.spec.variable_names import service_variable
from tests.chart.draws import Overrides, all_overrides
from tests.chart.judge import Instance, canonical, integers, rendered, write_umbrella

_OPENING = re.compile(r"\s*\{\{-? (?:if|with|range|define) ")
_END = re.compile(r"\s*\{\{-? end -?\}\}\s*")
# Comments, definitions, and conditions on an argument that only some charts pass. The digests are computed once per
# release, which saves time and changes no output.
_SKIPPED = re.compile(
    r"\s*(?:\{\{-? /\*.*|\{\{-? define .*|\{\{- if \.(?:group|service|run) \}\}|\{\{- if not \(hasKey \.Values .*)?\s*"
)


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A template without one line or without a pair of lines; `line` is the first missing one."""

    file: str
    number: int
    line: str
    text: str


def mutants(file: str, text: str) -> Iterator[Mutant]:
    """Yield the template without each of its lines, or without an opening line and its end. Definitions are kept."""
    lines = text.splitlines(keepends=True)
    open_at: list[int] = []
    for number, line in enumerate(lines):
        removed = {number}
        if _END.fullmatch(line):
            removed.add(open_at.pop())
        elif _OPENING.match(line) and "{{ end" not in line:
            open_at.append(number)
            continue
        first = lines[min(removed)]
        if not _SKIPPED.fullmatch(first):
            kept = "".join(each for index, each in enumerate(lines) if index not in removed)
            yield Mutant(file=file, number=min(removed) + 1, line=first.strip(), text=kept)


def useless_lines(
    chart: BuiltChart, folder: Path, version: str, rng: random.Random, count: int | None, only: str = ""
) -> tuple[int, list[str]]:
    """Return the number of tried mutants (at most `count`), and the lines without which Helm prints the same.

    NOTES.txt prints no objects. `only` is the one template to try.
    """
    draws = [Overrides(), _references(chart), *(all_overrides(rng, chart.values, number) for number in range(7))]
    for name in chart.values["groups"]:
        values = {"groups": {name: {"replicas": 0}}}
        draws.append(Overrides(values=values))
    instances = [
        Instance(alias=f"{chart.frame.chart}-{number}", chart=chart, overrides=over)
        for number, over in enumerate(draws)
    ]
    wanted = {each.alias: canonical(integers(each.objects("r"))) for each in instances}
    arguments = write_umbrella(instances, folder / "printed")
    refused = []
    for number, wrong in enumerate(({"fullnameOverride": "1x"}, {"specDigest": "other"})):
        bad = Instance(alias="bad", chart=chart, overrides=Overrides(values=wrong))
        refused.append(write_umbrella([bad], folder / f"refused{number}"))
    assert all(isinstance(rendered(version, "r", each), str) for each in refused)
    files = sorted((file, text) for file, text in chart.texts().items() if file != "NOTES.txt" and only in ("", file))
    tried = [mutant for file, text in files for mutant in mutants(file, text)]
    tried = tried if count is None else rng.sample(tried, min(count, len(tried)))
    useless = []
    for mutant in tried:
        paths = [
            folder / each / "charts" / chart.frame.chart / "templates" / mutant.file
            for each in ("printed", "refused0", "refused1")
        ]
        before = paths[0].read_text()
        for path in paths:
            path.write_text(mutant.text)
        still_refused = all(isinstance(rendered(version, "r", each), str) for each in refused)
        if _prints(version, arguments, wanted) and still_refused:
            useless.append(f"{mutant.file}:{mutant.number}: {mutant.line}")
        for path in paths:
            path.write_text(before)
    return len(tried), useless


def _references(chart: BuiltChart) -> Overrides:
    """Return values with variables that refer to others, and other variables in place of our addresses."""
    addresses = [service_variable(name, "ADDR") for name in chart.values.get("services", {})]
    env = {"A": "$(SYMPH_Z)", "SYMPH_Z": "$(B)", "B": "1", **dict.fromkeys(addresses[::2], "own")}
    env |= {f"A_{number}": f"$({name})" for number, name in enumerate(addresses)}
    groups = {
        name: {"containers": {program: {"env": env} for program in group["containers"]}}
        for name, group in chart.values["groups"].items()
    }
    return Overrides(values={"groups": groups})


def _prints(version: str, arguments: list[str], wanted: dict[str, list[str]]) -> bool:
    try:
        found = rendered(version, "r", arguments)
    except (yaml.YAMLError, AssertionError):
        return False
    return not isinstance(found, str) and wanted == {alias: canonical(found.get(alias, [])) for alias in wanted}
