"""Experiments made from a seed, full of values that shells, tmux, YAML and Helm like to interpret."""

from __future__ import annotations

import random
from typing import Any

__all__ = ["NASTY", "generated"]

NASTY = (
    "",
    "a b",
    "one\ntwo\n",
    "\ttab",
    "cr\rhere",
    "'",
    "''",
    '"',
    "\\",
    "\\'",
    "`touch x`",
    "$HOME",
    "$(A)",
    "$$(A)",
    "$(",
    "$(UNKNOWN)",
    "$(SYMPHONY_ROLE)",
    "$",
    "$$",
    "end;",
    ";end",
    "#(touch x)",
    "#{pid}",
    "#{q:@slot}",
    "%H",
    "%%",
    "!",
    "!!",
    "a=b=c",
    "-n",
    "--",
    "on",
    "yes",
    "1e3",
    "0o14",
    "012",
    "1:30",
    "null",
    "~",
    "{{ .Values.x }}",
    "{{ printf `x` }}",
    "é😀",
    "*",
    "a\\nb",
    "${A}",
    "$((1+1))",
    "x" * 5000,
)
_POD_NAMES = ("agent", "agent-1", "agent-10", "learner", "replay-server", "on", "n", "x1")
_ENV_NAMES = ("A", "B", "LR", "on", "N", "_x", "PYTHONPATH", "Z9")


def generated(seed: int) -> dict[str, Any]:
    """The experiment of `seed`: two to five pods, lone or grouped, with services, files and `local:` overrides."""
    rng = random.Random(seed)
    services: list[str] = []
    pods = rng.sample(_POD_NAMES, rng.randint(2, 5))
    processes: dict[str, Any] = {}
    groups: dict[str, Any] = {}
    for number, name in enumerate(pods):
        replicas = rng.choice((1, 1, 1, 2))
        if rng.random() < 0.3:
            inner = {f"p{index}": _process(rng, services, f"g{number}-{index}") for index in range(rng.randint(1, 3))}
            groups[name] = {"processes": inner, "replicas": replicas}
        else:
            processes[name] = {**_process(rng, services, f"s{number}"), "replicas": replicas}
    for process in [*processes.values(), *(one for group in groups.values() for one in group["processes"].values())]:
        process["connects"] = sorted(rng.sample(services, rng.randint(0, len(services))))
    data: dict[str, Any] = {"name": f"gen-{seed}", "image": "example.org/i:1", "processes": processes, "groups": groups}
    if rng.random() < 0.6:
        data["configs"] = {
            f"f{number}.txt": {
                "text": rng.choice(NASTY) + rng.choice(NASTY),
                "mode": rng.choice(("0644", "0600", "0755")),
            }
            for number in range(rng.randint(1, 3))
        }
    if rng.random() < 0.2:
        data["local"] = {"env": {"EXTRA": rng.choice(NASTY)}}
    return data


def _process(rng: random.Random, services: list[str], service: str) -> dict[str, Any]:
    chosen = {name: rng.choice(NASTY) for name in rng.sample(_ENV_NAMES, rng.randint(0, 4))}
    # A variable that refers to itself is refused.
    process: dict[str, Any] = {"env": {n: value for n, value in chosen.items() if (n, value) != ("A", "$(A)")}}
    if rng.random() < 0.3:
        process["cmds"] = [rng.choice(("echo 1", "true", "echo '$(A)'")) for _ in range(rng.randint(1, 3))]
    else:
        process["command"] = ["prog", *(rng.choice(NASTY) for _ in range(rng.randint(0, 2)))]
        process["args"] = [rng.choice(NASTY) for _ in range(rng.randint(0, 4))]
    if rng.random() < 0.2:
        process["preamble"] = ["export Q=1"]
    if rng.random() < 0.3:
        process["cwd"] = "/tmp"
    if rng.random() < 0.5:
        kind, port = rng.choice(("binds", "exposes")), rng.choice((None, 7100 + rng.randint(0, 500)))
        process[kind] = {service: port}
        # What is only exposed is for people outside.
        services += [service] if kind == "binds" else []
    if rng.random() < 0.2:
        process["env"]["IP"] = {"field": "status.podIP"}
    if rng.random() < 0.2:
        process["local"] = {"env": {"LR": rng.choice(NASTY), "OWN": "1"}, "tty": False}
    return process
