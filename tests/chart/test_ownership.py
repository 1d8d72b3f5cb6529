"""Edits in a generated folder are never lost: users' files are kept, and an edited generated file stops the write."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from symphony_charts.chart.folder import RECORD, is_users, plan_write
from symphony_charts.errors import Conflict

FILES = {"Chart.yaml": b"one\n", "templates/jobs.yaml": b"two\n"}


def written(files: dict[str, bytes], present: dict[str, bytes]) -> dict[str, bytes]:
    """Return the folder after writing."""
    plan = plan_write(files, present)
    kept = {path: content for path, content in present.items() if path not in plan.removes}
    return {**kept, **plan.writes}


def test_a_second_run_writes_nothing() -> None:
    plan = plan_write(FILES, written(FILES, {}))
    assert not plan.writes
    assert not plan.removes


def test_an_edited_file_of_ours_is_refused_with_a_diff() -> None:
    folder = {**written(FILES, {}), "templates/jobs.yaml": b"two\nmine\n"}
    with pytest.raises(Conflict, match=r"(?s)templates/jobs.yaml.*\+mine") as error:
        plan_write(FILES, folder)
    assert error.value.exit_code == 7


def test_an_edited_file_is_refused_even_when_its_new_content_differs_too() -> None:
    folder = {**written(FILES, {}), "Chart.yaml": b"mine\n"}
    with pytest.raises(Conflict):
        plan_write({**FILES, "Chart.yaml": b"three\n"}, folder)


def test_a_foreign_file_in_the_place_of_ours_is_refused() -> None:
    with pytest.raises(Conflict):
        plan_write(FILES, {"Chart.yaml": b"somebody's\n"})


def test_an_edit_that_is_what_we_would_write_is_taken() -> None:
    folder = {**written(FILES, {}), "Chart.yaml": b"three\n"}
    plan = plan_write({**FILES, "Chart.yaml": b"three\n"}, folder)
    assert list(plan.writes) == [RECORD]


def test_the_users_files_are_left_alone() -> None:
    users = {"values-prod.yaml": b"x", "templates/extra-pdb.yaml": b"y", "notes.md": b"z"}
    plan = plan_write(FILES, {**written(FILES, {}), **users})
    assert not plan.writes
    assert not plan.removes


def test_files_that_the_chart_no_longer_has_are_removed() -> None:
    plan = plan_write({"Chart.yaml": b"one\n"}, written(FILES, {}))
    assert plan.removes == ("templates/jobs.yaml",)


def test_a_deleted_file_is_written_again() -> None:
    folder = written(FILES, {})
    del folder["Chart.yaml"]
    assert list(plan_write(FILES, folder).writes) == ["Chart.yaml"]


@pytest.mark.parametrize(
    ("path", "users"),
    [
        ("values-x.yaml", True),
        ("templates/extra-a.yaml", True),
        ("values.yaml", False),
        ("ci/values-x.yaml", False),
        ("templates/jobs.yaml", False),
    ],
)
def test_zones_are_told_by_name(path: str, users: bool) -> None:
    assert is_users(path) is users


def test_the_record_is_what_sha256sum_checks(tmp_path: Path) -> None:
    for path, content in written(FILES, {}).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    subprocess.run(["sha256sum", "--check", "--quiet", RECORD], cwd=tmp_path, check=True, timeout=10)
