"""`symph import symphony`."""

from __future__ import annotations

import argparse
from typing import Any

from symphony_charts.integrations.symphony import importer

__all__ = ["EXAMPLES", "HAS_PYTHON_TAGS", "SUMMARY", "run"]

SUMMARY = "an experiment that Symphony saved"
EXAMPLES = ("symph import symphony experiment.yml --to experiment.yaml",)
HAS_PYTHON_TAGS = True


def run(source: Any, _: argparse.Namespace) -> Any:
    return importer.import_legacy(source)
