"""scripts/merge_keys.py writes by which key Kubernetes' strategic merge joins the lists of a pod.

A list with an empty key holds plain values and is a set. A list that is not here is replaced as a whole.
Source: x-kubernetes-patch-merge-key in Kubernetes' OpenAPI documents, 1.29 to 1.37.
"""

from __future__ import annotations

MERGE_KEYS = {
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "evictionResponders": "name",
    "finalizers": "",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "ports": "containerPort",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
