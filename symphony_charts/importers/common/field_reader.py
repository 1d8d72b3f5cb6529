"""The field reader takes a map of unknown origin: wrong types become faults with their path, unread keys are noted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from symphony_charts.formats.paths import join
from symphony_charts.formats.scalars import plain, scalar_text
from symphony_charts.importers.common.report import Log

__all__ = ["Fields", "show", "text_of"]

_LARGEST = 2**53


class Fields:
    """The fields of one map. Reading a field marks it; `unread` says which nobody asked for.

    A field that is absent or null reads as its default. A field of the wrong type is a fault in `log` and reads as
    its default too, so that one run finds everything.
    """

    def __init__(self, data: object, path: str, log: Log) -> None:
        self.path = path
        self.log = log
        self._data: Mapping[str, object] = {}
        if isinstance(data, dict):
            self._data = {key: value for key, value in data.items() if isinstance(key, str)}
            for key in data:
                if not isinstance(key, str):
                    self.log.fault(path, f"the key {show(key)} is not text", "write it in quotes")
        elif data is not None:
            self.log.fault(path, f"{show(data)} stands where a map is needed", "write `key: value` lines there")
        self._reading = log.open(path, self._data)
        self._read = self._reading.read

    def __contains__(self, key: str) -> bool:
        return self._data.get(key) is not None

    def __bool__(self) -> bool:
        return bool(self._data)

    def keys(self) -> tuple[str, ...]:
        """All keys, in the order of the input."""
        return tuple(self._data)

    def at(self, key: str | int) -> str:
        """The path of a field."""
        return join(self.path, key)

    def raw(self, key: str) -> object:
        """The value as it stands, with plain numbers; None when absent."""
        self._read.add(key)
        return plain(self._data.get(key))

    def get(self, key: str) -> object:
        """The value exactly as it was read; None when absent."""
        self._read.add(key)
        return self._data.get(key)

    def text(self, key: str) -> str | None:
        """Text; numbers and booleans as they were written."""
        value = self.get(key)
        if value is None:
            return None
        text = text_of(value)
        if text is None:
            self._mismatch(key, value, "text")
        return text

    def required_text(self, key: str, fallback: str, hint: str = "") -> str:
        """Text that must be there and not be empty; its absence is a fault and reads as `fallback`."""
        if self._data.get(key) is None:
            self._read.add(key)
            self.log.fault(self.at(key), f'"{key}" is missing', hint or f"add `{key}`")
            return fallback
        text = self.text(key)
        if text == "":
            self.log.fault(self.at(key), f'"{key}" is empty', hint or f"give `{key}` a value")
        return text or fallback

    def integer(self, key: str, low: int | None = None, high: int = _LARGEST) -> int | None:
        """A whole number of at least `low`; text made of digits counts as well."""
        value = self.get(key)
        if value is None:
            return None
        number = _integer(value)
        if number is None:
            self._mismatch(key, value, "a whole number")
            return None
        if (low is not None and number < low) or abs(number) > high:
            limits = f"between {low if low is not None else -high} and {high}"
            self.log.fault(self.at(key), f"{show(value)} is out of range", f"write a number {limits}")
            return None
        return number

    def number(self, key: str) -> float | None:
        """A finite number."""
        value = self.get(key)
        if value is None:
            return None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= _LARGEST:
            return value
        if isinstance(value, str) and (parsed := _finite(value)) is not None:
            return parsed
        self._mismatch(key, value, "a number")
        return None

    def flag(self, key: str) -> bool | None:
        """True or false."""
        value = self.get(key)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in ("true", "false", "yes", "no", "on", "off"):
            return value.lower() in ("true", "yes", "on")
        self._mismatch(key, value, "true or false")
        return None

    def texts(self, key: str) -> list[str]:
        """A list of texts; a lone text is a list of one."""
        value = self.get(key)
        if value is None:
            return []
        if isinstance(value, str):
            return [value]
        if not isinstance(value, list):
            self._mismatch(key, value, "a list")
            return []
        texts = []
        for index, item in enumerate(value):
            text = text_of(item)
            if text is None:
                self._mismatch(f"{key}[{index}]", item, "text")
            else:
                texts.append(text)
        return texts

    def text_map(self, key: str) -> dict[str, str]:
        """A map of texts; entries without a value are left out."""
        inner = self.map(key)
        return {name: text for name in inner.keys() if (text := inner.text(name)) is not None}  # noqa: SIM118

    def map(self, key: str) -> Fields:
        """A map as Fields; empty when absent."""
        return Fields(self.get(key), self.at(key), self.log)

    def maps(self, key: str) -> list[Fields]:
        """The items of a list of maps."""
        value = self.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self._mismatch(key, value, "a list")
            return []
        return [
            Fields(item if item is not None else {}, join(self.at(key), i), self.log) for i, item in enumerate(value)
        ]

    def skip(self, *keys: str) -> None:
        """Mark fields as dealt with: they say nothing that is to be carried."""
        self._read.update(keys)
        self._reading.skipped.update(keys)

    def drop(self, key: str, why: str, next: str = "") -> None:
        """Report a field, if it says anything, as lost."""
        if self.get(key) not in (None, {}, []):
            self.log.lost(self.at(key), why, next)

    def unread(self) -> Iterator[str]:
        """The keys with a value that nobody read so far."""
        return (key for key, value in self._data.items() if key not in self._read and value is not None)

    def rest(self) -> dict[str, object]:
        """The fields that nobody read so far, as they stand; reading them marks them."""
        return {key: self.raw(key) for key in list(self.unread())}

    def note_unread(self, why: str = "is not carried over") -> None:
        """Put a note into the log for every field that nobody read."""
        for key in list(self.unread()):
            self._read.add(key)
            self.log.lost(self.at(key), f"`{key}` {why}")

    def _mismatch(self, key: str, value: object, expected: str) -> None:
        self.log.fault(join(self.path, key), f"{show(value)} stands where {expected} is needed", f"write {expected}")


def text_of(value: object) -> str | None:
    """A scalar as text, None for anything else (null, list, map)."""
    text = scalar_text(value)
    return text if isinstance(text, str) else None


def show(value: object) -> str:
    """A value as an error names it: short, whatever it is."""
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**60:
        return "a very large number"
    text = text_of(value)
    text = f"a {type(value).__name__}" if text is None else text
    text = text if len(text) <= 60 else f"{text[:57]}..."
    return f'"{text}"' if isinstance(value, str) else text


def _integer(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value == int(value) else None
    if isinstance(value, str) and len(value) < 20 and value.isascii() and value.lstrip("-").isdigit():
        return int(value) if value.count("-") <= 1 else None
    return None


def _finite(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and abs(number) <= _LARGEST else None
