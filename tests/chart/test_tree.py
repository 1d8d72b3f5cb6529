"""Text of charts: what is written once, mistakes of builders, quoting. `test_judges.py` compares the rest with helm."""

from __future__ import annotations

import pytest

from symphony_charts.chart.emit import Emitter
from symphony_charts.chart.helpers import cut, leaf_helpers
from symphony_charts.chart.tree import (
    Entries,
    Frame,
    Helper,
    Include,
    Let,
    Merged,
    Not,
    Text,
    Tree,
    When,
    constant,
    quoted,
)

HELPERS = [*leaf_helpers(30), Helper(name="labels", tree={"app": "x"})]
FRAME = Frame(chart="c", helpers={helper.name: helper for helper in HELPERS})


def emitted(tree: Tree) -> str:
    return Emitter(FRAME).template(tree).removesuffix("\n")


def test_neighbours_with_one_condition_share_it() -> None:
    tree = {"a": When(".Values.a", 1), "b": When(".Values.a", 2)}
    assert emitted(tree) == "{{- if .Values.a }}\na: 1\nb: 2\n{{- end }}"


def test_what_replaces_a_neighbour_is_its_else() -> None:
    tree = {"a": When(".Values.on", "x"), "b": When(Not(".Values.on"), "z")}
    assert emitted(tree) == "{{- if .Values.on }}\na: x\n{{- else }}\nb: z\n{{- end }}"


def test_a_variable_is_written_only_if_it_is_used_twice() -> None:
    once = {"a": Text("{$fullname}-x")}
    assert emitted(Let("$fullname", "fullname", once)) == 'a: {{ include "c.fullname" . }}-x'
    tree = {"a": Text("{$fullname}-{$fullname}")}
    assert emitted(Let("$fullname", "fullname", Let("$run", ".Values.a", tree))).splitlines() == [
        '{{- $fullname := include "c.fullname" . }}',
        "a: {{ $fullname }}-{{ $fullname }}",
    ]


def test_objects_are_separated_within_their_conditions() -> None:
    text = emitted([{"a": 1}, When(".Values.a", {"b": 2}), {"c": 3}])
    assert text == "a: 1\n{{- if .Values.a }}\n---\nb: 2\n{{- end }}\n---\nc: 3"


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"a": {"b": When(".Values.a", 1)}}, "may come out empty"),
        ({"a": [When(".Values.a", "b")]}, "may come out empty"),
        ({"a": [Merged(When(".Values.a", {"b": 1}), {"c": 2})]}, "must begin with a key"),
        ({"a": Include("absent")}, "no helper absent"),
        ({"a": Text("{absent}")}, "no helper absent"),
        ({"a": object()}, "neither a map nor a list"),
        ({"a": [object()]}, "neither a map nor a list"),
        ({"a": When(object(), 1)}, "unknown condition"),  # type: ignore[arg-type]
        ({"a": Include("labels", {"own": Entries("absent")})}, "no helper absent"),
    ],
)
def test_a_mistake_of_a_builder_is_an_error(tree: Tree, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        emitted(tree)


def test_a_helper_cannot_begin_with_an_action() -> None:
    late = Helper(name="late", tree=Merged(When(".a", {"b": 1}), {"c": 1}))
    with pytest.raises(ValueError, match="late begins with an action"):
        Emitter(Frame(chart="c", helpers={"late": late})).definitions(["late"])


_AMBIGUOUS = ["", "1", "1e3", "0x1", "yes", "N", "null", "~", ".inf", "a: b", "a #b", "a ", " a", "- a", "a:", "1:2"]


@pytest.mark.parametrize("text", [*_AMBIGUOUS, "2020-01-01"])
def test_constants_that_yaml_reads_otherwise_are_quoted(text: str) -> None:
    assert constant(text) == f'"{text}"'


def test_constants_keep_template_syntax_and_odd_characters() -> None:
    assert constant("{{ x }}") == '{{ "{{ x }}" | quote }}'
    assert constant("a,b", in_flow=True) == '"a,b"'
    assert quoted('a"\\\n\u2028\x85\U0001f600') == '"a\\"\\\\\\n\\u2028\\u0085\U0001f600"'


def test_a_cut_name_keeps_its_length_and_differs_from_its_neighbours() -> None:
    names = {cut("a" * 40 + letter, 30) for letter in "bcd"}
    assert len(names) == 3
    assert {len(name) for name in names} == {30}
    assert cut("short", 30) == "short"
