"""The checks of what a chart says of itself: addresses, people, the version of the programs inside."""

from __future__ import annotations

import re
from collections.abc import Iterator

from symphony_charts.errors import Problem
from symphony_charts.formats.names import LABEL_NAME
from symphony_charts.formats.urls import address_fault
from symphony_charts.spec.checks.entries import ProcessEntry
from symphony_charts.spec.model import ChartSettings, Experiment

__all__ = ["chart_faults"]

_ADDRESS = re.compile(r"https?://[^\s/]+(?:/\S*)?")
_MAIL = re.compile(r"[^\s@<>]+@[^\s@<>]+")


def chart_faults(experiment: Experiment, _: list[ProcessEntry]) -> Iterator[Problem]:
    """Yield what helm, chart-testing, Artifact Hub or a label would refuse of `chart`."""
    about = experiment.chart
    version = about.app_version
    if version is not None and not LABEL_NAME.fullmatch(version.replace("+", "_")):
        next_step = "63 letters, digits, dashes, dots, underscores and plus signs at most"
        yield Problem(what=f'"{version}" cannot be a version', path="chart.app_version", next=next_step)
    for path, address in _addresses(about):
        if not _ADDRESS.fullmatch(address):
            yield Problem(what=f'"{address}" is no address', path=path, next="begin with https://")
        elif (fault := address_fault(address, path)) is not None:
            yield fault
    for number, maintainer in enumerate(about.maintainers):
        path = f"chart.maintainers[{number}]"
        if not maintainer.name.strip():
            yield Problem(what="a maintainer without a name", path=f"{path}.name", next="give it")
        if maintainer.email is not None and not _MAIL.fullmatch(maintainer.email):
            what = f'"{maintainer.email}" is no address of mail'
            yield Problem(what=what, path=f"{path}.email", next="write name@example.org")


def _addresses(about: ChartSettings) -> Iterator[tuple[str, str]]:
    for field, address in (("home", about.home), ("icon", about.icon)):
        if address is not None:
            yield f"chart.{field}", address
    yield from ((f"chart.sources[{number}]", address) for number, address in enumerate(about.sources))
    for number, maintainer in enumerate(about.maintainers):
        if maintainer.url is not None:
            yield f"chart.maintainers[{number}].url", maintainer.url
