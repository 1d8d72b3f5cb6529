"""Settings of a project and a user (`.symph.yaml`), their JSON Schema, and values files.

The user's settings are in $XDG_CONFIG_HOME/symph/config.yaml, with the same keys; those of a project win.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from symphony_charts.errors import Problem, SpecError, UsageError
from symphony_charts.formats.data import Values, sub
from symphony_charts.formats.field_reader import record_faults
from symphony_charts.formats.names import address_fault, hint, repository_fault
from symphony_charts.formats.yaml_read import load
from symphony_charts.settings.places import project_file, user_file
from symphony_charts.spec.files import read_stdin, with_location
from symphony_charts.spec.json_schema import described_schema
from symphony_charts.system.records import convert

_IN_CLUSTER = "https://kubernetes.default.svc"


class Destination(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Place of an environment: a cluster, by its address or its name in Argo CD, and a namespace.

    Flux reaches another cluster by the Secret `kubeconfig`, and installs as `service_account` where one is named.
    """

    server: str = _IN_CLUSTER
    name: str = ""
    namespace: str = "default"
    kubeconfig: str = ""
    service_account: str = ""

    @property
    def is_own_cluster(self) -> bool:
        """True if it is the cluster in which Argo CD or Flux runs."""
        return not self.name and self.server == _IN_CLUSTER


class Repository(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Git repository of charts; a string is its `url`.

    Attributes:
        url: Address, as git accepts it, without a password.
        branch: Branch that Argo CD or Flux reads.
        author: Author of commits, `NAME <ADDRESS>`; if empty, git's own setting.
        path: Folder for charts and environments in a larger repository.
    """

    url: str
    branch: str = "main"
    author: str = ""
    path: str = ""

    def __post_init__(self) -> None:
        """Raise SpecError for an address that is unsafe to pass to git."""
        if fault := repository_fault(self.url, "repository.url"):
            raise SpecError([fault])


class Environment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Environment: a cluster, a namespace, and values for all experiments in it.

    Attributes:
        certificate: Certificate for sealed Secrets: a file next to the settings, an address, or `cluster`.
        context: Context of the kubeconfig, for `status`.
        server: Address of the cluster's API server; by default the cluster of Argo CD or Flux.
        cluster: Argo CD's name of the cluster, instead of `server`.
        namespace: Namespace on that cluster.
        kubeconfig: For Flux: Secret with the kubeconfig of another cluster.
        service_account: For Flux: service account that installs the releases.
        values: Chart values for every experiment in this environment.
    """

    certificate: str | None = None
    context: str | None = None
    server: str = _IN_CLUSTER
    cluster: str = ""
    namespace: str = "default"
    kubeconfig: str = ""
    service_account: str = ""
    values: Values = {}

    def __post_init__(self) -> None:
        """Raise SpecError for an address with a password."""
        if fault := address_fault(self.server, "server"):
            raise SpecError([fault])

    @property
    def destination(self) -> Destination:
        """The environment's destination as a pointer writes it."""
        return Destination(
            server=self.server,
            name=self.cluster,
            namespace=self.namespace,
            kubeconfig=self.kubeconfig,
            service_account=self.service_account,
        )


class AllowedLeak(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Allowed findings of the leak guard: one by its fingerprint, or all of a rule or pattern in some files.

    Attributes:
        fingerprint: Fingerprint from the error message.
        rule: Rule of the guard, instead of a fingerprint.
        pattern: Regular expression for the whole text that was found, instead of a fingerprint.
        path: Files in which rule or pattern count: their path or its end, with `*` for any text; if empty, all.
        reason: Reason why it is not a secret.
    """

    reason: str
    fingerprint: str = ""
    rule: str = ""
    pattern: str = ""
    path: str = ""


class Defaults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Defaults of options that neither the command line nor an environment variable sets.

    Attributes:
        on: Backend of experiments: this machine or a cluster.
        namespace: Namespace of the cluster.
        context: Context of the kubeconfig.
        env: Environment of the repository.
        output: Output format, for verbs that support it.
    """

    on: Literal["", "tmux", "kube"] = ""
    namespace: str = ""
    context: str = ""
    env: str = ""
    output: Literal["", "table", "wide", "json", "yaml", "name"] = ""

    @property
    def given(self) -> dict[str, str]:
        """The options that are set."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name))}


class Keys(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys of `.symph.yaml` and of your own settings file.

    Attributes:
        team: Team of experiments whose spec does not set one.
        repository: Git repository of charts; a string is its address.
        environments: Environments by name; a list of names uses the defaults.
        pools: Files of node pools for specs without `placement.pools`, relative to this file.
        template: Fork of the chart template for `package`: a folder or `URL@REVISION`.
        allow_leaks: Findings of the leak guard that are allowed.
        defaults: Defaults of command line options.
    """

    team: str = ""
    repository: Repository | None = None
    environments: dict[str, Environment] = {}
    pools: list[str] = []
    template: str = ""
    allow_leaks: list[AllowedLeak] = []
    defaults: Defaults = Defaults()


class Settings(Keys, frozen=True, kw_only=True):
    """Settings of all experiments of a project; `path` is the file, None without one."""

    path: Path | None = None

    def environment(self, name: str | None) -> str:
        """Return environment `name`, or the only one if it is None. Raises UsageError if it is ambiguous or unknown."""
        names = list(self.environments)
        if name is None and len(names) == 1:
            return names[0]
        if name is None:
            which = (
                f"--env {' or --env '.join(names)}" if names else "give --env NAME, or list environments in .symph.yaml"
            )
            raise UsageError("which environment?", next=which)
        if "=" in name:
            raise UsageError(f'"{name}" is not an environment', next=f"to set a variable of processes: -E {name}")
        if names and name not in names:
            step = hint(name, names, f"choose one of: {', '.join(names)}")
            # Without a project's file, they are the user's.
            raise UsageError(f'unknown environment "{name}"', f"{self.path or user_file()}, environments", step)
        return name


_NONE = Settings()


def find_settings(folder: Path) -> Settings:
    """Return the settings for `folder`: the project's over the user's.

    Each key of the project's file replaces the user's key; of `defaults`, each option does. Raises SpecError as
    `settings_files` does.
    """
    together = Settings()
    for layer in reversed(settings_files(folder)):
        given = {
            key: getattr(layer, key) for key in Keys.__struct_fields__ if getattr(layer, key) != getattr(_NONE, key)
        }
        given["defaults"] = msgspec.structs.replace(together.defaults, **layer.defaults.given)
        given["path"] = layer.path if layer.path != user_file() else None
        together = msgspec.structs.replace(together, **given)
    return together


def settings_of_spec(spec: Path) -> Settings:
    """Return the settings of the spec file's project. Raises SpecError as `settings_files` does."""
    return find_settings(spec.absolute().parent)


def settings_files(folder: Path) -> list[Settings]:
    """Return the settings files for `folder`: the project's, then the user's.

    Raises SpecError if a folder has two, or for invalid content.
    """
    files = [project_file(folder), user_file()]
    return [read_settings(file) for file in files if file is not None and file.is_file()]


def default_options() -> dict[str, tuple[str, str]]:
    """Return defaults of options for the current folder, each with the file that sets it."""
    layers = reversed(settings_files(Path()))
    return {key: (value, str(layer.path)) for layer in layers for key, value in layer.defaults.given.items()}


def read_settings(path: Path) -> Settings:
    """Return the settings in the file `path`. Raises SpecError with the line of every invalid key."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SpecError.one(f"cannot read the settings {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SpecError.one("the settings are not UTF-8 text", at=str(path), next="save them as UTF-8") from error
    try:
        settings = _settings_in(load(text, Defaults.__struct_fields__))
    except SpecError as error:
        raise with_location(error, path, text) from error
    # Paths in settings are relative to the settings file, not to the current folder.
    pools = [str(path.parent / Path(pool).expanduser()) for pool in settings.pools]
    environments = {name: _placed(each, path.parent) for name, each in settings.environments.items()}
    fork = path.parent / Path(settings.template).expanduser()
    template = str(fork) if settings.template and fork.is_dir() else settings.template
    return msgspec.structs.replace(settings, path=path, pools=pools, template=template, environments=environments)


def _settings_in(data: object) -> Settings:
    """Return the settings in `data`, in any of the short forms. Raises SpecError with every fault."""
    if not isinstance(data, dict):
        raise SpecError.one("the settings must be a map", next="begin with `team:` and `repository:`")
    data = dict(data)
    if isinstance(data.get("repository"), str):
        data["repository"] = {"url": data["repository"]}
    if isinstance(data.get("environments"), list):
        data["environments"] = {str(name): {} for name in data["environments"]}
    if isinstance(data.get("environments"), dict):
        data["environments"] = {name: value or {} for name, value in data["environments"].items()}
    if isinstance(data.get("pools"), str):
        data["pools"] = [data["pools"]]
    faults = list(record_faults(data, Keys))
    url = sub(data, "repository").get("url")
    if isinstance(url, str) and (fault := repository_fault(url, "repository.url")):
        faults.append(fault)
    for name, each in sub(data, "environments").items():
        server = sub(each).get("server")
        if isinstance(server, str) and (fault := address_fault(server, f"environments.{name}.server")):
            faults.append(fault)
    for index, each in enumerate(data["allow_leaks"] if isinstance(data.get("allow_leaks"), list) else []):
        faults += _faults_of_allowance(sub(each), f"allow_leaks[{index}]")
    if faults:
        raise SpecError(faults)
    return convert(data, Settings)


def _faults_of_allowance(data: dict[str, object], path: str) -> Iterator[Problem]:
    if isinstance(reason := data.get("reason"), str) and not reason.strip():
        yield Problem("the reason is empty", f"{path}.reason", "state why it is not a secret")
    has_rule = bool(data.get("rule") or data.get("pattern"))
    if bool(data.get("fingerprint")) == has_rule:
        what = "an exception needs either a fingerprint or a rule"
        yield Problem(what, path, "give a fingerprint, or a rule with a path or pattern, or a pattern")
    elif data.get("rule") and not (data.get("path") or data.get("pattern")):
        yield Problem("this disables a rule in all files", path, "add `path` or `pattern`")
    try:
        re.compile(str(data.get("pattern", "")))
    except re.error as error:
        yield Problem(f"not a regular expression: {error}", f"{path}.pattern")


def _placed(environment: Environment, folder: Path) -> Environment:
    named = environment.certificate
    if named is None or named == "cluster" or "://" in named:
        return environment
    return msgspec.structs.replace(environment, certificate=str(folder / Path(named).expanduser()))


def read_values(path: str) -> Values:
    """Return the values file `path`. Raises SpecError if it is unreadable or not a map."""
    try:
        text = _read(path).decode("utf-8")
    except (OSError, ValueError) as error:
        what = f"cannot read the values: {getattr(error, 'strerror', None) or error}"
        raise SpecError.one(what, at=path, next="give a YAML or JSON file") from error
    try:
        values = load(text)
    except SpecError as error:
        raise with_location(error, Path(path), text) from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise SpecError.one("a values file must be a map", at=path, next="begin it with KEY: VALUE")
    if "processes" in values:
        # No chart value has this name.
        step = "give it without -f; to set a value of its chart: --set groups.NAME.replicas=2"
        raise SpecError.one(f"{path} is an experiment, and -f takes a values file", at=path, next=step)
    return values


def read_text(path: str) -> str:
    """Return the text of the file `path`. Raises SpecError if it is unreadable or not UTF-8."""
    try:
        return _read(path).decode("utf-8")
    except UnicodeDecodeError as error:
        # Helm would replace invalid characters.
        what = f"the file of --set-file is not UTF-8 text: {error.reason} at byte {error.start}"
        step = "list the file under `configs` in the spec, which allows any bytes"
        raise SpecError.one(what, at=path, next=step) from error
    except (OSError, ValueError) as error:
        what = f"cannot read the file of --set-file: {error}"
        raise SpecError.one(what, at=path, next="give a readable file") from error


def _read(path: str) -> bytes:
    return read_stdin() if path.strip() == "-" else Path(path).read_bytes()


Schema: TypeAlias = "dict[str, Any]"

_RECORDS = {record.__name__: record for record in (Keys, Repository, Environment, AllowedLeak, Defaults)}


# Short forms of keys.
_SHORT: dict[str, Schema] = {
    "repository": {"type": "string"},
    "environments": {"type": "array", "items": {"type": "string"}},
    "pools": {"type": "string"},
}


def settings_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of the files that `read_settings` reads."""
    root, components = described_schema(Keys, _RECORDS, _shorten)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        # A name, not an address: no tool fetches it.
        "$id": "urn:symphony-charts:settings:v1",
        "title": "symphony-charts settings",
        **root,
        "$defs": dict(sorted(components.items())),
    }


def _shorten(name: str, schema: Schema) -> None:
    properties = schema["properties"]
    for key, form in _SHORT.items() if name == "Keys" else ():
        properties[key] = {"anyOf": [*properties[key].get("anyOf", [properties[key]]), form]}
    if name == "Keys":
        # An environment without settings is a name and a colon, which is null.
        each = properties["environments"]["anyOf"][0]
        each["additionalProperties"] = {"anyOf": [each["additionalProperties"], {"type": "null"}]}
