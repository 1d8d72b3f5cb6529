"""The checks of environment variables judge their names, sources, and the order in which `$(VAR)` sees them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from symphony_charts.errors import Problem
from symphony_charts.spec.checks.entries import ProcessEntry
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.sources import EnvSource, EnvValue
from symphony_charts.spec.variable_names import RESERVED, reference_order

__all__ = ["env_faults", "may_be_set"]

# Kubernetes' own rule; its relaxed one, which takes nearly everything, is not on every cluster.
_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*", re.ASCII)
_REFERENCE = re.compile(r"\$(?:\$|\(([^()$]*)\))")


def env_faults(experiment: Experiment, entries: list[ProcessEntry]) -> Iterator[Problem]:
    """Yield faults of all variables of processes, steps and the local mode."""
    for entry in entries:
        if entry.process.env:
            yield from _faults(entry.process.env, f"{entry.path}.env")
        local = entry.process.local
        if local is not None and local.env:
            yield from _faults({**entry.process.env, **local.env}, f"{entry.path}.local.env", only=local.env)
    for name, step in experiment.prepare.items():
        yield from _faults(step.env, f"prepare.{name}.env")
    yield from _faults(experiment.local.env, "local.env")


def may_be_set(name: str) -> bool:
    """Return True if a variable of this name may be set by an experiment."""
    return _NAME.fullmatch(name) is not None and name not in RESERVED


def _references_in(text: str) -> list[str]:
    """Return the names in ``$(NAME)`` of `text`; ``$$(NAME)`` is no reference.

    Source: kubernetes/kubernetes, third_party/forked/golang/expansion/expand.go.
    """
    return [match[1] for match in _REFERENCE.finditer(text) if match[1]]


def _faults(env: Mapping[str, EnvValue], path: str, only: Mapping[str, EnvValue] | None = None) -> Iterator[Problem]:
    for name, value in env.items():
        if only is not None and name not in only:
            continue
        here = f"{path}.{name}"
        if not _NAME.fullmatch(name):
            next_step = "use letters, digits, underscores, dots and dashes, no digit first"
            yield Problem(what=f'"{name}" cannot be the name of a variable', path=here, next=next_step)
        elif name in RESERVED:
            what = f'"{name}" says who the process is and cannot be set'
            yield Problem(what=what, path=here, next="choose another name")
        if isinstance(value, EnvSource):
            yield from _source_faults(value, here)
        elif "$(" in value:
            yield from _reference_faults(name, value, env, here)


def _reference_faults(name: str, value: str, env: Mapping[str, EnvValue], path: str) -> Iterator[Problem]:
    """Entries without `$(` come first, then those with it in their order: what comes later is not seen."""
    for reference in _references_in(value):
        other = env.get(reference)
        if isinstance(other, str) and "$(" in other and reference_order(reference) >= reference_order(name):
            what = f'"{name}" refers to "{reference}", which is set after it'
            if reference == name:
                what = f'"{name}" refers to itself'
            next_step = "variables with references are set in the order of their names: rename one of them"
            yield Problem(what=what, path=path, next=next_step)


def _source_faults(source: EnvSource, path: str) -> Iterator[Problem]:
    kinds = [kind for kind in ("secret", "config", "field", "resource") if getattr(source, kind) is not None]
    if len(kinds) != 1:
        given = " and ".join(kinds) or "none of secret, config, field and resource"
        yield Problem(what=f"a value comes from one place, not {given}", path=path, next="keep one of them")
    elif kinds[0] in ("secret", "config") and not source.key:
        yield Problem(what=f"which key of the {kinds[0]}?", path=path, next="add `key:`")
    elif kinds[0] in ("field", "resource") and source.key is not None:
        yield Problem(what=f"a {kinds[0]} has no key", path=f"{path}.key", next="drop it")
