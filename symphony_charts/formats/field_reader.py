"""The reader takes loose data by type: every fault is noted with its place, and reading goes on to the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from symphony_charts.errors import Problem, SpecError

__all__ = ["Faults", "Fields", "as_text"]


_TEXT = frozenset({str})


@dataclass(slots=True)
class Faults:
    """The faults of one file; `line_of` finds the line of a path, at a cost that only errors should pay.

    In files whose ``${...}`` another program replaces, `unresolved` is the next step for one that is still there.
    """

    file: str = ""
    line_of: Callable[[str], int | None] = lambda _path: None
    unresolved: str = ""
    problems: list[tuple[str, str, str, int | None]] = field(default_factory=list)

    def add(self, what: str, path: str, next: str = "", line: int | None = None) -> None:
        """Note that `what` is wrong at `path`."""
        self.problems.append((what, path, next, line))

    def is_unresolved(self, value: object, path: str) -> bool:
        """Return True, and note a fault, if `value` is a text that another program should have replaced."""
        if not self.unresolved or not isinstance(value, str) or "${" not in value:
            return False
        self.add(f"cannot evaluate {value}", path, self.unresolved)
        return True

    def position(self, path: str, line: int | None = None) -> str:
        """``file:line, path``, or without the line where none is known."""
        line = line if line is not None else self.line_of(path)
        head = f"{self.file or 'input'}:{line}" if line is not None else self.file
        return ", ".join(part for part in (head, path) if part)

    def source(self, path: str) -> str:
        """The place of something that is all right: its line is not looked for."""
        return ", ".join(part for part in (self.file, path) if part)

    def check(self) -> None:
        """Raises SpecError with every fault noted, each with file, line and path."""
        if self.problems:
            raise SpecError(
                Problem(what=what, path=self.position(path, line), next=nxt) for what, path, nxt, line in self.problems
            )


def as_text(value: object) -> str | None:
    """A scalar as Kubernetes would show it (True -> ``true``, 8 -> ``8``), or None for what is no scalar."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, (str, int, float)) else None


# Not frozen, which would double what it costs to make one: a plan makes twenty for each pod.
@dataclass(slots=True, eq=False)
class Fields:
    """One object of the input, at `path`. A field that is absent or null gives the getter's empty value."""

    data: dict[str, object]
    path: str
    faults: Faults

    @classmethod
    def of(cls, value: object, path: str, faults: Faults) -> Fields:
        """`value` as an object, taking the single element of a list; a fault and an empty object otherwise."""
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, dict):
            # What was rendered or read from JSON has no other keys, and a copy of everything costs the most here.
            data = value if _TEXT.issuperset(map(type, value)) else {str(key): item for key, item in value.items()}
            return cls(data, path, faults)
        if value is not None and value != [] and not faults.is_unresolved(value, path):
            faults.add(f"an object is expected, not {_kind(value)}", path)
        return cls({}, path, faults)

    def at(self, key: str) -> str:
        """The path of `key`."""
        return f"{self.path}.{key}" if self.path else key

    def fault(self, what: str, key: str = "", next: str = "") -> None:
        """Note a fault of `key`, or of the whole object."""
        self.faults.add(what, self.at(key) if key else self.path, next)

    def has(self, key: str) -> bool:
        """Whether `key` is there and not null, empty list or empty text."""
        value = self.data.get(key)
        return bool(value) or value == 0

    def text(self, *keys: str, required: bool = False) -> str:
        """The text of the first of `keys` that is there; numbers and booleans are turned into text."""
        for key in keys:
            value = self.data.get(key)
            if value is None:
                continue
            text = as_text(value)
            if text is None:
                self.fault(f"a text is expected, not {_kind(value)}", key)
                return ""
            return "" if self.faults.is_unresolved(text, self.at(key)) else text
        if required:
            self.fault(f'"{keys[0]}" is missing')
        return ""

    def number(self, *keys: str, minimum: int = 0) -> int | None:
        """The whole number of the first of `keys` that is there; JSON's int64-as-text is accepted."""
        for key in keys:
            value = self.data.get(key)
            if value is None or value == "":
                continue
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            if isinstance(value, str) and value.strip().lstrip("-").isdecimal():
                value = int(value)
            if isinstance(value, bool) or not isinstance(value, int):
                self._no_number(key, value)
                return None
            if value < minimum:
                self.fault(f"{key} is {value}, below {minimum}", key)
                return None
            return value
        return None

    def _no_number(self, key: str, value: object) -> None:
        if not self.faults.is_unresolved(value, self.at(key)):
            shown = f'"{value}"' if isinstance(value, str) else _kind(value)
            self.fault(f"a whole number is expected, not {shown}", key)

    def flag(self, *keys: str) -> bool:
        """Whether the first of `keys` that is there is true (also as the text ``true``)."""
        for key in keys:
            value = self.data.get(key)
            if value is None:
                continue
            if isinstance(value, str) and value.lower() in ("true", "false"):
                return value.lower() == "true"
            if isinstance(value, bool):
                return value
            if not self.faults.is_unresolved(value, self.at(key)):
                self.fault(f"true or false is expected, not {_kind(value)}", key)
            return False
        return False

    def block(self, *keys: str) -> Fields:
        """The object of the first of `keys` that is there (a list of one counts as its element), else an empty one."""
        for key in keys:
            value = self.data.get(key)
            if value or value == 0:
                return Fields.of(value, self.at(key), self.faults)
        return Fields({}, self.at(keys[0]), self.faults)

    def blocks(self, *keys: str) -> Iterator[Fields]:
        """The objects under the first of `keys` that is there: a list of them, or one."""
        for key in keys:
            value = self.data.get(key)
            if value in (None, [], ""):
                continue
            if isinstance(value, dict):
                yield Fields.of(value, self.at(key), self.faults)
            elif isinstance(value, list):
                for index, item in enumerate(value):
                    yield Fields.of(item, f"{self.at(key)}[{index}]", self.faults)
            else:
                self._no_list(key, value)
            return

    def texts(self, key: str) -> list[str]:
        """The list of texts under `key`."""
        value = self.data.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self._no_list(key, value)
            return []
        texts = [as_text(item) for item in value]
        if None in texts:
            self.fault("texts are expected in the list", key)
        for text in texts:
            self.faults.is_unresolved(text, self.at(key))
        return [text for text in texts if text is not None]

    def _no_list(self, key: str, value: object) -> None:
        if not self.faults.is_unresolved(value, self.at(key)):
            self.fault(f"a list is expected, not {_kind(value)}", key)

    def mapping(self, key: str) -> dict[str, str]:
        """The map of texts under `key`; numbers and booleans become what a node label shows."""
        if not self.has(key):
            return {}
        fields, result = self.block(key), {}
        for name, value in fields.data.items():
            text = as_text(value)
            if text is None:
                fields.fault(f"a text is expected, not {_kind(value)}", name)
            else:
                result[name] = text
        return result


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return "null" if value is None else names.get(type(value), type(value).__name__)
