"""The parser of quantities against Kubernetes' own, on new random texts each time; a difference prints the seed."""

from __future__ import annotations

import os
import random

from tests.e2e.quantities import answers_of
from tests.formats.quantity_texts import differences, generated_texts, recorded

_SEED = int(os.environ.get("SYMPH_SEED") or random.SystemRandom().randrange(1 << 32))
_TEXTS = 10_000


def test_any_text_is_to_us_what_it_is_to_kubernetes() -> None:
    found = differences(answers_of(generated_texts(_SEED, _TEXTS)))
    assert not found, f"SYMPH_SEED={_SEED}: {found[:20]}"


def test_the_recorded_answers_are_those_of_the_library() -> None:
    assert answers_of([text for text, _ in recorded()]) == recorded()
