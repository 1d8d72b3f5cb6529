"""The node model compared with the figures of GKE's own autoscaler and with real nodes of 2017 to 2026."""

from __future__ import annotations

import pytest

from symphony_charts.placement.allocatable import (
    NodeSpec,
    allocatable,
    capacity,
    kube_reserved_disk,
    kube_reserved_memory,
    memory_margin,
)

# machine, vCPU, MiB, allocatable millicores, kube-reserved MiB, capacity bytes, allocatable bytes, more
VECTORS = [
    ("e2-small", 2, 2048, 940, 512, 2066104320, 1424375808, {}),
    ("e2-medium", 2, 4096, 940, 1019, 4108980224, 2935623680, {}),
    ("e2-standard-4", 4, 16384, 3920, 2623, 16773140480, 13917868032, {}),
    ("n1-standard-1", 1, 3840, 940, 960, 3845021696, 2733531136, {}),
    ("n1-standard-2", 2, 7680, 1930, 1736, 7802854912, 5877669376, {}),
    ("n1-standard-8", 8, 30720, 7910, 3483, 31547653632, 27790605824, {}),
    ("n1-highmem-8", 8, 53248, 7910, 4834, 54764743168, 49591069184, {}),
    ("n2-standard-16", 16, 65536, 15890, 5572, 67428610048, 61481086976, {}),
    ("n2-standard-32", 32, 131072, 31850, 9381, 135069896704, 125128347648, {}),
    ("n2-highcpu-96", 96, 98304, 95690, 7538, 101249253376, 93240229888, {}),
    ("c3-standard-88", 88, 360448, 87710, 13968, 371918932827, 357167565659, {}),
    ("n2d-standard-224", 224, 917504, 223370, 25110, 946905119662, 920470518702, {}),
    ("g2-standard-8", 8, 32768, 7910, 3606, 33658298368, 29772275712, {}),
    ("a2-highgpu-1g", 12, 87040, 11900, 6862, 89623407232, 82323221120, {}),
    ("a2-ultragpu-8g", 96, 1392640, 95690, 34612, 1437334514316, 1400936344204, {}),
    ("a3-highgpu-8g", 208, 1916928, 207410, 45098, 1978497984279, 1931104446231, {}),
    ("a3-ultragpu-8g", 224, 3022848, 223370, 67216, 3120014678732, 3049428736716, {}),
    ("a4-highgpu-8g", 224, 4063232, 223370, 88024, 4193885939440, 4101481228016, {}),
    ("ct5lp-hightpu-4t", 112, 196608, 111650, 10692, 202760339456, 191444107264, {}),
    ("ct5p-hightpu-4t", 208, 458752, 207410, 15935, 473387083445, 456573167285, {}),
    ("ct6e-standard-4t", 180, 737280, 179480, 21505, 760880176862, 738225692382, {}),
    ("tpu7x-standard-4t", 224, 1015808, 223370, 27076, 1048373270280, 1019877168904, {}),
    ("c4a-standard-16", 16, 65536, 15890, 5572, 67303923712, 61356400640, {"arch": "arm64"}),
    ("n2-standard-16", 16, 65536, 15890, 5572, 67421712384, 61474189312, {"distribution": "ubuntu"}),
    ("n2-standard-16", 16, 65536, 15490, 5572, 67428610048, 61481086976, {"max_pods": 256}),
    ("e2-standard-4", 4, 16384, 3920, 2727, 16773140480, 13808816128, {"image_streaming": True}),
]


@pytest.mark.parametrize(("machine", "vcpu", "mib", "cpu", "reserved", "whole", "free", "more"), VECTORS)
def test_a_node_offers_what_the_autoscaler_of_gke_computes(
    machine: str, vcpu: int, mib: int, cpu: int, reserved: int, whole: int, free: int, more: dict[str, object]
) -> None:
    node = NodeSpec(machine_type=machine, vcpu=vcpu, memory_mib=mib, **more)  # type: ignore[arg-type]  # one table for all fields
    offer = allocatable(node)
    found = offer["cpu"], kube_reserved_memory(node), capacity(node)["memory"], offer["memory"]
    assert found == (cpu, reserved, whole, free)


@pytest.mark.parametrize(
    ("gib", "whole", "reserved", "free"),
    [
        (15, 11374620672, 7, 2720965820),
        (30, 27226841811, 15, 8398030230),
        (50, 48363136663, 23, 18830760973),
        (100, 101203873792, 41, 47060071478),
        (200, 206899202276, 76, 104604903117),
        (500, 523985187727, 100, 364212485774),
        (1000, 1052461830144, 100, 839841463162),
    ],
)
def test_a_boot_disk_offers_what_real_nodes_show(gib: int, whole: int, reserved: int, free: int) -> None:
    node = NodeSpec(vcpu=4, memory_mib=16384, boot_disk_gib=gib)
    assert capacity(node)["ephemeral-storage"] == whole
    assert kube_reserved_disk(node) == reserved
    assert allocatable(node)["ephemeral-storage"] == free


def test_a_real_e2_small_of_2024_is_met_within_the_margin() -> None:
    node = NodeSpec(machine_type="e2-small", vcpu=2, memory_mib=2048)
    offer = allocatable(node)
    assert abs(offer["memory"] - 1397472 * 1024) < memory_margin(offer["memory"], "model")
    assert offer["cpu"] == 940


def test_a_real_n2_standard_4_of_october_2026_is_met_within_16_kib() -> None:
    node = NodeSpec(machine_type="n2-standard-4", vcpu=4, memory_mib=16384)
    offer = allocatable(node)
    assert abs(offer["memory"] - 13591652 * 1024) <= 16 * 1024
    assert (offer["cpu"], offer["ephemeral-storage"]) == (3920, 47060071478)


# Nodes older than any table: capacity is measured, the formula must give the difference to allocatable.
@pytest.mark.parametrize(
    ("vcpu", "mib", "difference_mib"),
    [(16, 106496, 8129), (4, 15360, 2636), (1, 3840, 1060), (2, 7680, 1836), (4, 16384, 2723)],
)
def test_real_nodes_keep_the_predicted_memory(vcpu: int, mib: int, difference_mib: int) -> None:
    assert kube_reserved_memory(NodeSpec(vcpu=vcpu, memory_mib=mib)) + 100 == difference_mib


def test_image_streaming_explains_the_sample_node_of_the_gke_documentation() -> None:
    node = NodeSpec(vcpu=4, memory_mib=16384, image_streaming=True)
    assert 16393264 * 1024 - (kube_reserved_memory(node) + 100) * 1024 * 1024 == 13498416 * 1024


def test_local_ssds_replace_the_boot_disk() -> None:
    node = NodeSpec(vcpu=4, memory_mib=16384, local_ssds=1)
    assert capacity(node)["ephemeral-storage"] == 375 * 1024**3 - 7289472 * 1024
