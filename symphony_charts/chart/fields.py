"""The table of values: the meaning and the type of each path.

Schema and the comments of values.yaml are made from it. ``*`` stands for the name of a group, a service or a
container; an init container has the fields of a container.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

__all__ = ["FIELDS", "Field", "is_leaf", "pattern_of"]


class Field(NamedTuple):
    """A value. `type` names a type of the schema, or is "section" for a map of known keys."""

    meaning: str
    type: str


FIELDS: dict[str, Field] = {
    "image": Field("Image of every container. A container's own keys replace these.", "chartImage"),
    "imagePullSecrets": Field("Secrets to pull images with, as {name: NAME}.", "references"),
    "groups": Field("Pods by group. The comments of the first hold for all.", "section"),
    "groups.*.replicas": Field("Number of pods; 0 leaves the group out.", "count"),
    "groups.*.minReplicas": Field("Number of pods with which the gang starts.", "count"),
    "groups.*.retries": Field("How often each failed pod is started again.", "count"),
    "groups.*.initContainers": Field("Steps that run before the processes.", "section"),
    "groups.*.containers": Field("Processes of the pod.", "section"),
    "groups.*.containers.*.image": Field("Its image: text, or keys that replace those of `image`.", "image"),
    "groups.*.containers.*.command": Field("Entry point; empty: the image's own.", "words"),
    "groups.*.containers.*.args": Field("Arguments.", "words"),
    "groups.*.containers.*.env": Field("Variables: text, or a source as in `valueFrom`.", "env"),
    "groups.*.containers.*.resources": Field("Requests and limits.", "resources"),
    "groups.*.nodeSelector": Field("Labels that nodes must have.", "labels"),
    "groups.*.tolerations": Field("Taints that pods tolerate.", "tolerations"),
    "groups.*.affinity": Field("Affinity of pods.", "affinity"),
    "groups.*.topologySpreadConstraints": Field("How pods spread over nodes.", "spread"),
    "groups.*.priorityClassName": Field("Priority class; empty: `priorityClassName`.", "objectName"),
    "services": Field("Ports and exposure by service, with comments as for groups.", "section"),
    "services.*.port": Field("Port of the Service and of the process.", "port"),
    "services.*.type": Field("ClusterIP, NodePort or LoadBalancer.", "serviceType"),
    "services.*.nodePort": Field("Port of the nodes; 0: the cluster chooses.", "nodePort"),
    "services.*.externalTrafficPolicy": Field("Cluster or Local; empty: the cluster's default.", "trafficPolicy"),
    "services.*.loadBalancerClass": Field("Class of the load balancer.", "labelText"),
    "services.*.sourceRanges": Field("Networks that may connect; empty: all.", "ranges"),
    "services.*.className": Field("Ingress class.", "objectName"),
    "services.*.host": Field("Host name; empty: any.", "host"),
    "services.*.path": Field("Path prefix.", "path"),
    "services.*.tls": Field("TLS entries of the Ingress.", "tls"),
    "services.*.gateway": Field("Gateway of the route.", "section"),
    "services.*.gateway.name": Field("Name of the Gateway.", "objectName"),
    "services.*.gateway.namespace": Field("Its namespace; empty: the release's.", "objectName"),
    "services.*.annotations": Field("Annotations of the Service, Ingress or route.", "annotations"),
    "workload": Field("How the experiment is queued and started.", "section"),
    "workload.queue": Field("Queue; empty: none.", "objectName"),
    "workload.priority": Field("Priority in the queue.", "objectName"),
    "workload.retries": Field("How often failed pods are started again, all together.", "count"),
    "workload.parameters": Field("Variables of processes that `argo submit -p` can set.", "section"),
    "workload.parameters.*": Field("Default of the variable.", "text"),
    "runKey": Field("Change it to run the experiment again.", "text"),
    "secrets": Field("The Secret of the experiment.", "section"),
    "secrets.name": Field("An existing Secret to use instead.", "objectName"),
    "secrets.encryptedData": Field("Encrypted values by key, from `symph secrets seal`.", "texts"),
    "secrets.sealedFor": Field("What the values were sealed for, from `symph secrets seal`.", "text"),
    "secrets.store": Field("Store that holds the values.", "section"),
    "secrets.store.kind": Field("SecretStore or ClusterSecretStore.", "storeKind"),
    "secrets.store.name": Field("Name of the store.", "objectName"),
    "secrets.refreshInterval": Field("How often the values are read again.", "text"),
    "serviceAccount": Field("Service account of the pods.", "section"),
    "serviceAccount.create": Field("Create it.", "bool"),
    "serviceAccount.name": Field(
        "Its name; empty: the full name if created, else the namespace's default.", "objectName"
    ),
    "serviceAccount.annotations": Field("Its annotations.", "annotations"),
    "networkPolicy": Field("Network policies.", "section"),
    "networkPolicy.enabled": Field("Accept only the declared connections.", "bool"),
    "networkPolicy.egress": Field("Restrict outgoing connections, too.", "bool"),
    "networkPolicy.egressRules": Field("Further egress rules.", "objects"),
    "podSecurityContext": Field("Security context of pods.", "podSecurity"),
    "securityContext": Field("Security context of containers.", "security"),
    "priorityClassName": Field("Priority class of pods.", "objectName"),
    "podLabels": Field("Further labels of pods.", "labels"),
    "podAnnotations": Field("Further annotations of pods.", "annotations"),
    "commonLabels": Field("Further labels of all objects except pods.", "labels"),
    "commonAnnotations": Field("Further annotations of all objects except pods.", "annotations"),
    "nameOverride": Field("Replaces the chart's name in the names of objects.", "name"),
    "fullnameOverride": Field("Replaces the beginning of all names.", "name"),
    "tests": Field("The pod of `helm test`, which connects to each service.", "section"),
    "tests.image": Field("Its image, with a shell and nc, python3 or bash.", "image"),
    "tests.hold": Field("Keep finished processes running; for tests of the chart.", "bool"),
    "extraObjects": Field("Further objects of the release.", "manifests"),
    "global": Field("Shared with parent charts; `global.imageRegistry` replaces all registries.", "global"),
    "enabled": Field("For the `condition` of a parent chart.", "bool"),
    "specDigest": Field("Identifies the experiment. Do not change it.", "text"),
}


@lru_cache(maxsize=4096)
def pattern_of(steps: tuple[str, ...]) -> str:
    """Return the key in the table for the value at `steps`."""
    named = ["*" if index == 1 and steps[0] in ("groups", "services") else step for index, step in enumerate(steps)]
    if len(steps) > 2 and steps[1] == "parameters":
        named[2] = "*"
    if len(steps) > 3 and steps[0] == "groups" and steps[2] in ("containers", "initContainers"):
        named[2:4] = ["containers", "*"]
    return ".".join(named)


def is_leaf(steps: tuple[str, ...]) -> bool:
    """Return True if the table has a value at `steps` that is not a section."""
    entry = FIELDS.get(pattern_of(steps))
    return entry is not None and entry.type != "section"
