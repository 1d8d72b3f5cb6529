"""`symph import symphony`. Imports nothing heavy."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["EXAMPLES", "HAS_PYTHON_TAGS", "SUMMARY", "run"]

SUMMARY = "an experiment that Symphony saved"
EXAMPLES = ("symph import symphony experiment.yml --to experiment.yaml",)
HAS_PYTHON_TAGS = True


def run(source: Any, _: argparse.Namespace) -> Any:
    """Return the experiment of a recording."""
    # 100 ms, which help has not.
    from symphony_charts.integrations.symphony.importer import import_legacy

    return import_legacy(source)
