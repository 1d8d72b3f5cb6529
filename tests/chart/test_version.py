"""A version tells users the kind of change, and the same content never gets two versions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.chart.archive import check_version, compare_values, next_version
from symphony_charts.errors import SpecError

OLD: dict[str, object] = {"a": 1, "b": {"c": "x", "d": []}, "specDigest": "old"}


@pytest.mark.parametrize(
    ("new", "version"),
    [
        ({"a": 2, "b": {"c": "x", "d": []}}, "1.2.4"),
        ({"a": 1.5, "b": {"c": "x", "d": ["y"]}}, "1.2.4"),
        ({"a": 1, "b": {"c": "x", "d": []}, "e": 1}, "1.3.0"),
        ({"a": 1, "b": {"c": "x", "d": [], "f": {"g": 1}}}, "1.3.0"),
        ({"b": {"c": "x", "d": []}}, "2.0.0"),
        ({"a": "1", "b": {"c": "x", "d": []}}, "2.0.0"),
        ({"a": True, "b": {"c": "x", "d": []}}, "2.0.0"),
        ({"a": 1, "b": {"c": "x", "d": []}, "specDigest": "new"}, "1.2.4"),
    ],
)
def test_the_next_version_follows_from_the_change(new: dict[str, object], version: str) -> None:
    assert next_version("1.2.3", compare_values(OLD, new)) == version


def test_a_change_is_told_in_few_words() -> None:
    change = compare_values(OLD, {"a": 2, "b": {"c": "x", "d": []}, "e": 1})
    assert change.describe() == "1 value added, a changed"


@pytest.mark.parametrize("version", ["1.2", "v1.2.3", "01.0.0", "1.0.0-01", "1.0.0-", "", "1.0.0+", "0.0.0", "1.0.0\n"])
def test_what_is_no_semantic_version_is_refused(version: str) -> None:
    with pytest.raises(SpecError):
        check_version(version)


@pytest.mark.parametrize("version", ["0.1.0", "1.0.0-g0123456", "1.0.0-rc.1", "1.0.0+build.5", "10.20.30"])
def test_semantic_versions_are_taken(version: str) -> None:
    assert check_version(version) == version


_VALUES = st.recursive(
    st.integers() | st.text(), lambda inner: st.dictionaries(st.sampled_from("abc"), inner, min_size=1)
)


@given(st.dictionaries(st.sampled_from("abc"), _VALUES), st.dictionaries(st.sampled_from("abc"), _VALUES))
def test_what_one_way_adds_the_other_way_removes(old: dict[str, object], new: dict[str, object]) -> None:
    there, back = compare_values(old, new), compare_values(new, old)
    assert there.added == back.removed
    assert there.changed == back.changed
