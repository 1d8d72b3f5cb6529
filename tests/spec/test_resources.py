"""`reserve` leaves resources for the system of a machine, and always enough to run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.formats.quantity import quantity
from symphony_charts.spec.model import Process
from symphony_charts.spec.pods import resources_of


def test_without_reserve_requests_and_limits_are_as_they_were_said() -> None:
    process = Process(requests={"cpu": "2"}, limits={"memory": "4Gi"})
    assert resources_of(process) == ({"cpu": "2"}, {"memory": "4Gi"})


@pytest.mark.parametrize(
    ("asked", "requested"),
    [
        ({"cpu": "8", "memory": "32000M"}, {"cpu": "7900m", "memory": "30976M"}),
        ({"cpu": "50m", "memory": "100M"}, {"cpu": "25m", "memory": "50M"}),
        ({"memory": "16Gi"}, {"memory": "15408Mi"}),
        ({"cpu": "1.5"}, {"cpu": "1400m"}),
    ],
)
def test_reserve_lowers_requests_and_leaves_limits(asked: dict[str, str], requested: dict[str, str]) -> None:
    expected = (requested, asked)
    assert resources_of(Process(requests=asked, reserve=True)) == expected
    assert resources_of(Process(limits=asked, reserve=True)) == expected
    assert resources_of(Process(requests=asked, limits=asked, reserve=True)) == expected


def test_devices_are_not_touched() -> None:
    process = Process(requests={"nvidia.com/gpu": "2"}, limits={"nvidia.com/gpu": "2"}, reserve=True)
    assert resources_of(process) == ({"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": "2"})


@given(st.integers(1, 10**7), st.sampled_from(["m", "M", "Mi", "Gi", ""]))
def test_at_least_half_stays_and_the_limit_is_never_exceeded(number: int, unit: str) -> None:
    for name in ("cpu", "memory"):
        requests, limits = resources_of(Process(requests={name: f"{number}{unit}"}, reserve=True))
        asked = quantity(limits[name])
        assert asked / 2 <= quantity(requests[name]) <= asked
