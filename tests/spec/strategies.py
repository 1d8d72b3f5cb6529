"""Generated experiments that are right: every field of the records, names and references that hold together."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

__all__ = ["experiments", "texts"]

NAMES = ("agent", "learner", "replay", "ps", "n", "on", "eval-0", "x1")
_TRICKY = ["", "on", "n", "1e3", "0o17", "null", "{{ .Values.x }}", "a: #b", "line\nbreak\n", "$HOME", "é\u2028", " x "]
_REFUSED = [chr(code) for code in [0, *range(0x7F, 0xA0)]]
texts = st.one_of(
    st.sampled_from(_TRICKY),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters=_REFUSED), max_size=20),
)
_numbers = st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False))
_overlay_values = st.one_of(texts, _numbers, st.booleans(), st.lists(texts, max_size=2))
_probes: list[dict[str, Any]] = [
    {"tcp": {"port": 8080}},
    {"http": {"port": 80, "path": "/ok"}, "period": 3},
    {"exec": {"command": ["true"]}},
]
_assignments: list[dict[str, Any]] = [
    {"assign_to": "machine", "node_pool_name": "cpu"},
    {"assign_to": "resource", "cpu": 1.5, "memory_m": 512.0},
]
_label_values = st.sampled_from(["a", "n", "on", "1", "v1.2", "x_y"])
_counts = st.sampled_from(["1", "2k"])
_quantities = st.sampled_from(["1", "500m", "2Gi", "1.5", "1e3"])


@st.composite
def _process(draw: st.DrawFn, name: str, dials: list[str], listens: list[str], volumes: list[str]) -> dict[str, Any]:
    process: dict[str, Any] = {}
    if draw(st.booleans()):
        process["cmds"] = draw(st.lists(texts, min_size=1, max_size=2))
        process["shell"] = draw(st.sampled_from(["sh", "bash", ["/bin/bash", "-c"]]))
    else:
        process["command"] = draw(st.lists(texts, min_size=1, max_size=3))
        process["args"] = draw(st.lists(texts, max_size=3))
    optional: dict[str, st.SearchStrategy[Any]] = {
        "image": st.sampled_from(["u:1", "registry.example.org:5000/a/b@sha256:" + "0" * 64]),
        "image_pull_policy": st.sampled_from(["Always", "IfNotPresent", "Never"]),
        "env": st.dictionaries(st.sampled_from(["A", "N", "on", "y", "LR", "_x1"]), texts, max_size=3),
        "cwd": st.sampled_from(["/work", "sub/dir"]),
        "preamble": st.lists(texts, max_size=2),
        "lifecycle": st.sampled_from(["finite", "service"]),
        "requests": st.fixed_dictionaries({}, optional={"cpu": _quantities, "memory": _quantities, "rdma/ib": _counts}),
        "gpus": st.integers(0, 8),
        "reserve": st.booleans(),
        "ready": st.sampled_from([*_probes, "none"]),
        "assign_to": st.sampled_from(_assignments),
        "local": st.sampled_from([{"env": {"A": "1"}, "tty": False}, {"cmds": ["x"], "shell": "bash"}]),
        "container_overlay": st.dictionaries(st.sampled_from(["a", "on"]), _overlay_values, max_size=2),
    }
    process |= {field: draw(values) for field, values in optional.items() if draw(st.integers(0, 3)) == 0}
    process["binds"] = {service: draw(st.none() | st.just(6000 + index)) for index, service in enumerate(listens)}
    process["connects"] = dials
    process["mounts"] = [{"volume": volume, "at": f"/mnt/{volume}"} for volume in volumes]
    return process


@st.composite
def _pod(draw: st.DrawFn, name: str) -> dict[str, Any]:
    optional: dict[str, st.SearchStrategy[Any]] = {
        "replicas": st.integers(0, 20),
        "restart": st.sampled_from(["never", "on-failure"]),
        "retries": st.integers(0, 3),
        "keep": st.booleans(),
        "names": st.just([f"h-{name}", f"h-{name}-2"]),
        "node_selector": st.dictionaries(st.sampled_from(["pool", "example.org/n"]), _label_values, max_size=2),
        "tolerations": st.just([{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}]),
        "labels": st.dictionaries(st.sampled_from(["tier", "example.org/on"]), _label_values, max_size=2),
        "annotations": st.dictionaries(st.sampled_from(["note", "example.org/n"]), texts, max_size=2),
        "grace_period": st.integers(0, 90),
        "pod_overlay": st.just({"spec": {"hostNetwork": True}}),
    }
    return {field: draw(values) for field, values in optional.items() if draw(st.integers(0, 3)) == 0}


_VOLUMES: dict[str, dict[str, Any]] = {
    "data": {"type": "nfs", "server": "10.0.0.2", "path": "/x"},
    "n": {"type": "empty_dir", "memory": True, "size": "1Gi"},
    "code": {"type": "git", "repository": "https://example.org/a.git", "revision": "main"},
    "keys": {"type": "secret", "secret": "s", "mode": "0600", "items": {"a": "b"}},
    "disk": {"type": "claim", "claim": "c", "local": "~/c"},
    "ib": {"type": "device", "path": "/dev/infiniband"},
}


@st.composite
def experiments(draw: st.DrawFn) -> dict[str, Any]:
    """Data of an experiment that `from_data` takes."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    services = [f"s-{name}" for name in names]
    volumes = draw(st.dictionaries(st.sampled_from(sorted(_VOLUMES)), st.none(), max_size=3))
    data: dict[str, Any] = {"name": "exp", "processes": {}, "groups": {}}
    data["volumes"] = {name: _VOLUMES[name] for name in volumes}
    for index, name in enumerate(names):
        dials = draw(st.lists(st.sampled_from(services), max_size=2, unique=True))
        process = draw(_process(name, dials, [services[index]], sorted(volumes)))
        if draw(st.booleans()):
            data["processes"][name] = process | draw(_pod(name))
        else:
            data["groups"][name] = {"processes": {"main": process}} | draw(_pod(name))
    if draw(st.booleans()):
        data["configs"] = {"a.yaml": {"text": draw(texts)}, "on": {"base64": "AAE=", "mode": "0600"}}
    if draw(st.booleans()):
        data["secrets"] = [{"file": "~/.key"}, {"file": "k", "key": "other"}]
    if draw(st.booleans()):
        data |= {"owner": "jim", "team": "rl", "labels": {"a": "n"}, "port_range": [7000, 7100], "image": "u:2"}
    return data
