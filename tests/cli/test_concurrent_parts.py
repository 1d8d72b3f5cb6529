"""Parts are queried concurrently, and an unreachable one does not delay the others."""

from __future__ import annotations

from pathlib import Path
from threading import Barrier, Event

import pytest

from symphony_charts.cli.status_sources import Part, ask_all
from symphony_charts.errors import ToolFailed
from symphony_charts.system.git.program import direct_address, git_address


def test_parts_are_asked_at_the_same_time() -> None:
    meeting = Barrier(3, timeout=60)
    parts = [Part(name=str(number), ask=meeting.wait) for number in range(3)]
    ask_all(parts)
    assert sorted(part.answer if part.answer is not None else -1 for part in parts) == [0, 1, 2]


def test_a_part_that_is_not_needed_keeps_its_error() -> None:
    def fail() -> int:
        raise ToolFailed("gone")

    parts = [Part(name="far", ask=fail), Part(name="near", ask=lambda: 2)]
    ask_all(parts)
    assert str(parts[0].error) == "gone"
    assert parts[1].answer == 2
    with pytest.raises(ToolFailed, match="gone"):
        ask_all([Part(name="far", ask=fail, is_needed=True)])


def test_a_part_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("symphony_charts.cli.status_sources.ANSWER_S", 0.1)
    never = Event()
    parts = [Part(name="far", ask=never.wait)]
    ask_all(parts)
    assert "far does not answer within 0.1 s" in str(parts[0].error)


def test_a_bug_is_no_silent_part() -> None:
    with pytest.raises(ZeroDivisionError):
        ask_all([Part(name="bug", ask=lambda: 1 // 0)])


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://git.example.org/team/charts", ("git.example.org", 443)),
        ("http://127.0.0.1:8080/x.git", ("127.0.0.1", 8080)),
        ("git://h/x", ("h", 9418)),
        ("file:///srv/charts.git", None),
        ("/srv/charts.git", None),
        ("charts.git", None),
    ],
)
def test_a_repository_is_behind_a_host_and_port(
    url: str, address: tuple[str, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert git_address(url) == address


def test_nobody_knows_what_is_behind_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert direct_address("https://git.example.org/x") is None


@pytest.mark.parametrize("url", ["git@git.example.org:team/charts.git", "ssh://git@git.example.org/team/charts.git"])
@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ("hostname 10.0.0.7\nport 2222\nproxycommand none\n", ("10.0.0.7", 2222)),
        ("hostname 10.0.0.7\nport 22\nproxyjump bastion\n", None),
        ("hostname 10.0.0.7\nport 22\nconnecttimeout 30\n", None),
        ("hostname 10.0.0.7\nport 22\nconnecttimeout none\n", ("10.0.0.7", 22)),
    ],
)
def test_ssh_is_asked_what_it_makes_of_a_host(
    url: str, settings: str, address: tuple[str, int] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ssh"
    program.write_text(f'#!/bin/sh\n[ "$*" = "-G -- git.example.org" ] && cat {tmp_path}/said\n')
    program.chmod(0o755)
    (tmp_path / "said").write_text(settings)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert git_address(url) == address
