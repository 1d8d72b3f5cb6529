"""A pointer: the version that an environment runs, its values and its history.

Argo CD's ApplicationSet reads this small file, so every field is always present. Under Flux it is a HelmRelease.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from symphony_charts.chart.archive import content_digest, packed
from symphony_charts.chart.release import Overrides, user_values
from symphony_charts.errors import NotFound, SpecError
from symphony_charts.formats.data import Values, sub
from symphony_charts.formats.yaml_read import load_documents, plain
from symphony_charts.formats.yaml_write import dump, dump_all
from symphony_charts.gitops.argocd import place_key
from symphony_charts.gitops.flux import FluxSource, documents_of, is_release, pointer_data
from symphony_charts.settings.project import Destination
from symphony_charts.system.records import convert

_MAX_HISTORY = 10
_ALWAYS = ("server", "name", "namespace")
_API = "symph.dev/v1"

_HEADER = "# Written by symph, which keeps no comments. Change values by `publish --env-set`, or in .symph.yaml.\n"


class Deployed(msgspec.Struct, frozen=True, kw_only=True):
    """One deployment: version, content digest and values, the operation that started it, its time (ISO 8601), author.

    `settings` are the part of `values` that came from settings when it was written. `unknown` are fields of a newer
    symph, which are kept.
    """

    version: str
    digest: str
    values: Values = {}
    settings: Values = {}
    op: str = "publish"
    at: str = ""
    by: str = ""
    unknown: Values = {}


class Pointer(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment in an environment; `history` holds earlier deployments, newest first.

    `unknown` are fields of a newer symph, which are kept; `is_release`: its file is a HelmRelease, for Flux.
    """

    name: str
    team: str
    env: str
    version: str
    digest: str
    chart: str
    values: Values = {}
    settings: Values = {}
    destination: Destination = Destination()
    op: str = "publish"
    at: str = ""
    by: str = ""
    source: dict[str, str] = {}
    history: list[Deployed] = []
    unknown: Values = {}
    is_release: bool = False

    @property
    def deployed(self) -> Deployed:
        """The current deployment, as an entry of the history."""
        names = [name for name in Deployed.__struct_fields__ if name != "unknown"]
        return Deployed(**{name: getattr(self, name) for name in names})

    def _running(self, deployed: Deployed, **changes: object) -> Pointer:
        """Return the pointer with another deployment, of a chart beside the current one, and other `changes`."""
        # Many releases may share a chart, so the chart's folder may have another name than the release.
        chart = f"{self.chart.rpartition('/')[0]}/{deployed.version}"
        return msgspec.structs.replace(self, **deployed_fields(deployed), chart=chart, **changes)

    def moved(self, after: Deployed, destination: Destination | None, source: Mapping[str, str]) -> Pointer:
        """Return the pointer moved to `after` or another destination; a replaced deployment joins the history."""
        place = destination or self.destination
        is_same = (self.version, self.digest, self.values) == (after.version, after.digest, after.values)
        if is_same and place == self.destination and self.settings == after.settings:
            return self
        history = self.history if is_same else [self.deployed, *self.history][:_MAX_HISTORY]
        return self._running(after, destination=place, source=dict(source), history=history)

    def revived(self, version: str | None, at: str, by: str) -> Pointer:
        """Return this retired pointer at its last deployment, or the newest of `version`. Raises NotFound."""
        known = msgspec.structs.replace(self, history=[self.deployed, *self.history])
        entry = known.find(version)
        after = msgspec.structs.replace(entry, op="rollback", at=at, by=by)
        history = self.history if entry == self.deployed else known.history[:_MAX_HISTORY]
        return self._running(after, source={"from": "retired"}, history=history)

    def find(self, version: str | None) -> Deployed:
        """Return the newest history entry with `version`, or with None the previous deployment. Raises NotFound."""
        for entry in self.history:
            if version is None or entry.version == version:
                return entry
        versions = ", ".join(dict.fromkeys(entry.version for entry in self.history)) or "nothing"
        wanted = f"version {version}" if version else "a version before this one"
        what, step = f"{self.env} never ran {wanted} of {self.name}", f"symph history {self.name} --env {self.env}"
        raise NotFound(what, f"versions in its history: {versions}", step)


class Move(NamedTuple):
    """A change of destination: both as text, and if the old run `ends`.

    Argo CD only prunes within one cluster: in another, the old objects keep running until a user deletes them.
    """

    before: str
    after: str
    ends: bool

    @property
    def record(self) -> dict[str, object]:
        return {"from": self.before, "to": self.after, "ends": self.ends}

    def text(self, join: str = ", ") -> str:
        if self.ends:
            return f"ends in {self.before}{join}starts in {self.after}"
        return f"starts in {self.after}; in {self.before} it keeps running until you delete it: retire it first"


def move_between(before: Destination, after: Destination) -> Move | None:
    """Return the move between two destinations; None if they are the same place."""
    old, new = place_key(before), place_key(after)
    return None if old == new else Move(_place_text(before), _place_text(after), ends=old[0] == new[0])


def _place_text(destination: Destination) -> str:
    cluster = destination.name or ("" if destination.server == Destination().server else destination.server)
    return f"namespace {destination.namespace}" + (f" of {cluster}" if cluster else "")


def deployed_fields(deployed: Deployed) -> dict[str, Any]:
    """Return the fields that a pointer takes over from its current deployment."""
    return {key: value for key, value in msgspec.structs.asdict(deployed).items() if key != "unknown"}


def parse_pointer(content: bytes, path: str) -> Pointer:
    """Return the pointer in the file `path`, in the form for Argo CD or Flux. Raises SpecError for an invalid one."""
    try:
        # Words that other programs write without quotes, such as `y`, are text, as for Argo CD.
        documents = [plain(data) for data, _ in load_documents(content.decode())]
    except ValueError as error:
        raise SpecError.one(f"not a pointer: {error}", at=path, next=_RESTORE) from error
    has_release = is_release(documents)
    data = pointer_data(documents) if has_release else documents[0] if len(documents) == 1 else None
    if not isinstance(data, dict):
        raise SpecError.one("not a pointer: it is not a map", at=path, next=_RESTORE)
    api = str(data.get("apiVersion", _API))
    if re.fullmatch(rf"{re.escape(_API)}(\.\d+)?", api) is None:
        what = f"this pointer has format {api}, and this symph reads {_API}"
        raise SpecError.one(what, at=path, next="install a newer symph")
    try:
        known = {key: value for key, value in data.items() if key != "apiVersion" or api != _API}
        return _pointer(known, is_release=has_release)
    except (ValueError, msgspec.ValidationError) as error:
        raise SpecError.one(f"not a pointer: {error}", at=path, next=_RESTORE) from error


_RESTORE = "restore it from Git's history"


def _pointer(data: Values, *, is_release: bool) -> Pointer:
    """Return the pointer of `data`; unknown fields are set aside at the top, in the destination and in the history."""
    data, unknown = _known(data, Pointer)
    if isinstance(place := data.get("destination"), dict):
        data["destination"], rest = _known(place, Destination)
        unknown |= {"destination": rest} if rest else {}
    if isinstance(history := data.get("history"), list):
        data["history"] = [_entry(each) for each in history]
    return msgspec.structs.replace(convert(data, Pointer), unknown=unknown, is_release=is_release)


def _entry(data: object) -> object:
    known, unknown = _known(data, Deployed) if isinstance(data, dict) else (None, None)
    return data if known is None else {**known, "unknown": unknown}


def _known(data: Values, record: type[msgspec.Struct]) -> tuple[Values, Values]:
    names = set(record.__struct_fields__) - {"unknown", "is_release"}
    known = {key: value for key, value in data.items() if key in names}
    return known, {key: value for key, value in data.items() if key not in names}


def render_pointer(pointer: Pointer, source: FluxSource | None = None, root: str = "") -> bytes:
    """Return the file of a pointer; equal pointers give the same bytes. With Flux's `source` it is a HelmRelease."""
    data: Values = {"apiVersion": _API, **_flat(pointer)}
    del data["is_release"]
    place = data["destination"]
    # Fields that only Flux reads are omitted if not set.
    known = {key: value for key, value in sub(place).items() if value or key in _ALWAYS}
    data["destination"] = {**known, **sub(pointer.unknown, "destination")}
    data["history"] = [_flat(each) for each in pointer.history]
    if source is None:
        return (_HEADER + dump(data)).encode()
    return (_HEADER + dump_all(documents_of(data, pointer.destination, source, root=root))).encode()


def _flat(record: Pointer | Deployed) -> Values:
    # Numbers from settings keep their spelling, which msgspec does not know.
    data = msgspec.to_builtins(record, enc_hook=float)
    return {**{key: value for key, value in data.items() if key != "unknown"}, **data["unknown"]}


def published_digest(files: Mapping[str, bytes]) -> str:
    """Return the digest of the published chart with `files`; empty if it no longer is a chart."""
    return content_digest(packed(files)) if "Chart.yaml" in files else ""


# A pointer keeps both: `values` are the running values, `settings` the part that came from settings when it was
# written. The difference is the environment's own, from any source, so later settings apply wherever it sets nothing.

_ABSENT = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The options of a command about an environment's values.

    With `files` None its own values are kept, else `files` replace all of them; `sets` are assigned like helm's
    ``--set``; `unset` are paths at which the environment shall have no value of its own.
    """

    files: Mapping[str, object] | None = None
    sets: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()


def environment_values(values: Values, old_settings: Values, settings: Values | None, given: Given) -> Values:
    """Return the new values of an environment with the current `values`, of which `old_settings` came from settings.

    `settings` are the current ones, None if they cannot be read.
    """
    settings = old_settings if settings is None else settings
    if given.files is None:
        result = _rebased(values, old_settings, settings)
    else:
        result = user_values(Overrides(files=(settings, given.files)))
    for path in given.unset:
        for keys in _leaves(user_values(Overrides(sets=(f"{path}=null",)))):
            result = _replaced(result, keys, _at(settings, keys))
    return user_values(Overrides(files=(result,), sets=given.sets))


def _rebased(values: Mapping[str, object], old: Mapping[str, object], new: Mapping[str, object]) -> Values:
    result: Values = {}
    for key in dict.fromkeys((*values, *new)):
        own, before, after = (layer.get(key, _ABSENT) for layer in (values, old, new))
        if own == before:
            kept = after
        elif isinstance(own, Mapping) and (isinstance(before, Mapping) or isinstance(after, Mapping)):
            kept = _rebased(own, _map(before), _map(after)) or _ABSENT
        elif own is _ABSENT and isinstance(after, Mapping):
            kept = _rebased({}, _map(before), after) or _ABSENT
        else:
            kept = own
        if kept is not _ABSENT:
            result[key] = kept
    return result


def _map(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _leaves(values: Mapping[str, object], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key)


def _at(values: object, keys: Sequence[str]) -> object:
    for key in keys:
        values = values.get(key, _ABSENT) if isinstance(values, Mapping) else _ABSENT
    return values


def _replaced(values: Mapping[str, object], keys: Sequence[str], value: object) -> Values:
    """Return `values` with `value` at `keys`; if `value` is absent, remove the key and maps that become empty."""
    result, (key, *rest) = dict(values), keys
    if rest:
        inner = _replaced(_map(values.get(key)), rest, value)
        value = inner or _ABSENT
    if value is _ABSENT:
        result.pop(key, None)
    else:
        result[key] = value
    return result
