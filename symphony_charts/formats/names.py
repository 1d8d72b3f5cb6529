"""Names are sanitised as Symphony does, held to Kubernetes' rules, and shortened so that they stay different."""

from __future__ import annotations

import hashlib
import re

__all__ = [
    "DNS_LABEL",
    "FILE_KEY",
    "LABEL_NAME",
    "OBJECT_NAME",
    "SERVICE_NAME",
    "prefix_owner",
    "sanitize",
    "shorten",
]

DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?", re.ASCII)
SERVICE_NAME = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?", re.ASCII)
# A DNS subdomain: what most objects may be called, and what stands before the slash in the key of a label.
OBJECT_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII)
LABEL_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
# A key of a ConfigMap or Secret.
FILE_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}", re.ASCII)

_SEPARATORS = str.maketrans(" _.", "---")
_HASH_DIGITS = 8


def sanitize(name: str) -> str:
    """Return `name` in lower case with a dash for each space, underscore and dot.

    Source: SurrealAI/symphony, symphony/kube/experiment.py; what is still not a DNS label then is an error, found by
    `symphony_charts.spec.checks.finish.finish`.
    """
    return name.translate(_SEPARATORS).lower()


def shorten(name: str, limit: int) -> str:
    """Return `name` itself, or where it is longer than `limit`, its beginning and eight digits of its hash.

    Two different names never become one; the result ends in a letter or digit if `name` does. `limit` is at least 10.
    """
    if limit < _HASH_DIGITS + 2:
        raise ValueError(f"a limit of {limit} leaves no room for a hash")
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_DIGITS]
    return f"{name[: limit - _HASH_DIGITS - 1].rstrip('-.')}-{digest}"


def prefix_owner(name: str, owner: str | None) -> str:
    """Return `name` with ``<owner>-`` before it exactly once; both are sanitised names.

    ``jim`` before ``jimmy-x`` gives ``jim-jimmy-x``: the dash belongs to the test.
    """
    return name if not owner or name.startswith(f"{owner}-") else f"{owner}-{name}"
