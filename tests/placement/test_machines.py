"""The catalogue: its shape, its two sources, custom names; and the price table."""

from __future__ import annotations

import json

import pytest

from scripts import make_catalog
from symphony_charts.placement.catalog import Machine, default_catalog, gpu_matches, slice_hosts
from symphony_charts.placement.pools.pool import Pool
from symphony_charts.placement.prices import default_prices
from symphony_charts.system.package_data import table

CATALOG = default_catalog()
FILE = json.loads(table("placement/data/machines.json"))


def machine(name: str) -> Machine:
    found = CATALOG.get(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "vcpu", "gib"),
    [
        ("n1-standard-8", 8, 30),
        ("n1-highmem-8", 8, 52),
        ("n1-highcpu-8", 8, 7.2),
        ("g2-standard-24", 24, 96),
        ("n2d-highmem-96", 96, 768),
        ("c4a-standard-16", 16, 64),
        ("a3-highgpu-8g", 208, 1872),
        ("e2-small", 2, 2),
    ],
)
def test_a_name_means_its_size(name: str, vcpu: int, gib: float) -> None:
    assert (machine(name).vcpu, machine(name).memory_mib) == (vcpu, round(gib * 1024))


def test_every_machine_has_two_sources_or_is_known_to_have_fewer() -> None:
    excepted = {entry["machine"] for entry in FILE["exceptions"]}
    unsourced = [m.name for m in CATALOG.machines.values() if not m.sources and m.name not in excepted]
    assert unsourced == []
    assert sum(len(m.sources) == 2 for m in CATALOG.machines.values()) > 500


def test_every_exception_gives_its_reason() -> None:
    assert all(entry["why"] and entry["source"] in ("gke", "pricing") for entry in FILE["exceptions"])


def test_all_families_of_gke_are_there() -> None:
    families = {m.family for m in CATALOG.machines.values()}
    wanted = "n1 n2 n2d n4 e2 t2d t2a c2 c2d c3 c3d c4 c4a c4d h3 m1 m2 m3 m4 z3 a2 a3 a4 g2 g4 ct5lp ct5p ct6e tpu7x"
    assert set(wanted.split()) <= families


@pytest.mark.parametrize(
    ("name", "family", "vcpu", "mib", "arch"),
    [
        ("custom-6-23040", "n1", 6, 23040, "amd64"),
        ("n2-custom-6-20480-ext", "n2", 6, 20480, "amd64"),
        ("n4a-custom-4-16384", "n4a", 4, 16384, "arm64"),
        ("e2-custom-small-2048", "e2", 2, 2048, "amd64"),
    ],
)
def test_custom_names_are_computed(name: str, family: str, vcpu: int, mib: int, arch: str) -> None:
    found = machine(name)
    assert (found.family, found.vcpu, found.memory_mib, found.arch) == (family, vcpu, mib, arch)


@pytest.mark.parametrize("name", ["", "n1", "custom-0-1024", "n1-standard-7", "custom-a-b"])
def test_names_that_mean_nothing_are_unknown(name: str) -> None:
    assert CATALOG.get(name) is None


@pytest.mark.parametrize(
    ("wanted", "offered", "fits"),
    [
        ("V100", "nvidia-tesla-v100", True),
        ("nvidia-tesla-v100", "nvidia-tesla-v100", True),
        ("a100", "nvidia-a100-80gb", True),
        ("a100-40gb", "nvidia-a100-80gb", False),
        ("p4", "nvidia-tesla-p40", False),
        ("b200", "nvidia-gb200", False),
        ("rtx-3090", "rtx-3090", True),
    ],
)
def test_short_gpu_names_match_whole_types_alone(wanted: str, offered: str, fits: bool) -> None:
    assert gpu_matches(wanted, offered) is fits


@pytest.mark.parametrize(("topology", "chips", "hosts"), [("2x2", 4, 1), ("4x4", 4, 4), ("2x2x4", 4, 4), ("1x1", 1, 1)])
def test_a_slice_has_as_many_hosts_as_its_chips_need(topology: str, chips: int, hosts: int) -> None:
    assert slice_hosts(topology, chips) == hosts


def test_what_is_no_topology_is_refused() -> None:
    with pytest.raises(ValueError, match="is not a TPU topology"):
        slice_hosts("4by4", 4)


PRICES: list[tuple[str, str, float | None, float | None]] = [
    ("n1-standard-8", "us-central1", 0.379998, 0.13402),
    ("g2-standard-8", "us-central1", 0.853624, None),
    ("n2-custom-6-20480", "us-central1", 6 * 0.033174 + 20 * 0.004446, None),
    ("n2-custom-2-20480-ext", "us-central1", 2 * 0.033174 + 16 * 0.004446 + 4 * 0.00955, None),
    ("custom-4-8192", "us-central1", 4 * 0.033174 + 8 * 0.003686, None),
    ("c3-standard-8-lssd", "us-central1", 0.485408, None),
    ("ct5lp-hightpu-4t", "us-central1", 4.8, 0.97972),
    ("ct3-hightpu-4t", "us-east1", 8.0, None),
    ("ct6e-standard-1t", "asia-east1", None, None),
    ("n1-standard-8", "mars-north1", None, None),
    ("nonsense", "us-central1", None, None),
]


@pytest.mark.parametrize(("name", "region", "price", "spot"), PRICES)
def test_prices_are_those_of_the_lists(name: str, region: str, price: float | None, spot: float | None) -> None:
    pool = Pool(name="p", machine_type=name, zones=(region,), allocatable={})
    assert default_prices().price(pool) == (price and pytest.approx(price, rel=1e-4))
    assert spot is None or default_prices().price(pool, spot=True) == pytest.approx(spot)


def test_the_catalogue_is_what_its_rules_give() -> None:
    table = make_catalog.with_recorded_sources(make_catalog.catalog_rows())
    assert make_catalog.text_of(table) == make_catalog.OUTPUT.read_text(encoding="utf-8")
