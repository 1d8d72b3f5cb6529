"""For any experiment that the schema allows, real helm makes the objects of `symph render`, also in umbrellas.

Experiments are drawn until each field of the schema has been in one. `SYMPH_SOAK` sets their number, `SYMPH_SEED` the
first seed; a failure prints the whole experiment, with the words of the command line.
"""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path

import pytest

from tests.e2e.fuzz.charts import Judge
from tests.spec.drawn_experiments import draw

pytestmark = pytest.mark.e2e

# Two halves, for two workers. Read at import: inside a test, the user's environment variables are removed.
_COUNT, _SEED = int(os.environ.get("SYMPH_SOAK", "100")) // 2, int(os.environ.get("SYMPH_SEED", "1"))


@pytest.mark.parametrize("half", [0, 1])
def test_helm_makes_the_objects_that_we_render(half: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = _SEED + half * 1_000_000
    judge = Judge(folder=tmp_path)
    chance = random.Random(first)
    (tmp_path / "drawn").mkdir()
    faults = [
        fault
        for drawn in itertools.islice(draw(first, tmp_path / "drawn"), _COUNT)
        for fault in judge.faults(drawn, chance)
    ]
    with capsys.disabled():
        print(f"\n{_COUNT} experiments from {first}: {judge.counts}")  # noqa: T201 - what a soak is read for
    assert not faults, f"{len(faults)} faults\n" + "\n".join(faults[:20])
    # Each goes to two helms, with its own values and with two overrides: most must be comparable.
    assert judge.counts["equal"] > 3 * _COUNT
    assert judge.counts["umbrellas"]
