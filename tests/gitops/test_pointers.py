"""Pointers that another program or another version of symph wrote."""

from __future__ import annotations

import pytest
import yaml

from symphony_charts.errors import SpecError
from symphony_charts.gitops.flux import FluxSource
from symphony_charts.gitops.pointer import Deployed, Pointer, parse_pointer, render_pointer
from symphony_charts.settings.project import Destination

PLAIN = Pointer(
    name="rl",
    team="ml",
    env="dev",
    version="0.1.0",
    digest="sha256:0",
    chart="charts/ml/rl/0.1.0",
    values={
        "words": ["y", "no", "on", "0123", "1:20", "2026-01-01", "~", ""],
        "y": "n",
        "rate": 0.0001,
        "off": None,
    },
    at="2026-01-01T00:00:00Z",
    destination=Destination(namespace="rl"),
    history=[Deployed(version="0.0.9", digest="sha256:1", values={"k1": "y"}, at="2025-01-01T00:00:00Z")],
)


@pytest.mark.parametrize("source", [None, FluxSource("ml-charts", "flux-system")])
def test_what_pyyaml_writes_is_the_same_pointer(source: FluxSource | None) -> None:
    text = render_pointer(PLAIN, source).decode()
    # Libraries that other tests load can make PyYAML write it with quotes.
    again = yaml.safe_dump_all(yaml.safe_load_all(text)).replace("k1: 'y'\n", "k1: y\n")
    assert "k1: y\n" in again
    assert parse_pointer(again.encode(), "x") == parse_pointer(text.encode(), "x")


def test_a_pointer_from_before_versions_is_read_and_one_of_a_later_major_version_is_refused() -> None:
    text = render_pointer(PLAIN).decode()
    assert text.splitlines()[1] == "apiVersion: symph.dev/v1"
    assert parse_pointer(text.replace("apiVersion: symph.dev/v1\n", "").encode(), "x") == PLAIN
    with pytest.raises(SpecError) as caught:
        parse_pointer(text.replace("symph.dev/v1\n", "symph.dev/v2\n").encode(), "x")
    assert (caught.value.next, "symph.dev/v2" in caught.value.what) == ("install a newer symph", True)
