"""A small number of the oracle's experiments; `make oracle N=2000` runs many."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.oracle.__main__ import compare_experiments
from tests.e2e.oracle.live import Scheduler, scheduler
from tests.e2e.oracle.pairs import compare_filters


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    """A kube-scheduler of our own, without controllers."""
    folder: Path = tmp_path_factory.mktemp("oracle")
    with scheduler(folder / "rig") as found:
        yield found


@pytest.mark.rig
def test_every_node_is_refused_for_the_reasons_that_the_planner_gives(real: Scheduler) -> None:
    report = compare_filters(real, 5_000, seed=7)
    assert report.disagreements == []


@pytest.mark.rig
def test_a_proven_group_is_bound_in_every_order_and_a_no_never_as_a_whole(real: Scheduler) -> None:
    report = compare_experiments(real, range(10_000, 10_015))
    assert (report.false_proven, report.false_no) == ([], [])
    assert report.verdicts["PROVEN"] > 0
    assert report.verdicts["NO"] > 0
