"""Read the values of compose files: variables, numbers, commands, sizes, durations and ports."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from symphony_charts.formats.field_reader import show
from symphony_charts.formats.names import join
from symphony_charts.formats.yaml_read import Reset
from symphony_charts.importers.report import Log

# Source: compose-spec/compose-spec, 05-services.md, 11-extension.md, 12-interpolation.md.

_VARIABLE = re.compile(
    r"\$(?:(?P<dollar>\$)|(?P<plain>[A-Za-z_][A-Za-z0-9_]*)"
    r"|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:(?P<operator>:?[-?+])(?P<word>[^{}]*))?\})",
    re.ASCII,
)
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([bkmgt]?)(i?b)?", re.IGNORECASE)
_DURATION = re.compile(r"(?:([0-9]{1,9}(?:\.[0-9]{1,6})?)(ns|us|µs|ms|s|m|h|d))")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_REFERENCE = re.compile(r"\$(?=[$(])")
_MOST_PORTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A container's port, its port on the host if set, and `is_open` if other machines reach it."""

    target: int
    published: str = ""
    is_open: bool = True
    name: str = ""


def interpolate(value: object, variables: Mapping[str, str], log: Log, path: str) -> object:
    """Return `value` with `$VAR`, `${VAR:-default}` and so on replaced, at any depth; keys stay unchanged."""
    if isinstance(value, str) and "$" in value:
        return _fill(value, variables, log, path)
    is_long = isinstance(value, int) and not -(2**63) <= value < 2**64
    if isinstance(value, float) or is_long:
        return _float_text(float(value))  # type: ignore[arg-type] # a number
    if isinstance(value, dict):
        # The same type: it may be a map that overrides.
        return type(value)((key, interpolate(item, variables, log, join(path, key))) for key, item in value.items())
    if isinstance(value, list):
        return type(value)(interpolate(item, variables, log, join(path, index)) for index, item in enumerate(value))
    return value


def _float_text(number: float) -> str:
    """Return a number as docker compose, a Go program, prints it: `1e3` is 1000, `3.0` is 3, `1e6` is 1e+06."""
    if not math.isfinite(number):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(number, "NaN")
    digits = Decimal(repr(float(number)))
    if number == 0 or 1e-4 <= abs(number) < 1e6:
        text = f"{digits:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, _, exponent = f"{digits.normalize():e}".partition("e")
    return f"{mantissa}e{int(exponent):+03d}"


def without_resets(value: object) -> object:
    """Return `value` without the keys and items that compose's tag `!reset` removes."""
    if isinstance(value, dict):
        return {key: without_resets(item) for key, item in value.items() if not isinstance(item, Reset)}
    if isinstance(value, list):
        return [without_resets(item) for item in value if not isinstance(item, Reset)]
    return value


def _fill(text: str, variables: Mapping[str, str], log: Log, path: str) -> str:
    def replace(match: re.Match[str]) -> str:
        if match["dollar"]:
            return "$"
        name, operator, word = match["plain"] or match["name"], match["operator"] or "", match["word"] or ""
        value = variables.get(name)
        is_said = value is not None and not (operator.startswith(":") and value == "")
        if operator.endswith("+"):
            return word if is_said else ""
        if is_said and value is not None:
            return value
        if operator.endswith("-"):
            return word
        if operator.endswith("?"):
            log.fault(path, f"variable {name} is required: {word or 'it has no value'}", "set it in .env or --env-file")
        else:
            log.changed(path, f"variable {name} has no value; it is empty", "set it in .env or --env-file")
        return ""

    return _VARIABLE.sub(replace, text)


def literal(text: str) -> str:
    """Return `text` with dollar signs escaped: Kubernetes would expand `$(NAME)`."""
    return _REFERENCE.sub("$$", text) if "$" in text else text


def words_of(value: object, log: Log, path: str) -> list[str] | None:
    """Return the words of a command: a list unchanged, a text split like in a shell; None for null."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            return [literal(word) for word in shlex.split(value)]
        except ValueError as error:
            log.fault(path, f"{show(value)} cannot be split into words: {error}", "close its quotes, or write a list")
            return None
    if isinstance(value, list) and all(isinstance(item, (str, int, float)) for item in value):
        return [literal(str(item)) for item in value]
    log.fault(path, f"{show(value)} is not a command", "write a list of words, or one text")
    return None


def size_of(value: object, log: Log, path: str) -> str | None:
    """Return a size in Kubernetes' notation. Compose's units are binary: ``50M`` is 50 MiB."""
    text = str(value).strip() if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
    match = _SIZE.fullmatch(text)
    if match is None:
        log.fault(path, f"{show(value)} is not a size", "write it as in 512m or 2g")
        return None
    number, unit = match[1], match[2].lower()
    if unit in ("", "b"):
        return str(int(float(number)))
    if "." in number:
        power = "bkmgt".index(unit)
        return str(int(float(number) * 1024**power))
    return f"{number}{unit.upper()}i"


def seconds_of(value: object, log: Log, path: str) -> int | None:
    """Return a duration (``1m30s``) in whole seconds, at least 1 unless it is 0."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31:
        return value
    text = value.strip() if isinstance(value, str) else ""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        log.fault(path, f"{show(value)} is not a duration", "write it as in 1m30s")
        return None
    total = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if total >= 2**31:
        log.fault(path, f"{show(value)} is too long", "write it as in 1m30s")
        return None
    return max(round(total), 1) if total else 0


def parse_port(text: str, log: Log, path: str) -> list[Port]:
    """Return the ports of ``[[HOST:]PUBLISHED:]TARGET[/PROTOCOL]``, where each number may be a range."""
    address, _, protocol = text.partition("/")
    host, _, rest = address.rpartition("]:") if "]:" in address else ("", "", address)
    pieces = rest.split(":")
    if len(pieces) == 3:
        host, pieces = pieces[0], pieces[1:]
    target, published = pieces[-1], pieces[-2] if len(pieces) > 1 else ""
    if protocol not in ("", "tcp"):
        log.lost(path, f"only TCP ports are services of an experiment; {text} is not carried over")
        return []
    numbers = _numbers(target)
    if not numbers or len(pieces) > 2 or (published and not _numbers(published)):
        log.fault(path, f"{show(text)} is not a port", 'write it as in "8080:80"')
        return []
    is_open = host.strip("[]") not in ("127.0.0.1", "::1", "localhost")
    return [Port(target=number, published=published, is_open=is_open) for number in numbers]


def _numbers(text: str) -> list[int]:
    """Return the numbers of a port or a port range; empty if the text is invalid."""
    first, dash, last = text.partition("-")
    if not (first.isascii() and first.isdecimal() and len(first) < 6):
        return []
    if not dash:
        return [int(first)] if 0 < int(first) < 65536 else []
    if not (last.isascii() and last.isdecimal() and len(last) < 6):
        return []
    numbers = list(range(int(first), min(int(last), int(first) + _MOST_PORTS) + 1))
    return numbers if numbers and numbers[0] > 0 and int(last) < 65536 else []
