"""TorchX's macros are replaced in arguments, environment and metadata.

TorchX fills ``${app_id}`` and its like in for every replica, which is why it writes each pod out. Here they become
references to the environment of the pod, so that one template serves all replicas. Everything else is as Python's
`string.Template.safe_substitute` has it: ``$$`` is a dollar sign, an unknown ``${x}`` stays.
Source: meta-pytorch/torchx, torchx/specs/api.py, class macros.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["APP_ID_VARIABLES", "MACROS", "RANK0_VARIABLE", "as_references", "substitute", "uses"]

RANK0_VARIABLE = "TORCHX_RANK0_HOST"
# The release, and its run, which every submission has anew: what runs twice must not write over itself.
APP_ID_VARIABLES = ("TORCHX_RELEASE", "TORCHX_RUN")

# What each macro becomes. ``rank0_env`` is the *name* of a variable, which the program or its shell looks up.
MACROS: Mapping[str, str] = {
    "img_root": "",
    "base_img_root": "",
    "app_id": f"$({APP_ID_VARIABLES[0]})-$({APP_ID_VARIABLES[1]})",
    "replica_id": "$(SYMPH_INDEX)",
    "rank0_env": RANK0_VARIABLE,
}

_REFERENCE = re.compile(r"\$(?:(\$)|([_a-zA-Z][_a-zA-Z0-9]*)|\{([_a-zA-Z][_a-zA-Z0-9]*)\})", re.ASCII)
_DOLLARS = re.compile(r"\$+\Z")


def substitute(text: str, values: Mapping[str, str]) -> str:
    """`text` with the macros in `values` filled in."""

    def fill(match: re.Match[str]) -> str:
        if match[1]:
            return "$"
        return values.get(match[2] or match[3], match[0])

    return _REFERENCE.sub(fill, text)


def as_references(text: str) -> str:
    """`text` with its macros as references to the pod's environment, ``$(NAME)`` in Kubernetes' syntax.

    A dollar sign right before such a reference is doubled: Kubernetes would take it for an escape.
    """
    if "$" not in text:
        return text
    result = ""
    last = 0
    for match in _REFERENCE.finditer(text):
        result += text[last : match.start()]
        value = "$" if match[1] else MACROS.get(match[2] or match[3], match[0])
        if value.startswith("$(") and (dollars := _DOLLARS.search(result)) and len(dollars[0]) % 2:
            result += "$"
        result += value
        last = match.end()
    return result + text[last:]


def uses(text: str, macro: str) -> bool:
    """Return True if `text` holds the macro, not escaped."""
    return any(macro in (match[2], match[3]) for match in _REFERENCE.finditer(text))
