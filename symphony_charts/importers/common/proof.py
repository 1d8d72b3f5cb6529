"""A proof compares the pods that another tool would make of an input with those that the experiment's chart makes.

Only it allows the words "everything came over": what the other's pods say and ours do not is lost, what they say
otherwise is changed, and what only ours say is listed by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from symphony_charts.errors import SymphError
from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.paths import join
from symphony_charts.formats.quantity import is_quantity, quantity
from symphony_charts.importers.common.report import Imported, Note
from symphony_charts.kinds.children import opened
from symphony_charts.prepare import prepare_experiment

__all__ = ["Object", "OriginalPod", "Pods", "proven"]

Object: TypeAlias = Mapping[str, object]
Pods: TypeAlias = tuple[Mapping[str, Object], Sequence[Note]]
"""The pods of an experiment by name, and what is to be said of them as a whole."""

_OWN_NAMES = ("SYMPH_", "SYMPHONY_", "DI_")
_OWN_PATHS = ("/etc/symph/", "/etc/secrets")
# Pods get requests by default, and a limit of memory where they claim some.
_OWN_AMOUNTS = {"requests": ("cpu", "memory", "nvidia.com/gpu"), "limits": ("memory",)}
_ADDED = {
    "securityContext": "securityContext (security.level)",
    "automountServiceAccountToken": "automountServiceAccountToken (security.service_account_token)",
    "enableServiceLinks": "enableServiceLinks: false",
    "terminationGracePeriodSeconds": "terminationGracePeriodSeconds (grace_period)",
    "envFrom": "the addresses of its services (SYMPH_*)",
    "ports": "the ports that it binds",
    "readinessProbe": "a readiness probe on the ports that it binds",
    "requests": "default requests of what asks for none (`requests`)",
    "limits": "a limit of memory where some is asked for (`limits`)",
    "tolerations": "a toleration of the taint that GPUs have",
    "initContainers": "steps before it starts (prepare)",
}
"""The closed list of what our pods may say beside the original's, in the words of who can turn it off."""


@dataclass(frozen=True, kw_only=True)
class OriginalPod:
    """A pod as the other tool would make it: the `spec` of the pod, which stands at `place` of the input.

    `pod` is its name in the experiment; `processes` gives for each of its containers the name of its process and the
    container's place in the input, in the order of the containers.
    """

    pod: str
    spec: Object
    place: str
    processes: Sequence[tuple[str, str]] = field(default_factory=tuple)


def pods_of(objects: Sequence[dict[str, object]]) -> Pods:
    """The pods that controllers make of `objects`."""
    templates = [sub(item, "spec", "template") for item in opened(map(dict, objects))]
    return {
        str(sub(one, "metadata", "labels").get("symph.dev/group")): sub(one, "spec") for one in templates if one
    }, ()


def proven(
    imported: Imported,
    originals: Sequence[OriginalPod],
    tool: str,
    pods: Callable[[Sequence[dict[str, object]]], Pods] = pods_of,
    objects: Sequence[dict[str, object]] = (),
) -> Imported:
    """`imported`, its report completed by how its pods differ from those that `tool` would make.

    `pods` finds them among the `objects` of the experiment's chart, which are made where they are not given. An
    experiment that makes no chart (yet) stays without a proof, and says why.
    """
    try:
        objects = objects or prepare_experiment(imported.experiment, force=True).objects
    except SymphError as error:
        return imported.with_report(replace(imported.report, unproven=f"{tool}'s pods: {error.what}"))
    ours, whole = pods([dict(item) for item in objects])
    comparison = _Comparison(tool)
    comparison.notes += whole
    for original in originals:
        comparison.pod(original, ours.get(original.pod))
    said = {note.path for note in imported.report.notes}
    notes = [note for note in comparison.notes if not _is_said(note.path, said)]
    report = replace(
        imported.report,
        notes=(*imported.report.notes, *notes),
        carried=tuple(path for path in imported.report.carried if path not in {note.path for note in notes}),
        like=tool,
        added=tuple(dict.fromkeys(comparison.added)),
    )
    return imported.with_report(report)


def _is_said(path: str, said: set[str]) -> bool:
    """Whether a note stands at the place already, or below it."""
    return any(other == path or other.startswith((f"{path}.", f"{path}[")) for other in said)


class _Comparison:
    """Notes on what differs, and what only our pods have."""

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self.notes: list[Note] = []
        self.added: list[str] = []

    def pod(self, original: OriginalPod, ours: Object | None) -> None:
        """Compare one pod and its containers."""
        if ours is None:
            self._lost(original.place, "the pod")
            return
        self._volumes_of = (_volumes(original.spec), _volumes(ours))
        sidecars = [item for item in maps(ours, "initContainers") if item.get("restartPolicy") == "Always"]
        containers = {str(item["name"]): item for item in (*sidecars, *maps(ours, "containers"))}
        for container, (process, place) in zip(maps(original.spec, "containers"), original.processes, strict=True):
            held = containers.get(process)
            if held is None:
                self._lost(place, "the container")
            else:
                self._container(container, held, place)
        self._restart(original, ours, {str(item["name"]) for item in sidecars})
        self._steps(original, [item for item in maps(ours, "initContainers") if item not in sidecars])
        rest = ("containers", "initContainers", "volumes", "restartPolicy")
        self._fields(_without(original.spec, *rest), _without(ours, *rest), original.place)

    def _steps(self, original: OriginalPod, ours: list[dict[str, object]]) -> None:
        """Compare what runs before the containers; a step may have got a name of its own, and others be added."""
        steps, place = list(ours), join(original.place, "initContainers")
        for index, theirs in enumerate(maps(original.spec, "initContainers")):
            name = str(theirs.get("name"))
            fits = [one for one in steps if one["name"] == name or str(one["name"]).startswith(f"{name}-")]
            if fits:
                steps.remove(fits[0])
                self._container(theirs, fits[0], join(place, index))
            else:
                self._lost(join(place, index), "the init container")
        if steps:
            self.added.append(_ADDED["initContainers"])

    def _restart(self, original: OriginalPod, ours: Object, sidecars: set[str]) -> None:
        theirs, policy = original.spec.get("restartPolicy") or "Always", ours.get("restartPolicy") or "Always"
        always = all(name in sidecars for name, _ in original.processes)
        if theirs != policy and not (theirs == "Always" and always):
            what = f"`restartPolicy` is {theirs} in {self._tool}'s pod, and {policy} here"
            self._note(
                join(original.place, "restartPolicy"), what, "`lifecycle: service`, or `restart`, says otherwise"
            )

    def _container(self, theirs: Object, ours: Object, place: str) -> None:
        special = ("name", "env", "volumeMounts", "resources", "restartPolicy")
        self._fields(_without(theirs, *special), _without(ours, *special), place)
        env = {name: value for name, value in _by(theirs, "env", "name").items() if not name.startswith(_OWN_NAMES)}
        self._entries(env, _by(ours, "env", "name"), join(place, "env"), _OWN_NAMES)
        mounts = {
            path: at for path, at in _mounts(theirs, self._volumes_of[0]).items() if not path.startswith(_OWN_PATHS)
        }
        self._entries(mounts, _mounts(ours, self._volumes_of[1]), join(place, "volumeMounts"), _OWN_PATHS)
        for part, own in _OWN_AMOUNTS.items():
            wanted, held = (_amounts(side, part) for side in (theirs, ours))
            self._entries(wanted, held, join(place, f"resources.{part}"), own)
            if any(name in own and "/" not in name for name in held.keys() - wanted.keys()):
                self.added.append(_ADDED[part])

    def _entries(self, theirs: Object, ours: Object, place: str, own: tuple[str, ...]) -> None:
        """Compare two maps; what only ours has is a change, unless it begins as `own` says."""
        for key, value in theirs.items():
            if key not in ours:
                self._lost(place, f"`{key}`")
            elif not _holds(value, ours[key]):
                self._note(place, f"`{key}` differs from {self._tool}'s")
        for key in ours:
            if key not in theirs and not key.startswith(own):
                self._note(place, f"`{key}` is set, which {self._tool} does not do")

    def _fields(self, theirs: Object, ours: Object, place: str) -> None:
        """Compare the fields of a pod or container."""
        for key, value in theirs.items():
            if value in (None, "", [], {}):
                continue
            if key not in ours:
                self._lost(join(place, key), f"`{key}`")
            elif not _holds(value, ours[key]):
                self._note(join(place, key), f"`{key}` differs from {self._tool}'s")
        for key in ours:
            if key in theirs and (key != "tolerations" or _holds(ours[key], theirs[key])):
                continue
            if key in _ADDED:
                self.added.append(_ADDED[key])
            else:
                self._note(place, f"`{key}` is set, which {self._tool} does not do")

    def _lost(self, place: str, what: str) -> None:
        self.notes.append(Note(path=place, what=f"{what} of {self._tool}'s pod is not in ours"))

    def _note(self, place: str, what: str, next: str = "") -> None:
        self.notes.append(Note(path=place, what=what, next=next, verdict="changed"))


def _holds(theirs: object, ours: object) -> bool:
    """Whether ours says all that theirs says; numbers and quantities may be spelled otherwise."""
    if isinstance(theirs, Mapping):
        return isinstance(ours, Mapping) and all(
            _holds(value, ours[key]) if key in ours else value in (None, False, "", [], {})
            for key, value in theirs.items()
        )
    if isinstance(theirs, list):
        if not isinstance(ours, list):
            return False
        if all(isinstance(item, Mapping) for item in theirs):
            return all(any(_holds(item, other) for other in ours) for item in theirs)
        return len(theirs) == len(ours) and all(map(_holds, theirs, ours))
    left, right = _text(theirs), _text(ours)
    if left == right:
        return True
    return is_quantity(left) and is_quantity(right) and quantity(left) == quantity(right)


def _amounts(container: Object, part: str) -> Object:
    """Requests or limits as Kubernetes counts them: what is limited and not requested is requested as much."""
    held = sub(container, "resources", part)
    return {**sub(container, "resources", "limits"), **held} if part == "requests" else held


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _without(fields: Object, *keys: str) -> Object:
    return {key: value for key, value in fields.items() if key not in keys}


def _by(container: Object, key: str, name: str) -> dict[str, Object]:
    """The items of a list by their name, the last of two counting, without it."""
    return {str(item.get(name)): {"value": "", **_without(item, name)} for item in maps(container, key)}


def _volumes(spec: Object) -> dict[str, Object]:
    return {str(item.get("name")): _without(item, "name") for item in maps(spec, "volumes")}


def _mounts(container: Object, volumes: Mapping[str, Object]) -> dict[str, Object]:
    """What is mounted, by path: the volume's own source instead of its name."""
    return {
        str(item.get("mountPath")): {
            **_without(item, "name", "mountPath"),
            "source": volumes.get(str(item.get("name"))),
        }
        for item in maps(container, "volumeMounts")
    }
