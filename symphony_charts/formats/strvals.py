"""Parse helm's ``--set`` family: assign ``a.b=1,c[0]=x,d={y,z}`` to existing values.

Source: helm/helm, pkg/strvals (parser.go, literal_parser.go), equal in 3.19 and 4.3. Incomplete texts behave as in
helm (``a[0]`` creates an empty list, ``a.`` does nothing), except for an unclosed bracket: it is an error here, as in
3.19; 4.3 ignores it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeAlias

from symphony_charts.errors import UsageError
from symphony_charts.formats.data import Values

Convert: TypeAlias = Callable[[str], object]
Items: TypeAlias = "list[object]"

_MOST_INDEX = 65536
_MOST_NAMES = 30
# Our limit: helm recurses until it runs out of memory.
_MOST_DEPTH = 100
_MOST_INT = (1 << 63) - 1
_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None}
# Go's unicode.IsSpace; Python's str.isspace also accepts U+001C to U+001F.
_SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE = "\\"


def assign(values: Values, text: str, convert: Convert, flag: str = "--set") -> None:
    """Assign the values of a ``--set`` text to `values` in place; `convert` turns each text into a value.

    Raises UsageError, with `flag` and the text, for texts that helm refuses.
    """
    _Parser(text, flag, convert).run(values)


def assign_json(values: Values, text: str) -> None:
    """Assign values in JSON: ``a=[1,2],b={"c":null}``."""
    _JsonParser(text, "--set-json", plain).run(values)


def json_object(text: str) -> Values | None:
    """Return the object if `text` is one JSON object, as helm 4 accepts; None for other text."""
    inner = text.strip(_SPACES)
    return _JsonParser(inner, "--set-json", plain).whole() if inner.startswith("{") else None


def assign_literal(values: Values, text: str) -> None:
    """Assign one value: all text after the first ``=``."""
    _LiteralParser(text, "--set-literal", plain).run(values)


def plain(text: str) -> object:
    return text


def typed(text: str) -> object:
    """Return a boolean, null, or a 64-bit integer without a leading zero; otherwise the text."""
    # casefold() may change the length, unlike Go's per-character folding.
    lower = text.casefold()
    if lower in _WORDS and len(lower) == len(text):
        return _WORDS[lower]
    if text == "0" or (_INTEGER.fullmatch(text) and not text.startswith("0")):
        number = int(text)
        return number if -_MOST_INT - 1 <= number <= _MOST_INT else text
    return text


class _Parser:
    """One text during parsing. A method returns True at the end of the text, where helm stops without an error."""

    _key_ends = "=[,."
    _has_escapes = True

    def __init__(self, text: str, flag: str, convert: Convert) -> None:
        # A byte of the command line that is not UTF-8 is a lone surrogate here.
        self._text = _SURROGATE.sub("\ufffd", text)
        self._place = f"{flag} {self._text}"
        self._convert = convert
        self._at = 0
        self._brackets = 0

    def run(self, values: Values) -> None:
        while not self._key(values, 0):
            self._brackets = 0

    def _key(self, data: Values, names: int) -> bool:
        key, end = self._until(self._key_ends)
        if end == "[":
            return self._list(data, key, names)
        if end == "=":
            value, is_end = self._value()
            _put(data, key, value)
            return is_end
        if end == ".":
            return self._map(data, key, names + 1)
        if key or end:
            raise self._fault(f'key "{key}" has no value', "write KEY=VALUE; a comma inside of a value is written \\,")
        return True

    def _map(self, data: Values, key: str, names: int) -> bool:
        if names > _MOST_NAMES:
            raise self._fault(f"more than {_MOST_NAMES} names inside of each other", "set a higher one by --set-json")
        inner = data.get(key, {})
        if not isinstance(inner, dict):
            raise self._fault(f'"{key}" is {_kind(inner)}, which has no names in it', _REPLACE)
        is_end = self._key(inner, names)
        if inner:
            _put(data, key, inner)
        elif not is_end:
            raise self._fault(f'nothing is set in "{key}"', "write KEY.NAME=VALUE")
        return is_end

    def _list(self, data: Values, key: str, names: int) -> bool:
        index = self._index()
        items = data.get(key, [])
        if not isinstance(items, list):
            raise self._fault(f'"{key}" is {_kind(items)}, which has no numbered items', _REPLACE)
        is_end = self._item(items, index, names)
        _put(data, key, items)
        return is_end

    def _item(self, items: Items, index: int, names: int) -> bool:
        rest, end = self._until("[.=")
        if rest:
            raise self._fault(f'"{rest}" follows an index', "write KEY[0]=VALUE or KEY[0].NAME=VALUE")
        if not end:
            return True
        if end == "=":
            self._put_item(items, index, self._value()[0])
        elif end == "[":
            self._brackets += 1
            if self._brackets > _MOST_DEPTH:
                raise self._fault(f"more than {_MOST_DEPTH} lists inside of each other", "flatten them")
            following = self._index()
            nested = items[index] if index < len(items) and items[index] is not None else []
            if not isinstance(nested, list):
                raise self._fault(f"item {index} is {_kind(nested)}, which has no numbered items", _REPLACE)
            if self._item(nested, following, names):
                return True
            self._put_item(items, index, nested)
        else:
            inner: Values = {}
            if index < len(items):
                old = items[index]
                inner = items[index] = old if isinstance(old, dict) else inner
            if self._key(inner, names):
                return True
            self._put_item(items, index, inner)
        return False

    def _put_item(self, items: Items, index: int, value: object) -> None:
        if index > _MOST_INDEX:
            raise self._fault(f"{index} is above the highest index, {_MOST_INDEX}", "give the whole list by -f")
        items.extend([None] * (index + 1 - len(items)))
        items[index] = value

    def _index(self) -> int:
        text, end = self._until("]")
        if not end:
            raise self._fault("a [ is not closed", "write KEY[0]=VALUE")
        number = int(text) if _INTEGER.fullmatch(text) else -1
        if not 0 <= number <= _MOST_INT:
            raise self._fault(f'"{text}" is not an index of a list', "count from 0")
        return number

    def _value(self) -> tuple[object, bool]:
        if self._at == len(self._text):
            return "", True
        if self._text[self._at] == "{":
            self._at += 1
            return self._braced(), False
        return self._convert(self._until(",")[0]), False

    def _braced(self) -> Items:
        items: Items = []
        end = ","
        while end == ",":
            text, end = self._until(",}")
            if not end:
                raise self._fault("a { is not closed", "write KEY={a,b}; a text that begins with { is written \\{")
            items.append(self._convert(text))
        if self._text.startswith(",", self._at):
            self._at += 1
        return items

    def _until(self, ends: str) -> tuple[str, str]:
        """Return the text before the next character in `ends`, and that character, which is empty at the end."""
        letters: list[str] = []
        while self._at < len(self._text):
            character = self._next()
            if character in ends:
                return "".join(letters), character
            if character == _ESCAPE and self._has_escapes:
                if self._at == len(self._text):
                    break
                character = self._next()
            letters.append(character)
        return "".join(letters), ""

    def _next(self) -> str:
        self._at += 1
        return self._text[self._at - 1]

    def _fault(self, what: str, next: str) -> UsageError:
        return UsageError(what, self._place, next)


class _JsonParser(_Parser):
    def _value(self) -> tuple[object, bool]:
        if self._skip_blanks():
            return None, False
        value = self._decoded()
        self._skip_blanks()
        return value, False

    def whole(self) -> Values:
        value = self._decoded()
        if self._at < len(self._text) or not isinstance(value, dict):
            raise self._fault(f'"{self._text[self._at :]}" follows the object', _JSON_FORM)
        return value

    def _skip_blanks(self) -> bool:
        """Skip blanks and a comma. Return True if the next value is empty: only blanks before a comma or the end."""
        while self._at < len(self._text) and self._text[self._at] in _SPACES:
            self._at += 1
        if self._at < len(self._text):
            if self._text[self._at] != ",":
                return False
            self._at += 1
        return True

    def _decoded(self) -> object:
        start = self._at
        try:
            value, self._at = _DECODER.raw_decode(self._text, start)
            # Go's parser does not backtrack to the end of a complete number.
            if _CUT_NUMBER.match(self._text, start, self._at + 1):
                raise ValueError("a number breaks off")
            return _whole_characters(value, 0)
        except (ValueError, RecursionError) as error:
            raise self._fault(f"the value is not JSON: {error}", _JSON_FORM) from error


class _LiteralParser(_Parser):
    _key_ends = "=[."
    _has_escapes = False

    def _value(self) -> tuple[object, bool]:
        rest = self._text[self._at :]
        self._at = len(self._text)
        return rest, False


_REPLACE = "replace it as a whole, or drop one of the two"
_JSON_FORM = """write KEY=JSON, as in --set-json 'a.b=["x", 1, null]'"""


def _float(text: str) -> object:
    """Return a number as float64. Raises ValueError for numbers out of range, as Go does."""
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:20]} is too large")
    is_exact = number.is_integer() and abs(number) <= 1 << 53 and (number != 0 or not text.startswith("-"))
    return int(number) if is_exact else number


def _no_constant(text: str) -> object:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(parse_int=_float, parse_float=_float, parse_constant=_no_constant)
_CUT_NUMBER = re.compile(r"-?[0-9]+\.\Z|-?[0-9]+(?:\.[0-9]+)?[eE]\Z")


def _whole_characters(value: object, depth: int) -> object:
    """Return `value` with U+FFFD for lone surrogates, as in Go. Raises ValueError if it is nested too deeply."""
    if depth > _MOST_DEPTH:
        raise ValueError(f"more than {_MOST_DEPTH} levels")
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_whole_characters(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_SURROGATE.sub("\ufffd", key): _whole_characters(item, depth + 1) for key, item in value.items()}
    return value


def _put(data: Values, key: str, value: object) -> None:
    if key:
        data[key] = value


def _kind(value: object) -> str:
    names = {dict: "a map", list: "a list", type(None): "null"}
    return names.get(type(value), "a single value")
