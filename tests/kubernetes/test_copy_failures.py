"""Messages about a failed copy out of a container, from the output of the real tar."""

from __future__ import annotations

import subprocess
from pathlib import Path

from symphony_charts.errors import NotFound, ToolFailed
from symphony_charts.kubernetes.backend import copy_failure


def test_a_file_that_is_not_there_is_named_and_no_image_is_blamed(tmp_path: Path) -> None:
    said = subprocess.run(["tar", "cf", "-", "--", "out"], cwd=tmp_path, capture_output=True, check=False).stderr
    assert said.strip().count(b"\n") >= 1
    error = copy_failure("actor-1:/tmp/out", said)
    assert isinstance(error, NotFound)
    assert "actor-1:/tmp/out does not exist: tar: out:" in error.what
    assert error.next == ""


def test_an_image_without_tar_is_told_so() -> None:
    ended = subprocess.run(["sh", "-c", "exec no-such-tar cf -"], capture_output=True, check=False)
    error = copy_failure("actor-1:/tmp/out", ended.stderr)
    assert isinstance(error, ToolFailed)
    assert error.next == "the image needs `sh` and `tar`"
