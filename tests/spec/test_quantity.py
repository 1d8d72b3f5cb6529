from __future__ import annotations

from fractions import Fraction

import pytest

from symphony_charts.spec.quantity import is_quantity, quantity


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", Fraction(1)),
        ("1.5", Fraction(3, 2)),
        (".5", Fraction(1, 2)),
        ("1.", Fraction(1)),
        ("100m", Fraction(1, 10)),
        ("2Gi", Fraction(2 * 1024**3)),
        ("2G", Fraction(2 * 10**9)),
        ("1e3", Fraction(1000)),
        ("1E", Fraction(10**18)),
        ("5E2", Fraction(500)),
        ("12e-1", Fraction(12, 10)),
    ],
)
def test_quantities_are_read_exactly(text: str, number: Fraction) -> None:
    assert quantity(text) == number


@pytest.mark.parametrize("text", ["", "2GB", "1,5", "-1", "Gi", "1 Gi", "1KI", "1e", "\u0661"])
def test_what_kubernetes_refuses_is_no_amount(text: str) -> None:
    assert not is_quantity(text)


def test_text_that_is_no_quantity_has_no_number() -> None:
    with pytest.raises(ValueError, match="no quantity"):
        quantity("2GB")
