"""All Unicode that an experiment accepts passes through helm unchanged, in every field with a user's text."""

from __future__ import annotations

from pathlib import Path

import pytest

from symphony_charts.chart.files import Chart
from tests.chart.harness import assert_same, chart_of, experiment_of

pytestmark = pytest.mark.e2e

# The limit of a chart's files.
_STEP = 0x8000
_FORBIDDEN = {0, *range(0x7F, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF}


def chart_with(points: range) -> Chart:
    """Return a chart with each code point first and last in a line, before text like a YAML comment, and alone."""
    whole = "".join(chr(point) for point in points if point not in _FORBIDDEN)
    lines = [f"{one}a{one}\n{one}# b: {one}" for one in whole]
    texts = ["\n".join(lines[index : index + 64]) for index in range(0, len(lines), 64)]
    process = {
        "command": ["x", whole],
        "args": texts,
        "env": {"TEXT": whole},
        "annotations": {"text": whole},
        "container_overlay": {"lifecycle": {"preStop": {"exec": {"command": [whole]}}}},
        "pod_overlay": {"spec": {"dnsConfig": {"options": [{"name": "a", "value": whole}]}}},
    }
    serving = {"command": ["y", *texts[:8]], "lifecycle": "service", "binds": "web", "env": {"TEXT": whole}}
    return chart_of(experiment_of(processes={"p": process, "s": serving}, configs={"c": {"text": whole}}))


@pytest.mark.parametrize("first", range(0, 0x110000, _STEP), ids=hex)
def test_every_code_point_comes_back(first: int, tmp_path: Path) -> None:
    points = range(first, first + _STEP)
    if _FORBIDDEN.issuperset(points):
        return
    assert_same(chart_with(points), tmp_path)
