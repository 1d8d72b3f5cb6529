"""Names and labels of a release's objects: the twin of ``charts/symph/templates/_names.tpl``."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from symphony_charts.chart.render.values import Values, scalar
from symphony_charts.formats.data import sub

__all__ = ["Release", "fit", "fullname", "identity", "join", "labels", "sha256"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What helm knows of a release beside its values.

    One that `is_draft` is only looked at, so what is to be sealed for it may be missing; helm refuses that.
    """

    name: str
    namespace: str = "default"
    chart_name: str
    chart_version: str = "0.1.0"
    service: str = "Helm"
    is_draft: bool = False


def fit(text: str, limit: int) -> str:
    """`text`, cut to `limit` with a hash of the whole where it is longer, so that two never become one."""
    if len(text.encode()) <= limit:
        return text
    return f"{text[: limit - 6].removesuffix('-')}-{sha256(text)[:5]}"


def join(name: str, suffix: str, limit: int) -> str:
    """``name-suffix`` in at most `limit` characters: `name` is cut first, `suffix` only beyond 30."""
    end = fit(suffix, 30)
    return f"{fit(name, limit - 1 - len(end))}-{end}"


def fullname(values: Values, release: Release) -> str:
    """What all names of the release start with: the release's name, and the chart's where it does not contain it."""
    override = values.get("fullnameOverride")
    if override:
        return scalar(override)
    name = _chart_name(values, release)
    return release.name if name in release.name else f"{release.name}-{name}"


def identity(values: Values, release: Release) -> dict[str, str]:
    """The labels by which selectors find the pods of a release."""
    return {
        "app.kubernetes.io/instance": fit(release.name, 63),
        "app.kubernetes.io/name": fit(_chart_name(values, release), 63),
    }


# Objects of a group and of a service bear these beside the labels of all.
_OF_SOME_OBJECTS = ("symph.dev/group", "symph.dev/service", "symph.dev/run")


def labels(values: Values, release: Release) -> dict[str, str]:
    """The labels of every object; the user's last but for those that selectors and tools look for."""
    chart = f"{release.chart_name}-{release.chart_version}".replace("+", "_")
    experiment = scalar(values.get("experiment") or release.chart_name)
    users = {**sub(values, "commonLabels"), **sub(values, "labels")}
    return {
        "app.kubernetes.io/part-of": experiment,
        **{key: scalar(value) for key, value in users.items() if key not in _OF_SOME_OBJECTS},
        **identity(values, release),
        "app.kubernetes.io/managed-by": release.service,
        "helm.sh/chart": fit(chart, 63),
        "symph.dev/experiment": experiment,
    }


def sha256(text: str) -> str:
    """The hash of `text` as hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def _chart_name(values: Values, release: Release) -> str:
    return scalar(values.get("nameOverride") or release.chart_name)
