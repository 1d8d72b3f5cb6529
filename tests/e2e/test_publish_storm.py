"""Sixteen writers on one branch over HTTP and ssh, killed at random moments, behind a server that cuts connections.

The history must have every acknowledged publish exactly once, and nothing may be half-written. The test prints its
figures (`pytest -s`).
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.gitops.storm import Storm, survive

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.mark.parametrize("over_ssh", [False, True], ids=["http", "ssh"])
def test_every_acknowledged_publish_is_in_the_history_exactly_once(over_ssh: bool, tmp_path: Path) -> None:
    storm = Storm(writers=16, each=25, caches=4, kills_a_second=1.0, patience_s=900)
    sys.stdout.write(f"\n{survive(tmp_path, storm, over_ssh=over_ssh)}\n")
