"""Overlays merge as Kubernetes' own strategic merge does: `kubectl patch --local` is the judge, and laws hold."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scripts.merge_keys import generated_files, merge_keys
from symphony_charts.formats.data import merge_overlay, overlay_at
from symphony_charts.formats.merge_keys import MERGE_KEYS
from tests.spec.overlay_strategies import pods
from tests.tools import kubectl

ROOT = Path(__file__).resolve().parents[2]
FEW = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


def patched_by_kubectl(bases: list[dict[str, Any]], overlay: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each of `bases` with `overlay` merged by kubectl, which needs no cluster for that."""
    program = kubectl()
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("kubectl is not unpacked: python -m tests.tools")
        pytest.skip("kubectl is not unpacked: python -m tests.tools")
    items = [{"apiVersion": "v1", "kind": "Pod", **named(base, f"p{index}")} for index, base in enumerate(bases)]
    with tempfile.TemporaryDirectory() as folder:
        file, patch = Path(folder) / "pods.json", Path(folder) / "patch.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        patch.write_text(json.dumps(overlay))
        argv: list[str | Path] = [program, "patch", "--local", "--type=strategic", "-o", "json"]
        argv += ["-f", file, "--patch-file", patch]
        ended = subprocess.run(
            argv, capture_output=True, text=True, timeout=60, check=True, env={"HOME": folder, "LC_ALL": "C"}
        )
    return list(documents(ended.stdout))


def named(pod: dict[str, Any], name: str) -> dict[str, Any]:
    """Return `pod` with a name, as an object has one."""
    return {**pod, "metadata": {"name": name, **pod.get("metadata", {})}}


def documents(text: str) -> Iterator[dict[str, Any]]:
    """Yield the consecutive JSON documents in `text`."""
    decoder, place_in_text = json.JSONDecoder(), 0
    while text[place_in_text:].strip():
        start = place_in_text + len(text[place_in_text:]) - len(text[place_in_text:].lstrip())
        document, place_in_text = decoder.raw_decode(text, start)
        yield document


def sorted_by_key(value: Any, field: str = "") -> Any:
    """Return `value` with every list that merges item by item sorted by key."""
    if isinstance(value, dict):
        return {key: sorted_by_key(item, key) for key, item in value.items()}
    if isinstance(value, list) and field in MERGE_KEYS:
        key = MERGE_KEYS[field]
        return sorted(map(sorted_by_key, value), key=lambda item: str(item[key] if key else item))
    return list(map(sorted_by_key, value)) if isinstance(value, list) else value


@FEW
@given(st.lists(pods, min_size=8, max_size=8), pods)
def test_an_overlay_merges_as_kubectl_patches(bases: list[dict[str, Any]], overlay: dict[str, Any]) -> None:
    ours = [
        {"apiVersion": "v1", "kind": "Pod", **merge_overlay(named(base, f"p{index}"), overlay)}
        for index, base in enumerate(bases)
    ]
    assert sorted_by_key(patched_by_kubectl(bases, overlay)) == sorted_by_key(ours)


@given(pods, pods, pods)
def test_merging_is_associative_and_idempotent_and_changes_no_argument(
    pod: dict[str, Any], first: dict[str, Any], second: dict[str, Any]
) -> None:
    before = json.dumps([pod, first, second])
    once = merge_overlay(pod, first)
    assert merge_overlay(once, first) == once
    assert merge_overlay(once, second) == merge_overlay(pod, merge_overlay(first, second))
    assert merge_overlay(pod, {}) == merge_overlay({}, pod) == pod
    assert json.dumps([pod, first, second]) == before


def test_what_is_there_keeps_its_place_and_what_is_new_stands_last() -> None:
    base = {"env": [{"name": "B", "value": "1"}, {"name": "A", "value": "2"}]}
    over = {"env": [{"name": "C", "value": "$(A)"}, {"name": "A", "value": "3"}]}
    merged: Any = merge_overlay(base, over)
    assert [item["name"] for item in merged["env"]] == ["B", "A", "C"]


@pytest.mark.parametrize(
    ("field", "item"),
    [("env", {"value": "1"}), ("env", {"name": True}), ("env", {"name": None}), ("env", "A"), ("args", {"name": "B"})],
)
def test_a_list_without_a_key_for_each_item_is_replaced(field: str, item: object) -> None:
    assert merge_overlay({field: [{"name": "A"}]}, {field: [item]}) == {field: [item]}


def test_a_value_is_placed_into_an_item_by_its_key() -> None:
    whole = {"volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}]}
    expected = {"volumeMounts": [{"mountPath": "/b", "readOnly": True}]}
    assert overlay_at(["volumeMounts", 1, "readOnly"], True, whole) == expected


def test_a_value_is_placed_into_a_plain_list_by_writing_it_again() -> None:
    whole = {"tolerations": [{"key": "a"}, {"key": "b"}]}
    assert overlay_at(["tolerations", 1, "effect"], "NoExecute", whole) == {
        "tolerations": [{"key": "a"}, {"key": "b", "effect": "NoExecute"}]
    }


def test_the_keys_are_those_of_the_schemas() -> None:
    assert merge_keys() == MERGE_KEYS
    present = {path: (ROOT / path).read_text() for path in generated_files()}
    assert present == generated_files(), "run python -m scripts.merge_keys"
