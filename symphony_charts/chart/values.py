"""Set and merge values as Helm does: files, then what flags assign, then both over the chart's defaults.

Source: helm/helm, pkg/cli/values/options.go (all `-f` in order, then --set-json, --set, --set-string, --set-file and
--set-literal, each in order) and pkg/chart/common/util/coalesce.go (maps merge, lists replace, null deletes). Flags
assign to what the files hold, not to the chart's defaults: an index changes one item of a list in a file, and replaces
a list of the chart.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from symphony_charts.errors import UsageError
from symphony_charts.formats.data import Values
from symphony_charts.formats.strvals import Convert, assign, assign_json, assign_literal, json_object, plain, typed


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What a command line puts over values, each kind in its order.

    `files` are the contents of `-f`; `json`, `sets`, `strings`, `from_files` and `literals` the texts of --set-json,
    --set, --set-string, --set-file and --set-literal; `contents` has the text of each file that `from_files` name.
    """

    files: tuple[Mapping[str, object], ...] = ()
    json: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    strings: tuple[str, ...] = ()
    from_files: tuple[str, ...] = ()
    literals: tuple[str, ...] = ()
    contents: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any((self.files, self.json, self.sets, self.strings, self.from_files, self.literals))


def user_values(overrides: Overrides) -> Values:
    """What files and flags say by themselves, nulls and all: what helm keeps as the values of a release."""
    values: Values = {}
    for file in overrides.files:
        values = _over(values, file)
    values = {key: _own(value) for key, value in values.items()}
    for text in overrides.json:
        whole = json_object(text)
        if whole is None:
            assign_json(values, text)
        else:
            values = _over(values, whole)
    for text in overrides.sets:
        assign(values, text, typed)
    for text in overrides.strings:
        assign(values, text, plain, "--set-string")
    for text in overrides.from_files:
        assign(values, text, _content(overrides, text), "--set-file")
    for text in overrides.literals:
        assign_literal(values, text)
    return values


def paths_of(text: str) -> list[str]:
    """The files that a text of --set-file names."""
    paths: list[str] = []
    # Whether it can be assigned depends on what is there, and is said when that is known.
    with contextlib.suppress(UsageError):
        assign({}, text, paths.append, "--set-file")
    return paths


def _over(base: Mapping[str, object], over: Mapping[str, object]) -> Values:
    """Maps merge, all else is replaced, and nulls stay: they take away defaults of the chart, later."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        result[key] = _over(old, value) if isinstance(value, Mapping) and isinstance(old, Mapping) else value
    return result


def _own(value: object) -> object:
    """A copy that shares nothing, not even within: an anchor and its aliases in a file are values of their own."""
    if isinstance(value, Mapping):
        return {key: _own(item) for key, item in value.items()}
    return [_own(item) for item in value] if isinstance(value, list) else value


def _content(overrides: Overrides, text: str) -> Convert:
    def read(path: str) -> object:
        if path not in overrides.contents:
            raise UsageError(f'"{path}" was not read', f"--set-file {text}", "name a file")
        return overrides.contents[path]

    return read


def merge(base: Mapping[str, object], over: Mapping[str, object]) -> Values:
    """`base` with `over` on top: maps merge, all else is replaced; a null takes a default away.

    A null for what `base` does not have stays, as it does in helm. Neither is changed; parts of both are shared.
    """
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        if value is None and key in result:
            del result[key]
        elif isinstance(value, Mapping) and isinstance(old, dict):
            result[key] = merge(old, value)
        else:
            result[key] = value
    return result


def overrides_between(base: Mapping[str, object], wanted: Mapping[str, object]) -> Values:
    """Return the smallest values that, merged over `base`, give `wanted`. They never hold `specDigest`."""
    overrides: Values = {key: None for key in base if key not in wanted}
    for key, value in wanted.items():
        old = base.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            inner = overrides_between(old, value)
            overrides |= {key: inner} if inner else {}
        elif key not in base or old != value or type(old) is not type(value):
            overrides[key] = value
    # It says which chart the values belong to.
    overrides.pop("specDigest", None)
    return overrides
