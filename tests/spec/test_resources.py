"""`reserve` leaves resources for the system of a machine, and always enough to run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.formats.quantity import quantity
from symphony_charts.spec.model import Process
from symphony_charts.spec.pods import resources_of


@pytest.mark.parametrize(
    ("asked", "requested"),
    [
        ({"cpu": "8", "memory": "32000M"}, {"cpu": "7900m", "memory": "30976M"}),
        ({"cpu": "50m", "memory": "100M"}, {"cpu": "25m", "memory": "50M"}),
        ({"memory": "16Gi"}, {"memory": "15408Mi"}),
        ({"cpu": "1.5"}, {"cpu": "1400m"}),
    ],
)
def test_reserve_alone_lowers_requests_and_leaves_limits_and_devices(
    asked: dict[str, str], requested: dict[str, str]
) -> None:
    expected = (requested, asked)
    assert resources_of(Process(requests=asked, reserve=True)) == expected
    assert resources_of(Process(limits=asked, reserve=True)) == expected
    assert resources_of(Process(requests=asked, limits=asked, reserve=True)) == expected
    assert resources_of(Process(requests=requested, limits=asked)) == expected
    gpus = {"nvidia.com/gpu": "2"}
    assert resources_of(Process(requests=asked | gpus, limits=asked | gpus, reserve=True)) == (
        requested | gpus,
        asked | gpus,
    )


@given(st.integers(1, 10**7), st.sampled_from(["m", "M", "Mi", "Gi", ""]))
def test_at_least_half_stays_and_the_limit_is_never_exceeded(number: int, unit: str) -> None:
    for name in ("cpu", "memory"):
        requests, limits = resources_of(Process(requests={name: f"{number}{unit}"}, reserve=True))
        asked = quantity(limits[name])
        assert asked / 2 <= quantity(requests[name]) <= asked
