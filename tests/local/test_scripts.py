"""Shell text made of user data preserves that data in a real sh, whatever its content."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symphony_charts.errors import SpecError
from symphony_charts.local.plan.scripts import check_path, quote

WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=5))
def test_a_shell_reads_back_the_words_that_were_quoted(words: list[str]) -> None:
    script = "printf '%s\\0' " + " ".join(map(quote, words))
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == words


@pytest.mark.parametrize("path", ["/tmp/#(touch x)", "/tmp/%H", "/tmp/a b", "/tmp/'", "/tmp/a\nb", ""])
def test_a_path_that_tmux_would_interpret_is_refused(path: str) -> None:
    with pytest.raises(SpecError, match="tmux"):
        check_path(path)
