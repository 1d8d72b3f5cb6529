"""The guard finds at least what gitleaks itself finds, and raises no more false alarms."""

from __future__ import annotations

import pytest

from scripts.leak_rules import OUT, rules_text
from tests.e2e import leak_classes
from tests.e2e.leak_samples import (
    FILES,
    FORMS,
    KINDS,
    PLACES,
    found_by_gitleaks,
    found_by_us,
    harmless,
    in_files,
    planted,
)
from tests.e2e.tools import modules


def test_the_rules_are_those_of_the_pinned_gitleaks() -> None:
    pytest.importorskip("tomllib", reason="newer than the oldest Python")
    assert rules_text(modules.module_folder(modules.GITLEAKS)) == OUT.read_text(encoding="utf-8")


@pytest.mark.parametrize("form", FORMS)
def test_the_guard_finds_every_planted_secret_that_gitleaks_finds(form: str) -> None:
    assert (len(KINDS), len(PLACES)) == (50, 4)
    samples = {f"{index}/{place}": data for index, ((_, place), data) in enumerate(planted(form).items())}
    ours, theirs = found_by_us(samples), found_by_gitleaks(samples)
    assert theirs - ours == set()
    assert len(ours) >= 160


@pytest.mark.parametrize("title", FILES)
def test_the_guard_finds_every_secret_in_a_file_that_gitleaks_finds(title: str) -> None:
    samples = in_files(title)
    ours = found_by_us(samples)
    assert found_by_gitleaks(samples) - ours == set()
    assert len(ours) >= 36  # of 50: in a pickle, some kinds have no name beside them


def test_harmless_strings_raise_at_most_five_false_alarms() -> None:
    samples = {f"{index}/{name}": data for index, (name, data) in enumerate(harmless())}
    assert len(samples) == 500
    assert len(found_by_us(samples)) <= 5


def test_of_what_users_write_the_guard_finds_four_fifths_and_no_less_than_gitleaks_in_either() -> None:
    secrets, strings = leak_classes.planted(), leak_classes.harmless()
    assert (len(leak_classes.SECRETS), len(leak_classes.PLACES), len(secrets), len(strings)) == (127, 13, 381, 494)
    found, theirs = found_by_us(secrets), found_by_gitleaks(secrets)
    assert theirs - found == set()
    assert len(found) >= 0.8 * len(secrets)
    alarms = found_by_us(strings)
    assert len(alarms) <= min(0.03 * len(strings), len(found_by_gitleaks(strings)))
