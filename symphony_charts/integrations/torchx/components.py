"""Call TorchX components through an installed TorchX."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from symphony_charts.errors import NotFound, SpecError, SymphError, ToolFailed, ToolMissing


def load_appdef(component: str, arguments: Sequence[str]) -> object:
    """Return the application that a component makes of `arguments`, as plain data.

    `component` is `module:function`, `file.py:function` or one of TorchX's own names (`dist.ddp`).

    Raises ToolMissing without TorchX, NotFound if there is no such component, ToolFailed if it fails.
    """
    if importlib.util.find_spec("torchx") is None:
        raise ToolMissing(
            f"the component {component} needs TorchX, which is not installed; an AppDef as JSON needs no TorchX",
            extra="torchx",
        )
    builders = importlib.import_module("torchx.specs.builders")
    function = _find(component)
    try:
        app: object = builders.materialize_appdef(function, list(arguments))
    except SystemExit as error:  # TorchX parses the arguments with argparse, which exits
        raise ToolFailed(f"component {component} refused its arguments", next="see its message above") from error
    except Exception as error:  # the component is the user's code and may raise anything
        raise SpecError.one(f"component {component} failed: {type(error).__name__}: {error}") from error
    if not dataclasses.is_dataclass(app) or isinstance(app, type):
        raise ToolFailed(f"component {component} returned a {type(app).__name__}, not an AppDef")
    return plain_data(dataclasses.asdict(app))


def installed_version() -> str:
    """Return the version of the installed TorchX; empty without one."""
    try:
        return str(importlib.import_module("torchx").__version__)
    except ImportError:
        return ""


def _find(component: str) -> Callable[..., object]:
    module_name, _, name = component.rpartition(":")
    try:
        if not module_name:
            finder = importlib.import_module("torchx.specs.finder")
            component_function: object = finder.get_component(component).fn
        elif module_name.endswith(".py"):
            component_function = getattr(_load_file(Path(module_name)), name)
        else:
            component_function = getattr(_import(module_name), name)
    except SymphError:
        raise
    except AttributeError as error:
        raise NotFound(f'{module_name} has no component "{name}"') from error
    except Exception as error:  # importing runs the user's code; TorchX's finder has its own errors
        what = f"cannot find component {component}: {type(error).__name__}: {error}"
        raise (SpecError.one(what) if module_name else NotFound(what)) from error
    if not callable(component_function):
        raise NotFound(f"{component} is not a function")
    return component_function


def _import(name: str) -> object:
    """Return the module `name`; the working folder is on the path, as in TorchX."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    return importlib.import_module(name)


def _load_file(path: Path) -> object:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise SpecError.one(f"cannot read {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain_data(value: object) -> object:
    """Return a TorchX value as plain data: enumerations as values, tuples as lists, other objects as text."""
    if isinstance(value, dict):
        return {str(key): plain_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_data(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return str(getattr(value, "value", value))
    return value if isinstance(value, (int, float)) else str(value)
