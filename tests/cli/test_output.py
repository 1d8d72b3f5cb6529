"""Output of commands: formats, alignment, colours and questions."""

from __future__ import annotations

import io
import json
from argparse import Namespace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.cli import output
from symphony_charts.errors import UsageError

COLUMNS = [
    output.Column("NAME", "name"),
    output.Column("STATE", "state", state=lambda item: "good" if item["state"] == "up" else "bad"),
    output.Column("NODE", "node", is_wide=True),
]
ITEMS: list[dict[str, object]] = [
    {"name": "agent-0", "state": "up", "node": "n1"},
    {"name": "l", "state": "down", "node": None},
]


def args(form: str = "table", **more: object) -> Namespace:
    return Namespace(output=form, **more)


def printed(capsys: pytest.CaptureFixture[str], *arguments: Any, **options: Any) -> str:
    output.print_items(*arguments, **options)
    return capsys.readouterr().out


def test_a_table_is_aligned_and_has_no_trailing_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    table = "NAME     STATE\nagent-0  up\nl        down\n"
    assert printed(capsys, args(), "Process", ITEMS, COLUMNS) == table
    assert printed(capsys, args(no_headers=True), "Process", ITEMS, COLUMNS) == table.partition("\n")[2]


def test_wide_shows_every_column_and_a_dash_for_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, args("wide"), "Process", ITEMS, COLUMNS).splitlines()
    assert (lines[0].split(), lines[2].split()) == (["NAME", "STATE", "NODE"], ["l", "down", "-"])


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_documents_carry_their_kind_and_every_field(form: str, read: Any, capsys: pytest.CaptureFixture[str]) -> None:
    document = read(printed(capsys, args(form), "Process", ITEMS, COLUMNS))
    assert document == {"apiVersion": output.API_VERSION, "kind": "ProcessList", "items": ITEMS}


def test_names_are_one_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, args("name"), "Process", ITEMS, COLUMNS) == "agent-0\nl\n"
    assert printed(capsys, args("name"), "Process", ITEMS, COLUMNS, name="state") == "up\ndown\n"


def test_an_empty_list_is_a_note_for_people_and_a_document_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_items(args(), "Process", [], COLUMNS, empty="nothing runs")
    assert capsys.readouterr() == ("", "nothing runs\n")
    output.print_items(args("json"), "Process", [], COLUMNS, empty="nothing runs")
    out, err = capsys.readouterr()
    assert (json.loads(out)["items"], err) == ([], "")


def test_a_record_is_text_for_people_and_fields_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_record(args(), "Run", {"name": "rl"}, "rl is up")
    assert capsys.readouterr().out == "rl is up\n"
    output.print_record(args("json"), "Run", {"name": "rl"}, "rl is up")
    assert json.loads(capsys.readouterr().out) == {"apiVersion": output.API_VERSION, "kind": "Run", "name": "rl"}


def test_control_characters_of_a_cell_never_reach_the_terminal() -> None:
    table = output.format_table([{"name": "a\x1b[2Jb\nc\t", "state": "up"}], COLUMNS[:1], headers=False)
    assert table == "ab c"


@given(st.lists(st.fixed_dictionaries({"name": st.text(max_size=20), "state": st.text(max_size=8)}), max_size=6))
def test_a_table_has_one_line_for_each_item_whatever_it_holds(items: list[dict[str, object]]) -> None:
    columns = [output.Column("NAME", "name"), output.Column("STATE", "state")]
    table = output.format_table(items, columns)
    assert table.count("\n") == len(items)
    assert all(line.isprintable() for line in table.split("\n"))


def test_wide_characters_count_as_two_cells() -> None:
    lines = output.format_table(
        [{"name": "実験", "state": "up"}, {"name": "abcd", "state": "up"}], COLUMNS[:2]
    ).splitlines()
    assert [line.index("up") for line in lines[1:]] == [4, 6]


def test_only_states_are_coloured_and_only_when_asked() -> None:
    assert "\x1b[32mup" in output.format_table(ITEMS, COLUMNS[:2], color=True)
    assert "\x1b" not in output.format_table(ITEMS, COLUMNS[:2])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("env", "choice", "stream", "is_coloured"),
    [
        ({}, None, Terminal(), True),
        ({}, None, io.StringIO(), False),
        ({"NO_COLOR": "1"}, None, Terminal(), False),
        ({"NO_COLOR": "1"}, "always", io.StringIO(), True),
        ({"FORCE_COLOR": "1"}, None, io.StringIO(), True),
        ({"FORCE_COLOR": "0"}, None, io.StringIO(), False),
        ({"TERM": "dumb"}, None, Terminal(), False),
        ({}, "never", Terminal(), False),
    ],
)
def test_colour_is_for_terminals_unless_somebody_says_otherwise(
    env: dict[str, str], choice: str | None, stream: Any, is_coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    output.set_up(color=choice)
    try:
        assert output.use_color(stream) is is_coloured
    finally:
        output.set_up()


def test_yes_needs_no_question_and_without_a_terminal_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    output.confirm(Namespace(yes=True), "Delete?")
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(UsageError, match="--yes"):
        output.confirm(Namespace(yes=False), "Delete?")


@pytest.mark.parametrize(
    ("answer", "is_done"), [("y\n", True), ("YES\n", True), ("\n", False), ("n\n", False), ("", False)]
)
def test_only_a_yes_is_a_yes(answer: str, is_done: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr("sys.stderr", Terminal())
    if is_done:
        output.confirm(Namespace(yes=False), "Delete?")
        return
    with pytest.raises(UsageError, match="nothing was done"):
        output.confirm(Namespace(yes=False), "Delete?")


def test_no_bar_is_drawn_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with output.progress("packaging", 5) as advance:
        advance(5)
    assert capsys.readouterr() == ("", "")


def test_notes_and_warnings_leave_stdout_alone(capsys: pytest.CaptureFixture[str]) -> None:
    output.warn("old", "renew it")
    output.next_step("symph ls", "symph ps")
    assert capsys.readouterr() == ("", "warning: old\n  next: renew it\nnext: symph ls | symph ps\n")


def test_a_table_is_cut_to_the_room_it_has_and_each_column_says_something() -> None:
    columns = [output.Column("A", "a"), output.Column("B", "b"), output.Column("C", "c")]
    items = [{"a": "x", "b": "b" * 90, "c": "日本" * 30}, {"a": "y", "b": "short", "c": "c"}]
    lines = output.format_table(items, columns, room=80).splitlines()
    assert [output._width(line) <= 80 for line in lines] == [True] * 3
    assert [line.count("…") for line in lines] == [0, 2, 0]
    assert output.format_table(items, columns, room=300) == output.format_table(items, columns)


def test_a_narrow_table_drops_columns_without_information_first() -> None:
    columns = [output.Column("NAME", "name"), output.Column("NOTHING TO SAY", "none"), output.Column("WHAT", "what")]
    items = [{"name": "n" * 20, "what": "w" * 20}]
    assert "NOTHING" in output.format_table(items, columns, room=60)
    assert output.format_table(items, columns, room=30).splitlines()[0].split() == ["NAME", "WHAT"]


def test_a_table_of_too_many_columns_keeps_some_letters_of_each() -> None:
    columns = [output.Column(str(number), "a") for number in range(9)]
    (_, row) = output.format_table([{"a": "a" * 40}], columns, room=20).splitlines()
    assert {len(cell) for cell in row.split()} == {5}
