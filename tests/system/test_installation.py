"""The source of an installation, as PEP 610 records it, and the content of a check that everyone runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symphony_charts.errors import UsageError
from symphony_charts.system.installation import check_pinned, command_for_extra, pinned_source, requirement

COMMIT = "0a" * 20
HASH = "5f" * 32
GIT = {"vcs": "git", "requested_revision": "main", "commit_id": COMMIT}


@pytest.mark.parametrize(
    ("record", "where"),
    [
        ({"url": "https://h/x.git", "vcs_info": GIT}, f"git+https://h/x.git@{COMMIT}"),
        ({"url": "ssh://git@h/x.git", "vcs_info": GIT}, f"git+ssh://git@h/x.git@{COMMIT}"),
        ({"url": "https://h/x", "vcs_info": GIT, "subdirectory": "a"}, f"git+https://h/x@{COMMIT}#subdirectory=a"),
        ({"url": "https://h/x.whl", "archive_info": {"hashes": {"sha256": HASH}}}, f"https://h/x.whl#sha256={HASH}"),
        (
            {"url": "https://h/x.tar.gz", "archive_info": {"hash": f"sha256={HASH}"}},
            f"https://h/x.tar.gz#sha256={HASH}",
        ),
        ({"url": "https://h/x.whl", "archive_info": {}}, None),
        ({"url": "http://h/x.whl", "archive_info": {"hashes": {"sha256": HASH}}}, None),
        ({"url": "file:///x.whl", "archive_info": {"hashes": {"sha256": HASH}}}, None),
        ({"url": "file:///x", "vcs_info": GIT}, None),
        ({"url": "https://me:pass@h/x.git", "vcs_info": GIT}, None),
        ({"url": "https://token@h/x.git", "vcs_info": GIT}, None),
        ({"url": "file:///x", "dir_info": {"editable": True}}, None),
        ({"url": "https://h/x", "vcs_info": {"vcs": "hg", "commit_id": COMMIT}}, None),
        ({}, None),
    ],
)
def test_only_what_others_can_install_the_same_is_a_source(record: Mapping[str, object], where: str | None) -> None:
    assert pinned_source(record) == where


@pytest.mark.parametrize(
    "where",
    [
        "symphony-charts",
        "symphony-charts==0.1.0",
        "git+https://h/x.git",
        "git+https://h/x.git@main",
        "https://h/x.whl",
        f"https://h/x.txt#sha256={HASH}",
        f"https://h/x.whl#sha256={HASH}; rm -rf /",
        f"git+https://h/${{TOKEN}}/x@{COMMIT}",
        f"git+https://h/x@{COMMIT}\n--index-url https://evil",
        "/tmp/x.whl",
        "",
    ],
)
def test_a_name_or_an_address_that_may_change_is_refused_with_the_forms(where: str) -> None:
    with pytest.raises(UsageError, match=r"git\+https://HOST/REPOSITORY@COMMIT"):
        check_pinned(where)


@given(st.text(st.characters(codec="utf-8"), max_size=80))
def test_what_is_accepted_is_one_word_of_a_requirements_file(text: str) -> None:
    where = f"git+https://h/{text}@{COMMIT}"
    try:
        check_pinned(where)
    except UsageError:
        return
    line = requirement(where)
    assert line.split() == ["symphony-charts", "@", where]
    assert not set(line) & set("$\"'`\\;")


def test_an_extra_is_added_to_the_very_installation_that_runs() -> None:
    command = command_for_extra("seal")
    assert command.startswith("pip install ")
    assert "[seal]" in command
    assert " symphony-charts[" not in command


def test_an_installation_that_was_not_recorded_names_the_packages_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("symphony_charts.system.installation._record", dict)
    assert "cryptography" in command_for_extra("seal")
    assert "symphony" not in command_for_extra("seal")


def test_a_missing_extra_is_told_with_the_command_that_adds_it(tmp_path: Path) -> None:
    code = "import sys; sys.modules['optuna'] = None; from symphony_charts.cli.main import main; sys.exit(main())"
    (tmp_path / "e.yaml").write_text("name: x\nprocesses: {a: {image: i, command: [c], env: {LR: '1'}}}\n")
    words = [
        "sweep",
        str(tmp_path / "e.yaml"),
        "--loguniform",
        "lr=1e-5..1e-1",
        "--search",
        "3",
        "--up",
        "--metric",
        "l",
    ]
    argv = [sys.executable, "-c", code, *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 5, done.stderr
    assert "next: install symphony-charts with the extra `optuna`: pip install " in done.stderr
