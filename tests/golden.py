"""Golden files: a program's output, kept as a readable file. `make golden` rewrites them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Read at import, since tests do not see the caller's variables.
_REWRITE = os.environ.get("SYMPH_GOLDEN") == "rewrite"


def check_golden(path: Path, text: str) -> None:
    """Fail unless `path` holds `text`; with SYMPH_GOLDEN=rewrite write it there.

    `make golden` runs the tests that have "golden" in their names.
    """
    if _REWRITE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    kept = path.read_text() if path.exists() else ""
    if kept != text:
        pytest.fail(f"{path.name} is now otherwise; if that is meant: make golden\n--- kept\n{kept}\n--- now\n{text}")
