"""What a repository's cache remembers is of use or as good as not there."""

from __future__ import annotations

from pathlib import Path

from symphony_charts.system.git.cache import Cache


def test_damaged_notes_are_as_good_as_none(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "caches", str(tmp_path), "main")
    cache.folder.mkdir(parents=True)
    for name in ("tip", "queue", "blobs"):
        (cache.folder / name).write_bytes(b"\xe9\xff\n")
    assert (cache.tip, cache.queued) == (None, None)
    assert cache.missing({"a"}) == {"a"}
