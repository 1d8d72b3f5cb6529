"""The values of a trial must turn one chart exactly into the other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.chart.release import merge, overrides_between
from symphony_charts.formats.data import Values

scalars = st.one_of(st.integers(0, 3), st.booleans(), st.text("ab", max_size=2))
trees = st.dictionaries(
    st.sampled_from("abcd"),
    st.recursive(scalars, lambda inner: st.dictionaries(st.sampled_from("xy"), inner) | st.lists(inner), max_leaves=6),
)


@given(trees, trees)
def test_merging_the_difference_gives_the_other(base: Values, wanted: Values) -> None:
    assert merge(base, overrides_between(base, wanted)) == wanted


@given(trees)
def test_equal_values_differ_in_nothing(base: Values) -> None:
    assert overrides_between(base, base) == {}
