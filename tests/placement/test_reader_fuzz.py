"""An unknown key, put anywhere into the node pools of a valid file, is refused or named: no proof without a note.

Objects that hold user-defined names, that a format puts around its pools, or that concern a cluster's control plane
and network do not get the key. `SYMPH_SOAK` is the number of files, `SYMPH_SEED` the first seed.
"""

from __future__ import annotations

import copy
import json
import os
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import yaml

from symphony_charts.errors import SpecError
from symphony_charts.placement.fit.demand import Demand, Shape
from symphony_charts.placement.plan import plan_demands
from symphony_charts.placement.pools.pool import Pools
from symphony_charts.placement.pools.readers import read_pools
from symphony_charts.spec.sources import Toleration

CASES = int(os.environ.get("SYMPH_SOAK", "60"))
SEED = int(os.environ.get("SYMPH_SEED", "1"))

NODE_POOL = yaml.safe_load("""
name: p
cluster: c
location: us-central1-a
node_locations: [us-central1-a]
version: 1.33.1-gke.100
max_pods_per_node: 64
autoscaling: [{min_node_count: 0, max_node_count: 4, location_policy: ANY}]
placement_policy: [{type: COMPACT}]
queued_provisioning: [{enabled: false}]
management: [{auto_repair: true}]
node_config:
  - machine_type: n1-standard-8
    disk_size_gb: 100
    labels: {team: rl}
    taint: [{key: team, value: rl, effect: NO_SCHEDULE}]
    gcfs_config: [{enabled: true}]
    guest_accelerator:
      - type: nvidia-tesla-t4
        count: 1
        gpu_sharing_config: [{gpu_sharing_strategy: MPS, max_shared_clients_per_gpu: 2}]
        gpu_driver_installation_config: [{gpu_driver_version: LATEST}]
    kubelet_config: [{cpu_manager_policy: static}]
    linux_node_config: [{sysctls: {a: '1'}, hugepages_config: [{hugepage_size_2m: 4}]}]
    reservation_affinity: [{consume_reservation_type: ANY_RESERVATION}]
    ephemeral_storage_local_ssd_config: [{local_ssd_count: 1}]
    confidential_nodes: [{enabled: false}]
    advanced_machine_features: [{threads_per_core: 2}]
    shielded_instance_config: [{enable_secure_boot: true}]
""")
CLUSTER = yaml.safe_load("""
name: c
location: us-central1-a
remove_default_node_pool: true
initial_node_count: 1
datapath_provider: ADVANCED_DATAPATH
network_policy: [{enabled: false, provider: CALICO}]
confidential_nodes: [{enabled: false}]
node_pool_defaults: [{node_config_defaults: [{gcfs_config: [{enabled: true}]}]}]
cluster_autoscaling: [{enabled: false}]
addons_config: [{dns_cache_config: [{enabled: true}], gcs_fuse_csi_driver_config: [{enabled: true}]}]
release_channel: [{channel: REGULAR}]
""")


def resources(kind: str) -> list[dict[str, Any]]:
    made = ((CLUSTER, "google_container_cluster"), (NODE_POOL, "google_container_node_pool"))
    return [{"address": f"{name}.r", "mode": "managed", "type": name, "name": "r", kind: body} for body, name in made]


GCLOUD_POOL = yaml.safe_load("""
name: p
status: RUNNING
version: 1.33.1-gke.100
initialNodeCount: 2
locations: [us-central1-a]
autoscaling: {enabled: true, maxNodeCount: 4, locationPolicy: ANY}
maxPodsConstraint: {maxPodsPerNode: '64'}
placementPolicy: {type: COMPACT}
management: {autoRepair: true}
config:
  machineType: n1-standard-8
  diskSizeGb: 100
  labels: {team: rl}
  taints: [{key: team, value: rl, effect: NO_SCHEDULE}]
  accelerators:
    - acceleratorType: nvidia-tesla-t4
      acceleratorCount: '1'
      gpuSharingConfig: {gpuSharingStrategy: MPS, maxSharedClientsPerGpu: '2'}
  kubeletConfig: {cpuManagerPolicy: static, reservedResourcesConfig: {}}
  linuxNodeConfig: {sysctls: {a: '1'}, hugepages: {hugepageSize2m: 4}}
  reservationAffinity: {consumeReservationType: ANY_RESERVATION}
  ephemeralStorageLocalSsdConfig: {localSsdCount: 1}
  loggingConfig: {variantConfig: {variant: DEFAULT}}
  shieldedInstanceConfig: {enableSecureBoot: true}
""")
OWN = yaml.safe_load("""
pools:
  - name: p
    machine_type: n1-standard-8
    gpu: {type: t4, count: 1}
    taints: [{key: team, effect: NoSchedule}]
    max_nodes: 3
  - {name: lab, allocatable: {cpu: '31', memory: 60Gi}, system: {cpu: 300m}, nodes: 3}
""")


@dataclass(frozen=True)
class Format:
    """A valid file of one format; `around` finds the objects without facts about nodes, by path."""

    name: str
    data: Any
    around: str = "$."


# Objects with user-defined keys, and those that never affect pods.
NAMES = (
    r"/(labels|sysctls|allocatable|system"
    r"|management|release_channel|shielded_instance_config|shieldedInstanceConfig)(/\d+)?$"
)
# Objects of a cluster that concern its control plane and its network.
IN_CLUSTER = (
    r"(/(network_?policy|confidential_?nodes|cluster_autoscaling|autoscaling|network_?config"
    r"|node_pool_defaults|addons_?config(/0)?/\w+)(/0)?)?$"
)
OF_TERRAFORM = r"|^$|^/resource(/[a-z_]+)?$|^/resource/google_container_cluster/c(?i:" + IN_CLUSTER + ")"
FORMATS = [
    Format(
        "main.tf.json",
        {
            "resource": {
                "google_container_cluster": {"c": CLUSTER},
                "google_container_node_pool": {"p": {**NODE_POOL, "cluster": "${google_container_cluster.c.name}"}},
            }
        },
        OF_TERRAFORM,
    ),
    Format(
        "plan.json",
        {"format_version": "1.2", "planned_values": {"root_module": {"resources": resources("values")}}},
        r"|^$|^/planned_values(/root_module(/resources/\d+)?)?$|/resources/0/values(?i:" + IN_CLUSTER + ")",
    ),
    Format(
        "state.json",
        {"format_version": "1.0", "values": {"root_module": {"resources": resources("values")}}},
        r"|^$|^/values(/root_module(/resources/\d+)?)?$|/resources/0/values(?i:" + IN_CLUSTER + ")",
    ),
    Format("pools.json", [GCLOUD_POOL]),
    Format(
        "cluster.json",
        {
            "name": "c",
            "locations": ["us-central1-a"],
            "nodePools": [GCLOUD_POOL],
            "networkPolicy": {"enabled": False},
            "networkConfig": {"datapathProvider": "LEGACY_DATAPATH", "network": "n"},
            "addonsConfig": {"dnsCacheConfig": {"enabled": True}},
            "autoscaling": {"enableNodeAutoprovisioning": False},
        },
        "|^(?i:" + IN_CLUSTER + ")",
    ),
    Format("own.yaml", OWN),
]
VALUES: tuple[Any, ...] = (True, False, 3, 0, "text", ["a"], {"enabled": True}, [{"count": 2}], [{"a": 1}, {"b": 2}])


def objects(value: Any, around: re.Pattern[str], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict) and not around.search(path):
        yield path, value
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from objects(inner, around, f"{path}/{key}")


def cases(file: Format) -> Iterator[tuple[str, str, Any]]:
    rng = random.Random(f"{SEED} {file.name}")
    around = re.compile(NAMES + file.around.replace("$.", "|$."))
    places = [path for path, _ in objects(file.data, around)]
    count = max(1, CASES // len(FORMATS))
    chosen = rng.sample(places, min(count, len(places)))
    chosen += rng.choices(places, k=count - len(chosen))
    for place in chosen:
        data = copy.deepcopy(file.data)
        key = "x" + "".join(rng.choices("abcdefgh_", k=rng.randint(3, 9))) + "z"
        dict(objects(data, around))[place][key] = rng.choice(VALUES)
        yield place, key, data


ANYWHERE = Shape(requests=(("cpu", 10), ("memory", 1 << 20), ("pods", 1)), tolerations=(Toleration(operator="Exists"),))


def faults_of(file: Format, key: str, data: Any) -> Iterator[str]:
    try:
        pools = read_pools(json.dumps(data), file.name)
    except SpecError as error:
        if key not in str(error):
            yield f"refused, but for another reason: {error}"
        return
    concerned = [pool for pool in pools.pools if any(key in uncertainty.text for uncertainty in pool.uncertainties)]
    if not concerned:
        yield "not said"
    for pool in concerned:
        group = plan_demands([Demand(ANYWHERE, [("g", 1)])], replace(pools, pools=(pool,), workloads=())).groups[0]
        if group.verdict == "PROVEN":
            yield f"PROVEN on {pool.name}"


@pytest.mark.parametrize("file", FORMATS, ids=[file.name for file in FORMATS])
def test_a_stray_key_never_leaves_a_proof_without_a_note(file: Format) -> None:
    wrong = [f"{place}/{key}: {fault}" for place, key, data in cases(file) for fault in faults_of(file, key, data)]
    assert wrong == []


@pytest.mark.parametrize("file", FORMATS, ids=[file.name for file in FORMATS])
def test_the_files_that_keys_are_put_into_raise_no_doubt_of_their_own(file: Format) -> None:
    pools: Pools = read_pools(json.dumps(file.data), file.name)
    said = [uncertainty.text for pool in pools.pools for uncertainty in pool.uncertainties]
    assert [text for text in said if "symph does not know the key" in text] == []
