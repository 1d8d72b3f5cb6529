"""Diagnose experiments that do not run as they should, and report changes since the last status.

Backends record the messages of the scheduler, the kubelet, Kueue and the supervisor. This module turns them into one
cause for all commands. Sources of the messages: kubernetes/kubernetes pkg/kubelet/images, pkg/scheduler/framework,
staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota; `local.status` for this machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from symphony_charts.backend.status import FINAL, ExperimentStatus, InstanceStatus
from symphony_charts.formats.printable import age

# The worst first: it usually causes the others.
Cause = Literal[
    "damaged", "lost", "elsewhere", "supervisor", "chart", "immutable", "sync", "failed", "image", "secret", "config",
    "refused", "drift", "quota", "queue", "pool", "gang", "suspended", "port", "order", "probe", "other", "start",
]  # fmt: skip
_ORDER: tuple[Cause, ...] = get_args(Cause)

# Causes that do not pass by themselves: the user must act.
BAD: frozenset[Cause] = frozenset(_ORDER[: _ORDER.index("quota")])

_WAITING = ("pending", "queued")


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One cause: a sentence, the next step, and the paths of the blocked instances."""

    cause: Cause
    text: str
    next: str = ""
    paths: tuple[str, ...] = ()

    @property
    def is_bad(self) -> bool:
        """True if the cause does not pass by itself."""
        return self.cause in BAD

    @property
    def sentence(self) -> str:
        """The text after the names of its instances."""
        return f"{name_of_several(self.paths)}: {self.text}" if self.paths else self.text


def name_of_several(paths: tuple[str, ...]) -> str:
    """Return the first of several instances, and the number of the others."""
    return f"{paths[0]} +{len(paths) - 1}" if len(paths) > 1 else paths[0]


def diagnose_status(status: ExperimentStatus) -> Diagnosis | None:
    """Return the worst cause that keeps an experiment from running; None if it runs, has succeeded or was stopped."""
    whole = _why_whole(status)
    if whole is not None or status.phase in ("succeeded", "stopped", "stopping"):
        return whole
    together: dict[tuple[Cause, str, str], list[str]] = {}
    for instance in status.instances:
        why = diagnose_instance(status, instance)
        if why is not None:
            together.setdefault((why.cause, why.text, why.next), []).append(instance.path)
    if not together:
        return None
    cause, text, step = min(together, key=lambda key: _ORDER.index(key[0]))
    paths = tuple(together[cause, text, step])
    if cause == "port":
        # The awaited process is usually running, and its probe knows the problem.
        unready = [said for (of, said, _), who in together.items() if of == "probe" and set(who) & {*text.split()}]
        text += f", which is {unready[0]}" if unready else ""
    return Diagnosis(cause=cause, text=text, next=step, paths=paths)


def diagnose_instance(status: ExperimentStatus, instance: InstanceStatus) -> Diagnosis | None:
    """Return the reason why one instance does not run or is not ready, or None."""
    place = _Place(status, instance)
    if instance.phase == "failed" or (instance.phase in _WAITING and instance.status not in (None, 0)):
        return Diagnosis(cause="failed", text=_failure(instance), next=place.logs, paths=(instance.path,))
    if instance.phase == "queued":
        where, colon, words = instance.state.partition(": ")
        missing = re.sub(r"^couldn't assign flavors to pod set \S+: ", "", words)
        text = f"{where}{colon and f' (Kueue: {missing})'}"
        return Diagnosis(cause="queue", text=text, next=place.wait, paths=(instance.path,))
    if instance.phase in FINAL or not instance.reason:
        return None
    if match := _IMAGE.match(instance.reason):
        text, step = _image_text(match["words"]), _image_step(place, match["words"])
        return Diagnosis(cause="image", text=text, next=step, paths=(instance.path,))
    for cause, pattern, text, next_step in _WORDS:
        if match := re.search(pattern, instance.reason):
            step = next_step.format(match, place)
            return Diagnosis(cause=cause, text=text.format(match), next=step, paths=(instance.path,))
    return Diagnosis(cause="other", text=instance.reason, next=place.describe, paths=(instance.path,))


class _Place:
    """The commands that are the next steps for an instance."""

    def __init__(self, status: ExperimentStatus, instance: InstanceStatus) -> None:
        self.name = status.name
        self.flags = f" -n {status.namespace}" if status.backend == "kube" else ""
        is_in_git = any(holder.startswith(("Argo CD", "Flux")) for holder in status.held_by)
        self.logs = f"symph logs {instance.path} {self.name} --tail 50{self.flags}"
        self.wait = f"symph wait {self.name} --for running{self.flags}"
        self.describe = f"symph status {self.name}{self.flags}"
        self.again = "symph publish SPEC" if is_in_git else f"symph upgrade SPEC{self.flags}"


def _why_whole(status: ExperimentStatus) -> Diagnosis | None:
    """Return the cause that concerns the whole run, from the note of its backend: text, then next step."""
    text, _, step = status.note.partition("; ")
    if not text:
        return None
    if status.phase == "lost" or status.phase == "damaged":
        return Diagnosis(cause=status.phase, text=text, next=step)
    if text.startswith("its supervisor "):
        return Diagnosis(cause="supervisor", text=text, next=step)
    return Diagnosis(cause="elsewhere", text=status.note.strip("; "), next=f"symph status {status.name}, over there")


def _failure(instance: InstanceStatus) -> str:
    state, reason = instance.state, instance.reason
    if reason.startswith("CrashLoopBackOff"):
        return f"failed {instance.status}, and is started again and again"
    if reason.startswith(state):
        return reason
    words = reason.partition(": ")[2]
    return state if not words or words in state else f"{state}: {words}"


_IMAGE = re.compile(
    r"(?s)(?:ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull|ImageInspectError|RegistryUnavailable"
    r"|SignatureValidationFailed)\b(?P<words>.*)"
)


def _image_text(words: str) -> str:
    said = words.strip()
    quoted = re.findall(r'"([^"]+)"', said)
    image = min(quoted, key=len) if quoted else ""
    # The last part is the registry's own error.
    detail = said.rpartition('": ')[2] if '": ' in said else "" if image else said
    return f"the image {image} cannot be pulled{f': {detail}' if detail else ''}".replace("  ", " ")


def _image_step(place: _Place, words: str) -> str:
    if re.search(r"denied|unauthorized|authorization|forbidden|401|403", words, re.IGNORECASE):
        return f"name a registry login in image_pull_secrets, or correct the image, then {place.again}"
    return f"correct the image in the spec, then {place.again}"


_PUSH = "symph secrets push SPEC{1.flags}"
# A cause, the pattern of its reason, and text and next step as templates of the match and of the place.
_WORDS: tuple[tuple[Cause, str, str, str], ...] = (
    (
        "quota",
        r"exceeded quota: (\S+), requested: (\S+), used: (\S+), limited: (\S+)",
        "the quota {0[1]} is used up: asks for {0[2]}, used {0[3]} of {0[4]}",
        "kubectl{1.flags} describe resourcequota {0[1]}",
    ),
    (
        "secret",
        r"(?s)^SealedSecret (\S+): (.+)",
        "the sealed Secret {0[1]} cannot be opened: {0[2]}",
        "symph secrets seal SPEC --cert cluster{1.flags}",
    ),
    ("secret", r'(?i)secret "([^"]+)" not found', "the Secret {0[1]} is missing", _PUSH),
    ("secret", r"couldn't find key (\S+) in Secret (\S+)", "the Secret {0[2]} has no key {0[1]}", _PUSH),
    ("secret", r"references non-existent secret key: (\S+)", "a Secret lacks the key {0[1]}", _PUSH),
    ("config", r'(?i)configmap "([^"]+)" not found', "the ConfigMap {0[1]} is missing", "{1.again}"),
    ("config", r"couldn't find key (\S+) in ConfigMap (\S+)", "the ConfigMap {0[2]} has no key {0[1]}", "{1.again}"),
    ("config", r"references non-existent config key: (\S+)", "a ConfigMap lacks the key {0[1]}", "{1.again}"),
    (
        "refused",
        r"(?s).*(?:is forbidden|Error creating|failed error): (.+)",
        "the cluster refuses its pods: {0[1]}",
        "kubectl{1.flags} get events --field-selector type=Warning",
    ),
    (
        "pool",
        r"^(\d+/\d+ nodes are available: .+?)\.*(?:\n|$)",
        "no node takes it: {0[1]}",
        "symph plan SPEC --pools FILE",
    ),
    ("gang", r"^its gang is incomplete", "{0[0]}", "{1.describe}"),
    ("suspended", r"^suspended until it is resumed", "{0[0]}", "{1.describe}"),
    ("probe", r"^not ready: .+", "{0[0]}", "{1.logs}"),
    (
        "port",
        r"^waits for (\S+:\d+ of )(\S+?)((?: and \d+ more)?)(?:, .+)?$",
        "waits for {0[1]}{0[2]}{0[3]}",
        "symph logs {0[2]} {1.name} --tail 50",
    ),
    (
        "order",
        r"^waits for (\S+) to (?:be ready|succeed)(?: and \d+ more)?",
        "{0[0]}",
        "symph logs {0[1]} {1.name} --tail 50",
    ),
    ("start", r"^(?:no pod yet|ContainerCreating|PodInitializing)$", "{0[0]}", "{1.wait}"),
)


def to_data(why: Diagnosis | None) -> Mapping[str, object] | None:
    if why is None:
        return None
    return {"cause": why.cause, "text": why.text, "next": why.next, "processes": list(why.paths)}


# Shorter waits are not reported; longer ones are a warning. In seconds.
SHORT_S, LONG_S = 3.0, 30.0
# The elapsed time that backends append to a wait.
_SO_FAR = re.compile(r", \d[\d.]*[smhd](\d+h)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusChange:
    """One change: the paths of its instances, its text, and whether it is bad.

    `follows_lines` is true if log lines of the instances precede the change: its cause, or their last lines.
    """

    paths: tuple[str, ...]
    text: str
    is_bad: bool = False
    follows_lines: bool = False

    @property
    def name(self) -> str:
        """The first of the instances, and the number of the others."""
        return name_of_several(self.paths)


class EventFeed:
    """Compares each status with the previous one: restarts, readiness, ends, and long waits."""

    def __init__(self) -> None:
        self._before: dict[str, InstanceStatus] = {}
        self._waits: dict[str, tuple[str, float, float]] = {}

    @property
    def is_somebody_waiting(self) -> bool:
        """True if a report may follow although nothing changes."""
        return bool(self._waits)

    def tell(self, status: ExperimentStatus, now: float) -> list[StatusChange]:
        """Return the changes in `status` at `now` (seconds since 1970); equal changes are merged."""
        together: dict[tuple[str, bool, bool], tuple[str, ...]] = {}
        for change in (change for instance in status.instances for change in self._of(status, instance, now)):
            key = change.text, change.is_bad, change.follows_lines
            together[key] = together.get(key, ()) + change.paths
        self._before = {instance.path: instance for instance in status.instances}
        return [
            StatusChange(paths=paths, text=text, is_bad=is_bad, follows_lines=follows_lines)
            for (text, is_bad, follows_lines), paths in together.items()
        ]

    def _of(self, status: ExperimentStatus, now_is: InstanceStatus, now: float) -> Iterator[StatusChange]:
        before = self._before.get(now_is.path)
        path = (now_is.path,)
        if before is None or before.phase != now_is.phase or before.restarts != now_is.restarts:
            yield from _turn(before, now_is)
        if now_is.ready and before is not None and before.phase == now_is.phase == "running" and not before.ready:
            took = f" after {age(now - now_is.started)}" if now_is.started else ""
            yield StatusChange(paths=path, text=f"ready{took}", follows_lines=True)
        yield from self._wait_of(status, now_is, now)

    def _wait_of(self, status: ExperimentStatus, instance: InstanceStatus, now: float) -> Iterator[StatusChange]:
        """Report a wait that has become long, and once more, with the next step, when it is very long."""
        why = diagnose_instance(status, instance) if instance.phase in ("pending", "queued") else None
        words = _SO_FAR.sub("", why.text) if why else ""
        if not why or instance.status is not None:
            # A restart after a failure has already been reported as a failure.
            self._waits.pop(instance.path, None)
            return
        known, since, limit = self._waits.get(instance.path, ("", now, SHORT_S))
        if known != words:
            since, limit = now, SHORT_S
        if now - since >= limit:
            is_long = limit == LONG_S
            step = f"   next: {why.next}" if is_long and why.next else ""
            yield StatusChange(paths=(instance.path,), text=f"{words}, {age(now - since)}{step}", is_bad=is_long)
            limit = float("inf") if is_long else LONG_S
        self._waits[instance.path] = (words, since, limit)


def _turn(before: InstanceStatus | None, now_is: InstanceStatus) -> Iterator[StatusChange]:
    path, took = (now_is.path,), ""
    if now_is.started is not None and now_is.ended is not None:
        took = f" after {age(now_is.ended - now_is.started)}"
    if now_is.phase == "succeeded":
        yield StatusChange(paths=path, text=f"succeeded{took}", follows_lines=True)
    elif now_is.phase in FINAL:
        text = now_is.reason or now_is.state
        yield StatusChange(paths=path, text=text, is_bad=now_is.phase != "stopped", follows_lines=True)
    elif before is not None and now_is.phase in ("pending", "queued") and before.phase == "running":
        yield StatusChange(paths=path, text=now_is.reason or now_is.state, is_bad=True, follows_lines=True)
    elif before is not None and now_is.phase == "running" and now_is.restarts > before.restarts:
        yield StatusChange(paths=path, text=f"started again, restart {now_is.restarts}")
