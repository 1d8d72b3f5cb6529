"""A group of a release, and the unit of those that end: what every kind of workload is made from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from symphony_charts.errors import SpecError
from symphony_charts.formats.data import maps
from symphony_charts.formats.go_json import dumps

__all__ = ["Group", "Member", "Unit"]

_WHOLE = re.compile(r"0|[1-9][0-9]{0,9}")
# The largest number that Kubernetes takes.
_MOST = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group that runs, as `values` describe it, and what follows from them.

    `base` is the name of its objects without the run, `pods` the headless Service that gives its replicas their names.
    An indexed group has several replicas that end; a kept one outlives a new run. `unit` is the object that runs all
    groups that end, by its name without the run, where the kind has one, and `member` the group's own name there.
    `workload_pattern` and `pod_pattern` are the names of its Job and of a replica's pod, with ``{run}``, ``{index}``;
    `domain_pattern` is that of the pods, and `selector_patterns` are labels that a controller gives them in place of
    ours. `in_unit`: whether the kind's object runs it and no StatefulSet; `is_scaled_live`: whether the number of its
    replicas may change in a run. `is_node`: whether each of its replicas is told its rank and those of its peers.
    `min_replicas` is how many of its pods a gang starts with, where that is said. `retries` is how often a replica is
    tried again, and `restart` how: by a new pod (Never) or in place (OnFailure). `tries` are the variables that count
    the tries before that of a pod, by the fields that hold them; empty: there are none, None: nobody tells.
    """

    name: str
    values: Mapping[str, object]
    replicas: int
    is_finite: bool
    base: str
    unit: str
    member: str
    workload_pattern: str
    pod_pattern: str
    domain_pattern: str = ""
    selector_patterns: Mapping[str, str] = field(default_factory=dict)
    in_unit: bool = True
    keep: bool = False
    is_scaled_live: bool = False
    is_node: bool = False
    min_replicas: int | None = None
    retries: int = 0
    restart: str = "Never"
    tries: Mapping[str, str] | None = None

    @property
    def is_restarted_in_place(self) -> bool:
        """Whether a pod that failed is restarted where it is, and not replaced by a new one."""
        return self.restart == "OnFailure"

    @property
    def replacements(self) -> int:
        """How often a failed replica is replaced by a new pod."""
        return 0 if self.is_restarted_in_place else self.retries

    def last_restart(self, template: Mapping[str, object]) -> int:
        """The number of the restart in place by pods of `template` that is one too many, and has begun when it is seen.

        Jobs and tasks count those of all containers of all replicas together, so that is how many they all may have.
        """
        return min(_MOST, 1 + self.retries * self.replicas * len(maps(template.get("spec"), "containers")))

    @property
    def is_indexed(self) -> bool:
        """Whether its replicas are told apart by a Job; a node has a host name also where it is alone."""
        return self.is_finite and (self.replicas > 1 or self.is_node)

    def workload(self, run: str) -> str:
        """The name of its Job in `run`, or of its StatefulSet."""
        return self.workload_pattern.replace("{run}", run)

    def pod(self, run: str, index: int) -> str:
        """The host name of a replica's pod in `run`."""
        return self.pod_pattern.replace("{run}", run).replace("{index}", str(index))

    @property
    def least(self) -> int:
        """How many of its pods must start together with the rest: as said, else all that end, and one of a service.

        A StatefulSet replaces its pods one after the other: a new run that waited for all of them would wait for ever.
        """
        if self.min_replicas is not None:
            return min(self.min_replicas, self.replicas)
        return self.replicas if self.is_finite else 1

    def host(self, run: str, index: int) -> str:
        """The address of a replica in `run`."""
        return f"{self.pod(run, index)}.{self.domain_pattern.replace('{run}', run)}"

    def selector(self, run: str) -> dict[str, str]:
        """The labels by which its pods in `run` are found; empty where they bear ours."""
        return {key: text.replace("{run}", run) for key, text in self.selector_patterns.items()}

    @property
    def pods(self) -> str:
        """The headless Service of the group."""
        return f"{self.base}-pods"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A group that ends, in one run: labels and annotations of its Job, its pod template, the other fields."""

    group: Group
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    template: Mapping[str, object]
    fields: Mapping[str, object]

    @property
    def metadata(self) -> dict[str, object]:
        """Labels, and annotations where there are any; no name."""
        return {"labels": self.labels, **({"annotations": self.annotations} if self.annotations else {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """All groups that end, in one run: what a kind makes its objects from.

    `name` is that of the kind's own object, which has `labels`; `done` holds the members whose success ends the
    experiment (empty: all); `settings` are the values of ``workload``.
    """

    name: str
    labels: Mapping[str, str]
    members: tuple[Member, ...]
    done: tuple[Member, ...]
    settings: Mapping[str, object]

    def whole(self, kind: str, key: str) -> int:
        """A whole number of the kind's own settings, 0 where none is said; its digits will do.

        Raises SpecError for anything else.
        """
        own = self.settings.get(kind)
        value = own.get(key, 0) if isinstance(own, Mapping) else 0
        text = value if isinstance(value, str) else dumps(value)
        if not _WHOLE.fullmatch(text):
            path = f"workload.{kind}.{key}"
            raise SpecError.one(f"{path} must be a whole number, not {text}", path=path)
        return int(text)
