"""Spec files (YAML, JSON or Python) become experiments, with the files they name and the lock file beside them.

A Python file defines `experiment` (a builder, an Experiment or plain data) or a function `experiment()` or `main()`
that returns one; without either, the one experiment that it launches is read and not started. It runs in this process
with its folder first on `sys.path`.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.yaml_read import load
from symphony_charts.formats.yaml_text import line_of
from symphony_charts.spec.changes import at_changes, changed
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.checks.names import with_clean_names
from symphony_charts.spec.data import from_data, to_data, to_record
from symphony_charts.spec.files.mistaken import SUFFIXES, absent, mistaken_for
from symphony_charts.spec.files.python import refuse_words, run_file
from symphony_charts.spec.lockfile import Lock, parse
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.overlays import written_at
from symphony_charts.spec.paths import spec_path
from symphony_charts.spec.sources import ConfigFile, SecretFile

__all__ = ["SpecFile", "is_lock", "lock_path_of", "read", "read_lock", "with_files", "with_location"]

# What a chart's values cannot carry as text (chart traps, rule 14); such a file travels as base64.
_NOT_TEXT = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff\ufffe\uffff]")
_HINT = "give a .yaml, .json or .py that you may read"
_LOCK = ".lock.yaml"
# The spec that comes in: its paths count from the current folder, where its lock file is called like the experiment.
_STDIN = Path("-")
_LINE_SAID = re.compile(r" \(line (\d+)\)\Z")
_MAX_CONFIG_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFile:
    """An experiment read from `path`, with the ports that its lock file pins (`pins`, by service).

    `written` is the experiment as the file has it, before its overlays became fields; None if no text has it.
    """

    path: Path
    experiment: Experiment
    lock_path: Path
    lock: Lock
    written: Experiment | None = None

    @property
    def pins(self) -> dict[str, int]:
        """The ports that stay as they are, by service."""
        return self.lock.ports

    def spec_path(self, path: str) -> str:
        """Return the path in the file that a `path` of the chart's values comes from."""
        field = spec_path(path, self.experiment)
        return written_at(with_clean_names(self.written)[0], field) if self.written is not None else field


def read(path: str | Path, changes: Sequence[str] = ()) -> SpecFile:
    """Return the experiment in the file `path`, finished, with the files that it names read.

    `changes` are texts like ``processes.learner.replicas=3``, which change its data first.
    Raises SpecError, with ``file:line`` where a line is known, for faults and for a file that cannot be read.
    """
    path = Path(path).expanduser()
    if is_lock(path) and path.is_file():
        stem = path.name.removesuffix(_LOCK)
        spec = next((name for suffix in SUFFIXES if (path.parent / (name := stem + suffix)).is_file()), stem + ".yaml")
        raise SpecError.one("this is the lock file of an experiment", str(path), f"give {path.with_name(spec)}")
    if path.suffix == ".py":
        written, experiment = None, _read_python(path, changes)
    else:
        written, experiment = _read_text(path, changes)
    lock_path = Path(f"{experiment.name}{_LOCK}") if path == _STDIN else lock_path_of(path)
    lock = read_lock(lock_path)
    return SpecFile(path=path, experiment=experiment, lock_path=lock_path, lock=lock, written=written)


def lock_path_of(path: Path) -> Path:
    """Return the path of the lock file of the spec file `path`."""
    return path.with_name(path.stem + _LOCK)


def is_lock(path: Path) -> bool:
    """Return True if `path` is called as lock files are."""
    return path.name.endswith(_LOCK)


def read_lock(path: Path) -> Lock:
    """Return the lock file `path`; an empty lock when there is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Lock()
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError.one(f"cannot read the lock file: {error}", at=str(path)) from error
    try:
        return parse(text)
    except SpecError as error:
        raise SpecError(error.problems, at=str(path)) from error


def _read_text(path: Path, changes: Sequence[str]) -> tuple[Experiment, Experiment]:
    """Return the experiment as written, and finished."""
    refuse_words(path)
    text = _text_of(path)
    try:
        data = _json(text) if path.suffix == ".json" else load(text)
        written = to_record(changed(data, changes))
        return written, with_files(finish(written), path.parent)
    except SpecError as error:
        raise mistaken_for(path, text) or with_location(error, path, text, changes) from error


def _read_python(path: Path, changes: Sequence[str]) -> Experiment:
    _text_of(path)
    result = run_file(path)
    try:
        experiment = _experiment_of(result)
        return with_files(from_data(changed(to_data(experiment), changes)) if changes else experiment, path.parent)
    except SpecError as error:
        ours, others = at_changes(error, changes)
        raise SpecError([*ours, *SpecError(others, at=str(path)).problems]) from error


def _experiment_of(result: object) -> Experiment:
    if isinstance(result, Experiment):
        result = msgspec.to_builtins(result)
    if callable(build := getattr(result, "finish", None)):
        result = build()
    return result if isinstance(result, Experiment) else from_data(result)


@cache
def _stdin() -> str:
    """Return stdin; a verb may read the spec twice."""
    return sys.stdin.buffer.read().decode("utf-8-sig")


def _text_of(path: Path) -> str:
    try:
        return _stdin() if path == _STDIN else path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise absent(path) from error
    except UnicodeDecodeError as error:
        fault = mistaken_for(path, "") or SpecError.one("the file is not UTF-8 text", str(path), "save it as UTF-8")
        raise fault from error
    except OSError as error:
        raise SpecError.one(f"cannot read {path}: {error.strerror}", str(path), _HINT) from error


def _json(text: str) -> object:
    """Return JSON data. Unlike `json`, refuse a key that is there twice."""

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        data = dict(pairs)
        if len(data) < len(pairs):
            twice = next(key for number, (key, _) in enumerate(pairs) if key in dict(pairs[:number]))
            raise SpecError.one(f'the key "{twice}" stands twice in one map', twice, "keep one of them")
        return data

    try:
        data: object = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        what, step = _json_fault(error, text)
        raise SpecError.one(f"not valid JSON: {what}", f"line {error.lineno}, column {error.colno}", step) from error
    except RecursionError as error:
        raise SpecError.one("nested too deeply") from error
    return data


def _json_fault(error: json.JSONDecodeError, text: str) -> tuple[str, str]:
    rest, before = text[error.pos :], text[: error.pos].rstrip()
    if not text.strip():
        return "the file is empty", "begin with a `name` and `processes`"
    if rest.startswith(("//", "/*", "#")):
        return "JSON has no comments", "leave them out, or write the experiment in YAML"
    if rest.startswith(("}", "]")) and before.endswith(","):
        return "a comma stands before the closing bracket", "leave it out"
    if rest.startswith("'"):
        return "texts stand in double quotes", "write them so"
    if rest.startswith('"') and not before.endswith((",", "{", "[", ":")):
        return "a comma is missing before this", "write one"
    return error.msg, "look at this place, and at what stands before it"


def with_location(error: SpecError, path: Path, text: str, changes: Sequence[str] = ()) -> SpecError:
    """Return `error` with the file and line of each fault before its path, or with the change that has the fault."""
    ours, others = at_changes(error, changes)
    return SpecError([*ours, *(_located(problem, path, text) for problem in others)])


def _located(problem: Problem, path: Path, text: str) -> Problem:
    match = _LINE_SAID.search(problem.what)
    if match is None:
        return problem.moved_to(_place(path, text, problem.path))
    # Text that is not read yet has no lines for its paths; the reader says them in words.
    where = ", ".join(part for part in (f"{path}:{match[1]}", problem.path) if part)
    return Problem(what=problem.what[: match.start()], path=where, next=problem.next)


def _place(path: Path, text: str, inside: str) -> str:
    if (match := re.fullmatch(r"line (\d+), column (\d+)", inside)) is not None:
        return f"{path}:{match[1]}:{match[2]}"
    line = line_of(text, inside) if inside else None
    file = f"{path}:{line}" if line is not None else str(path)
    return file if not inside or inside.startswith("line ") else f"{file}, {inside}"


def with_files(experiment: Experiment, folder: Path) -> Experiment:
    """Return `experiment` with the content of its config files in it, and the paths of secret files absolute.

    Relative paths count from `folder`. Raises SpecError for all files that cannot be read.
    """
    if not experiment.configs and not experiment.secrets:
        return experiment
    problems: list[Problem] = []
    folder = folder.absolute()
    configs = {name: _config(name, config, folder, problems) for name, config in experiment.configs.items()}
    secrets = [_secret(secret, folder) for secret in experiment.secrets]
    if problems:
        raise SpecError(problems)
    return msgspec.structs.replace(experiment, configs=configs, secrets=secrets)


def _config(name: str, config: ConfigFile, folder: Path, problems: list[Problem]) -> ConfigFile:
    if config.file is None:
        return config
    where = f"configs.{name}.file"
    try:
        data = _resolve(config.file, folder).read_bytes()
    except OSError as error:
        what = f'cannot read "{config.file}": {error.strerror}'
        problems.append(Problem(what=what, path=where, next="relative paths count from the folder of the spec file"))
        return config
    if len(data) > _MAX_CONFIG_BYTES:
        what = f'"{config.file}" has {len(data):,} bytes; a ConfigMap holds 1 MiB in all'
        problems.append(Problem(what=what, path=where, next="put it into the image or on a volume"))
        return config
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if _NOT_TEXT.search(text):
        return ConfigFile(base64=base64.b64encode(data).decode("ascii"), mode=config.mode)
    return ConfigFile(text=text, mode=config.mode)


def _secret(secret: SecretFile, folder: Path) -> SecretFile:
    return msgspec.structs.replace(
        secret, file=str(_resolve(secret.file, folder)), key=secret.key or Path(secret.file).name
    )


def _resolve(name: str, folder: Path) -> Path:
    return folder / Path(name).expanduser()
