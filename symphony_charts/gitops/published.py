"""A published chart: its objects, its run, and the faults of an environment's values.

The files are those in the chart's folder in the repository. symph renders a chart that it can build again; helm renders
any other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import NoReturn

import jsonschema_rs

from symphony_charts.chart.build.chart import Release
from symphony_charts.chart.build.faults import unsealed
from symphony_charts.chart.release import ORIGIN, merge, merge_values, open_chart, render_release
from symphony_charts.chart.schema import ValuesSchema
from symphony_charts.errors import Problem, SpecError, ToolMissing
from symphony_charts.formats.data import Values, sub
from symphony_charts.formats.yaml_read import load, plain
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.sources import key_of

_VALUES, _SCHEMA = "values.yaml", "values.schema.json"


def objects_of(
    files: Mapping[str, bytes], chart: str, values: Mapping[str, object], release: Release
) -> tuple[list[dict[str, object]], str]:
    """Return the objects of the chart in the folder `chart` under an environment's values, tests included.

    The text is a note if Helm rendered them, else empty. Raises SpecError if the chart refuses the values or the
    release, ToolMissing if symph cannot build the chart again without helm, ToolFailed if helm fails.
    """
    try:
        built = open_chart(files, chart)
    except SpecError as error:
        return _render_with_helm(files, chart, values, release, error)
    return render_release(built, merge_values(ValuesSchema(built), values), release), ""


def _render_with_helm(
    files: Mapping[str, bytes], chart: str, values: Mapping[str, object], release: Release, reason: SpecError
) -> tuple[list[dict[str, object]], str]:
    # The client of helm takes 190 ms to import, a third of a publish, and is rarely needed.
    from symphony_charts.kubernetes.releases.helm_client import find_helm, template_chart

    try:
        find_helm()
    except ToolMissing as missing:
        what = f"symph cannot render the chart: {reason.what}"
        raise ToolMissing(what, chart, "publish the experiment again, or install helm") from missing
    if problems := values_problems(files, chart, values):
        raise SpecError(problems, at=chart)
    # Helm follows references in a schema to any address and any local file.
    safe = {path: content for path, content in files.items() if not path.endswith(_SCHEMA)}
    objects = template_chart("chart", safe, release.name, namespace=release.namespace, values=values)
    return objects, f"{chart}: rendered by helm; {reason.what}"


def run_of(files: Mapping[str, bytes], chart: str, values: Mapping[str, object], release: Release) -> str | None:
    """Return the hash of the run that a chart starts; None if symph cannot build the chart again for these values."""
    try:
        built = open_chart(files, chart)
        return built.text("{run}", merge_values(ValuesSchema(built), values), release)
    except SpecError:
        return None


def values_of(files: Mapping[str, bytes], values: Mapping[str, object]) -> Values:
    """Return the chart's own values with an environment's on top. Raises SpecError if values.yaml is not YAML."""
    own = load(files.get(_VALUES, b"").decode("utf-8", "replace"))
    return merge(own if isinstance(own, dict) else {}, values)


def values_problems(files: Mapping[str, bytes], chart: str, values: Mapping[str, object]) -> list[Problem]:
    """Return the schema's errors about an environment's values; empty without a schema. Raises SpecError."""
    if _VALUES not in files or _SCHEMA not in files:
        return []
    complete = values_of(files, values)
    data, validator = plain(complete), _validator(files[_SCHEMA])
    if validator.is_valid(data):
        return []
    try:
        found = ValuesSchema(open_chart(files, chart)).problems(complete)
    except SpecError:
        found = []
    return found or [
        Problem(what=error.message, path=".".join(map(str, error.instance_path)))
        for error in validator.iter_errors(data)
    ]


@cache
def _validator(schema: bytes) -> jsonschema_rs.Draft7Validator:
    try:
        return jsonschema_rs.Draft7Validator(json.loads(schema), retriever=_refuse_reference)
    except ValueError as error:
        what = f"the chart's {_SCHEMA} is not a JSON Schema: {str(error).partition(chr(10))[0]}"
        raise SpecError.one(what, _SCHEMA, "publish the experiment again: helm cannot read this file either") from error


def _refuse_reference(uri: str) -> NoReturn:
    """Refuse references in the schema: a repository's file could name any address and any local file."""
    message = f"{uri} is outside of the schema"
    raise ValueError(message)


def experiment_of(files: Mapping[str, bytes], chart: str) -> Experiment:
    """Return the experiment of a published chart. Raises SpecError if the chart does not contain it."""
    if ORIGIN not in files:
        raise SpecError.one(f"the chart has no {ORIGIN}", at=chart, next="publish the experiment again")
    return from_data(load(files[ORIGIN].decode("utf-8", "replace")), for_cluster=True)


def unsealed_secrets(files: Mapping[str, bytes], chart: str, values: Mapping[str, object]) -> list[str]:
    """Return the keys of the chart's sealed secrets that an environment's values lack."""
    secrets = sub(values_of(files, values), "secrets")
    # Only charts with sealed secrets have this value.
    if "encryptedData" not in secrets:
        return []
    return unsealed(secrets, [key_of(file) for file in experiment_of(files, chart).secrets])
