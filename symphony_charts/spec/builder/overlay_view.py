"""`pod_yml` and `container_yml`: views of the emitted objects that record edits.

Reading shows the whole object. The builder records writes (by item, attribute or `set_attr`) as a field of the
process or group if there is one, otherwise as an overlay. Values that the chart sets cannot be deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from symphony_charts.errors import SpecError
from symphony_charts.formats.data import is_merged_by_item, maps, merge_overlay, overlay_at, sub
from symphony_charts.formats.yaml_write import dump
from symphony_charts.spec.builder.common import Data
from symphony_charts.spec.overlay_fields import container_fields, laid_over, pod_fields

if TYPE_CHECKING:
    from symphony_charts.spec.builder.experiment import ExperimentSpec

# Symphony's verbs of the objects themselves, which the builder also has.
_VERBS = {
    "container": frozenset(
        (
            *("image_pull_policy", "resource_limit", "resource_request"),
            *("set_args", "set_command", "set_env", "set_envs"),
            *("mount_empty_dir", "mount_git_repo", "mount_host_path", "mount_nfs", "mount_secret"),
            *("mount_shared_memory", "mount_volume"),
        )
    ),
    "pod": frozenset(("add_label", "add_labels", "add_toleration", "mount_volume", "node_selector", "restart_policy")),
}


class OverlayView(MutableMapping[str, Any]):
    """A map of the emitted object; `data` is the view itself, as in Symphony."""

    def __init__(self, recorder: Viewed, kind: str, path: tuple[str | int, ...] = ()) -> None:
        vars(self).update(_recorder=recorder, _kind=kind, _path=path)

    _recorder: Viewed
    _kind: str
    _path: tuple[str | int, ...]

    @property
    def data(self) -> OverlayView:
        """This view, for compatibility: Symphony kept its attribute-dict under this name."""
        return self

    def to_dict(self) -> dict[str, object]:
        """Return the object as plain data; changes to it are not recorded."""
        here = _at(self._recorder.rendered(self._kind), self._path)
        return dict(here) if isinstance(here, Mapping) else {}

    def set_attr(self, change: Mapping[str, object] | None = None, **more: object) -> None:
        """Merge `change` deeply: merge maps, append lists, replace anything else."""
        for key, value in {**(change or {}), **more}.items():
            self._set_deep((*self._path, key), value)

    update = set_attr  # type: ignore[assignment] # Symphony's merges deeply

    def yml(self) -> str:
        """Return the object as YAML."""
        return str(self)

    def __getitem__(self, key: str) -> Any:
        here = self.to_dict()
        if key not in here:
            raise KeyError(key)
        return _view(self._recorder, self._kind, (*self._path, key), here[key])

    def __setitem__(self, key: str, value: object) -> None:
        _record(self._recorder, self._kind, (*self._path, key), _plain(value))

    def __delitem__(self, key: str) -> None:
        where = ".".join(str(step) for step in (*self._path, key))
        next_step = "set another value: an overlay only adds and replaces"
        raise SpecError.one(f"`{key}` cannot be deleted from the emitted {self._kind}", where, next_step)

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):
            raise AttributeError(key)
        if not self._path and key in _VERBS[self._kind]:
            return getattr(self._recorder, key)
        try:
            return self[key]
        except KeyError:
            raise AttributeError(f"the {self._kind} has no {key!r} here") from None

    def __setattr__(self, key: str, value: object) -> None:
        self[key] = value

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def __len__(self) -> int:
        return len(self.to_dict())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_dict()!r})"

    def __str__(self) -> str:
        return dump(self.to_dict())

    def _set_deep(self, path: tuple[str | int, ...], value: object) -> None:
        here = _at(self._recorder.rendered(self._kind), path)
        if isinstance(value, Mapping) and isinstance(here, Mapping):
            for key, item in value.items():
                self._set_deep((*path, key), item)
            return
        is_list = isinstance(value, (list, tuple)) and isinstance(here, (list, tuple))
        _record(self._recorder, self._kind, path, _added(path, here, value) if is_list else _plain(value))


class ViewedList(Sequence[Any]):
    """A list of the emitted object that records appended and changed items."""

    def __init__(self, recorder: Viewed, kind: str, path: tuple[str | int, ...]) -> None:
        self._recorder, self._kind, self._path = recorder, kind, path

    def to_list(self) -> list[object]:
        """Return the list as plain data."""
        here = _at(self._recorder.rendered(self._kind), self._path)
        return list(here) if isinstance(here, (list, tuple)) else []

    def append(self, item: object) -> None:
        """Add one item."""
        self.extend([item])

    def extend(self, items: Iterable[object]) -> None:
        """Add items; in a list that merges by item, change the item with the same key."""
        _record(self._recorder, self._kind, self._path, _added(self._path, self.to_list(), items))

    def __getitem__(self, index: Any) -> Any:
        here = self.to_list()
        position = range(len(here))[index]
        return _view(self._recorder, self._kind, (*self._path, position), here[position])

    def __setitem__(self, index: int, value: object) -> None:
        position = range(len(self.to_list()))[index]
        _record(self._recorder, self._kind, (*self._path, position), _plain(value))

    def __len__(self) -> int:
        return len(self.to_list())

    def __eq__(self, other: object) -> bool:
        return self.to_list() == (other.to_list() if isinstance(other, ViewedList) else other)

    __hash__ = None  # type: ignore[assignment] # a view changes with its builder

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_list()!r})"


def _record(recorder: Viewed, kind: str, path: tuple[str | int, ...], value: object) -> None:
    overlay = overlay_at(path, value, recorder.rendered(kind))
    if isinstance(overlay, dict):
        recorder.record(kind, overlay)


def _added(path: tuple[str | int, ...], here: Any, items: Any) -> list[object]:
    """Return the overlay that adds `items` to the list `here` at `path`: the whole list unless it merges by item."""
    added = [_plain(item) for item in items]
    return added if path and is_merged_by_item(str(path[-1]), added) else [*here, *added]


def _view(recorder: Viewed, kind: str, path: tuple[str | int, ...], value: object) -> object:
    if isinstance(value, Mapping):
        return OverlayView(recorder, kind, path)
    if isinstance(value, (list, tuple)):
        return ViewedList(recorder, kind, path)
    return value


def _at(whole: object, path: Iterable[str | int]) -> object:
    for step in path:
        if isinstance(step, int) and isinstance(whole, (list, tuple)) and step < len(whole):
            whole = whole[step]
        elif isinstance(whole, Mapping):
            whole = whole.get(step)
        else:
            return None
    return whole


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple, ViewedList)) else value


# Fields of an experiment that affect a pod besides the pod itself.
_POD_CONTEXT: tuple[str, ...] = ("name", "owner", "team", "image", "volumes", "security", "workload")


class Viewed:
    """A builder with a view of its pod or container that records edits."""

    name: str
    experiment: ExperimentSpec | None
    _data: Data

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def _pod_name(self) -> str:
        raise NotImplementedError

    def rendered(self, kind: str) -> Data:
        """Return the pod or container as it will be emitted; only the edits if it cannot be rendered yet."""
        pod = self.experiment.render_pod(self._pod_name()) if self.experiment is not None else None
        overlay = cast("Data", self._data.get(f"{kind}_overlay", {}))
        if pod is None:
            return dict(overlay) if kind == "container" else {"metadata": {}, "spec": {}, **overlay}
        if kind == "pod":
            return pod
        containers = [*maps(sub(pod, "spec"), "containers"), *maps(sub(pod, "spec"), "initContainers")]
        return next((container for container in containers if container.get("name") == self.name), dict(overlay))

    def record(self, kind: str, overlay: Data) -> None:
        """Record an edit as fields where they exist, and the rest as an overlay."""
        fields, rest = container_fields(overlay) if kind == "container" else pod_fields(overlay)
        self._data |= laid_over(self._data, fields)
        for field in [field for field, value in fields.items() if value is None]:
            del self._data[field]
        if rest:
            field = f"{kind}_overlay"
            self._data[field] = merge_overlay(cast("Data", self._data.get(field, {})), rest)


def alone(data: Data, name: str) -> Data:
    """Return `data` with the pod `name` only, without references to other pods."""
    kept: Data = {key: data[key] for key in _POD_CONTEXT if key in data}
    for part in ("groups", "processes"):
        pods = cast("dict[str, Data]", data.get(part, {}))
        if name in pods:
            kept[part] = {name: pods[name]}
            members = cast("dict[str, Data]", pods[name]["processes"]) if part == "groups" else {name: pods[name]}
            for process in members.values():
                process.pop("connects", None)
                process.pop("after", None)
    return kept
