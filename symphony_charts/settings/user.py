"""The user's settings in Symphony's files, and the search for these files.

The first existing file counts: ``.symphony.yml`` in the current folder or above, the file in $SYMPH_GLOBAL_CONFIG,
``~/.symphony.yml``. The program may override its settings.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from symphony_charts.errors import Conflict, NotFound, SpecError
from symphony_charts.formats.yaml_read import load
from symphony_charts.settings.places import only_file
from symphony_charts.spec.data import to_yaml
from symphony_charts.spec.files import with_location
from symphony_charts.spec.model import Experiment
from symphony_charts.system.files import write_file

# `symph ls` imports this module, so keep it light: read YAML only if a file has the requested setting.


_NAMES = (".symphony.yml", ".symphony.yaml")
_GLOBAL = "SYMPH_GLOBAL_CONFIG"


class SymphonyConfig:
    """The configuration singleton: every call returns the same object.

    `username` is the prefix of new experiments' names; `experiment_folder` is where launched ones are saved. Projects
    add fields with `register_handler`; unknown fields of a discovered configuration file wait for their handler. The
    first call raises SpecError or NotFound for an unreadable file.
    """

    _instance: SymphonyConfig | None = None

    username: str | None
    experiment_folder: str | None
    _handlers: dict[str, Callable[[Any], object]]
    _waiting: dict[str, object]

    def __new__(cls) -> SymphonyConfig:
        if SymphonyConfig._instance is None:
            config = super().__new__(cls)
            config.username = None
            config.experiment_folder = None
            config._handlers = {"username": str, "experiment_folder": str}
            config._waiting = {}
            path = find_config_file()
            if path is not None:
                config._take(_read(path))
            SymphonyConfig._instance = config
        return SymphonyConfig._instance

    @classmethod
    def reset(cls) -> None:
        """Forget all settings and handlers; the next call searches for files again."""
        SymphonyConfig._instance = None

    def set_username(self, username: str | None) -> None:
        """Set the name prefix of experiments created from now on; None removes it."""
        self.username = username

    def set_experiment_folder(self, directory: str | Path | None) -> None:
        """Set the folder for experiments launched from now on (``~`` is the home folder); None stops saving."""
        self.experiment_folder = None if directory is None else str(directory)

    def register_handler(self, field: str, handler: Callable[[Any], object]) -> None:
        """Let `update` and configuration files set `field`; `handler` converts the data.

        Raises ValueError if the field has a handler.
        """
        if field in self._handlers:
            raise ValueError(f'the configuration field "{field}" is already registered')
        self._handlers[field] = handler
        if field in self._waiting:
            setattr(self, field, handler(self._waiting.pop(field)))

    def update(self, data: Mapping[str, object]) -> None:
        """Set fields; warn about unknown fields and ignore them."""
        for field, value in data.items():
            handler = self._handlers.get(field)
            if handler is None:
                handlers = ", ".join(sorted(self._handlers))
                warnings.warn(f'ignored the unknown configuration field "{field}" (known: {handlers})', stacklevel=2)
            else:
                setattr(self, field, handler(value))

    def load_config_file(self, path: str | Path) -> None:
        """Call `update` with the YAML or JSON file `path`. Raises NotFound or SpecError."""
        self.update(_read(Path(path).expanduser()))

    def _take(self, data: Mapping[str, object]) -> None:
        """Set the fields of a discovered file; keep unknown ones for handlers that projects register later."""
        self._waiting = {field: value for field, value in data.items() if field not in self._handlers}
        self.update({field: value for field, value in data.items() if field in self._handlers})


def find_config_file() -> Path | None:
    """Return the configuration file for the current folder, None if there is none.

    Raises SpecError if a folder has two, and NotFound if the file in $SYMPH_GLOBAL_CONFIG is missing.
    """
    here = Path.cwd()
    for parent in (here, *here.parents):
        if parent != Path.home() and (config_file := only_file(parent, _NAMES)):
            return config_file
    if chosen := os.environ.get(_GLOBAL):
        path = Path(chosen).expanduser()
        if not path.is_file():
            step = f"unset {_GLOBAL}, or write that file"
            raise NotFound(f"the file of ${_GLOBAL} does not exist: {chosen}", next=step)
        return path
    return only_file(Path.home(), _NAMES)


def _read(path: Path) -> dict[str, object]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise NotFound(f"cannot read the configuration {path}: {reason}", at=str(path)) from error
    try:
        data = load(text)
    except SpecError as error:
        raise with_location(error, path, text) from error
    if not isinstance(data, dict):
        raise SpecError.one("a configuration file must be a map of fields", at=str(path))
    return data


_FILE = "experiment.yaml"


def save_experiment(experiment: Experiment, *, force: bool = False) -> Path | None:
    """Save `experiment` in the configured folder and return its path; None without a folder.

    Raises Conflict if another experiment of that name is saved, unless `force`.
    """
    folder = SymphonyConfig().experiment_folder
    if folder is None:
        return None
    path = Path(folder).expanduser() / experiment.name / _FILE
    text = to_yaml(experiment).encode()
    if not force and path.exists():
        what = f'an experiment "{experiment.name}" is already saved'
        raise Conflict(what, at=str(path), next="pass force=True to replace it, or choose another name")
    write_file(path, text)
    return path
