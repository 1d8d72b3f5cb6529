"""Trees of charts: the text of each node, the errors of builders, paths, quoting, and the inputs of a digest."""

from __future__ import annotations

from typing import Any

import pytest

from symphony_charts.chart.emit import Emitter
from symphony_charts.chart.evaluate import Evaluator, digest_helper
from symphony_charts.chart.helpers import cut, leaf_helpers
from symphony_charts.chart.tree import (
    All,
    Block,
    Call,
    Either,
    Entries,
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
    go_path,
    quoted,
)

_LABELS = Helper(name="labels", tree={"app": "x"})
FRAME = Frame(
    chart="c",
    helpers={helper.name: helper for helper in [*leaf_helpers(30), _LABELS]},
    files={"files/a": b"text\n", "files/b": b"\xff", "files/c": b"a", "files/d": b"\xef\xbb\xbfa"},
)
VALUES = {"a": "x", "n": 3, "zero": 0, "m": {"k": 7}, "none": {}, "dash-ed": {"b": 1}}


def emitted(tree: Tree) -> str:
    return Emitter(FRAME).template(tree).removesuffix("\n")


def evaluated(tree: Tree) -> Any:
    root = {
        "Values": VALUES,
        "Release": {"Name": "r", "Service": "Helm"},
        "Chart": {"Name": "c", "Version": "1.0.0", "IsRoot": True},
    }
    return Evaluator(FRAME, root).objects(tree)


NODES: list[tuple[Tree, str, Any]] = [
    (Value(".Values.n"), "k: {{ .Values.n }}", 3),
    (Value(".Values.n", is_text=True), "k: {{ .Values.n | quote }}", "3"),
    (Text("{fullname}"), 'k: {{ include "c.fullname" . }}', "r-c"),
    (Text("{fullname}-x"), 'k: {{ include "c.fullname" . }}-x', "r-c-x"),
    (Text("{.Values.a}"), "k: {{ .Values.a | quote }}", "x"),
    (Text("$({fullname})"), 'k: "$({{ include "c.fullname" . }})"', "$(r-c)"),
    (Text("{fullname}:"), 'k: "{{ include "c.fullname" . }}:"', "r-c:"),
    (Text("{{{.Values.a}}}"), 'k: "{{ "{" }}{{ .Values.a }}}"', "{x}"),
    (Text("{{{{{.Values.a}"), 'k: "{{ "{{" }}{{ .Values.a }}"', "{{x"),
    (
        Join(".Values.n", Text("h{$i}")),
        'k: "{{ range $i := until (int .Values.n) }}{{ if $i }},{{ end }}h{{ $i }}{{ end }}"',
        "h0,h1,h2",
    ),
    (Sum(((".Values.n", 2), (4,))), "k: {{ add (min (int .Values.n) 2) 4 }}", 6),
    (Call("text", '"i"'), 'k: {{ include "c.text" "i" | quote }}', "i"),
    (Block(".Values.m"), "{{- with .Values.m }}\nk: {{- toYaml . | nindent 2 }}\n{{- end }}", {"k": 7}),
    (
        Block(".Values.m", via="strings"),
        '{{- with .Values.m }}\nk: {{- include "c.strings" . | trim | nindent 2 }}\n{{- end }}',
        {"k": "7"},
    ),
    (Include("labels"), 'k: {{- include "c.labels" . | nindent 2 }}', {"app": "x"}),
    (When(".Values.a", "v"), "{{- if .Values.a }}\nk: v\n{{- end }}", "v"),
    (When(NonZero(".Values.n"), "v"), "{{- if int .Values.n }}\nk: v\n{{- end }}", "v"),
    (When(Equals(".Values.a", "x"), "v"), '{{- if eq .Values.a "x" }}\nk: v\n{{- end }}', "v"),
    (When(Not(".Values.zero"), "v"), "{{- if not .Values.zero }}\nk: v\n{{- end }}", "v"),
    (
        When(All((".Values.a", Either((NonZero(".Values.zero"), ".Values.n")))), "v"),
        "{{- if and .Values.a (or (int .Values.zero) .Values.n) }}\nk: v\n{{- end }}",
        "v",
    ),
    (Merged({"a": 1}, When(".Values.a", {"b": 2})), "k:\n  a: 1\n  {{- if .Values.a }}\n  b: 2\n  {{- end }}", None),
    (File("files/a"), 'k: |\n  {{- .Files.Get "files/a" | trimSuffix "\\n" | nindent 2 }}', "text\n"),
    (File("files/b"), 'k: "{{ .Files.Get "files/b" | b64enc }}"', "/w=="),
    (File("files/c"), 'k: {{ .Files.Get "files/c" | quote }}', "a"),
    (File("files/d"), 'k: "77u/{{ .Files.Get "files/d" | b64enc }}"', "77u/YQ=="),
    ({}, "k: {}", {}),
    ([], "k: []", []),
    (["a", "b"], "k: [a, b]", ["a", "b"]),
    ({"a": {"b": 1}}, "k: {a: {b: 1}}", {"a": {"b": 1}}),
    ([{"a": 1, "b": Value(".Values.n")}], "k:\n  - {a: 1, b: {{ .Values.n }}}", [{"a": 1, "b": 3}]),
]


@pytest.mark.parametrize(("node", "text", "value"), NODES)
def test_a_node_has_one_text_and_one_value(node: Tree, text: str, value: Any) -> None:
    tree = {"k": node, "z": 1}
    assert emitted(tree) == f"{text}\nz: 1"
    assert value is None or evaluated(tree) == [{"k": value, "z": 1}]


def test_a_false_condition_and_an_empty_block_leave_the_key_out() -> None:
    tree = {"a": When(NonZero(".Values.zero"), 1), "b": Block(".Values.none"), "c": Block(".Values.absent"), "d": 1}
    assert evaluated(tree) == [{"d": 1}]


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
    assert evaluated([{"a": 1}, When(".Values.zero", {"b": 2}), {"c": 3}]) == [{"a": 1}, {"c": 3}]


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


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".", "."),
        (".Values.a", ".Values.a"),
        ("$group.replicas", "$group.replicas"),
        (".Values.a-b.c", '(index .Values "a-b").c'),
        (".Values.a-b.c-d", '(index (index .Values "a-b") "c-d")'),
        (".a-b", '(index . "a-b")'),
        (".Values.1x", '(index .Values "1x")'),
        ('"word"', '"word"'),
    ],
)
def test_a_path_is_written_for_go(path: str, text: str) -> None:
    assert go_path(path) == text


@pytest.mark.parametrize("text", ["plain", "a.b/c", "$(X)", "a b", "/etc/x", "metadata.annotations['a']", "a,b"])
def test_plain_constants_have_no_quotes(text: str) -> None:
    assert constant(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1e3",
        "0x1",
        "yes",
        "N",
        "null",
        "~",
        ".inf",
        "a: b",
        "a #b",
        "a ",
        " a",
        "- a",
        "2020-01-01",
        "a:",
        "1:2",
    ],
)
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


def digest_of(tree: Tree, values: dict[str, Any]) -> str:
    helper = digest_helper("run", tree, FRAME, values, "")
    assert helper.py is not None
    return str(helper.py({"Values": values}))


_READ = {"port": Value(".Values.port"), "args": Block(".Values.args", via="strings"), "labels": Block(".Values.labels")}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"port": 7000}, {"port": "7000"}),
        ({"labels": {"a": True}}, {"labels": {"a": "true"}}),
        ({"args": [1.5, 7]}, {"args": ["1.5", "7"]}),
        ({"unread": 1}, {"unread": 2}),
    ],
)
def test_a_digest_is_the_same_for_what_prints_the_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    values = {"port": 1, "args": [], "labels": {}, "unread": 0}
    assert digest_of(_READ, {**values, **one}) == digest_of(_READ, {**values, **other})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"port": 7000}, {"port": 7001}),
        ({"args": ["a,b"]}, {"args": ["a", "b"]}),
        ({"args": ["a:7"]}, {"args": ['a:"7"']}),
        ({"args": ["1"]}, {"args": ["01"]}),
        ({"labels": {"a": "b"}}, {"labels": {"a": "c"}}),
        ({"labels": {"a": ""}}, {"labels": {}}),
    ],
)
def test_a_digest_changes_with_what_is_printed(one: dict[str, Any], other: dict[str, Any]) -> None:
    values = {"port": 1, "args": [], "labels": {}}
    assert digest_of(_READ, {**values, **one}) != digest_of(_READ, {**values, **other})


def test_a_digest_changes_with_constants_and_with_the_digests_in_it() -> None:
    values = {"a": 1}
    assert digest_of({"x": "1"}, values) != digest_of({"x": "2"}, values)
    digests = set()
    for tree in ({"x": "1"}, {"x": "2"}, {"x": Value(".Values.a")}):
        inner = digest_helper("inner", tree, FRAME, values, "")
        outer = digest_helper("run", {"y": Text("{inner}")}, Frame(chart="c", helpers={"inner": inner}), values, "")
        assert outer.py is not None
        digests |= {outer.py({"Values": values}), outer.py({"Values": {"a": 2}})}
    assert len(digests) == 4
