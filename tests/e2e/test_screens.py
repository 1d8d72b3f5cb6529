"""The pictures of `run`, `top`, `attach --tile` and `status` show real output: the test records all of them again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["run", "top", "tiles", "status"])
def test_a_screen_is_what_its_picture_shows(name: str, need_tool: Callable[[str], str]) -> None:
    need_tool("tmux")
    argv = [sys.executable, str(ROOT / "scripts" / "screens.py"), "--check", name]
    played = subprocess.run(argv, capture_output=True, text=True, timeout=200, check=False)
    assert played.returncode == 0, played.stderr
