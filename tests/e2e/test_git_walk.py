"""Random walks over a real repository by file, HTTP and SSH: after each step the state equals a small model's.

``SYMPH_WALK_BINARY`` names another `symph` to walk with, ``SYMPH_SOAK`` sets the number of steps,
``SYMPH_SEED`` the first seed; ``SYMPH_SHRINK`` shortens a failing walk first, which takes minutes.
"""

from __future__ import annotations

import itertools
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.gitops.servers import http_server
from tests.gitops.ssh_server import ssh_server
from tests.gitops.walk.walk import GitWalk
from tests.gitops.walk.world import Server

STEPS = int(os.environ.get("SYMPH_SOAK", "500"))
SEED, SHRINKS = int(os.environ.get("SYMPH_SEED", "1")), "SYMPH_SHRINK" in os.environ


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    repositories = tmp_path / "repos"
    repositories.mkdir()
    with http_server(repositories) as http, ssh_server(tmp_path / "sshd") as ssh:
        chance = random.Random(SEED)
        http.fault = lambda _path, _done: chance.choice(("502", "cut")) if chance.random() < 0.04 else ""
        ssh.break_sessions()
        monkeypatch.setenv("GIT_SSH_COMMAND", ssh.command())
        yield Server(root=repositories, http=http.url, ssh=ssh.url(repositories), is_busy=lambda: bool(http.requests))


def test_no_order_of_commands_leads_where_the_model_does_not(server: Server) -> None:
    GitWalk.server, GitWalk.steps = server, 0
    how = settings(
        max_examples=5,
        stateful_step_count=50,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        phases=[Phase.generate, *([Phase.shrink] if SHRINKS else [])],
        database=None,
    )
    for number in itertools.count(SEED):
        sys.stdout.write(f"{GitWalk.steps} steps; SYMPH_SEED={number}\n")
        run_state_machine_as_test(seed(number)(GitWalk), settings=how)
        if GitWalk.steps >= STEPS:
            break


PUBLISH = {"who": 0, "env": "dev", "team": "ml", "name": "rl", "given": {}, "way": ""}
WAYS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "something new after a rollback": [
        ("publish", {"label": "2"}),
        ("rollback", {"who": 0, "env": "dev", "team": "ml", "name": "rl"}),
        ("publish", {"label": "3"}),
    ],
    "a rewound branch": [
        ("publish", {"label": "2"}),
        ("rewind", {"back": 1}),
        ("publish", {"name": "es", "label": "1"}),
    ],
    "a history that was begun anew": [
        ("publish", {"label": "2"}),
        ("purge", {"back": 1}),
        ("publish", {"name": "es", "label": "1"}),
    ],
    "another namespace": [("settle", {"env": "dev", "values": {}, "moves": 3}), ("publish", {"label": "4"})],
    "another cluster": [("settle", {"env": "dev", "values": {}, "moves": 4}), ("publish", {"label": "4"})],
    "one value after another": [
        ("publish", {"label": "1", "given": {"groups.nap.replicas": 3}}),
        ("publish", {"label": "1", "given": {"groups.nap.retries": 5}}),
    ],
    "a value on top of the settings": [
        ("settle", {"env": "dev", "values": {"groups.nap.replicas": 8}, "moves": 0}),
        ("publish", {"name": "es", "label": "1", "given": {"groups.nap.retries": 5}}),
    ],
    "settings that changed": [
        ("settle", {"env": "dev", "values": {"groups.nap.replicas": 8}, "moves": 0}),
        ("publish", {"label": "1"}),
    ],
    "a chart edited by hand": [
        ("edit_chart", {"number": 0}),
        ("promote", {"who": 0, "team": "ml", "name": "rl", "copies": False, "to_prod": True}),
    ],
    "back from a retirement": [
        ("publish", {"label": "2"}),
        ("retire", {"who": 1, "env": "dev", "team": "ml", "name": "rl"}),
        ("rollback", {"who": 0, "env": "dev", "team": "ml", "name": "rl"}),
        ("look", {"who": 2, "env": "dev"}),
        ("rollback", {"who": 1, "env": "dev", "team": "ml", "name": "rl"}),
        ("retire", {"who": 1, "env": "dev", "team": "ml", "name": "rl"}),
        ("purge", {"back": 1}),
        ("retire", {"who": 0, "env": "dev", "team": "ml", "name": "rl"}),
        ("rollback", {"who": 2, "env": "dev", "team": "ml", "name": "rl"}),
    ],
    "half a cache": [("lose_cache", {"who": 0, "what": "HEAD"}), ("publish", {"label": "2"})],
    "a cache that has forgotten where its history begins": [
        ("rollback", {"who": 1, "env": "dev", "team": "ops", "name": "rl"}),
        ("rollback", {"who": 0, "env": "prod", "team": "ml", "name": "es"}),
        ("lose_cache", {"who": 1, "what": "refs"}),
        ("tidy", {"who": 0, "keep": 2}),
        ("lose_cache", {"who": 0, "what": "config"}),
        ("promote", {"who": 2, "team": "ml", "name": "es", "copies": False, "to_prod": True}),
        ("lose_cache", {"who": 2, "what": "shallow"}),
        ("look", {"who": 0, "env": "prod"}),
        ("settle", {"env": "dev", "values": {"groups.nap.replicas": 8}, "moves": 4}),
        ("rollback", {"who": 2, "env": "prod", "team": "ml", "name": "rl"}),
    ],
}


@pytest.mark.parametrize("steps", WAYS.values(), ids=WAYS.keys())
def test_a_way_that_once_went_wrong(server: Server, steps: list[tuple[str, dict[str, Any]]]) -> None:
    GitWalk.server = server
    walk = GitWalk()
    try:
        walk.begin("4")
        for name, options in steps:
            getattr(walk, name)(**{**(PUBLISH if name == "publish" else {}), **options})
            walk.the_repository_is_what_the_model_says()
    finally:
        walk.teardown()
