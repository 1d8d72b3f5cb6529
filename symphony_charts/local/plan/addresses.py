"""Each experiment has a range of loopback addresses of its own, and each pod one address in it.

On Linux every address of 127.0.0.0/8 answers without being configured, so two pods can listen on the same port
number, as they do in a cluster, and so can two experiments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["ONE_ADDRESS", "AddressRange", "candidate_ranges", "range_at"]

_HOSTS_PER_BLOCK = 254
# 127.0.x.x is left alone: resolvers and Debian's host name entry live there.
_FIRST_BLOCK, _LAST_BLOCK = 1 << 8, (255 << 8) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressRange:
    """Consecutive /24 blocks of 127.0.0.0/8, beginning with number `block` (``127.<block // 256>.<block % 256>``).

    Number 0 stands for 127.0.0.1 alone, which all pods then share.
    """

    block: int

    def address(self, index: int) -> str:
        """Return the address of pod number `index`, from 0; `.0` and `.255` are never used."""
        if self.block == 0:
            return "127.0.0.1"
        block = self.block + index // _HOSTS_PER_BLOCK
        return f"127.{block >> 8}.{block & 255}.{index % _HOSTS_PER_BLOCK + 1}"


ONE_ADDRESS = AddressRange(block=0)


def candidate_ranges(experiment: str, pods: int, tries: int = 64) -> Iterator[AddressRange]:
    """Ranges for `experiment` with its `pods`, best first: always the same ones for the same name."""
    blocks = -(-max(pods, 1) // _HOSTS_PER_BLOCK)
    room = _LAST_BLOCK - _FIRST_BLOCK - blocks
    for attempt in range(tries):
        digest = hashlib.sha256(f"{experiment}\0{attempt}".encode()).digest()
        yield AddressRange(block=_FIRST_BLOCK + int.from_bytes(digest[:8], "big") % room)


def range_at(address: str) -> AddressRange:
    """Return the range whose first address is `address`."""
    _, second, third, _ = address.split(".")
    return AddressRange(block=int(second) * 256 + int(third))
