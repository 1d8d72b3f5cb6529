"""One road from a spec to its objects: every verb takes it, so that no two can mean different things."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings

from tests.law import Case, cases, disagreements

_CASES = int(os.environ.get("SYMPH_LAW_CASES", "200"))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty repository of charts."""
    folder = tmp_path_factory.mktemp("law") / "charts.git"
    subprocess.run(["git", "init", "--quiet", "--bare", "-b", "main", str(folder)], check=True)
    return folder


@given(case=cases())
@settings(max_examples=_CASES, phases=(Phase.generate,))  # what fails is read as it is: each try runs ten commands
def test_all_verbs_agree_on_objects_faults_and_verdict(case: Case, repository: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert disagreements(case, Path(folder), repository) == []
