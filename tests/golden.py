"""Golden files: what a program shows, kept as a file that people read. `make golden` rewrites them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Read here, since no test sees such variables of whoever runs it.
_REWRITE = os.environ.get("SYMPH_GOLDEN") == "rewrite"


def check_golden(path: Path, text: str) -> None:
    """Fail unless `text` is what `path` holds; with SYMPH_GOLDEN=rewrite write it there.

    `make golden` runs the tests that have "golden" in their names.
    """
    if _REWRITE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    kept = path.read_text() if path.exists() else ""
    if kept != text:
        pytest.fail(f"{path.name} is now otherwise; if that is meant: make golden\n--- kept\n{kept}\n--- now\n{text}")
