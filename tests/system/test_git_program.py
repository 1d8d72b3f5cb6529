"""What git writes when it fails, as one line that says what failed."""

from __future__ import annotations

import pytest

from symphony_charts.system.git.program import stderr_tail
from symphony_charts.system.subprocess_runner import Completed

END = "fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\n"
END += "and the repository exists.\n"


@pytest.mark.parametrize(
    ("heard", "line"),
    [
        (
            "fatal: '/x.git' does not appear to be a git repository\n" + END,
            "'/x.git' does not appear to be a git repository",
        ),
        ("ann@h: Permission denied (publickey).\n" + END, "ann@h: Permission denied (publickey)."),
        (
            "ssh: connect to host h port 22: Connection refused\n" + END,
            "ssh: connect to host h port 22: Connection refused",
        ),
        ("fatal: unable to access 'https://h/': timed out\n", "unable to access 'https://h/': timed out"),
        ("", ""),
    ],
)
def test_the_last_line_is_what_failed(heard: str, line: str) -> None:
    ended = Completed(argv=("git",), status=128, stdout=b"", stderr=heard.encode(), seconds=0.1)
    assert stderr_tail(ended, 1) == line


def test_where_git_says_no_more_than_always_that_is_what_is_said() -> None:
    ended = Completed(argv=("git",), status=128, stdout=b"", stderr=END.encode(), seconds=0.1)
    assert stderr_tail(ended, 3).startswith("Could not read from remote repository.")
