"""No command line, on any damaged input or odd machine, causes an internal error.

SYMPH_FUZZ_CASES sets the number of cases, SYMPH_FUZZ_SEED the first; `python -m tests.e2e.fuzz SEED` shows one.
"""

from __future__ import annotations

import os

import pytest

from tests.e2e.fuzz.cases import commands, make_case
from tests.e2e.fuzz.run import can_isolate, run_cases
from tests.tools import HELM_VERSIONS, helm

pytestmark = pytest.mark.e2e

# Read at import: inside a test, the user's environment variables are removed.
_COUNT, _FIRST = int(os.environ.get("SYMPH_FUZZ_CASES", "200")), int(os.environ.get("SYMPH_FUZZ_SEED", "1"))


def test_no_use_meets_a_fault_of_ours() -> None:
    if not can_isolate():
        pytest.skip("namespaces of one's own are not to be had here, and outside of them nothing is damaged")
    records = run_cases(_FIRST, _COUNT, helm=helm(HELM_VERSIONS[0]))
    assert sum(record.get("done", 0) for record in records) == _COUNT
    wrong = [record for record in records if record.get("problem")]
    assert not wrong, "\n".join(f"{record['problem']}: {record['case']}\n{record['said']}" for record in wrong)


def test_a_seed_gives_the_same_case_again() -> None:
    known = commands()
    assert [make_case(seed, known) for seed in range(50)] == [make_case(seed, known) for seed in range(50)]
