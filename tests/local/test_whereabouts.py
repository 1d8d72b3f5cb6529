"""Liveness of a run, by its folder, by the holder of its lock, and by the file system."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from symphony_charts.local.run_files import LIVENESS_LOCK, run_location, write_identity
from symphony_charts.system import files
from symphony_charts.system.file_locks import hold_liveness_lock
from symphony_charts.system.files import FileSystem


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "rl" / "1"
    folder.mkdir(parents=True)
    write_identity(folder)
    return folder


def seen(folder: Path, **machine: object) -> str:
    path = folder / "identity.json"
    data = json.loads(path.read_text())
    data["machine"] |= machine
    path.write_text(json.dumps(data))
    return run_location(folder).verdict


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "symphony_charts.local.run_files.file_system_of", lambda _: FileSystem(type="nfs4", options=frozenset())
    )


ELSEWHERE = {"boot_id": "b", "machine_id": "m", "host": "node2"}


def test_this_boot_and_namespace_are_here(folder: Path) -> None:
    assert seen(folder) == "here"


@pytest.mark.parametrize("change", [{"boot_id": "b"}, {"pid_namespace": 1}, {"init_start": 1}, ELSEWHERE])
def test_what_holds_its_life_lives_elsewhere(folder: Path, change: dict[str, object]) -> None:
    descriptor = hold_liveness_lock(folder / LIVENESS_LOCK)
    assert descriptor is not None
    assert seen(folder, **change) == "elsewhere"
    os.close(descriptor)
    assert seen(folder) == "lost"


@pytest.mark.usefixtures("network")
@pytest.mark.parametrize(
    ("change", "verdict"), [({"boot_id": "b"}, "lost"), ({"pid_namespace": 1}, "lost"), (ELSEWHERE, "unknown")]
)
def test_on_a_network_file_system_only_this_machine_can_have_lost_it(
    folder: Path, change: dict[str, object], verdict: str
) -> None:
    assert seen(folder, **change) == verdict


def test_a_copy_of_a_run_is_lost(folder: Path) -> None:
    copy = folder.parent.parent / "copies" / "rl" / "1"
    copy.mkdir(parents=True)
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    assert run_location(copy).verdict == "lost"


def test_the_identity_of_another_run_is_none(folder: Path) -> None:
    other = folder.rename(folder.parent / "2")
    assert run_location(other).verdict == "lost"


@pytest.mark.parametrize(("is_held", "verdict"), [(True, "unknown"), (None, "unknown"), (False, "lost")])
def test_a_run_without_an_identity_is_lost_only_if_nothing_holds_its_life(
    folder: Path, monkeypatch: pytest.MonkeyPatch, is_held: bool | None, verdict: str
) -> None:
    (folder / "identity.json").write_text("")
    monkeypatch.setattr("symphony_charts.local.run_files.is_liveness_lock_held", lambda _: is_held)
    assert run_location(folder).verdict == verdict


def test_the_kernel_says_on_which_file_system_a_path_is(tmp_path: Path) -> None:
    assert files.file_system_of(Path("/proc")).type == "proc"
    assert files.file_system_of(tmp_path).is_local
