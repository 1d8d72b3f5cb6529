"""`$(VAR)` as the kubelet expands it; the cases are those of Kubernetes' own documentation and source."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.spec.environment import expand

VARIABLES = {"A": "a", "B": "$(A)", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("$(A)", "a"),
        ("x$(A)y", "xay"),
        ("$(B)", "$(A)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$a"),
        ("$(NONE)", "$(NONE)"),
        ("$(A", "$(A"),
        ("$A", "$A"),
        ("$", "$"),
        ("a$", "a$"),
        ("$(EMPTY)|", "|"),
        ("$()", "$()"),
        ("$(A)$(A)", "aa"),
    ],
)
def test_a_reference_is_expanded_as_in_a_pod(text: str, result: str) -> None:
    assert expand(text, VARIABLES) == result


@given(st.text("$()A|") | st.text())
def test_doubled_dollars_come_out_single_and_all_else_as_it_is(text: str) -> None:
    assert expand(text.replace("$", "$$"), VARIABLES) == text
