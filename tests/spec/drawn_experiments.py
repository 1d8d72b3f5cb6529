"""Experiments drawn from all of `symph schema`: every field, every value of an enumeration, every short form.

`draw` makes them. Names are consistent from the start; parts that the checks still refuse are removed until the rest is
valid. `tests/spec/test_drawn_experiments.py` checks that they reach every part of the schema.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from symphony_charts.errors import Problem, SpecError
from symphony_charts.prepare import prepare
from symphony_charts.spec.files import read
from symphony_charts.spec.json_schema import json_schema
from symphony_charts.spec.model import PodSettings
from tests.spec.drawing import Drawing, parts_of, reached_by
from tests.spec.drawn_words import APART, NEVER_ALONE, SHARE, WORDS

Data = dict[str, Any]

_POD_NAMES = [
    "a",
    "agent",
    "learner",
    "collector",
    "evaluator",
    "coordinator",
    "n",
    "on",
    "pods",
    "a-long-name-of-a-group",
]
_FILES = {
    "conf.txt": b"a: {{ x }}\n",
    "conf.bin": bytes(range(256)),
    "secret.txt": b"hidden",
    "key.pem": b"hidden",
    "pools.yaml": json.dumps(
        {
            "pools": [
                {"name": "plain", "machine_type": "n1-standard-16", "max_nodes": 30, "labels": {"disk": "ssd"}},
                {"name": "rich", "allocatable": {"cpu": "60", "memory": "200Gi", "nvidia.com/gpu": "8"}, "nodes": 12},
            ]
        }
    ).encode(),
}
_MOST_REPAIRS = 40
# Settings that a gang needs beside its name.
_GANGS = {"kueue": {"queue": "q"}, "native": {"gang_version": "v1beta1"}, "coscheduling": {"scheduler_name": "mine"}}
_SCHEMA = json_schema()


@dataclass(kw_only=True)
class Drawn:
    """An experiment of a seed, and the parts removed from its first draft, in the words of the checks."""

    data: Data
    refused: list[Problem] = field(default_factory=list)

    def write(self, folder: Path) -> Path:
        """Write the spec file, with the files that it names beside it; return its path."""
        for name, text in _FILES.items():
            if not (folder / name).exists():
                (folder / name).write_bytes(text)
        spec = folder / "experiment.json"
        spec.write_text(json.dumps(self.data))
        return spec


def draw(first: int, folder: Path) -> Iterator[Drawn]:
    """Yield experiments without end, tried out in `folder`, the same for the same `first` seed.

    Once most of the schema is drawn, later ones prefer the remaining parts.
    """
    seen: set[str] = set()
    parts = parts_of(_SCHEMA) - NEVER_ALONE.keys()
    for seed in itertools.count(first):
        left = parts - seen
        wanted = left if len(left) < len(parts) / 4 else frozenset()
        drawn = _draw(_Cast(random.Random(seed), wanted).experiment(), folder)
        if drawn is not None:
            seen |= reached_by(_SCHEMA, drawn.data)
            yield drawn


def _draw(data: Data, folder: Path) -> Drawn | None:
    """Return the experiment without its refused parts; None if nothing valid is left."""
    drawn = Drawn(data=data)
    for _ in range(_MOST_REPAIRS):
        try:
            prepare(read(drawn.write(folder)), force=True)
        except SpecError as error:
            drawn.refused += error.problems
            taken = [_take_out(data, problem.path.rpartition(", ")[2]) for problem in error.problems]
            if not any(taken):
                return None
        else:
            return drawn
    return None


class _Cast:
    """The cast of an experiment: its pods, their processes and services; all else is drawn around them."""

    def __init__(self, chance: random.Random, wanted: AbstractSet[str]) -> None:
        self._chance = chance
        names = chance.sample(_POD_NAMES, chance.choice([1, 1, 2, 2, 3, 4]))
        grouped = chance.randint(0, len(names))
        self._groups = {
            name: chance.sample(["a", "b", "n", "on"], chance.choice([1, 2, 3])) for name in names[:grouped]
        }
        self._lone = names[grouped:]
        self._refs = [f"{name}/{member}" for name, members in self._groups.items() for member in members] + self._lone
        self._listeners = {name: chance.choice(self._refs) for name in ("on", "svc-1", "svc-2", "n")}
        self._of = {"binds": chance.sample(["on", "svc-1", "svc-2"], 2), "exposes": chance.sample(["n", "svc-1"], 1)}
        self._current = ""
        self._places = 0
        # No two releases of a namespace, and no two parts of an umbrella, share a name.
        self._host = f"host-{chance.getrandbits(32):08x}"
        self._drawing = Drawing(_SCHEMA, chance, self._words(), apart=APART, share=SHARE, wanted=wanted)

    def experiment(self) -> Data:
        data: Data = self._drawing.value(_SCHEMA)
        data["name"] = self._chance.choice(["exp", "n", "on", "a-long-name-of-an-experiment"])
        data["image"] = data.get("image") or "busybox:1.37.0"
        workload = data.get("workload", {})
        if self._chance.random() < 0.7:
            data |= {"workload": {**_GANGS.get(workload.get("gang"), {}), **workload}} if workload else {}
        data["groups"] = {name: self._group(name, members) for name, members in self._groups.items()}
        data["processes"] = {name: self._process(name) for name in self._lone}
        return data

    def _group(self, name: str, members: list[str]) -> Data:
        self._current = name
        made: Data = self._drawing.value({"$ref": "#/$defs/ProcessGroup"})
        processes = {member: self._process(f"{name}/{member}") for member in members}
        # Fields of a pod belong to the group.
        inside = {
            member: {key: value for key, value in process.items() if key not in PodSettings.__struct_fields__}
            for member, process in processes.items()
        }
        return {**made, "processes": inside}

    def _process(self, ref: str) -> Data:
        self._current = ref
        made: Data = self._drawing.value({"$ref": "#/$defs/Process"})
        return made

    def _words(self) -> dict[str, Any]:
        pods = [*self._groups, *self._lone]
        refs = ("Experiment.order", "Experiment.done_when", "SecretFile.only", "Process.after")
        ports = ("TcpProbe.port", "HttpProbe.port", "Probe.tcp", "Probe.http", "Process.ready")
        words: dict[str, Any] = {**WORDS, **dict.fromkeys(refs, self._refs)}
        words |= dict.fromkeys(ports, lambda: [8080, *self._services("binds", "exposes")])
        words |= dict.fromkeys(("Mount.at", "Inline.at", "SecretFile.also_at"), self._place)
        for end in ("", ".?", ".*.?"):
            words[f"Process.binds{end}"] = lambda: self._services("binds")
            words[f"Process.exposes{end}"] = lambda: self._services("exposes")
        words |= {"Process.connects": self._of["binds"], "Experiment.expose.?": self._of["exposes"]}
        words |= dict.fromkeys(("Process.names", "ProcessGroup.names"), lambda: [f"{self._host}-{self._current}"])
        words |= {"Step.groups": pods, "DijobSettings.tasks.?": pods}
        return words

    def _services(self, *verbs: str) -> list[str]:
        """Return the services that the current process listens on."""
        names = dict.fromkeys(name for verb in verbs for name in self._of[verb])
        return [name for name in names if self._listeners[name] == self._current] or [f"other-{self._current[-1]}"]

    def _place(self) -> list[str]:
        self._places += 1
        return [f"/mnt/{self._places}"]


def _take_out(data: Data, path: str) -> bool:
    """Remove the value at `path` of `data`, or its nearest existing parent; return True if one was removed."""
    holder: Any = None
    key: Any = None
    here: Any = data
    rest = path
    while rest:
        if isinstance(here, list) and (match := re.match(r"\[(\d+)\]\.?", rest)) and int(match[1]) < len(here):
            holder, key, rest = here, int(match[1]), rest[match.end() :]
        elif isinstance(here, dict):
            names = [name for name in here if re.match(re.escape(name) + r"(?:[.\[]|$)", rest)]
            if not names:
                break
            holder, key = here, max(names, key=len)
            rest = rest[len(key) :].removeprefix(".")
        else:
            break
        here = holder[key]
    if holder is None or (holder is data and key in ("name", "groups", "processes")):
        return False
    del holder[key]
    return True
