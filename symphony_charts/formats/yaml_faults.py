"""What the YAML parser refuses is said in the words of whoever wrote the file: what stands there, and what helps."""

from __future__ import annotations

import re
from typing import Any

from symphony_charts.errors import Problem

__all__ = ["fault_of"]

_OTHERWISE = "check indentation, colons and quotes there"
_CLOSERS = {"',' or ']'": ("[", "]"), "',' or '}'": ("{", "}")}
_QUOTE = "write the value in quotes"


def fault_of(error: Any, text: str) -> Problem:
    """Return the fault of a `yaml.MarkedYAMLError` in `text`; its path is the line."""
    lines = text.splitlines()
    what, next_step, mark = _said(error, lines)
    line = "" if mark is None else f"line {mark.line + 1}"
    return Problem(what=f"not valid YAML: {what}", path=line, next=next_step)


def _said(error: Any, lines: list[str]) -> tuple[str, str, Any]:
    """Return problem, next step and place. The texts are libyaml's (scanner.c, parser.c) and PyYAML's."""
    problem, context = error.problem or "", error.context or ""
    here, begun = error.problem_mark or error.context_mark, error.context_mark or error.problem_mark
    line = _text_at(lines, here)
    character = line[here.column : here.column + 1] if here else ""
    if "cannot start any token" in problem or "tab character" in problem:
        if character == "\t" or "tab" in problem:
            return "a tab stands where YAML takes blanks alone", "indent with blanks: put two for each tab", here
        return f"no value begins with `{character}`", _QUOTE, here
    if "maximum nesting depth" in problem:  # libyaml's own limit, since PyYAML 6.0.4
        return "nested too deeply", "nest less", here
    if "mapping values are not allowed" in problem:
        return _second_colon(lines, here)
    if "end of stream" in problem and "quoted" in context:
        return "the quote that opens here is never closed", "close it, or drop it", begun
    for closer, (bracket, wanted) in _CLOSERS.items():
        if closer in problem:
            what = f"the `{bracket}` that opens here is not closed before line {here.line + 1}"
            return what, f"close it with `{wanted}`, and quote values that hold brackets, commas or `: `", begun
    if "expected key" in problem or "expected '-'" in problem or "block end" in problem:
        what = "this line fits neither the lines above it nor what they belong to"
        return what, "give all keys of one map the same indentation; quote a value whole or not at all", here
    if "expected ':'" in problem:
        return "this line is no `KEY: VALUE`", "put a colon and a blank behind the key", begun
    if "alias" in context or "anchor" in context:
        return (
            f"a bare `{_text_at(lines, begun)[begun.column : begun.column + 1]}` refers to another value",
            _QUOTE,
            begun,
        )
    if "unknown escape" in problem:
        return "a backslash in double quotes begins an escape", "use single quotes, or write the backslash twice", here
    return ": ".join(part for part in (context, problem) if part), _OTHERWISE, here


def _second_colon(lines: list[str], here: Any) -> tuple[str, str, Any]:
    """Explain a colon that cannot be there, by the lines around it."""
    number = next((number for number in range(here.line - 1, -1, -1) if lines[number].strip()), None)
    above = "" if number is None else lines[number]
    if re.match(r"\s*(?:- )?[\w-]+:[^\s/]", above) and not above.rstrip().endswith(":"):
        return f"no blank stands behind the colon of line {(number or 0) + 1}", "write KEY: VALUE with a blank", here
    if re.match(r"\s*(?:- )?[^\s:#]+: .*: ", _text_at(lines, here)):
        return "a second `: ` stands in this line", f"{_QUOTE}, or begin a new line", here
    what = "this line is indented below a key that has a value already"
    return what, "give all keys of one map the same indentation", here


def _text_at(lines: list[str], mark: Any) -> str:
    return lines[mark.line] if mark is not None and mark.line < len(lines) else ""
