"""Tree ids equal git's."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from symphony_charts.gitops.snapshot import top_entries, tree_id, tree_object

_NAMES = st.text("ab.-é", min_size=1, max_size=3).filter(lambda name: name not in (".", ".."))
# A name at one depth is either a file or a folder: names of folders end with a letter of their own.
_PATHS = st.builds(
    lambda folders, name: "/".join([*(f"{folder}d" for folder in folders), f"{name}f"]),
    st.lists(_NAMES, max_size=2),
    _NAMES,
)


@given(files=st.dictionaries(_PATHS, st.binary(max_size=5), min_size=1, max_size=8))
@settings(max_examples=100)
def test_a_tree_of_its_top_is_the_tree_of_all_files(files: dict[str, bytes]) -> None:
    for hash_name in ("sha1", "sha256"):
        assert tree_object(top_entries(files, hash_name), hash_name).oid == tree_id(files, hash_name)


def test_git_gives_a_folder_the_same_name(tmp_path: Path) -> None:
    files = {"a.b/c": b"2", "a/d": b"3", "b-": b"", "b/x": b"4", "é": b"5"}
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / path).write_bytes(content)

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("add", ".")
    assert git("write-tree") == tree_id(files)
