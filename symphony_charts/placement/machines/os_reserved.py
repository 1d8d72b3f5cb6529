"""Memory and disk that firmware, kernel and operating system keep on a GKE node, before kubelet sees the machine.

Measured by Google per node version (GoogleCloudPlatform/cluster-autoscaler, config/os-reserved.yaml, 2026-08-21). The
figures moved by less than 11 MB in the 679 versions from 1.27 to 1.36, so two rows are kept: one of 1.29.6 and one of
1.36.0-gke.3712000. Each serves the versions for which it is the nearest row that is not smaller (within 84 KiB).
"""

from __future__ import annotations

import re

__all__ = ["disk_reserved", "memory_reserved"]

Points = tuple[tuple[int, int], ...]

_MIB = (1024, 1740, 2048, 3072, 3840, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 1968128)


def _row(sizes_mib: tuple[int, ...], *reserved: int) -> Points:
    return tuple((size << 20, amount) for size, amount in zip(sizes_mib, reserved, strict=True))


# Physical bytes -> reserved bytes. Keys: distribution, architecture, confidential.
_NEW: dict[tuple[str, str, bool], Points] = {
    ("cos", "amd64", False): _row(
        _MIB, 63029248, 76906496, 81379328, 101027840, 181510144, 185987072, 259383296, 406728704, 701440000,
        1290866688, 2369056768, 4427124736, 32385806336,
    ),
    ("cos", "amd64", True): _row(
        (8192, 16384, 32768, 65536, 131072, 262144, 655360),
        734785536, 1425289216, 1720004608, 2309439488, 3387629568, 5647036416, 11895218176,
    ),
    ("cos", "arm64", False): _row((4096, 16384, 65536, 196608), 186417152, 432238592, 1415553024, 3939426304),
    ("ubuntu", "amd64", False): _row(
        _MIB, 68788224, 82583552, 87138304, 106696704, 187183104, 191737856, 265138176, 412651520, 707694592,
        1297764352, 2377248768, 4438106112, 32398118912,
    ),
}  # fmt: skip
_OLD: dict[tuple[str, str, bool], Points] = {
    ("cos", "amd64", False): _row(
        _MIB, 56393728, 70291456, 74743808, 94408704, 174895104, 179347456, 252743680, 400056320, 694685696,
        1283944448, 2361798656, 4419227648, 32377581568,
    ),
    ("ubuntu", "amd64", False): _row(
        _MIB, 75640832, 89530368, 93986816, 113647616, 194125824, 198586368, 271986688, 419315712, 713953280,
        1303236608, 2381144064, 4438859776, 32397275136,
    ),
}  # fmt: skip
# The newest minor version whose nodes the old row describes.
_OLD_UNTIL = {"cos": (1, 29), "ubuntu": (1, 32)}

_DISK: dict[tuple[str, str], Points] = {
    ("cos", "amd64"): (
        (10 << 30, 4642525184), (15 << 30, 4731506688), (100 << 30, 6170308608), (1000 << 30, 21279993856),
        (10000 << 30, 172290314240),
    ),
    ("cos", "arm64"): (
        (10 << 30, 4709634048), (15 << 30, 4798615552), (100 << 30, 6237417472), (1000 << 30, 21347102720),
        (10000 << 30, 172357423104),
    ),
    ("ubuntu", "amd64"): (
        (10 << 30, 1453973504), (15 << 30, 1623126016), (100 << 30, 4486086656), (1000 << 30, 34748268544),
        (10000 << 30, 337341259776),
    ),
}  # fmt: skip


def memory_reserved(
    physical: int, distribution: str, arch: str, version: str = "", *, confidential: bool = False
) -> int:
    """Bytes of `physical` memory that never reach kubelet on a node of this GKE `version` (newest if empty).

    Between two measured sizes the line through them is taken, above the largest the line of the last two. An
    architecture without a row of its own takes the row of COS for it.
    """
    key = (distribution, arch, confidential)
    old = _OLD.get(key) if _minor(version) <= _OLD_UNTIL.get(distribution, (0, 0)) else None
    points = old or _NEW.get(key) or _NEW.get(("cos", arch, False)) or _NEW["cos", "amd64", False]
    return _interpolate(points, physical)


def disk_reserved(physical: int, distribution: str, arch: str) -> int:
    """Bytes of a boot disk that the operating system takes before kubelet sees it."""
    points = _DISK.get((distribution, arch)) or _DISK.get(("cos", arch)) or _DISK["cos", "amd64"]
    return _interpolate(points, physical)


def _minor(version: str) -> tuple[int, int]:
    match = re.match(r"v?(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (999, 0)


def _interpolate(points: Points, size: int) -> int:
    """Piecewise linear through (0, 0) and `points`, in floating point and truncated like its source."""
    previous = (0, 0)
    for index, point in enumerate(points):
        if size == point[0]:
            return point[1]
        if size < point[0] or index == len(points) - 1:
            low, high = (points[-2], points[-1]) if size > point[0] else (previous, point)
            slope = (high[1] - low[1]) / (high[0] - low[0])
            return int(low[1] + slope * (size - low[0]))
        previous = point
    return 0
