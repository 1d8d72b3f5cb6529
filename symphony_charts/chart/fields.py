"""The table of values: the meaning of each path, and its type if the templates allow more than one.

The schema and the comments of values.yaml come from it. ``*`` is the name of a group, service or container; an init
container has the fields of a container. Kubernetes structures have the keys of its API (core/v1 of 1.34), so that
a typing error is found early.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from symphony_charts.formats.names import DNS_LABEL, LABEL_NAME, OBJECT_NAME


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
    "conductor": Field("The Job that ends services with the run.", "section"),
    "conductor.image": Field("Its image, with a shell and kubectl.", "image"),
    "conductor.nodeSelector": Field("Labels that its node must have.", "labels"),
    "conductor.tolerations": Field("Taints that it tolerates.", "tolerations"),
    "conductor.serviceAccountName": Field(
        "Service account that may get and patch Jobs; empty: the chart makes one.", "objectName"
    ),
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
    if len(steps) > 2 and steps[:2] == ("workload", "parameters"):
        named[2] = "*"
    if len(steps) > 3 and steps[0] == "groups" and steps[2] in ("containers", "initContainers"):
        named[2:4] = ["containers", "*"]
    return ".".join(named)


def is_leaf(steps: tuple[str, ...]) -> bool:
    """Return True if the table has a value at `steps` that is not a section."""
    entry = FIELDS.get(pattern_of(steps))
    return entry is not None and entry.type != "section"


Schema = dict[str, Any]

_DATA: Schema = {"$ref": "#/definitions/data"}


class Type(NamedTuple):
    """A type of the schema, and its description in messages."""

    schema: Schema
    words: str


def _integer(least: int, most: int, digits: str) -> Schema:
    """Return the schema of an integer, which may also be text: Argo CD and --set-string pass strings."""
    number = {"type": "integer", "minimum": least, "maximum": most}
    return {"anyOf": [number, {"type": "string", "pattern": f"^{digits}$"}]}


def _closed(others: str = "", **properties: Schema) -> Schema:
    """Return the schema of a map with `properties`; keys named in `others` may hold any data."""
    known = {"properties": properties} if properties else {}
    any_data = {"patternProperties": {f"^({'|'.join(others.split())})$": _DATA}} if others else {}
    return {"type": "object", "additionalProperties": False, **known, **any_data}


def _items(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _matching(pattern: str) -> Schema:
    return {"type": "string", "pattern": f"^(?:{pattern})?$"}


def _choice(choices: Iterable[str]) -> Type:
    words = list(choices)
    return Type({"enum": words}, "one of " + ", ".join(word or '""' for word in words))


_KEY = {"$ref": "#/definitions/labelKey"}
DEFINITIONS: dict[str, Schema] = {
    # Any data but null, at any depth. Helm corrupts multi-line text that contains another line separator.
    "data": {
        "pattern": "^(?:[^\n]*|[^\x85\u2028\u2029]*)$",
        "type": ["string", "number", "boolean", "object", "array"],
        "additionalProperties": _DATA,
        "items": _DATA,
    },
    "labelKey": {"pattern": f"^(?:{OBJECT_NAME.pattern}/)?{LABEL_NAME.pattern}$", "maxLength": 317},
}

_STRING = {"type": "string"}
_OBJECT = {"type": "string", "pattern": f"^{OBJECT_NAME.pattern}$", "maxLength": 253}
_NUMBER = {"type": "integer"}
_BOOLEAN = {"type": "boolean"}
_SCALAR = {"type": ["string", "number", "boolean"]}
_NAMED = {"type": "object", "properties": {"name": {"type": "string", "minLength": 1}}, "required": ["name"]}
_PORT = "(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_PULL_POLICY = {"enum": ["", "Always", "IfNotPresent", "Never"]}
# Printable ASCII without a quote or backslash: templates print the parts of an image in quotes.
_IMAGE_PART = {"type": "string", "pattern": r"^[!#-\[\]-~]*$"}
_IMAGE = _closed(
    registry=_IMAGE_PART,
    repository=_IMAGE_PART,
    tag={**_IMAGE_PART, "type": ["string", "integer"]},
    digest=_IMAGE_PART,
    pullPolicy=_PULL_POLICY,
)
_LABEL_VALUE = {**_SCALAR, "pattern": f"^(?:{LABEL_NAME.pattern})?$"}
_QUANTITIES = {
    "type": "object",
    "propertyNames": _KEY,
    "additionalProperties": {
        "type": ["string", "number"],
        "pattern": r"^\+?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$",
        "minimum": 0,
    },
}
_SOURCES = {
    **_closed("configMapKeyRef fieldRef fileKeyRef resourceFieldRef secretKeyRef"),
    "minProperties": 1,
    "maxProperties": 1,
}
_SPREAD = {
    **_closed(
        "labelSelector matchLabelKeys minDomains nodeAffinityPolicy nodeTaintsPolicy",
        maxSkew=_NUMBER,
        topologyKey=_STRING,
        whenUnsatisfiable={"enum": ["DoNotSchedule", "ScheduleAnyway"]},
    ),
    "required": ["maxSkew", "topologyKey", "whenUnsatisfiable"],
}
_TOLERATION = _closed(
    key=_STRING,
    operator={"enum": ["Exists", "Equal", "Lt", "Gt"]},
    value=_STRING,
    effect={"enum": ["", "NoSchedule", "PreferNoSchedule", "NoExecute"]},
    tolerationSeconds=_NUMBER,
)
_BOTH_CONTEXTS = "appArmorProfile runAsGroup runAsNonRoot runAsUser seLinuxOptions seccompProfile windowsOptions"
_POD_CONTEXT = "fsGroup fsGroupChangePolicy seLinuxChangePolicy supplementalGroups supplementalGroupsPolicy sysctls"
_CONTEXT = "allowPrivilegeEscalation capabilities privileged procMount readOnlyRootFilesystem"

TYPES: dict[str, Type] = {
    "affinity": Type(_closed("nodeAffinity podAffinity podAntiAffinity"), "an affinity of Kubernetes"),
    "annotations": Type({"type": "object", "propertyNames": _KEY, "additionalProperties": _SCALAR}, "annotations"),
    "bool": Type(_BOOLEAN, "true or false"),
    "chartImage": Type({**_IMAGE, "required": list(_IMAGE["properties"])}, "a complete image"),
    "count": Type(_integer(0, 99999, "(?:0|[1-9][0-9]{0,4})"), "a whole number from 0 to 99999"),
    "env": Type(
        {
            "type": "object",
            "propertyNames": {"pattern": "^[-._a-zA-Z][-._a-zA-Z0-9]*$"},
            "additionalProperties": {"anyOf": [_SCALAR, _SOURCES]},
        },
        "variables: text, a number, a boolean, or one source of Kubernetes' `valueFrom`",
    ),
    "global": Type({"type": "object", "properties": {"imageRegistry": _IMAGE_PART}}, "a map"),
    "host": Type({**_matching(rf"(?:\*\.)?{OBJECT_NAME.pattern}"), "maxLength": 253}, "a host name"),
    "image": Type(
        {"anyOf": [{**_IMAGE_PART, "minLength": 1}, _IMAGE]},
        "an image: text, or a map of registry, repository, tag, digest and pullPolicy",
    ),
    "labels": Type(
        {"type": "object", "propertyNames": _KEY, "additionalProperties": _LABEL_VALUE},
        "labels: keys like example.com/name, values of at most 63 letters, digits, dashes, dots and underscores",
    ),
    "labelText": Type(_matching(f"(?:{OBJECT_NAME.pattern}/)?{LABEL_NAME.pattern}"), "a name like example.com/name"),
    "manifests": Type(
        _items(
            {
                "type": "object",
                "properties": {"apiVersion": _STRING, "kind": _STRING, "metadata": _NAMED},
                "additionalProperties": _DATA,
                "required": ["apiVersion", "kind", "metadata"],
            }
        ),
        "a list of Kubernetes objects",
    ),
    "name": Type(_matching(DNS_LABEL.pattern), "a name of lower-case letters, digits and dashes"),
    "nodePort": Type(_integer(0, 65535, _PORT), "a port, or 0"),
    "one": Type(_integer(0, 1, "[01]"), "0 or 1"),
    "objectName": Type(
        {**_matching(OBJECT_NAME.pattern), "maxLength": 253}, "a name of lower-case letters, digits, dashes and dots"
    ),
    "objects": Type(_items({"type": "object", "additionalProperties": _DATA}), "a list of maps"),
    "path": Type({"type": "string", "pattern": "^/"}, "a path that begins with a slash"),
    "podSecurity": Type(_closed(f"{_BOTH_CONTEXTS} {_POD_CONTEXT}"), "a security context of Kubernetes' pods"),
    "port": Type(_integer(1, 65535, _PORT), "a port from 1 to 65535"),
    "priority": Type(_integer(-99999, 99999, "(?:0|-?[1-9][0-9]{0,4})"), "a whole number from -99999 to 99999"),
    "ranges": Type(
        _items({"type": "string", "pattern": "^[0-9a-fA-F.:]+/[0-9]{1,3}$"}), "a list of networks like 10.0.0.0/8"
    ),
    "references": Type(_items({**_closed(name=_OBJECT), "required": ["name"]}), "a list of {name: …}"),
    "resources": Type(
        _closed(requests=_QUANTITIES, limits=_QUANTITIES, claims=_items(_DATA)),
        "`requests` and `limits` with quantities like 500m or 2Gi",
    ),
    "security": Type(_closed(f"{_BOTH_CONTEXTS} {_CONTEXT}"), "a security context of Kubernetes' containers"),
    "serviceType": _choice(["ClusterIP", "NodePort", "LoadBalancer"]),
    "spread": Type(_items(_SPREAD), "a list of Kubernetes' topology spread constraints"),
    "storeKind": _choice(["SecretStore", "ClusterSecretStore"]),
    # Helm prints larger numbers of a values file as 1e+06.
    "text": Type(
        {"anyOf": [{"type": ["string", "boolean"]}, {"type": "integer", "minimum": -999999, "maximum": 999999}]},
        "text; quote a number of more than six digits",
    ),
    "texts": Type({"type": "object", "additionalProperties": _SCALAR}, "a map of texts"),
    "tls": Type(_items(_closed(hosts=_items(_STRING), secretName=_STRING)), "a list of {hosts: […], secretName: …}"),
    "tolerations": Type(_items(_TOLERATION), "a list of Kubernetes' tolerations"),
    "trafficPolicy": _choice(["", "Cluster", "Local"]),
    "words": Type(_items(_SCALAR), "a list of texts"),
}
