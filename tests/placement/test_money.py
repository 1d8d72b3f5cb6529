"""Every dollar has a region, a date and a source; unpriced resources have their own line and are in no total."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from scripts.make_prices import read_prices
from symphony_charts.errors import SpecError
from symphony_charts.placement.fit.demand import Demand, Shape
from symphony_charts.placement.plan import Plan, plan_demands
from symphony_charts.placement.pools.pool import Pool
from symphony_charts.placement.pools.readers import pools_of_data
from symphony_charts.placement.prices import PriceTable, default_prices
from symphony_charts.placement.report import money_data, money_lines
from symphony_charts.spec.sources import Toleration

MIB = 1 << 20
REGION = {"units": {"n1": [0.03, 0.004, 0.01, 0.001]}, "gpus": {"nvidia-tesla-v100": [2.0, 1.0]}, "ssd_gib": 0.0001}
OWN = {"date": "2026-11-01", "source": "a list", "regions": {"us-central1": REGION}}
TABLE = msgspec.convert(OWN, PriceTable)


def node(machine: str, region: str = "us-central1", **more: Any) -> Pool:
    return Pool(name="p", machine_type=machine, zones=(region,), allocatable={}, **more)


def plan(rows: list[dict[str, Any]], *counts: int) -> Plan:
    pools = pools_of_data({"kube_system": "elsewhere", "pools": rows}, "pools.yaml")
    demands = []
    for index, (row, count) in enumerate(zip(rows, counts, strict=True)):
        shape = Shape(
            requests=(("cpu", 1000), ("memory", MIB), ("pods", 1)),
            selector=(("cloud.google.com/gke-nodepool", str(row["name"])),),
            tolerations=(Toleration(key="nvidia.com/gpu", operator="Exists"),),
        )
        demands.append(Demand(shape, [(f"g{index}", count)]))
    return plan_demands(demands, pools)


STD = {"name": "std", "machine_type": "n1-standard-8", "nodes": 2, "zones": ["us-central1-a"]}
V100 = {**STD, "name": "v100", "machine_type": "n1-highmem-8", "nodes": 1, "gpu": {"type": "v100", "count": 2}}


def test_attached_gpus_are_paid_for() -> None:
    price = TABLE.price(node("n1-highmem-8", attached_gpus=2, gpu_type="nvidia-tesla-v100"))
    assert price == pytest.approx(8 * 0.03 + 52 * 0.004 + 4.0)
    assert TABLE.price(node("n1-highmem-8", attached_gpus=2, gpu_type="v100"), spot=True) is not None
    assert TABLE.price(node("n1-highmem-8", attached_gpus=1, gpu_type="nvidia-tesla-t4")) is None


@pytest.mark.parametrize("region", ["asia-east1", "southamerica-east1"])
def test_every_region_of_the_list_has_prices_with_their_origin(region: str) -> None:
    assert default_prices().price(node("n1-standard-8", region)) is not None
    assert default_prices().price(node("n1-standard-8", region), spot=True) is not None
    date, source = default_prices().origin(region)
    assert (date, source.startswith("karpenter-provider-gcp")) == ("2026-08-03", True)
    custom = {"name": "p", "machine_type": "n1-custom-4-8192", "nodes": 1, "zones": [f"{region}-a"]}
    (pool,) = pools_of_data({"pools": [custom]}).pools
    assert default_prices().origins_of(pool)[0][2].startswith("apache-libcloud")


def test_43_regions_price_machines_and_three_kinds_of_machine_have_no_price() -> None:
    table = default_prices()
    assert sum(bool(prices.units) for prices in table.regions.values()) == 43
    for machine in ("tpu7x-standard-4t", "a3-ultragpu-8g", "a4-highgpu-8g"):
        assert [region for region in table.regions if table.price(node(machine, region)) is not None] == []


def test_local_ssds_that_are_added_have_a_price() -> None:
    plain, two = (default_prices().price(node("n2-standard-8", local_ssds=count)) for count in (0, 2))
    assert plain is not None
    assert two == pytest.approx(plain + 2 * 375 * 0.000111111)


def test_what_has_no_price_is_a_line_of_its_own() -> None:
    answer = plan([STD, {**V100, "zones": ["europe-west2-a"]}], 2, 1)
    lines = list(money_lines(answer))
    assert "no price: 1 x n1-highmem-8 + 2 v100 in europe-west2 (pool v100)" in lines
    assert money_data(answer)["perHour"] == pytest.approx(0.38, abs=1e-5)
    assert any(line.startswith("list prices of us-central1, 2026-08-03 (") for line in lines)


@pytest.mark.parametrize(("gpu", "each"), [("k80", 0.45), ("p100", 1.46), ("v100", 2.48), ("t4", 0.35)])
def test_attached_gpus_have_a_price_with_an_origin_of_its_own(gpu: str, each: float) -> None:
    answer = plan([{**V100, "gpu": {"type": gpu, "count": 1}}], 1)
    assert money_data(answer)["perHour"] == pytest.approx(0.473208 + each, abs=1e-4)
    assert any(
        "attached GPUs in us-central1, 2026-08-22 (kubernetes/autoscaler" in line for line in money_lines(answer)
    )


def test_a_region_without_prices_is_named() -> None:
    answer = plan([{**STD, "zones": ["mars-north1-a"]}], 1)
    assert any("in mars-north1, a region without prices" in line for line in money_lines(answer))


def test_hours_and_trials_multiply() -> None:
    answer = plan([STD], 1)
    assert "for 10 h x 4 trials: $15.20" in list(money_lines(answer, 10, 4))
    assert money_data(answer, 10, 4)["total"] == 15.2


def test_spot_is_shown_where_all_nodes_have_a_spot_price() -> None:
    assert any("as spot" in line for line in money_lines(plan([STD], 1)))
    assert not any("as spot" in line for line in money_lines(plan([{**STD, "machine_type": "custom-4-8192"}], 1)))


def test_a_list_of_libcloud_is_read() -> None:
    price = {"on_demand": {"mars": {"price": 0.5}, "moon": {"price": 0}}, "preemptible": {"mars": {"price": 0.1}}}
    compute = {"gce_instances": {"n1": {"cpu": price, "ram": price}}, "gce_disks": {"Local SSD": price}}
    table = read_prices(json.dumps({"updated": 1740936978, "compute": compute}).encode(), "libcloud")
    assert table.origin("mars") == ("2025-03-02", "libcloud")
    assert [table.price(node("n1-standard-1", region)) for region in ("mars", "moon")] == [0.5 + 3.75 * 0.5, None]


def karpenter(prices: dict[str, float], spot: dict[str, float]) -> PriceTable:
    text = json.dumps({"prices": {"mars": {"on_demand": prices, "spot": spot}}}).encode()
    return read_prices(text, "karpenter", "2026-08-03")


def test_a_list_of_machines_becomes_units_where_they_explain_every_price() -> None:
    table = karpenter({"n1-standard-8": 0.44, "n1-highmem-8": 0.528, "f1-micro": 0.01}, {"n1-standard-8": 0.1})
    prices = table.regions["mars"]
    assert (set(prices.units), prices.machines) == ({"n1"}, {"f1-micro": (0.01, None)})
    assert table.price(node("n1-standard-96", "mars")) == pytest.approx(12 * 0.44)
    assert table.price(node("n1-standard-8", "mars"), spot=True) is None  # no spot price of the other machine


def test_machines_that_no_units_explain_keep_their_own_prices() -> None:
    table = karpenter({"n1-standard-8": 0.44, "n1-standard-16": 0.5, "n1-highmem-8": 0.528}, {})
    assert table.regions["mars"].units == {}
    assert (table.price(node("n1-standard-16", "mars")), table.price(node("n1-standard-32", "mars"))) == (0.5, None)
    alone = karpenter({"m1-ultramem-40": 6.3, "m1-ultramem-80": 12.6}, {})
    assert alone.price(node("m1-megamem-96", "mars")) is None  # its ratio of memory is different


SKYPILOT = """\
InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice
a2-highgpu-1g,12.0,85.0,,,,mars,mars-a,0.94803,0.39794
,,,A100,1,"{'Gpus': [{'MemoryInfo': {}}]}",mars,mars-a,2.9,1.4
,,,T4,1,{'Gpus': [{'MemoryInfo': {'SizeInMiB': 16384}}]},mars,mars-a,0.35,0.1257
,,,T4,2,{'Gpus': [{'MemoryInfo': {'SizeInMiB': 16384}}]},mars,mars-a,0.9,0.9
,,,tpu-v5p-8,1,tpu-v5p-8,mars,mars-a,16.8,700.0
,,,tpu-v5p-16,1,tpu-v5p-16,mars,mars-a,33.6,7.0
,,,tpu-v6e-1,1,tpu-v6e-1,mars,mars-a,700.0,700.0
,,,tpu-v3-8,1,tpu-v3-8,moon,moon-a,8.0,
"""


def test_attached_gpus_and_tpus_of_skypilot_are_read() -> None:
    table = read_prices(SKYPILOT.encode(), "vms.csv", "2026-11-23")
    assert table.origin("mars") == ("2026-11-23", "vms.csv")
    assert table.regions["mars"].gpus == {"nvidia-tesla-t4": (0.35, 0.1257)}
    assert table.regions["mars"].tpus == {"tpu-v5p-slice": (4.2, None)}
    assert table.regions["moon"].tpus["tpu-v3-slice"] == (2.0, None)


@pytest.mark.parametrize(
    ("text", "name", "date", "what"),
    [
        (SKYPILOT, "vms.csv", "", "no date"),
        (SKYPILOT.replace("0.35", "much"), "vms.csv", "2026-11-23", "no price list"),
        ("[1, 2]", "list.json", "", "no price list"),
        ('{"prices": {"mars": {"on_demand": {}}}}', "list.json", "", "no date"),
    ],
)
def test_an_unreadable_price_list_is_refused(text: str, name: str, date: str, what: str) -> None:
    with pytest.raises(SpecError, match=what):
        read_prices(text.encode(), name, date)
