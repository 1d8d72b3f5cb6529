"""The experiments of a walk: their processes write known text, which the walk looks for."""

from __future__ import annotations

import json

_WRITE = 'echo "log $T"; echo "$T" >"own.$T"; '
_STAY = "exec sleep 1000000"
_CLAIM = {"claim": "ckpt", "at": "/ckpt"}

# By name: the process's shell script, its further settings, and the files it keeps besides its own and its log.
SHAPES: dict[str, tuple[str, dict[str, object]]] = {
    "plain": (_WRITE + _STAY, {}),
    "pair": (_WRITE + _STAY, {}),
    "claim": (_WRITE + 'echo "$T" >"/ckpt/claim.$T"; ' + _STAY, {"mounts": [_CLAIM]}),
    "below": (_WRITE + _STAY, {"mounts": [{"empty_dir": {}, "at": "/home/me/exp/out/deep"}]}),
    "linked": (
        "mkdir -p /data/one; echo $T >/data/one/m; ln -sfn /data/one /data/latest; " + _WRITE + _STAY,
        {"mounts": [{"empty_dir": {}, "at": "/data"}]},
    ),
    "finite": (_WRITE + "exit 0", {"restart": "never"}),
    "failing": (_WRITE + "exit 3", {"restart": "never"}),
    "gpu": (_WRITE + _STAY, {"gpus": 1}),
}


def own_file(token: str) -> str:
    return f"/home/me/exp/own.{token}"


def spec(name: str, shape: str, token: str) -> str:
    script, more = SHAPES[shape]
    names = ["p", "q"] if shape == "pair" else ["p"]
    processes = {
        process: {"command": ["sh", "-ec", script], "env": {"T": f"{token}.{process}"}, **more} for process in names
    }
    return json.dumps({"name": name, "processes": processes})
