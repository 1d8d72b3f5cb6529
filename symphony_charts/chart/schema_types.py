"""The types of values: for each a JSON Schema, and its description in error messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from symphony_charts.formats.names import DNS_LABEL, LABEL_NAME, OBJECT_NAME

__all__ = ["DEFINITIONS", "TYPES", "Type"]

Schema = dict[str, Any]

_DATA: Schema = {"$ref": "#/definitions/data"}


class Type(NamedTuple):
    """A type of the schema, and how messages call it."""

    schema: Schema
    words: str


def _integer(least: int, most: int, digits: str) -> Schema:
    """Return the schema of a whole number, which may also come as text: Argo CD and --set-string give strings."""
    number = {"type": "integer", "minimum": least, "maximum": most}
    return {"anyOf": [number, {"type": "string", "pattern": f"^{digits}$"}]}


def _closed(others: str = "", **properties: Schema) -> Schema:
    """Return the schema of a map with `properties`, and with any data under the names in `others`."""
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
    # Anything but null, at any depth. Helm breaks a text of several lines that also has another line separator.
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
# Printable ASCII without a quote or backslash: templates print the parts of an image between quotes.
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
    # Helm prints a larger number from a file as 1e+06.
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
