"""Read the fields of foreign data, and make unique names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from symphony_charts.formats import field_reader
from symphony_charts.formats.field_reader import as_integer, show
from symphony_charts.formats.names import join, sanitize, shorten
from symphony_charts.formats.yaml_read import plain, scalar_text
from symphony_charts.importers.report import Log

_LARGEST = 2**53


class Fields(field_reader.Reader):
    """The fields of one map. Reading a field marks it; `unread` yields the keys not read yet.

    A field that is absent or null reads as its default. A field of the wrong type is a fault in `log` and reads as
    its default too, so that one run finds all faults.
    """

    flags: ClassVar = {**field_reader.Reader.flags, "yes": True, "no": False, "on": True, "off": False}

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
            self.mismatch("", data, "a map")
        self._reading = log.open(path, self._data)
        self._read = self._reading.read

    def __contains__(self, key: str) -> bool:
        return self._data.get(key) is not None

    def __bool__(self) -> bool:
        return bool(self._data)

    def keys(self) -> tuple[str, ...]:
        return tuple(self._data)

    def fault(self, what: str, key: str = "", next: str = "") -> None:
        """Record a fault of `key`, or of the whole map."""
        self.log.fault(self.at(key), what, next)

    def raw(self, key: str) -> object:
        """Return the value with plain numbers; None if absent."""
        return plain(self.get(key))

    def get(self, key: str) -> object:
        """Return the value exactly as read; None if absent."""
        self._read.add(key)
        return self._data.get(key)

    value = get

    def text(self, key: str) -> str | None:
        """Return text; numbers and booleans as written."""
        return self.read(key, "text", text_of)

    def required_text(self, key: str, fallback: str, hint: str = "") -> str:
        """Return non-empty text; a missing or empty value is a fault and reads as `fallback`."""
        text = self.text(key)
        if key not in self:
            self.fault(f'"{key}" is missing', key, hint or f"add `{key}`")
        elif text == "":
            self.fault(f'"{key}" is empty', key, hint or f"give `{key}` a value")
        return text or fallback

    def integer(self, key: str, low: int | None = None, high: int = _LARGEST) -> int | None:
        """Return a whole number from `low` to `high`; text of digits counts as well."""
        number = self.read(key, "a whole number", as_integer)
        if number is not None and ((low is not None and number < low) or abs(number) > high):
            limits = f"between {low if low is not None else -high} and {high}"
            self.fault(f"{show(self.get(key))} is out of range", key, f"write a number {limits}")
            return None
        return number

    def number(self, key: str) -> float | None:
        """Return a finite number."""
        return self.read(key, "a number", _number)

    def flag(self, key: str) -> bool | None:
        return self.boolean(key)

    def texts(self, key: str) -> list[str]:
        """Return a list of texts; a single text is a list of one."""
        if isinstance(value := self.get(key), str):
            return [value]
        texts = []
        for index, item in enumerate(self.items(key)):
            text = text_of(item)
            if text is None:
                self.mismatch(f"{key}[{index}]", item, "text")
            else:
                texts.append(text)
        return texts

    def text_map(self, key: str) -> dict[str, str]:
        """Return a map of texts, without entries that have no value."""
        inner = self.map(key)
        return {name: text for name in inner.keys() if (text := inner.text(name)) is not None}  # noqa: SIM118

    def map(self, key: str) -> Fields:
        """Return a map as Fields; empty if absent."""
        return Fields(self.get(key), self.at(key), self.log)

    def maps(self, key: str) -> list[Fields]:
        items = enumerate(self.items(key))
        return [Fields(item if item is not None else {}, join(self.at(key), i), self.log) for i, item in items]

    def skip(self, *keys: str) -> None:
        """Mark meaningless fields as read."""
        self._read.update(keys)
        self._reading.skipped.update(keys)

    def drop(self, key: str, why: str, next: str = "") -> None:
        """Report a field as lost, unless it is empty."""
        if self.get(key) not in (None, {}, []):
            self.log.lost(self.at(key), why, next)

    def unread(self) -> Iterator[str]:
        """Return the keys with a value that are not read yet."""
        return (key for key, value in self._data.items() if key not in self._read and value is not None)

    def rest(self) -> dict[str, object]:
        """Return the unread fields, and mark them as read."""
        return {key: self.raw(key) for key in list(self.unread())}

    def note_unread(self, why: str = "is not carried over") -> None:
        """Report every unread field as lost."""
        for key in list(self.unread()):
            self._read.add(key)
            self.log.lost(self.at(key), f"`{key}` {why}")


def text_of(value: object) -> str | None:
    """Return a scalar as text, None for anything else (null, list, map)."""
    text = scalar_text(value)
    return text if isinstance(text, str) else None


def _number(value: object) -> float | None:
    try:
        number = float(value) if isinstance(value, str) else value
    except ValueError:
        return None
    if not isinstance(number, (int, float)) or isinstance(number, bool):
        return None
    return number if math.isfinite(number) and abs(number) <= _LARGEST else None


LONGEST = 40
_NOT_LABEL = re.compile(r"[^a-z0-9-]+")
_NOT_VALUE = re.compile(r"[^A-Za-z0-9_.-]+")


class UniqueNames:
    """Make unique names; every change is noted in `log`."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._taken: set[str] = set()

    def give(self, name: str, path: str, longest: int = LONGEST) -> str:
        """Return a valid, unused name made from `name`."""
        clean = self.clean(name, path, longest)
        free, count = clean, 2
        while free in self._taken:
            free, count = f"{clean}-{count}", count + 1
        self._taken.add(free)
        if free != clean:
            self._log.changed(path, f'"{name}" appears twice; this one is named "{free}"')
        return free

    def clean(self, name: str, path: str, longest: int = LONGEST) -> str:
        """Return a valid name made from `name`."""
        clean = self.label(name, longest)
        if clean == sanitize(name):
            return clean
        is_long = len(name) > longest and self.label(name, len(name)) == name
        why = f"has {len(name)} characters, and at most {longest} are allowed" if is_long else "is not a valid name"
        self._log.changed(path, f'"{name}" {why}; it is named "{clean}"')
        return clean

    @staticmethod
    def label(name: str, longest: int = LONGEST) -> str:
        """Return a DNS label that begins with a letter, made from any text."""
        label = _NOT_LABEL.sub("-", sanitize(name)).strip("-") or "x"
        if not label[0].isalpha():
            label = f"x{label}"
        return shorten(label, longest)

    @staticmethod
    def label_value(text: str) -> str:
        """Return a Kubernetes label value (63 characters, alphanumeric ends) made from any text."""
        return shorten(_NOT_VALUE.sub("-", text).strip("-_."), 63)


class Volumes:
    """Declare volumes; the same name with the same content is the same volume."""

    def __init__(self) -> None:
        self.declared: dict[str, object] = {}

    def declare(self, name: str, volume: dict[str, object]) -> str:
        """Return the name of the declared `volume`: `name` if it is free, else a numbered one."""
        clean = UniqueNames.label(name, 50)
        free, count = clean, 2
        while self.declared.setdefault(free, volume) != volume:
            free, count = f"{clean}-{count}", count + 1
        return free

    def find(self, volume: dict[str, object], name: str) -> str:
        """Return the name of a volume with this content; declare it as `name` if there is none."""
        for declared, content in self.declared.items():
            if content == volume:
                return declared
        return self.declare(name, volume)
