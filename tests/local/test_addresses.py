"""Loopback addresses of experiments and pods."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.local.plan.records import candidate_ranges


@given(st.text(max_size=20), st.integers(1, 2000))
def test_every_pod_has_a_loopback_address_of_its_own(name: str, pods: int) -> None:
    first = next(candidate_ranges(name, pods))
    addresses = [ip_address(first.address(index)) for index in range(pods)]
    assert len(set(addresses)) == pods
    assert all(address in ip_network("127.0.0.0/8") and int(address) & 255 not in (0, 255) for address in addresses)
    assert all(address not in ip_network("127.0.0.0/16") for address in addresses)


def test_an_experiment_keeps_its_addresses() -> None:
    assert list(islice(candidate_ranges("rl", 3), 4)) == list(islice(candidate_ranges("rl", 3), 4))
