"""Changes of a spec from the command line: ``--spec-set processes.learner.replicas=3``, in the syntax of helm's --set.

They change the data of a spec before records are made of it, so every check of a spec holds for them, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.data import sub
from symphony_charts.formats.paths import nearest
from symphony_charts.formats.strvals import assign, typed

__all__ = ["at_changes", "changed"]

_FLAG = "--spec-set"
# What runs. A typing error in a name would add a process instead of changing one.
_RUNNING = ("processes", "groups", "prepare")


def changed(data: object, texts: Sequence[str]) -> object:
    """Return the data of a spec with what `texts` assign; null removes a key.

    Raises:
        UsageError: A text is not a list of ``PATH=VALUE``.
        SpecError: A path has the name of a process, group or step that the spec does not have.
    """
    if not texts or not isinstance(data, dict):
        return data
    result: dict[str, Any] = _copy(data)
    for text in texts:
        assigned = _assigned(text)
        problems = list(_unknown_names(assigned, result, result, ()))
        if problems:
            raise SpecError(problems)
        assign(result, text, typed, _FLAG)
        _remove_nulls(result, assigned)
    return result


def at_changes(error: SpecError, texts: Sequence[str]) -> tuple[list[Problem], list[Problem]]:
    """Return the problems of what `texts` assign, with the option as their place, and all others."""
    places = [(path, text) for text in texts for path in _leaves(_assigned(text), "")]
    ours, others = [], []
    for problem in error.problems:
        text = next((text for path, text in places if _is_below(problem.path, path)), None)
        if text is None:
            others.append(problem)
        else:
            ours.append(problem.moved_to(f"{_FLAG} {text}, {problem.path}"))
    return ours, others


def _assigned(text: str) -> dict[str, Any]:
    assigned: dict[str, Any] = {}
    assign(assigned, text, typed, _FLAG)
    return assigned


def _copy(value: Any) -> Any:
    """Return a copy that shares nothing, so an alias of YAML does not change with its anchor."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _unknown_names(assigned: Any, data: Any, spec: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[Problem]:
    """Yield a problem for each name in `assigned` of something that runs and is not in `data`."""
    for key, value in assigned.items() if isinstance(assigned, dict) else ():
        if key in _RUNNING and (not above or key == "processes") and isinstance(value, dict):
            known = sub(data, key)
            for name, inner in value.items():
                if name in known:
                    yield from _unknown_names(inner, known[name], spec, (*above, key, name))
                else:
                    leaf = next(_leaves(value, ".".join((*above, key))))
                    yield _unknown(name, ".".join((*above, key)), known, spec).moved_to(leaf)


def _unknown(name: str, path: str, known: Mapping[str, Any], spec: Mapping[str, Any]) -> Problem:
    groups = [group for group, inner in sub(spec, "groups").items() if name in sub(inner, "processes")]
    near = nearest(name, known)
    if groups:
        step = f"did you mean groups.{groups[0]}.processes.{name}?"
    elif near:
        step = f"did you mean {path}.{near}?"
    else:
        step = f"known here: {', '.join(known)}" if known else f"the spec has no {path}"
    return Problem(what=f'there is no "{name}" in {path}', next=step)


def _remove_nulls(data: Any, assigned: Mapping[str, Any]) -> None:
    for key, value in assigned.items():
        if value is None:
            data.pop(key, None)
        elif isinstance(value, dict) and isinstance(data.get(key), dict):
            _remove_nulls(data[key], value)


def _leaves(assigned: Mapping[str, Any], path: str) -> Iterator[str]:
    for key, value in assigned.items():
        inner = f"{path}.{key}" if path else key
        if isinstance(value, dict) and value:
            yield from _leaves(value, inner)
        else:
            yield inner


def _is_below(path: str, above: str) -> bool:
    return path == above or path.startswith((f"{above}.", f"{above}["))
