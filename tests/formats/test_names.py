from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.formats.names import DNS_LABEL, prefix_owner, sanitize, shorten

labels = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,80}[a-z0-9])?", fullmatch=True)


def test_names_are_sanitised_as_symphony_does() -> None:
    assert sanitize("My_Exp.1 x") == "my-exp-1-x"


@pytest.mark.parametrize(
    ("name", "owner", "prefixed"),
    [
        ("rl", "jim", "jim-rl"),
        ("jim-rl", "jim", "jim-rl"),
        ("jimmy-x", "jim", "jim-jimmy-x"),
        ("jim", "jim", "jim-jim"),
        ("rl", None, "rl"),
    ],
)
def test_the_owner_stands_before_the_name_exactly_once(name: str, owner: str | None, prefixed: str) -> None:
    assert prefix_owner(name, owner) == prefixed
    assert prefix_owner(prefixed, owner) == prefixed


@given(labels, labels, st.integers(10, 63))
def test_a_shortened_name_is_a_label_within_its_limit_and_two_names_stay_two(one: str, other: str, limit: int) -> None:
    assert len(shorten(one, limit)) <= limit
    assert DNS_LABEL.fullmatch(shorten(one, limit))
    assert (shorten(one, limit) == shorten(other, limit)) == (one == other)


def test_a_limit_without_room_for_the_hash_is_refused() -> None:
    with pytest.raises(ValueError, match="no room"):
        shorten("abcdefghijkl", 9)
