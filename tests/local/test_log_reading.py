"""The cost of reading a log depends on the amount read, not on the log's length."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

import pytest

from symphony_charts.backend.status import LogQuery
from symphony_charts.local.logs import read_lines
from tests.local.runs import start

_LINES, _LENGTH = 160_000, 50  # 8 MB


def bytes_read() -> int:
    return int(re.findall(r"rchar: (\d+)", Path("/proc/self/io").read_text(encoding="utf-8"))[0])


@pytest.mark.usefixtures("tmux")
def test_the_last_lines_and_what_comes_after_them_are_all_that_is_read(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": {"command": ["sleep", "300"], "grace_period": 1}}, local={"tty": False})
    log = run.process_dir(0) / "log"
    with log.open("ab") as file:
        file.writelines(b"%049d\n" % number for number in range(_LINES))
    before = bytes_read()
    lines = read_lines("exp", LogQuery(tail=5, follow=True))
    assert [int(line.text) for line in islice(lines, 5)] == [*range(_LINES - 5, _LINES)]
    with log.open("ab") as file:
        file.write(b"%049d\n" % _LINES)
    assert int(next(lines).text) == _LINES
    assert bytes_read() - before < _LINES * _LENGTH / 10
