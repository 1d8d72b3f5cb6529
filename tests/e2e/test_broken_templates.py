"""A broken template must fail the proof that the other tests rely on, with a message that names the object.

Each test breaks one thing in a copy of a good chart, as a slip in a template would.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e import release as release_module
from tests.e2e.charts import ExampleCharts
from tests.e2e.release import Release, prove

Releases = Callable[..., Release]


@pytest.fixture
def chart(charts: ExampleCharts, tmp_path: Path) -> Path:
    return Path(shutil.copytree(charts["ring"], tmp_path / "ring"))


def _break(chart: Path, template: str, old: str, new: str) -> None:
    path = chart / "templates" / template
    text = path.read_text()
    assert old in text, f"{template} has no {old!r} to break"
    path.write_text(text.replace(old, new))


def test_a_misspelt_field_is_refused_by_the_api_server(release: Releases, chart: Path) -> None:
    _break(chart, "p0.yaml", "backoffLimitPerIndex:", "backofLimit:")
    with pytest.raises(AssertionError, match=r"(?s)refuses Job/broken-ring-p0-\w+: .*backofLimit"):
        prove(release("broken"), chart)


def test_a_selector_that_fits_no_pod_is_named(release: Releases, chart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_module, "SERVICE_TIMEOUT_S", 2)
    _break(chart, "p0.yaml", "selector: {{-", "selector:\n    wrong: selector\n    {{-")
    with pytest.raises(AssertionError, match=r"Services without a ready pod: .*Service/broken-ring-ring-0"):
        prove(release("broken"), chart)


def test_a_wrong_target_port_is_named(release: Releases, chart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_module, "DIAL_TIMEOUT_S", 3)
    _break(chart, "p0.yaml", "targetPort: ring-0", "targetPort: 9")
    with pytest.raises(AssertionError, match=r"nobody answers at .*Service/broken-ring-ring-0:7000"):
        prove(release("broken"), chart)


def test_a_missing_config_map_is_named(release: Releases, chart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_module, "READY_TIMEOUT_S", 4)
    (chart / "templates" / "config.yaml").unlink()
    with pytest.raises(AssertionError, match=r'(?s)Pod/broken-ring-p0.*configmap "broken-ring-[^"]+" not found'):
        prove(release("broken"), chart)
