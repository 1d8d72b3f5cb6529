"""The operators' own code is the judge: of a DIJob, of our chart and of our export they make the same pods."""

from __future__ import annotations

import pytest

from tests.importers.dijob_operators import MAKERS, plain, recorded


@pytest.mark.parametrize("version", MAKERS)
def test_the_written_down_operator_answers_as_the_operator_did(version: str) -> None:
    for job, made in recorded(version):
        assert plain(MAKERS[version](job)) == plain(made)
