"""Type checkers know the builders' keywords, which match the JSON Schema."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "builder_keywords.py"


def test_the_keywords_are_those_that_the_schema_makes() -> None:
    ended = subprocess.run([sys.executable, str(SCRIPT), "--check"], check=False)
    assert ended.returncode == 0, f"run python {SCRIPT.name} and read the difference"
