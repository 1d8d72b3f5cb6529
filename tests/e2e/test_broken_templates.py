"""A broken template must fail the check that the other tests rely on, with a message that names the object.

Each test breaks one thing in a copy of a good chart, like a typo in a template.
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


# The template, the replacement in it (None: the template is removed), and the message of the check.
SLIPS: dict[str, tuple[str, tuple[str, str] | None, str]] = {
    "a misspelt field": (
        "p0.yaml",
        ("backoffLimitPerIndex:", "backofLimit:"),
        r"(?s)refuses Job/broken-ring-p0-\w+: .*backofLimit",
    ),
    "a selector that fits no pod": (
        "p0.yaml",
        ("selector: {{-", "selector:\n    wrong: selector\n    {{-"),
        r"Services without a ready pod: .*Service/broken-ring-ring-0",
    ),
    "a wrong target port": (
        "p0.yaml",
        ("targetPort: ring-0", "targetPort: 9"),
        r"nobody answers at .*Service/broken-ring-ring-0:7000",
    ),
    "a missing config map": ("config.yaml", None, r'(?s)Pod/broken-ring-p0.*configmap "broken-ring-[^"]+" not found'),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_broken_template_fails_the_proof(
    slip: str, release: Releases, charts: ExampleCharts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("SERVICE_TIMEOUT_S", 2), ("DIAL_TIMEOUT_S", 3), ("READY_TIMEOUT_S", 20)):
        monkeypatch.setattr(release_module, name, seconds)
    chart = Path(shutil.copytree(charts["ring"], tmp_path / "ring"))
    template, change, message = SLIPS[slip]
    path = chart / "templates" / template
    text = path.read_text()
    if change:
        assert change[0] in text
        path.write_text(text.replace(*change))
    else:
        path.unlink()
        monkeypatch.setattr(release_module, "READY_TIMEOUT_S", 4)
    with pytest.raises(AssertionError, match=message):
        prove(release("broken"), chart)
