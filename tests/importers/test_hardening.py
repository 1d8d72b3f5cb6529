"""Every report lists the restrictions and resources that our defaults give containers, with the amounts."""

from __future__ import annotations

import pytest

from symphony_charts.importers.hardening import of_our_defaults
from symphony_charts.spec.data import from_data

GIVEN = {"security": {"level": "privileged", "service_account_token": True}}


def said(**processes: dict[str, object]) -> list[str]:
    """Return the notes about processes without restrictions."""
    filled = {name.replace("_", "-"): {"command": ["x"], **process} for name, process in processes.items()}
    return [note.what for note in of_our_defaults(from_data({"name": "x", "processes": filled, **GIVEN}))]


def test_what_is_taken_away_is_said_until_it_is_given_back() -> None:
    plain = {"name": "x", "processes": {"p": {"command": ["x"], "limits": {"cpu": "1", "memory": "1Gi"}}}}
    assert [note.path for note in of_our_defaults(from_data(plain))] == ["security.level", "security"]
    assert of_our_defaults(from_data({**plain, **GIVEN})) == ()


@pytest.mark.parametrize(
    ("process", "words"),
    [
        ({}, ["containers request 100m of cpu and 128Mi of memory, which the input does not: p"]),
        ({"limits": {"memory": "1Gi"}}, ["containers request 100m of cpu, which the input does not: p"]),
        (
            {"requests": {"memory": "1Gi"}},
            [
                "containers request 100m of cpu, which the input does not: p",
                "containers limit memory to their request, which the input does not: p (1Gi)",
            ],
        ),
        ({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}, []),
        ({"container_overlay": {"resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}}}, []),
    ],
)
def test_amounts_that_nobody_asked_for_are_said(process: dict[str, object], words: list[str]) -> None:
    assert said(p=process) == words


def test_equal_amounts_are_said_once_and_many_processes_counted() -> None:
    (one,) = said(a={}, b={}, c={}, d={}, e={})
    assert one.endswith(": a, b, c and 2 more")


def test_what_makes_no_chart_has_no_amounts() -> None:
    shared: dict[str, object] = {"assign_to": {"assign_to": "machine", "node_pool_name": "p"}}
    assert said(a=shared) == []
