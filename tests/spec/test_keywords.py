"""Type checkers know the builders' keywords, which match the JSON Schema and the records."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from symphony_charts.spec.builder import keywords
from symphony_charts.spec.builder.common import ALIASES
from symphony_charts.spec.model import Experiment, PodSettings, Process

SCRIPT = Path(__file__).parents[2] / "scripts" / "builder_keywords.py"


def test_the_keywords_are_those_that_the_schema_makes() -> None:
    ended = subprocess.run([sys.executable, str(SCRIPT), "--check"], check=False)
    assert ended.returncode == 0, f"run python {SCRIPT.name} and read the difference"


def test_every_field_of_a_record_is_a_keyword_and_nothing_else() -> None:
    def named(fields: type) -> set[str]:
        return {ALIASES.get(name, name) for name in fields.__annotations__}

    assert named(keywords.PodFields) == set(PodSettings.__struct_fields__)
    assert named(keywords.ProcessFields) == set(Process.__struct_fields__)
    kept = set(Experiment.__struct_fields__) - {"name", "groups", "processes", "order"}
    assert named(keywords.ExperimentFields) == kept
