from __future__ import annotations

import pytest

from symphony_charts.formats.quantity import QuantityOverflowError, amount_of, is_quantity, quantity
from tests.formats.quantity_texts import differences, recorded


def test_every_recorded_text_is_to_us_what_it_is_to_kubernetes() -> None:
    assert len(recorded()) >= 2000
    assert differences(recorded()) == []


@pytest.mark.parametrize("text", ["", "2GB", "1,5", "-1", "1 Gi", "1KI", "1e", "\u0661", "1\n", "\uff11", "1e400"])
def test_what_nobody_can_count_is_no_amount(text: str) -> None:
    assert not is_quantity(text)


@pytest.mark.parametrize("text", ["1e999999999", "1" * 10_000])
def test_a_number_of_any_length_is_refused_at_once(text: str) -> None:
    with pytest.raises(QuantityOverflowError):
        quantity(text)


@pytest.mark.parametrize(
    ("text", "nano"), [("1e-999999999", 1), (f"0.{'0' * 10_000}1", 1), (f"0.{'1' * 10_000}k", 111111111112)]
)
def test_a_fraction_of_any_length_is_rounded_up(text: str, nano: int) -> None:
    assert quantity(text) * 10**9 == nano


def test_cpus_are_counted_in_thousandths_and_so_overflow_earlier() -> None:
    assert amount_of("memory", "9E") == 9 * 10**18
    with pytest.raises(QuantityOverflowError, match="of cpu"):
        amount_of("cpu", "9E")
