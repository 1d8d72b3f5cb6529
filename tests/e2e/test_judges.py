"""Chart linters of others report on our charts exactly the findings that docs/chart.md lists."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.charts import CHECKOUT, EXAMPLES, ExampleCharts
from tests.e2e.tools.build import find_tool
from tests.tools import newest_helm

pytestmark = pytest.mark.e2e

_ROW = re.compile(r"^\| (kube-score|checkov) \| (.+) \| (.+) \|$", re.MULTILINE)
_LEAST_GRADE = 7
# A pinned release in its own environment: 290 MB.
_CHECKOV = "checkov==3.3.30"


def _section() -> str:
    text = (CHECKOUT / "docs" / "chart.md").read_text(encoding="utf-8")
    return text.partition("## Other linters")[2].partition("\n## ")[0]


def _listed(judge: str, *answers: str) -> set[str]:
    """Return the checks of a linter in these columns of docs/chart.md: ``goes away``, ``stays``."""
    rows = {name: {"goes away": away, "stays": stays} for name, away, stays in _ROW.findall(_section())}
    return {check for answer in answers for check in re.findall(r"`([\w-]+)`", rows[judge][answer])}


@pytest.fixture(scope="module")
def hardened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("values") / "hardened.yaml"
    path.write_text(_section().partition("```yaml\n")[2].partition("```")[0])
    return path


def _rendered(chart: Path, folder: Path, *flags: str) -> Path:
    path = folder / f"{chart.name}{len(flags)}.yaml"
    done = subprocess.run([str(newest_helm()), "template", "r", str(chart), *flags], capture_output=True, check=True)
    path.write_bytes(done.stdout)
    return path


def _by_kube_score(objects: Path) -> set[str]:
    argv = [str(find_tool("kube-score")), "score", "--output-format", "json", str(objects)]
    found = json.loads(subprocess.run(argv, capture_output=True, text=True, check=False).stdout)
    checks = [check for item in found for check in item["checks"]]
    assert len(checks) > len(found), "it has judged nothing"
    return {check["check"]["id"] for check in checks if not check["skipped"] and check["grade"] < _LEAST_GRADE}


def test_kube_score_says_what_is_listed(charts: ExampleCharts, hardened: Path, tmp_path: Path) -> None:
    said = {example: _by_kube_score(_rendered(charts[example], tmp_path)) for example in EXAMPLES}
    assert set().union(*said.values()) == _listed("kube-score", "goes away", "stays")
    said = {example: _by_kube_score(_rendered(charts[example], tmp_path, "-f", str(hardened))) for example in EXAMPLES}
    assert set().union(*said.values()) == _listed("kube-score", "stays")


def test_helm_docs_describes_every_value(charts: ExampleCharts) -> None:
    for example in EXAMPLES:
        argv = [str(find_tool("helm-docs")), "-c", str(charts[example]), "--dry-run"]
        page = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        table = page.partition("| Key | Type | Default | Description |")[2].splitlines()[2:]
        rows = [line for line in table if line.startswith("| ")]
        assert {line.split(" | ")[0] for line in rows} >= {"| image", "| groups", "| services"}
        assert [line for line in rows if not line.rpartition(" | ")[2].strip(" |")] == []


@pytest.fixture(scope="module")
def checkov(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if "SYMPH_SOAK" not in os.environ:
        pytest.skip("checkov and what it needs are 290 MB: SYMPH_SOAK=1, or make soak")
    folder = tmp_path_factory.mktemp("checkov")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin" / "pip"), "install", "--quiet", _CHECKOV], check=True)
    return folder / "bin" / "checkov"


def _by_checkov(program: Path, objects: Path) -> set[str]:
    argv = [str(program), "-f", str(objects), "--framework", "kubernetes", "-o", "json", "--compact"]
    found = json.loads(subprocess.run(argv, capture_output=True, text=True, check=False).stdout)
    assert found["summary"]["passed"] > found["summary"]["failed"] > 0
    return {check["check_id"] for check in found["results"]["failed_checks"]}


def test_checkov_says_what_is_listed(charts: ExampleCharts, hardened: Path, checkov: Path, tmp_path: Path) -> None:
    said = {example: _by_checkov(checkov, _rendered(charts[example], tmp_path)) for example in EXAMPLES}
    assert set().union(*said.values()) == _listed("checkov", "goes away", "stays")
    flags = ("-f", str(hardened))
    said = {example: _by_checkov(checkov, _rendered(charts[example], tmp_path, *flags)) for example in EXAMPLES}
    assert set().union(*said.values()) == _listed("checkov", "stays")
