"""The metadata of a chart in its Chart.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import indent

import msgspec

from symphony_charts.chart.helpers import image_name
from symphony_charts.formats.data import Values, sub
from symphony_charts.formats.yaml_write import dump
from symphony_charts.spec.model import ChartSettings

__all__ = ["about_text", "annotations_text"]


def about_text(about: ChartSettings) -> str:
    """The lines of Chart.yaml that follow another; none where nothing is said."""
    said = {
        "appVersion": about.app_version,
        "home": about.home,
        "icon": about.icon,
        "maintainers": [msgspec.to_builtins(maintainer) for maintainer in about.maintainers],
        "sources": list(about.sources),
    }
    return _lines({key: value for key, value in said.items() if value})


def annotations_text(about: ChartSettings, values: Values) -> str:
    """The lines of its annotations that follow another."""
    images = [{"name": name, "image": image} for image, name in _images(values).items()]
    said = {
        "artifacthub.io/changes": dump(list(about.changes)) if about.changes else "",
        "artifacthub.io/images": dump(images) if images else "",
        "artifacthub.io/license": about.license,
    }
    return indent(_lines({key: value for key, value in said.items() if value}), "  ")


def _lines(said: Values) -> str:
    return f"\n{dump(said)}".removesuffix("\n") if said else ""


def _images(values: Values) -> dict[str, str]:
    """Each image under the name of the first container that runs it."""
    found: dict[str, str] = {}
    for name, image in _containers(values):
        if image_name(values, image):
            found.setdefault(image_name(values, image), name)
    return found


def _containers(values: Values) -> Iterator[tuple[str, object]]:
    for group in sorted(sub(values, "groups")):
        for kind in ("initContainers", "containers"):
            members = sub(values, "groups", group, kind)
            for name in sorted(members):
                yield f"{group}-{name}", sub(members, name).get("image")
    yield "test", sub(values, "tests").get("image")
