"""The values of a trial must turn one chart into the other, exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.chart.compile.experiment import compile_values
from symphony_charts.chart.render.assemble import Release, assemble
from symphony_charts.chart.render.values import Values
from symphony_charts.chart.values.merge import merge, overrides_between
from symphony_charts.errors import SpecError
from symphony_charts.spec.data import from_data
from symphony_charts.spec.services import allocate
from symphony_charts.sweep.trials import Trial, apply
from tests.chart.harness import sealed
from tests.chart.strategies import experiments

scalars = st.one_of(st.integers(0, 3), st.booleans(), st.text("ab", max_size=2))
trees = st.dictionaries(
    st.sampled_from("abcd"),
    st.recursive(scalars, lambda inner: st.dictionaries(st.sampled_from("xy"), inner) | st.lists(inner), max_leaves=6),
)


@given(trees, trees)
def test_merging_the_difference_gives_the_other(base: Values, changes: Values) -> None:
    wanted = merge(base, changes)
    assert merge(base, overrides_between(base, wanted)) == wanted


@given(trees)
def test_equal_values_differ_in_nothing(base: Values) -> None:
    assert overrides_between(base, base) == {}


def test_all_that_would_be_taken_away_is_told() -> None:
    with pytest.raises(SpecError) as failure:
        overrides_between({"a": 1, "b": {"c": 2}}, {"b": {}})
    assert [problem.path for problem in failure.value.problems] == ["values.a", "values.b.c"]


@given(experiments())
def test_a_chart_with_a_trials_values_gives_the_objects_of_the_trials_own_chart(data: dict[str, object]) -> None:
    experiment = from_data(data)
    trial = apply(experiment, Trial(name="trial-1", settings={}))
    base, own = (sealed(compile_values(each, allocate(each))) for each in (experiment, trial))
    release = Release(name="trial-1", namespace="default", chart_name=experiment.name)
    swept = assemble(merge(base, overrides_between(base, own)), release)
    assert swept == assemble({**own, "specDigest": base["specDigest"]}, release)
