"""The one-line cause of git's failures, from real messages of git and ssh."""

from __future__ import annotations

import pytest

from symphony_charts.system.git.program import reason_of
from symphony_charts.system.subprocess_runner import Completed

END = "fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\n"
END += "and the repository exists.\n"
CHANGED = "@@@@@@@@\r\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n@@@@@@@@\r\nSomeone could be\r\n"
CHANGED += (
    "Host key for [h]:22 has changed and you have requested strict checking.\r\nHost key verification failed.\r\n"
)
GITLAB = (
    "remote: \nremote: ====\nremote: \nremote: ERROR: The project you were looking for could not be found.\nremote: \n"
)
GITLAB += "remote: ====\nremote: \n"
GNUTLS = "fatal: unable to access 'https://h/': server certificate verification failed. CAfile: none CRLfile: none\n"


def ended(heard: str) -> Completed:
    return Completed(argv=("git",), status=128, stdout=b"", stderr=heard.encode(), seconds=0.1)


NO_REPOSITORY = "'/x' does not appear to be a git repository"
NO_NAME = "ssh: Could not resolve hostname h: Name or service not known"
NO_NAME_NOW = "ssh: Could not resolve hostname h: Temporary failure in name resolution"
NO_HOST = "unable to access 'https://h/': Could not resolve host: h"
NO_PORT = "ssh: connect to host h port 1: Connection refused"


@pytest.mark.parametrize(
    ("heard", "line", "is_final"),
    [
        (f"fatal: {NO_REPOSITORY}\n{END}", NO_REPOSITORY, True),
        (f"ann@h: Permission denied (publickey).\r\n{END}", "ann@h: Permission denied (publickey).", True),
        (CHANGED + END, "Host key for [h]:22 has changed and you have requested strict checking.", True),
        (f"Host key verification failed.\r\n{END}", "Host key verification failed.", True),
        (f"{NO_PORT}\n{END}", NO_PORT, True),
        (f"{NO_NAME}\n{END}", NO_NAME, True),
        (f"{NO_NAME_NOW}\n{END}", NO_NAME_NOW, False),
        (GITLAB + END, "The project you were looking for could not be found.", True),
        (GNUTLS, GNUTLS.removeprefix("fatal: ").strip(), True),
        (f"fatal: {NO_HOST}\n", NO_HOST, True),
        ("fatal: unable to access 'https://h/': timed out\n", "unable to access 'https://h/': timed out", False),
        (f"Connection closed by 10.0.0.1 port 22\r\n{END}", "Connection closed by 10.0.0.1 port 22", False),
        (f"remote: \x1b[31mno such thing\x1b[0m\n{END}", "no such thing", False),
        (END, "Could not read from remote repository.", False),
        ("", "git ended with status 128", False),
    ],
)
def test_the_telling_line_is_the_headline(heard: str, line: str, is_final: bool) -> None:
    reason = reason_of(ended(heard))
    assert (reason.text, reason.is_final) == (line, is_final)
