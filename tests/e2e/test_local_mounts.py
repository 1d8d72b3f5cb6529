"""Files at the pod's paths for root, and with the calls of kernels before 5.12; `make test` tries the usual ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.local.mounts.test_placing import attempt, check_case

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="only root can make such a machine")]


@pytest.mark.parametrize("words", [("root",), ("root", "classic"), ("ordinary", "classic")])
def test_processes_see_their_volumes_and_lose_nothing(words: tuple[str, ...], tmp_path: Path) -> None:
    for name, report in attempt(tmp_path, *words).items():
        check_case(name, words[0], report)
