"""The environment and the command line of a container, by the kubelet's rules.

Source: kubernetes/kubernetes, pkg/kubelet/kubelet_pods.go (makeEnvironmentVariables) and
third_party/forked/golang/expansion/expand.go.
"""

from __future__ import annotations

import math
import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from decimal import Decimal
from fnmatch import fnmatchcase
from fractions import Fraction

from tests.e2e.rig.api import Object
from tests.e2e.tools.build import find_tool

Lookup = Callable[[str, str], "Object | None"]
"""(collection, name) -> the object of the pod's namespace, or None: ``lookup("configmaps", "addresses")``."""

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
_NAME = re.compile(r"[-._a-zA-Z0-9]+")
_SUFFIXES = {
    "": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "k": Fraction(1000),
    **{s: Fraction(1000) ** i for i, s in enumerate("MGTPE", 2)},
    **{f"{s}i": Fraction(1024) ** i for i, s in enumerate("KMGTPE", 1)},
}  # fmt: skip
# Images that cannot be pulled, by pattern, in the words of containerd.
_REFUSED = {
    "denied.example/*": (
        'failed to pull and unpack image "{0}": failed to resolve reference "{0}": pull access denied, repository does'
        " not exist or may require authorization: server message: insufficient_scope: authorization failed"
    ),
    "absent.example/*": ('failed to pull and unpack image "{0}": failed to resolve reference "{0}": {0}: not found'),
}
# Programs of images that the machine lacks, by pattern: the path in the container, and the test tool.
_PROGRAMS = {"*/argoexec:*": ("/bin/argoexec", "argoexec")}


class ImageRefused(Exception):  # noqa: N818 - as `ConfigMissing`
    """An image that no registry has; the text is a container runtime's error."""


class ConfigMissing(Exception):  # noqa: N818 - what the kubelet calls CreateContainerConfigError
    """A ConfigMap, Secret or key that the container needs is not there."""


def check_image(name: str) -> None:
    """Raise ImageRefused if the image cannot be pulled; any other is this machine's own file system."""
    for pattern, said in _REFUSED.items():
        if fnmatchcase(name, pattern):
            raise ImageRefused(said.format(name))


def programs_of(image: str) -> list[Object]:
    """Return the mounts that add the programs of `image` to the machine's own."""
    found = [program for pattern, program in _PROGRAMS.items() if fnmatchcase(image, pattern)]
    return [{"source": str(find_tool(name)), "target": path, "read_only": True} for path, name in found]


def expand(text: str, values: Mapping[str, str]) -> str:
    """Return `text` with ``$(NAME)`` replaced from `values` and ``$$`` by ``$``; unknown names stay."""
    return _REFERENCE.sub(lambda match: "$" if match[1] is None else values.get(match[1], match[0]), text)


def environment_of(pod: Object, container: Object, lookup: Lookup, addresses: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of `container`, without those of Services; `addresses` hold ``podIP`` and ``hostIP``.

    Raises ConfigMissing, naming the object, if one that is not optional is absent.
    """
    values: dict[str, str] = {}
    for source in container.get("envFrom", []):
        values.update(_all_keys(source, lookup))
    for entry in container.get("env", []):
        if entry.get("valueFrom"):
            found = _value_from(entry["valueFrom"], pod, container, lookup, addresses)
            if found is not None:
                values[entry["name"]] = found
        else:
            values[entry["name"]] = expand(entry.get("value") or "", values)
    return values


def command_line(container: Object, environment: Mapping[str, str]) -> list[str]:
    """Return command and arguments with references expanded; the image's defaults are unknown here."""
    words = [*container.get("command", []), *container.get("args", [])]
    return [expand(word, environment) for word in words]


def quantity(text: str) -> Fraction:
    """Return a Kubernetes quantity (``100m``, ``2Gi``, ``1e3``) as an exact number."""
    match = re.fullmatch(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)", text.strip())
    if not match or match.group(2) not in _SUFFIXES:
        raise ValueError(f"not a quantity: {text!r}")
    return Fraction(Decimal(match.group(1))) * _SUFFIXES[match.group(2)]


def _all_keys(source: Object, lookup: Lookup) -> dict[str, str]:
    field, kind = ("configMapRef", "configmaps") if "configMapRef" in source else ("secretRef", "secrets")
    reference = source[field]
    found = lookup(kind, reference["name"])
    if found is None:
        if reference.get("optional"):
            return {}
        raise ConfigMissing(f'{kind[:-1]} "{reference["name"]}" not found')
    prefix = source.get("prefix", "")
    return {prefix + key: value for key, value in _texts(found).items() if _NAME.fullmatch(prefix + key)}


def _value_from(
    source: Object, pod: Object, container: Object, lookup: Lookup, addresses: Mapping[str, str]
) -> str | None:
    for field, kind in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
        if field in source:
            return _one_key(source[field], kind, lookup)
    if "fieldRef" in source:
        return field_of(pod, source["fieldRef"]["fieldPath"], addresses)
    return _resource(container, source["resourceFieldRef"])


def _one_key(reference: Object, kind: str, lookup: Lookup) -> str | None:
    found = lookup(kind, reference["name"])
    texts = _texts(found) if found else {}
    if reference["key"] in texts:
        return texts[reference["key"]]
    if reference.get("optional"):
        return None
    if found is None:
        raise ConfigMissing(f'{kind[:-1]} "{reference["name"]}" not found')
    title = {"configmaps": "ConfigMap", "secrets": "Secret"}[kind]
    place = (found.get("metadata") or {}).get("namespace", "")
    raise ConfigMissing(f"couldn't find key {reference['key']} in {title} {place}/{reference['name']}")


def _texts(found: Object) -> dict[str, str]:
    data = found.get("data") or {}
    if "type" not in found:
        return dict(data)
    return {key: b64decode(value).decode(errors="replace") for key, value in data.items()}


def field_of(pod: Object, path: str, addresses: Mapping[str, str]) -> str:
    """Return the downward API's value of `path`, such as ``metadata.labels['app']`` or ``status.podIP``."""
    keyed = re.fullmatch(r"metadata\.(labels|annotations)\['(.*)'\]", path)
    if keyed:
        return str(pod["metadata"].get(keyed.group(1), {}).get(keyed.group(2), ""))
    if path.startswith("status."):
        return addresses.get(path.removeprefix("status.").removesuffix("s"), "")
    value = pod
    for part in path.split("."):
        value = value.get(part, {})
    return str(value or "")


def _resource(container: Object, reference: Object) -> str:
    kind, _, name = reference["resource"].partition(".")
    amount = container.get("resources", {}).get(kind, {}).get(name, "0")
    divisor = quantity(str(reference.get("divisor") or "1")) or Fraction(1)
    return str(math.ceil(quantity(str(amount)) / divisor))
