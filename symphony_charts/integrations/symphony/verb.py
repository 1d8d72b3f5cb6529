"""`symph import symphony`; imports only light modules."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["EXAMPLES", "HAS_PYTHON_TAGS", "SUMMARY", "run"]

SUMMARY = "an experiment that Symphony saved"
EXAMPLES = ("symph import symphony experiment.yml --to experiment.yaml",)
HAS_PYTHON_TAGS = True


def run(source: Any, _: argparse.Namespace) -> Any:
    # Late import: it takes 100 ms, too slow for `--help`.
    from symphony_charts.integrations.symphony.importer import import_legacy

    return import_legacy(source)
