"""Experiments made from a seed, full of values that shells, tmux, YAML and Helm interpret."""

from __future__ import annotations

import random
from typing import Any

NASTY = (
    *("", "a b", "one\ntwo\n", "\ttab", "cr\rhere", "'", "''", '"', "\\", "\\'", "`touch x`", "$HOME", "$(A)"),
    *("$$(A)", "$(", "$(UNKNOWN)", "$(SYMPHONY_ROLE)", "$", "$$", "end;", ";end", "#(touch x)", "#{pid}"),
    *("#{q:@slot}", "%H", "%%", "!", "!!", "a=b=c", "-n", "--", "on", "yes", "1e3", "0o14", "012", "1:30", "null"),
    *("~", "{{ .Values.x }}", "{{ printf `x` }}", "é😀", "*", "a\\nb", "${A}", "$((1+1))", "x" * 5000),
)
_POD_NAMES = ("agent", "agent-1", "agent-10", "learner", "replay-server", "on", "n", "x1")
_ENV_NAMES = ("A", "B", "LR", "on", "N", "_x", "PYTHONPATH", "Z9")


def generated(seed: int) -> dict[str, Any]:
    """Return the experiment of `seed`: 2 to 5 pods, lone or grouped, with services, files, overlays and `local:`."""
    rng = random.Random(seed)
    services: list[str] = []
    pods = rng.sample(_POD_NAMES, rng.randint(2, 5))
    processes: dict[str, Any] = {}
    groups: dict[str, Any] = {}
    for number, name in enumerate(pods):
        replicas = rng.choice((1, 1, 1, 2))
        if rng.random() < 0.3:
            inner = {f"p{index}": _process(rng, services, f"g{number}-{index}") for index in range(rng.randint(1, 3))}
            groups[name] = {"processes": inner, "replicas": replicas, "pod_overlay": _pod_overlay(rng, list(inner))}
        else:
            process = {**_process(rng, services, f"s{number}"), "replicas": replicas}
            processes[name] = {**process, "pod_overlay": _pod_overlay(rng, [name])}
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
    if rng.random() < 0.3:
        data["env"] = {name: rng.choice(NASTY) for name in rng.sample(("SHARED", "LR", "B2"), 2)}
    return data


def _process(rng: random.Random, services: list[str], service: str) -> dict[str, Any]:
    chosen = {name: rng.choice(NASTY) for name in rng.sample(_ENV_NAMES, rng.randint(0, 4))}
    # A variable that refers to itself is refused.
    process: dict[str, Any] = {"env": {n: value for n, value in chosen.items() if (n, value) != ("A", "$(A)")}}
    if rng.random() < 0.3:
        process["cmds"] = [rng.choice(("echo 1", "true", "echo '$(A)'")) for _ in range(rng.randint(1, 3))]
        process["shell"] = rng.choice(("sh", "bash", ["/bin/bash", "-c"]))
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
        # Services that are only exposed are for clients outside.
        services += [service] if kind == "binds" else []
    if rng.random() < 0.2:
        process["env"]["IP"] = {"field": "status.podIP"}
    if rng.random() < 0.2:
        process["local"] = {"env": {"LR": rng.choice(NASTY), "OWN": "1"}, "tty": False}
    if rng.random() < 0.4:
        process["container_overlay"] = _container_overlay(rng)
    return process


def _container_overlay(rng: random.Random) -> dict[str, Any]:
    """Return container fields of Kubernetes, most of which are also fields of its process."""
    env: list[dict[str, Any]] = [
        {"name": name, "value": rng.choice([value for value in NASTY if (name, value) != ("A", "$(A)")])}
        for name in rng.sample(_ENV_NAMES, rng.randint(0, 3))
    ]
    said: dict[str, Any] = {
        "env": [*env, {"name": "WHERE", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "command": ["laid", rng.choice(NASTY)],
        "args": [rng.choice(NASTY) for _ in range(rng.randint(0, 3))],
        "workingDir": rng.choice(("/", "/tmp")),
        "volumeMounts": [{"name": "laid", "mountPath": "/mnt/laid"}],
        "resources": {"requests": {"cpu": "10m"}},
        "securityContext": {"runAsUser": 1000},
        "tty": True,
    }
    return {key: said[key] for key in rng.sample(sorted(said), rng.randint(1, 4))}


def _pod_overlay(rng: random.Random, members: list[str]) -> dict[str, Any]:
    """Return pod fields of Kubernetes for its own containers and one more; often none."""
    if rng.random() < 0.6:
        return {}
    containers: list[dict[str, Any]] = [{"name": rng.choice(members), **_container_overlay(rng)}]
    if rng.random() < 0.5:
        containers.append({"name": "sidecar", "image": "s:1", "args": [rng.choice(NASTY)]})
    spec = {
        "containers": containers,
        "volumes": [{"name": "laid", "emptyDir": {}}],
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 5,
        "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["db"]}],
    }
    return {"metadata": {"labels": {"laid": "on"}}, "spec": spec}
