"""Methods answer to Symphony's keywords, too, where this package calls the same parameter otherwise."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

__all__ = ["ADDED", "CLUSTER", "POD", "SPEC", "respelled", "speaks"]

_Class = TypeVar("_Class", bound=type)
Words = Mapping[str, str]

# Symphony's keyword -> ours, by method.
CLUSTER: Mapping[str, Words] = {
    "describe_process": {"process_group_name": "process_group"},
    "describe_process_group": {"process_group_name": "process_group"},
    "exec_command": {"process_group_name": "process_group"},
    "login": {"process_group_name": "process_group"},
    "external_service": {"service_name": "service"},
    "external_url": {"service_name": "service"},
    "fuzzy_match_process": {"proc_name": "name", "exp_name": "experiment_name"},
    "launch_batch": {"experiment_configs": "exps", "experiment_specs": "exps"},
    "launch": {"experiment_config": "exp", "experiment_spec": "exp", "spec": "exp"},
    "delete_batch": {"experiments": "experiment_names"},
    "transfer_file": {"src": "src_path", "dest": "dest_path"},
    "set_experiment": {"namespace": "experiment_name"},
}
SPEC: Mapping[str, Words] = {
    "add_process_group": {"process_group": "group"},
    "add_process_groups": {"process_groups": "groups"},
    "set_preamble_cmds": {"preamble_cmds": "cmds"},
}
ADDED: Mapping[str, Words] = {"add_processes": {"processes": "processes"}}
POD: Mapping[str, Words] = {
    "set_envs": {"di": "envs", "env": "envs"},
    "mount_volume": {"path": "mount_path"},
}


def speaks(*tables: Mapping[str, Words]) -> Callable[[_Class], _Class]:
    """A decorator of classes whose methods also take the keywords of `tables`."""

    def change(cls: _Class) -> _Class:
        for table in tables:
            for name, words in table.items():
                method = inspect.getattr_static(cls, name)
                if isinstance(method, classmethod):
                    setattr(cls, name, classmethod(respelled(method.__func__, words)))
                else:
                    setattr(cls, name, respelled(method, words))
        return cls

    return change


def respelled(method: Callable[..., Any], words: Words) -> Callable[..., Any]:
    """`method`, to which a keyword of `words` means the one of ours that it maps to."""
    parameters = inspect.signature(method).parameters
    several = {theirs for theirs, ours in words.items() if parameters[ours].kind is inspect.Parameter.VAR_POSITIONAL}

    @wraps(method)
    def call(*args: Any, **keywords: Any) -> Any:
        args = (*args, *(keywords.pop(theirs) for theirs in several if theirs in keywords))
        return method(*args, **{words.get(name, name): value for name, value in keywords.items()})

    call.__keywords__ = {**getattr(method, "__keywords__", {}), **words}  # type: ignore[attr-defined] # for the tests
    return call
