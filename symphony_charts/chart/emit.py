"""Write the Go templates of a chart from its trees. Knows YAML layout and Go syntax, but not experiments.

`Emitter` is strict: a map that may be empty (YAML reads it as null), a list item that begins with an action, and
an unknown node raise ValueError or TypeError while packaging, since they are errors of a builder.
"""

from __future__ import annotations

import base64
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from typing import Any

from symphony_charts.chart.tree import (
    All,
    Block,
    Call,
    Condition,
    Either,
    Equals,
    File,
    Frame,
    Helper,
    Include,
    Join,
    Let,
    Merged,
    NonZero,
    Not,
    Sum,
    Text,
    Tree,
    Value,
    When,
    constant,
    fits_block,
    go_path,
    may_be_empty,
    quoted,
    text_of,
)

_MAX_FLOW = 100
_MAX_WORDS = 72
# Maps on one line, as people write them.
_FLOW_KEYS = ("capabilities", "configMapRef", "limits", "requests", "seccompProfile", "tcpSocket")
# The keys of environment variables, which take one line each.
_VARIABLE = ({"name", "value"}, {"name", "valueFrom"})

# Constants between expressions that need no quotes, unless they end in a colon, which makes a key.
_BARE_TEXT = re.compile(r"[-\w.:/@]*", re.ASCII)
_BRACES = re.compile(r"\{\{|\}\}|\{\Z")


class Emitter:
    """Writes the templates of one chart."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def template(self, tree: Tree) -> str:
        return "\n".join(self._objects(tree)) + "\n"

    def definitions(self, names: Iterable[str]) -> str:
        helpers = [self.frame.helpers[name] for name in names]
        return "\n".join(self._definition(helper) for helper in helpers if not helper.is_inline)

    def _definition(self, helper: Helper) -> str:
        comment = f"{{{{- /* {helper.comment} */}}}}\n" if helper.comment else ""
        body = helper.go.strip("\n").replace("CHART.", f"{self.frame.chart}.") if helper.go else self._text_of(helper)
        if not helper.is_constant:
            return comment + self._define(helper.name, body)
        text, key = f"{helper.name}.text", f"{helper.name}Text"
        once = (
            f'{{{{- define "{self.frame.chart}.{helper.name}" }}}}{{{{ if not (hasKey .Values "{key}") }}}}'
            f'{{{{ $_ := set .Values "{key}" ({self._named(text)} .) }}}}{{{{ end -}}}}\n'
            f"{{{{ .Values.{key} }}}}{{{{ end }}}}\n"
        )
        return self._define(text, body) + comment + once

    def _define(self, name: str, body: str) -> str:
        return f'{{{{- define "{self.frame.chart}.{name}" -}}}}\n{body}\n{{{{- end }}}}\n'

    def _text_of(self, helper: Helper) -> str:
        lines = self._body(helper.tree, 0)
        variables = 0
        while lines[variables].startswith("{{- $"):
            variables += 1
        if lines[variables].startswith("{{-"):
            raise ValueError(f"the helper {helper.name} begins with an action, which would leave a line break")
        if variables:
            lines[variables - 1] = lines[variables - 1].removesuffix(" }}") + " -}}"
        return "\n".join(lines)

    def _call(self, name: str, args: str = ".") -> str:
        if name not in self.frame.helpers:
            raise ValueError(f"no helper {name}")
        return f"{self._named(name)} {args}"

    def _named(self, name: str) -> str:
        return f'include "{self.frame.chart}.{name}"'

    def _source(self, name: str) -> str:
        if name[0] in '.$"':
            return go_path(name)
        helper = self.frame.helpers.get(name)
        return helper.go if helper is not None and helper.is_inline else self._call(name)

    def _arguments(self, args: Mapping[str, Any] | str) -> str:
        if isinstance(args, str):
            return go_path(args)
        words = []
        for key, arg in args.items():
            words.append(f'"{key}" {go_path(arg) if isinstance(arg, str) else f"({self._call(arg.name)})"}')
        return f"(dict {' '.join(words)})"

    def _include(self, node: Include | Call) -> str:
        return self._trimmed(node.name, self._arguments(node.args))

    def _trimmed(self, name: str, args: str) -> str:
        call = self._call(name, args)
        return f"{call} | trim" if self.frame.helpers[name].is_range else call

    def _condition(self, condition: Condition) -> str:
        match condition:
            case str():
                return go_path(condition)
            case NonZero():
                return f"int {go_path(condition.path)}"
            case Equals():
                return f"eq {go_path(condition.path)} {quoted(condition.constant)}"
            case Not():
                inner = self._condition(condition.condition)
                return f"not ({inner})" if " " in inner else f"not {inner}"
            case All() | Either():
                parts = [self._condition(part) for part in condition.conditions]
                if len(parts) == 1:
                    return parts[0]
                word = "and" if isinstance(condition, All) else "or"
                return " ".join([word, *(f"({part})" if " " in part else part for part in parts)])
        raise TypeError(f"unknown condition {condition!r}")

    def _scalar(self, node: Tree, *, in_flow: bool = False) -> str:
        match node:
            case Value():
                fallback = f" | default {go_path(node.fallback)}" if node.fallback else ""
                return f"{{{{ {go_path(node.path)}{fallback}{' | quote' if node.is_text else ''} }}}}"
            case Call():
                return f"{{{{ {self._include(node)} | quote }}}}"
            case Text():
                return self._text(node)
            case Join():
                item = "".join(self._text_parts(node.item))
                start = f"{{{{ range $i := until (int {go_path(node.count)}) }}}}{{{{ if $i }}}},{{{{ end }}}}"
                return f'"{start}{item}{{{{ end }}}}"'
            case Sum():
                return f"{{{{ {_sum(node)}{' | quote' if node.is_text else ''} }}}}"
            case File():
                return self._file(node)
            case str() | int() | float():
                return constant(node, in_flow=in_flow)
        raise TypeError(f"{node!r} is not a scalar")

    def _file(self, node: File) -> str:
        path, root = node.path, node.root.removesuffix(".")
        get = f'{root}.Files.Get "{path}"'
        if text_of(self.frame.files[path]) is not None:
            return f"{{{{ {get} | quote }}}}"
        # Helm strips the byte order mark from every file that it loads.
        mark = base64.b64encode(BOM_UTF8).decode() if self.frame.files[path].startswith(BOM_UTF8) else ""
        return f'"{mark}{{{{ {get} | b64enc }}}}"'

    def _text(self, node: Text) -> str:
        parts = node.parts
        if len(parts) == 1 and not parts[0][0]:
            name = parts[0][1]
            is_plain = name in self.frame.helpers and self.frame.helpers[name].is_plain
            return f"{{{{ {self._source(name)}{'' if is_plain else ' | quote'} }}}}"
        constants = "".join(constant for constant, _ in parts)
        text = "".join(self._text_parts(node))
        needs_quotes = (parts[0][0] and not parts[0][0][0].isalpha()) or text.endswith(":")
        return f'"{text}"' if needs_quotes or not _BARE_TEXT.fullmatch(constants) else text

    def _text_parts(self, node: Text) -> Iterator[str]:
        for before, name in node.parts:
            escaped = quoted(before)[1:-1]
            yield _BRACES.sub(r'{{ "\g<0>" }}', escaped)
            if name:
                yield f"{{{{ {self._source(name)} }}}}"

    def _flow(self, node: Tree) -> str | None:
        """Return a short map of scalars on one line; None if it does not fit."""
        if isinstance(node, list) and all(isinstance(item, str) for item in node):
            return f"[{', '.join(constant(item, in_flow=True) for item in node)}]"
        if not isinstance(node, dict):
            is_scalar = isinstance(node, str | int | float | Value | Text | Join | Sum | Call)
            return self._scalar(node, in_flow=True) if is_scalar else None
        items = []
        for key, item in node.items():
            flow = self._flow(item)
            if flow is None:
                return None
            items.append(f"{constant(key, in_flow=True)}: {flow}")
        text = f"{{{', '.join(items)}}}"
        return text if len(text) <= _MAX_FLOW or node.keys() in _VARIABLE else None

    def _entry(self, key: str, node: Tree, indent: int) -> list[str]:
        name = " " * indent + constant(key) + ":"
        match node:
            case When():
                return self._if(node.condition, self._entry(key, node.tree, indent), indent)
            case Block():
                return self._with(node, f"{name} {{{{- {self._block(node)} | nindent {indent + 2} }}}}", indent)
            case Include():
                return [f"{name} {{{{- {self._include(node)} | nindent {indent + 2} }}}}"]
            case Call(is_block=True):
                return [f"{name} |-", f"{' ' * (indent + 2)}{{{{- {self._include(node)} | nindent {indent + 2} }}}}"]
            case File() if fits_block(text_of(self.frame.files[node.path]) or ""):
                get = f'.Files.Get "{node.path}" | trimSuffix "\\n" | nindent {indent + 2}'
                return [f"{name} |", f"{' ' * (indent + 2)}{{{{- {get} }}}}"]
            case Value() | Call() | Text() | Join() | Sum() | File() | str() | int() | float():
                return [f"{name} {self._scalar(node)}"]
            case {} if not node:
                return [f"{name} {{}}"]
            case []:
                return [f"{name} []"]
        is_nested = isinstance(node, dict) and len(node) == 1 and all(isinstance(item, dict) for item in node.values())
        if is_nested or key in _FLOW_KEYS:
            flow = self._flow(node)
            if flow:
                return [f"{name} {flow}"]
        if may_be_empty(node):
            raise ValueError(f"{key} may come out empty, which YAML reads as null: put it into a When")
        if isinstance(node, list) and all(isinstance(item, str | File | Text) for item in node):
            words = ", ".join(self._scalar(item, in_flow=True) for item in node)
            if len(words) <= _MAX_WORDS:
                return [f"{name} [{words}]"]
        return [name, *self._body(node, indent + 2)]

    def _block(self, node: Block) -> str:
        path = go_path(node.path) if node.is_sure else "."
        return self._trimmed(node.via, path) if node.via else f"toYaml {path}"

    def _with(self, node: Block, line: str, indent: int) -> list[str]:
        return [line] if node.is_sure else _wrapped(f"with {go_path(node.path)}", [line], indent)

    def _body(self, node: Tree, indent: int) -> list[str]:
        match node:
            case dict():
                return self._members(node.items(), indent)
            case list():
                return self._members([(None, item) for item in node], indent)
            case Merged():
                return [line for part in node.parts for line in self._body(part, indent)]
            case Include() if node.name in self.frame.helpers and self.frame.helpers[node.name].is_range:
                # The helper may print nothing, not even a line break.
                breaks = f' | replace "\\n" "\\n{" " * indent}"' if indent else ""
                return [f"{' ' * indent}{{{{- {self._call(node.name, self._arguments(node.args))}{breaks} }}}}"]
            case Include():
                return [self._placed(self._include(node), indent)]
            case Block():
                return self._with(node, self._placed(self._block(node), indent), indent)
            case When():
                return self._if(node.condition, self._body(node.tree, indent), indent)
            case Let():
                return self._let(node, self._body(node.tree, indent), indent)
        raise TypeError(f"{node!r} is neither a map nor a list")

    def _placed(self, expression: str, indent: int) -> str:
        return f"{' ' * indent}{{{{- {expression} | nindent {indent} }}}}" if indent else f"{{{{ {expression} }}}}"

    def _members(self, members: Iterable[tuple[str | None, Tree]], indent: int) -> list[str]:
        """Return the lines of map entries (with a key) or list items.

        Neighbours with the same condition share one ``if``; those with the opposite condition go into its ``else``.
        """
        result: list[str] = []
        before: Condition | None = None
        for condition, run in groupby(members, lambda pair: pair[1].condition if isinstance(pair[1], When) else None):
            lines = []
            for key, member in run:
                node = member if condition is None else member.tree
                lines += self._item(node, indent) if key is None else self._entry(key, node, indent)
            if before is not None and condition == Not(before):
                result[-1:] = [f"{' ' * indent}{{{{- else }}}}", *lines, result[-1]]
            else:
                result += lines if condition is None else self._if(condition, lines, indent)
            before = condition
        return result

    def _item(self, node: Tree, indent: int) -> list[str]:
        pad = " " * indent
        match node:
            case When():
                return self._if(node.condition, self._item(node.tree, indent), indent)
            case Let():
                return self._let(node, self._item(node.tree, indent), indent)
            case Value() | Call() | Text() | Join() | Sum() | File() | str() | int() | float():
                return [f"{pad}- {self._scalar(node)}"]
            case {} | [] if not node:
                return [f"{pad}- {'{}' if isinstance(node, dict) else '[]'}"]
            case dict() if len(node) > 1 and (flow := self._flow(node)):
                return [f"{pad}- {flow}"]
        first, *rest = self._body(node, indent + 2)
        if first.lstrip().startswith("{{-"):
            raise ValueError(f"a list item must begin with a key: {first}")
        return [f"{pad}- {first.lstrip()}", *rest]

    def _if(self, condition: Condition, lines: list[str], indent: int) -> list[str]:
        return _wrapped(f"if {self._condition(condition)}", lines, indent)

    def _let(self, node: Let, lines: list[str], indent: int) -> list[str]:
        """Return `lines` after the variable's definition; if they use it at most once, inline it."""
        variable = _variable(node.name)
        uses = len(variable.findall("\n".join(lines)))
        if not uses:
            return lines
        number = next(number for number, line in enumerate(lines) if variable.search(line))
        source, line = self._source(node.source), lines[number]
        if uses == 1 and node.source[0] not in '.$"' and "range" not in line:
            # An argument needs parentheses.
            place = source if f"{{{{ {node.name} " in line else f"({source})"
            return [*lines[:number], variable.sub(lambda _: place, line), *lines[number + 1 :]]
        return [f"{' ' * indent}{{{{- {node.name} := {source} }}}}", *lines]

    def _objects(self, node: Tree) -> list[str]:
        match node:
            case list():
                first, *rest = [self._objects(item) for item in node]
                return [*first, *(line for lines in rest for line in _after_separator(lines))]
            case When():
                return self._if(node.condition, self._objects(node.tree), 0)
            case Let():
                return self._let(node, self._objects(node.tree), 0)
            case _:
                return self._body(node, 0)


@lru_cache(maxsize=64)
def _variable(name: str) -> re.Pattern[str]:
    return re.compile(re.escape(name) + r"\b")


def _sum(node: Sum) -> str:
    terms = []
    for term in node.terms:
        parts = [str(part) if isinstance(part, int) else f"(int {go_path(part)})" for part in term]
        terms.append(parts[0] if len(parts) == 1 else f"(min {' '.join(parts)})")
    return f"add {' '.join(terms)}" if len(terms) > 1 else terms[0].removeprefix("(").removesuffix(")")


def _wrapped(head: str, lines: list[str], indent: int) -> list[str]:
    pad = " " * indent
    return [f"{pad}{{{{- {head} }}}}", *lines, f"{pad}{{{{- end }}}}"]


def _after_separator(lines: list[str]) -> list[str]:
    actions = next(number for number, line in enumerate(lines) if not line.startswith("{{-"))
    opening = next((number for number in range(actions) if lines[number].startswith("{{- if")), None)
    return ["---", *lines] if opening is None else [*lines[: opening + 1], "---", *lines[opening + 1 :]]
