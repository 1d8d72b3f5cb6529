"""Addresses with a user, a password or a token are distinguished from those that git may be given."""

from __future__ import annotations

import pytest

from symphony_charts.formats.names import repository_fault


@pytest.mark.parametrize(
    "url",
    [
        "https://oauth2:S3cr3t@git.example.org/x.git",
        "HTTPS://oauth2:S3cr3t@git.example.org/x.git",
        "https://S3cr3t@git.example.org/x.git",
        "https://:S3cr3t@git.example.org/x.git",
        "http://S3cr3t:x-oauth-basic@git.example.org/x.git",
        "ssh://git:S3cr3t@git.example.org/x.git",
        "https://git.example.org/x.git?private_token=S3cr3t",
        "ext::sh -c 'echo S3cr3t'",
        "fd::7",
    ],
)
def test_a_secret_in_an_address_is_a_fault_that_does_not_show_it(url: str) -> None:
    fault = repository_fault(url, "repository.url")
    assert fault is not None
    assert "S3cr3t" not in fault.what + fault.next


@pytest.mark.parametrize("url", ["", " ", "-oProxyCommand=x", "https://example.org/\nx", "a\x7fb"])
def test_what_is_no_address_is_a_fault(url: str) -> None:
    assert repository_fault(url, "repository.url")


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example.org/team/x.git",
        "https://git.example.org:8443/team/@scope/x.git",
        "ssh://git@git.example.org:22/x.git",
        "git@git.example.org:team/x.git",
        "file:///srv/x.git",
        "/srv/git/x.git",
        "../x y.git",
        "https://git.example.org/x?ref=main",
    ],
)
def test_what_git_may_be_given_is_none(url: str) -> None:
    assert repository_fault(url, "repository.url") is None
