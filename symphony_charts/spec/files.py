"""Read spec files (YAML, JSON or Python) and the files that they refer to."""

from __future__ import annotations

import base64
import difflib
import json
import re
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import msgspec

from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats.yaml_read import line_of, load_with_problems, place
from symphony_charts.spec.checks.finish import with_env
from symphony_charts.spec.checks.names import may_be_set, with_clean_names
from symphony_charts.spec.data import Lock, at_changes, changed, from_data, parse, read_record, spec_path, to_data
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.overlays import written_at
from symphony_charts.spec.python_files import refuse_words, run_file
from symphony_charts.spec.sources import ConfigFile, SecretFile, key_of
from symphony_charts.spec.variable_names import parse_env_file

SUFFIXES = (".yaml", ".yml", ".json", ".py")
_BEGIN = "create a spec: symph init NAME"
# Other suffixes: the kind of file, and the next step.
_SCRIPT = ("a shell script", "a spec names what it runs, as in `command: sh` and `args: [{name}]`; " + _BEGIN)
_ARCHIVE = ("an archive", "give the spec that it was made of; helm install NAME {name} installs a chart")
_OTHERS = {
    ".sh": _SCRIPT,
    ".bash": _SCRIPT,
    ".ipynb": ("a notebook", "save it as a program that a spec can name: jupyter nbconvert --to script {name}"),
    ".toml": ("a TOML file", "experiments are written in YAML, JSON or Python; " + _BEGIN),
    ".tf": ("a Terraform file", "`terraform show -json > cluster.json` makes a file of node pools for `--pools`"),
    ".tgz": _ARCHIVE,
    ".gz": _ARCHIVE,
    ".zip": ("an archive", "unpack it, and give the spec"),
    ".md": ("a text", _BEGIN),
    ".txt": ("a text", _BEGIN),
}
# Keys at the left margin of other formats, keys of a spec that these lack, the format, and the next step.
_SPEC_KEYS = ("processes", "groups")
_FORMATS: tuple[tuple[str, Sequence[str], str, str], ...] = (
    ("services", _SPEC_KEYS, "a docker compose file", "symph import compose {path} --to experiment.yaml"),
    ("apiVersion kind", (), "a Kubernetes manifest ({kind})", "kubectl apply -f {path} creates it; " + _BEGIN),
    ("apiVersion version", (), "the Chart.yaml of a Helm chart", "give the spec that it was made of"),
    ("repository", _SPEC_KEYS, "a settings file (.symph.yaml)", "give the spec beside it; " + _BEGIN),
    ("pools", _SPEC_KEYS, "a file of node pools", "give it to a plan: symph plan SPEC --pools {path}"),
    ("groups workload run", (), "the values of a chart", "give them with its spec: symph package SPEC -f {path}"),
    ("groups fullnameOverride", (), "the values of a chart", "give them with its spec: symph package SPEC -f {path}"),
)
# Formats of other tools, by a pattern that their text or their file's name has: the format, and the next step.
_COMPOSED_KEYS = (
    r"version|is_strict|log_level|log_location|environment| +(availability|readiness_probe|is_daemon|shutdown)"
)
_COMPOSED = "`command` of a process becomes its `cmds`, `depends_on` becomes `after`; " + _BEGIN
_TASK = "`{0}` become `cmds` of a process, nodes its `replicas`, accelerators its `gpus`; " + _BEGIN
_TOOLS: tuple[tuple[str, str, str], ...] = (
    (r"(?s)\A(?=.*^(resources|num_nodes|workdir|service):)(?=.*^(run|setup):)", "a SkyPilot task", _TASK.format("run")),
    (
        r"(?s)\A(?=.*^type: *(task|service|dev-environment)\b)(?=.*^(commands|ide|image|resources):)",
        "a dstack configuration",
        _TASK.format("commands"),
    ),
    (rf"(?s)\A(?=.*^processes:)(?!.*^(name|groups|image):).*^({_COMPOSED_KEYS}):", "a process-compose file", _COMPOSED),
    (
        r"(?s)\A(?=.*^session_name:)(?=.*^windows:)",
        "a tmuxp session",
        "each pane becomes a process, its `shell_command` the `cmds`; " + _BEGIN,
    ),
    (
        r"(?s)\A(?=.*^cluster_name:)(?=.*^(provider|available_node_types|head_node_type):)",
        "the configuration of a Ray cluster",
        "the head and the workers become processes with `ray start` in their `cmds`; " + _BEGIN,
    ),
    (
        r"(?s)\A(?=.*^blueprint_name:)(?=.*^deployment_groups:)|xpk (workload|cluster) create",
        "a file of xpk",
        "what `--command` says becomes `cmds` of a process; symph plan SPEC --pools FILE takes node pools; " + _BEGIN,
    ),
    (
        r"^def (?P<component>\w+)\((?:[^()]|\([^()]*\))*\) *-> *[\w.]*AppDef\b",
        "a TorchX component",
        "symph import torchx {path}:{component} --to experiment.yaml",
    ),
)
_NAMES: tuple[tuple[str, str, str], ...] = (
    (r"Procfile.*|.*\.[Pp]rocfile", "a Procfile", "each line becomes a process with `cmds`; " + _BEGIN),
    (r"\.torchxconfig", "settings of TorchX", "give the AppDef or the component: symph import torchx --help"),
    (
        r"values.*\.ya?ml",
        "the values of a Helm chart",
        "helm install NAME CHART -f {path} takes them; symph package SPEC -f {path} for a chart of a spec",
    ),
)


def mistaken_for(path: Path, text: str) -> SpecError | None:
    """Return an error if `text` is in another known format; None otherwise."""
    keys = {
        quoted or plain for quoted, plain in re.findall(r'^(?:[ \t{]{0,5}"(\w+)"|(\w+))[ \t]*:', text, re.MULTILINE)
    }
    kind = re.search(r'^[ \t"]*kind"?[ \t]*:[ \t]*["\']?(\w+)', text, re.MULTILINE)
    found = [form[2:] for form in _FORMATS if keys.issuperset(form[0].split()) and keys.isdisjoint(form[1])]
    tools = [(re.search(pattern, text, re.MULTILINE), what, step) for pattern, what, step in _TOOLS]
    found += [(what, step) for match, what, step in tools if match]
    found += [(what, step) for pattern, what, step in _NAMES if re.fullmatch(pattern, path.name)]
    known = next(iter(found), _OTHERS.get(path.suffix))
    if known is None:
        return None
    what, step = known
    if "{kind}" in what and kind is not None and kind[1] == "DIJob":
        what, step = "a DIJob of DI-engine", "symph import dijob {path} --to experiment.yaml"
    what = what.format(kind=kind[1] if kind else "object")
    component = next((match["component"] for match, *_ in tools if match and match.groupdict()), "")
    step = step.format(name=shlex.quote(path.name), path=shlex.quote(str(path)), component=component)
    return SpecError.one(f"this is {what}, not an experiment", str(path), step)


def absent(path: Path) -> SpecError:
    """Return the error for a missing spec, or a folder without one, with similar names."""
    if path.is_dir():
        if (path / "Chart.yaml").is_file():
            what, step = "this is the folder of a Helm chart, not an experiment", "give the spec that it was made of"
            return SpecError.one(what, str(path), f"{step}; helm install NAME {path} installs it")
        specs = [item for item in _specs_in(path) if not item.startswith(".")]
        step = f"give one: {', '.join(str(path / item) for item in specs[:4])}" if specs else _BEGIN
        return SpecError.one(f"the folder {path} has no experiment.yaml", str(path), step)
    if not path.parent.is_dir():
        return SpecError.one(
            f"the file {path} does not exist", str(path), f"the folder {path.parent} does not exist; {_BEGIN}"
        )
    specs = _specs_in(path.parent)
    # A missing default `experiment.*` file means that the folder has no default spec; list its specs.
    others = [item for item in specs if path.stem == "experiment" and not item.startswith(".")]
    if near := difflib.get_close_matches(path.name, specs, n=1):
        step = f"did you mean {path.with_name(near[0])}?"
    elif others:
        step = f"give one: {', '.join(others[:4])}"
    else:
        step = f"give the path of a .yaml, .json or .py; {_BEGIN}"
    return SpecError.one(f"the file {path} does not exist", str(path), step)


def _specs_in(folder: Path) -> list[str]:
    try:
        names = sorted(item.name for item in folder.iterdir())
    except OSError:
        return []
    return [name for name in names if name.endswith(SUFFIXES) and not name.endswith(".lock.yaml")]


# Characters that a chart's values cannot carry as text (chart traps, rule 14); such files become base64.
_NOT_TEXT = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff\ufffe\uffff]")
_HINT = "give a readable .yaml, .json or .py file"
_LOCK = ".lock.yaml"
# The spec from stdin: its paths are relative to the current folder, and the experiment's name names its lock file.
_STDIN = Path("-")
_MAX_CONFIG_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFile:
    """An experiment read from `path`, with the ports that its lock file pins (`pins`, by service).

    `written` is the experiment as written, before overlays became fields; None for a spec without text.
    """

    path: Path
    experiment: Experiment
    lock_path: Path
    lock: Lock
    written: Experiment | None = None

    @property
    def pins(self) -> dict[str, int]:
        """The fixed ports by service."""
        return self.lock.ports

    def spec_path(self, path: str) -> str:
        """Return the path in the file from which a `path` of the chart's values comes."""
        field = spec_path(path, self.experiment)
        return written_at(with_clean_names(self.written)[0], field) if self.written is not None else field


def read(path: str | Path, changes: Sequence[str] = ()) -> SpecFile:
    """Return the finished experiment in the file `path`, with the files that it refers to.

    `changes` are texts like ``processes.learner.replicas=3``, which are applied to its data first.
    Raises SpecError for faults and unreadable files, with ``file:line`` if a line is known.
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
    return path.with_name(path.stem + _LOCK)


def is_lock(path: Path) -> bool:
    """Return True if `path` has the name of a lock file."""
    return path.name.endswith(_LOCK)


def read_lock(path: Path) -> Lock:
    """Return the lock file `path`; an empty lock if there is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Lock()
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError.one(f"cannot read the lock file: {error}", at=str(path)) from error
    try:
        return parse(text)
    except SpecError as error:
        raise with_location(error, path, text) from error


def _read_text(path: Path, changes: Sequence[str]) -> tuple[Experiment, Experiment]:
    refuse_words(path)
    text = _text_of(path)
    try:
        is_json = path.suffix == ".json" and bool(text.strip())
        data, problems = (_json(text), list[Problem]()) if is_json else load_with_problems(text)
        complete = partial(with_files, folder=path.parent)
        return read_record(changed(data, changes), problems, complete=complete)
    except SpecError as error:
        raise mistaken_for(path, text) or with_location(error, path, text, changes) from error


def _read_python(path: Path, changes: Sequence[str]) -> Experiment:
    text = _text_of(path)
    try:
        result = run_file(path)
    except SpecError as error:
        if "AppDef" in text and (fault := mistaken_for(path, text)):
            raise fault from error
        raise
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
def read_stdin() -> bytes:
    """Return all of stdin; cached, since a verb may read the spec twice."""
    return sys.stdin.buffer.read()


def _text_of(path: Path) -> str:
    try:
        return read_stdin().decode("utf-8-sig") if path == _STDIN else path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise absent(path) from error
    except UnicodeDecodeError as error:
        fault = mistaken_for(path, "") or SpecError.one("the file is not UTF-8 text", str(path), "save it as UTF-8")
        raise fault from error
    except OSError as error:
        raise SpecError.one(f"cannot read {path}: {error.strerror}", str(path), _HINT) from error


_NO_COMMENTS = ("JSON does not allow comments", "remove them, or write the experiment in YAML")
_JSON_FAULTS = {"/": _NO_COMMENTS, "#": _NO_COMMENTS, "'": ("JSON texts need double quotes", "use double quotes")}


def _json(text: str) -> object:
    """Return JSON data. Unlike `json`, refuse duplicate keys."""

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if twice := [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]:
            raise SpecError.one(f'the key "{twice[0]}" appears twice in one map', twice[0], "keep one of them")
        return dict(pairs)

    try:
        data: object = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        other = (error.msg, "check this place and the text before it")
        what, step = _JSON_FAULTS.get(text[error.pos : error.pos + 1], other)
        raise SpecError.one(f"not valid JSON: {what}", f"line {error.lineno}:{error.colno}", step) from error
    except RecursionError as error:
        raise SpecError.one("nested too deeply") from error
    return data


def with_location(error: SpecError, path: Path, text: str, changes: Sequence[str] = ()) -> SpecError:
    """Return `error` with file and line before the path of each fault, or with the change that caused it."""
    ours, others = at_changes(error, changes)
    located = (one.moved_to(place(str(path), one.path, partial(line_of, text))) for one in others)
    return SpecError([*ours, *located])


def with_files(experiment: Experiment, folder: Path) -> Experiment:
    """Return `experiment` with the content of its config and env files, and absolute paths of its secret files.

    Relative paths start at `folder`. Raises SpecError for all unreadable files.
    """
    if not experiment.configs and not experiment.secrets and not experiment.env_file:
        return experiment
    problems: list[Problem] = []
    folder = folder.absolute()
    configs = {name: _config(name, config, folder, problems) for name, config in experiment.configs.items()}
    secrets = [_secret(secret, folder) for secret in experiment.secrets]
    env = {
        key: value
        for number, name in enumerate(experiment.env_file)
        for key, value in _env_of(name, number, folder, problems).items()
    }
    if problems:
        raise SpecError(problems)
    experiment = msgspec.structs.replace(experiment, configs=configs, secrets=secrets, env_file=[])
    return with_env(experiment, env) if env else experiment


def _env_of(name: str, number: int, folder: Path, problems: list[Problem]) -> dict[str, str]:
    where = f"env_file[{number}]"
    try:
        env = parse_env_file(_resolve(name, folder).read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
        what = f'cannot read "{name}": {reason}'
        problems.append(Problem(what, where, "relative paths start at the folder of the spec file"))
        return {}
    if wrong := [key for key, value in env.items() if not may_be_set(key) or _NOT_TEXT.search(value)]:
        what = f'"{name}" sets {", ".join(wrong)}, which a process cannot have'
        problems.append(Problem(what, where, "write lines NAME=value; names SYMPH_* are reserved"))
    # The values are plain text: `$(NAME)` is no reference in them.
    return {key: re.sub(r"\$(?=[$(])", "$$", value) for key, value in env.items()}


def _config(name: str, config: ConfigFile, folder: Path, problems: list[Problem]) -> ConfigFile:
    if config.file is None:
        return config
    where = f"configs.{name}.file"
    try:
        data = _resolve(config.file, folder).read_bytes()
    except OSError as error:
        what = f'cannot read "{config.file}": {error.strerror}'
        problems.append(Problem(what, where, "relative paths start at the folder of the spec file"))
        return config
    if len(data) > _MAX_CONFIG_BYTES:
        what = f'"{config.file}" has {len(data):,} bytes; a ConfigMap allows 1 MiB in total'
        problems.append(Problem(what, where, "put the file into the image or on a volume"))
        return config
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if _NOT_TEXT.search(text):
        return ConfigFile(base64=base64.b64encode(data).decode("ascii"), mode=config.mode)
    return ConfigFile(text=text, mode=config.mode)


def _secret(secret: SecretFile, folder: Path) -> SecretFile:
    return msgspec.structs.replace(secret, file=str(_resolve(secret.file, folder)), key=key_of(secret))


def _resolve(name: str, folder: Path) -> Path:
    return folder / Path(name).expanduser()
