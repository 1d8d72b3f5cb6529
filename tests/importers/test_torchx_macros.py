"""Macros follow Python's string.Template; Kubernetes expands the result again, by its own rules."""

from __future__ import annotations

import re
from string import Template

from hypothesis import given, settings
from hypothesis import strategies as st

from symphony_charts.integrations.torchx.appdef import MACROS, as_references, substitute, uses

PARTS = ["$", "$$", "{", "}", "${app_id}", "${replica_id}", "$app_id", "${img_root}", "${rank0_env}", "x", "(A)", " "]
TEXTS = st.lists(st.sampled_from(PARTS)).map("".join)


def expand(text: str, environment: dict[str, str]) -> str:
    """Return Kubernetes' own expansion: ``$$`` is a dollar, ``$(NAME)`` a known variable, all else is kept."""

    def fill(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else environment.get(match[1], match[0])

    return re.sub(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_]*)\)", fill, text)


@settings(max_examples=300)
@given(TEXTS)
def test_filling_in_equals_the_standard_library(text: str) -> None:
    values = {"app_id": "A", "replica_id": "7"}
    assert substitute(text, values) == Template(text).safe_substitute(values)


@settings(max_examples=300)
@given(TEXTS)
def test_references_give_the_pod_what_filling_in_would_have_given_it(text: str) -> None:
    environment = {"TORCHX_RELEASE": "cifar", "TORCHX_RUN": "1", "SYMPH_INDEX": "3"}
    filled = substitute(text, {**MACROS, "app_id": "cifar-1", "replica_id": "3"})
    assert expand(as_references(text), environment) == expand(filled, environment)


def test_an_escaped_macro_is_no_use_of_it() -> None:
    assert uses("a ${rank0_env}", "rank0_env")
    assert not uses("a $${rank0_env}", "rank0_env")
