"""Publishing while writers are killed and the server cuts connections; tests/e2e/test_publish_storm.py is larger."""

from __future__ import annotations

from pathlib import Path

from tests.gitops.storm import Storm, survive


def test_writers_that_are_killed_publish_everything_once(tmp_path: Path) -> None:
    survive(tmp_path, Storm(writers=4, each=4, caches=2, kills_a_second=2.0, patience_s=120))
