"""Settings that hold for every experiment of this process: who owns them, and where their specs are saved."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from symphony_charts.errors import NotFound, SpecError
from symphony_charts.spec.yaml_text import load

__all__ = ["SymphonyConfig"]


class SymphonyConfig:
    """The one configuration object: every call gives the same one.

    `username` is put before the names of new experiments; `experiment_folder` is where launched ones are saved.
    Projects add fields of their own with `register_handler`.
    """

    _instance: SymphonyConfig | None = None

    username: str | None
    experiment_folder: str | None
    _handlers: dict[str, Callable[[Any], object]]

    def __new__(cls) -> SymphonyConfig:
        if SymphonyConfig._instance is None:
            config = super().__new__(cls)
            config.username = None
            config.experiment_folder = None
            config._handlers = {"username": str, "experiment_folder": str}
            SymphonyConfig._instance = config
        return SymphonyConfig._instance

    @classmethod
    def reset(cls) -> None:
        """Forget everything that was set and registered."""
        SymphonyConfig._instance = None

    def set_username(self, username: str | None) -> None:
        """Put `username` before the names of all experiments made from now on; None stops that."""
        self.username = username

    def set_experiment_folder(self, directory: str | Path | None) -> None:
        """Save all experiments launched from now on below `directory` (``~`` is the home folder); None stops that."""
        self.experiment_folder = None if directory is None else str(directory)

    def register_handler(self, field: str, handler: Callable[[Any], object]) -> None:
        """Let `update` and configuration files set `field`, to what `handler` makes of the data.

        Raises ValueError if the field has a handler.
        """
        if field in self._handlers:
            raise ValueError(f'the configuration field "{field}" is registered already')
        self._handlers[field] = handler

    def update(self, data: Mapping[str, object]) -> None:
        """Set fields; one that nobody registered is ignored with a warning."""
        for field, value in data.items():
            handler = self._handlers.get(field)
            if handler is None:
                known = ", ".join(sorted(self._handlers))
                warnings.warn(f'no configuration field "{field}" (known: {known}); ignored', stacklevel=2)
            else:
                setattr(self, field, handler(value))

    def load_config_file(self, path: str | Path) -> None:
        """`update` with the YAML or JSON file `path`. Raises NotFound or SpecError."""
        path = Path(path).expanduser()
        try:
            data = load(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise NotFound(f"cannot read the configuration {path}: {error.strerror}", at=str(path)) from error
        except SpecError as error:
            raise SpecError(error.problems, at=str(path)) from error
        if not isinstance(data, dict):
            raise SpecError.one("a configuration file is a map of fields", at=str(path))
        self.update(data)
