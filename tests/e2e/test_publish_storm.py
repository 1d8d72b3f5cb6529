"""Many writers on one branch over HTTP and ssh, killed at random moments, behind a server that cuts connections.

The history must have every acknowledged publish exactly once, and nothing may be half-written. The test prints its
figures (`pytest -s`); `SYMPH_SOAK` lets sixteen writers publish 25 charts each.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.gitops.storm import Storm, survive

_IS_SOAK = "SYMPH_SOAK" in os.environ  # read at import: inside a test, the user's variables are removed
pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.mark.parametrize("over_ssh", [False, True], ids=["http", "ssh"])
def test_every_acknowledged_publish_is_in_the_history_exactly_once(over_ssh: bool, tmp_path: Path) -> None:
    writers, each = (16, 25) if _IS_SOAK else (8, 10)
    storm = Storm(writers=writers, each=each, caches=4, kills_a_second=1.0, patience_s=900)
    sys.stdout.write(f"\n{survive(tmp_path, storm, over_ssh=over_ssh)}\n")
