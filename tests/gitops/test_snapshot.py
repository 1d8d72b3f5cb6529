"""A part of a tree, and queries that load more of it."""

from __future__ import annotations

import pytest

from symphony_charts.gitops.snapshot import Entry, NotLoadedError, Snapshot, ask


def test_questions_are_asked_again_until_all_that_they_read_is_loaded() -> None:
    tree = {"a": {"b": Entry(mode="100644", oid="1"), "c": Entry(mode="100644", oid="2")}}
    rounds: list[list[str]] = []

    def load(snapshot: Snapshot, missing: object) -> Snapshot:
        assert isinstance(missing, list)
        folders = [path for item in missing for path in item.folders]
        files = [path for item in missing for path in item.files]
        rounds.append([*folders, *files])
        return Snapshot(
            commit="1",
            folders={**snapshot.folders, **{path: tree[path] for path in folders}},
            files={**snapshot.files, **dict.fromkeys(files, b"x")},
        )

    start = Snapshot(commit="1", folders={"": {"a": Entry(mode="40000", oid="3")}})
    _, answers = ask(start, [lambda seen: seen.read("a/b"), lambda seen: seen.read("a/c")], load)
    assert answers == (b"x", b"x")
    assert rounds == [["a", "a"], ["a/b", "a/c"]]


def test_what_is_there_and_not_loaded_is_never_taken_for_absent() -> None:
    snapshot = Snapshot(commit="1", folders={"": {"a": Entry(mode="40000", oid="3")}})
    with pytest.raises(NotLoadedError, match="a was not loaded"):
        snapshot.read("a/b")
    assert snapshot.read("z/b") is None
