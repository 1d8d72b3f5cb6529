"""The texts of a chart that people read: values.yaml with its comments, README.md, and the values of chart-testing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from symphony_charts.chart.build.chart import BuiltChart
from symphony_charts.chart.evaluate import printed
from symphony_charts.chart.fields import FIELDS, pattern_of
from symphony_charts.formats.data import sub
from symphony_charts.formats.yaml_write import dump, quote
from symphony_charts.kinds.registry import KINDS
from symphony_charts.spec.pods import pods_of
from symphony_charts.spec.sources import key_of
from symphony_charts.spec.variable_names import service_variable

_MAX_LINE = 100
_MAX_DEFAULT = 40
_MAX_PAIRS = 2
_FLOW_SYNTAX = re.compile(r"[,\[\]{}]")


def values_text(values: Mapping[str, Any]) -> str:
    """Return values.yaml. A comment in helm-docs' form is before each key, for keys of many groups before the first."""
    return "\n".join([*_lines(values, (), set()), ""])


def _lines(values: Mapping[str, Any], above: tuple[str, ...], explained: set[str]) -> Iterator[str]:
    pad = "  " * len(above)
    for key, value in values.items():
        pattern = pattern_of((*above, key))
        entry = FIELDS.get(pattern)
        if entry is not None and pattern not in explained:
            yield f"{pad}# -- {entry.meaning}"
            explained.add(pattern)
        if isinstance(value, dict) and value and (entry is None or entry.type == "section"):
            yield pad + _key(key)
            yield from _lines(value, (*above, key), explained)
        else:
            yield from _data_lines(key, value, pad)


def _data_lines(key: str, value: Any, pad: str) -> Iterator[str]:
    """Yield the lines of one value. Short lists and pairs are on one line."""
    name, flow = pad + _key(key), _flow(value)
    if value and flow is not None and len(name) + len(flow) <= _MAX_LINE:
        yield f"{name} {flow}"
    elif value and isinstance(value, dict):
        yield name
        for inner, item in value.items():
            yield from _data_lines(inner, item, pad + "  ")
    else:
        yield from (pad + line if line else "" for line in dump({key: value}).splitlines())


@lru_cache(maxsize=4096)
def _key(name: str) -> str:
    return dump({name: {}}).removesuffix(" {}\n")


@lru_cache(maxsize=4096, typed=True)
def _scalar(value: Any) -> str:
    return dump(value).removesuffix("\n")


def _flow(value: Any) -> str | None:
    """Return a list of scalars, or a map of one or two entries, in flow style; None if it is something else."""
    if isinstance(value, dict) and len(value) <= _MAX_PAIRS:
        items = [f"{_flow_scalar(key)}: {_flow_scalar(item)}" for key, item in value.items()]
    elif isinstance(value, list):
        items = [_flow_scalar(item) for item in value]
    else:
        return None
    text = ", ".join(items)
    if "\n" in text:
        return None
    return f"{{{text}}}" if isinstance(value, dict) else f"[{text}]"


def _flow_scalar(value: Any) -> str:
    """Return a scalar in flow style; a text with line breaks if it is none."""
    if isinstance(value, dict | list):
        return _flow(value) or "\n"
    text = _scalar(value)
    return quote(value) if isinstance(value, str) and _FLOW_SYNTAX.search(text) else text


def readme_text(chart: BuiltChart) -> str:
    """Return README.md: what runs, how to install and change it, and a table of the values."""
    name = chart.frame.chart
    parts = [
        f"# {name}\n\nThe experiment `{name}` as a Helm chart, written by symphony-charts.\n",
        _usage(chart),
        "## What runs\n\n" + _table(("group", "process", "runs as", "replicas", "image"), _processes(chart)),
        _services(chart),
        "## Values\n\n" + _table(("value", "default", "meaning"), _value_rows(chart.values, (), set())),
        f"""## Templates of your own

`templates/extra-*.yaml` may use the helpers `{name}.fullname`, `.labels`, `.selectorLabels`, `.run` and `.image`.
""",
    ]
    return "\n".join(part for part in parts if part)


def _usage(chart: BuiltChart) -> str:
    name, experiment = chart.frame.chart, chart.experiment
    controller = KINDS[experiment.workload.kind].controller
    needs = f"The cluster needs {controller}.\n\n" if controller else ""
    if experiment.secrets:
        keys = ", ".join(f"`{key_of(file)}`" for file in experiment.secrets)
        needs += f"The namespace needs a Secret `<full name>-secrets`, or `secrets.name`, with the keys {keys}.\n\n"
    return f"""## Use

{needs}```sh
helm install {name} .
helm test {name}
helm upgrade {name} . --reset-then-reuse-values --cleanup-on-fail --set runKey=2
helm uninstall {name}
```

A change of image, command, replicas or `runKey` starts a new run: the old pods end,
and Services lead to the new ones. So does `helm rollback`, from the beginning of the old experiment. Keep your settings
with `--reset-then-reuse-values`: the chart refuses `--reuse-values` if the experiment has changed.
"""


def _processes(chart: BuiltChart) -> Iterator[Sequence[str]]:
    kind = KINDS[chart.experiment.workload.kind]
    for name, pod in sorted(pods_of(chart.experiment).items()):
        for process, record in pod.processes.items():
            runs_as = kind.runs_as if pod.is_finite else "StatefulSet"
            image = record.image or chart.experiment.image or ""
            yield f"`{name}`", f"`{process}`", runs_as, str(pod.settings.replicas), f"`{image}`"


def _services(chart: BuiltChart) -> str:
    services = sub(dict(chart.values), "services")
    rows = [
        (f"`{name}`", printed(sub(services, name)["port"]), f"`{service_variable(name, 'ADDR')}`")
        for name in sorted(services)
    ]
    return "## Services\n\n" + _table(("service", "port", "variable with its address"), rows) if rows else ""


def _value_rows(values: Mapping[str, Any], above: tuple[str, ...], seen: set[str]) -> Iterator[Sequence[str]]:
    """Yield a row for each value; those of groups, containers and services once, without their defaults."""
    for key, value in values.items():
        steps = (*above, key)
        pattern = pattern_of(steps)
        entry = FIELDS.get(pattern)
        if entry is not None and entry.type != "section" and pattern not in seen:
            seen.add(pattern)
            shown = pattern.replace("groups.*", "groups.<group>").replace("services.*", "services.<service>")
            default = "" if "*" in pattern else _default(value)
            yield f"`{shown.replace('*', '<process>')}`", default, entry.meaning
        elif isinstance(value, dict) and (entry is None or entry.type == "section"):
            yield from _value_rows(value, steps, seen)


def _default(value: Any) -> str:
    text = printed(value) if not isinstance(value, str) or value else '""'
    return f"`{text}`" if len(text) <= _MAX_DEFAULT and "|" not in text and "`" not in text else "see values.yaml"


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
