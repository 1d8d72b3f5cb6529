"""Convert data to records, one thread at a time.

msgspec (0.22) crashes the interpreter if two threads use a type for the first time at once, as programs do that make
experiments in threads.
"""

from __future__ import annotations

import threading
from typing import TypeVar

import msgspec

_T = TypeVar("_T")
# Reentrant, since a record may convert a part of itself.
_LOCK = threading.RLock()


def convert(data: object, type_: type[_T]) -> _T:
    """Return `data` as a `type_`. Raises msgspec.ValidationError."""
    with _LOCK:
        return msgspec.convert(data, type_)


def decode_json(text: bytes | str, type_: type[_T]) -> _T:
    """Return JSON as a `type_`. Raises msgspec.DecodeError."""
    with _LOCK:
        return msgspec.json.decode(text, type=type_)
