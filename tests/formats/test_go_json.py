"""The run hash is taken of Go's JSON; with one different byte, the names of Jobs differ from helm's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from symphony_charts.formats.yaml_write import dumps
from tests.chart.harness import run_helm
from tests.tools import HELM_VERSIONS

NUMBERS = [0.1, 1e-7, 1.25e-7, 1e-6, 1e20, 1e21, 123456789.25, -2.5, 2**53, 1e300, 5e-324, 0.000001, 100000.0]
TEXTS = ["<&>", "\u2028\u2029", "\b\f\n\r\t\x01", '"\\/', "\U0001f600 \u00e9", "\ufffd"]


@pytest.fixture(scope="module")
def printer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a chart that prints its values as JSON."""
    folder = tmp_path_factory.mktemp("printer")
    (folder / "templates").mkdir()
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: printer\nversion: 0.1.0\n")
    (folder / "templates" / "all.yaml").write_text("text: {{ toJson .Values | quote }}\n")
    return folder


def printed(version: str, folder: Path, *args: str | Path) -> str:
    return str(yaml.safe_load(run_helm(version, "template", "x", folder, *args).stdout)["text"])


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_numbers_and_texts_are_written_as_helm_writes_them(version: str, printer: Path, tmp_path: Path) -> None:
    values = {"numbers": [*NUMBERS, 7, -1, True], "texts": TEXTS, "b": {"z": 1, "a": "x", "A": {}}}
    file = tmp_path / "values.json"
    file.write_text(json.dumps(values, ensure_ascii=False) + "\n")
    assert printed(version, printer, "-f", file) == dumps(values)


_NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
_JSON = st.recursive(
    st.none() | st.booleans() | st.text() | _NUMBERS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@settings(max_examples=200, deadline=None)
@given(_JSON)
def test_what_is_written_reads_back_the_same(value: object) -> None:
    assert json.loads(dumps(value), parse_int=float) == value
