"""`.symph.yaml` holds a project's settings: its team, where charts are published, and its environments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from symphony_charts.chart.render.values import Values
from symphony_charts.errors import Problem, SpecError, UsageError
from symphony_charts.formats.paths import nearest
from symphony_charts.formats.urls import address_fault, repository_fault
from symphony_charts.formats.yaml_text import load
from symphony_charts.spec.files import with_location
from symphony_charts.spec.type_errors import record_faults

__all__ = ["AllowedLeak", "Destination", "Environment", "Repository", "Settings", "find_settings", "read_settings"]

_IN_CLUSTER = "https://kubernetes.default.svc"

_NAMES = (".symph.yaml", ".symph.yml")


class Destination(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where an environment runs: a cluster by its address, or by the name Argo CD knows it by, and a namespace.

    Flux reaches another cluster by the Secret `kubeconfig`, and installs as `service_account` where one is named.
    """

    server: str = _IN_CLUSTER
    name: str = ""
    namespace: str = "default"
    kubeconfig: str = ""
    service_account: str = ""

    @property
    def is_own_cluster(self) -> bool:
        """Whether it is the cluster in which Argo CD or Flux itself runs."""
        return not self.name and self.server == _IN_CLUSTER


class Repository(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The Git repository of charts: `url`, `branch`, Argo CD's `project`; `sign` is an SSH key or ``gpg:KEYID``.

    `path` is the folder of a larger repository in which everything stands. `forge` says what kind of server it is
    (github, gitlab, gitea) where its name does not.
    """

    url: str
    branch: str = "main"
    project: str = "symph"
    author: str = ""
    sign: str = ""
    path: str = ""
    forge: Literal["", "github", "gitlab", "gitea"] = ""

    def __post_init__(self) -> None:
        """Raise SpecError for an address that git may not be given, wherever it comes from."""
        fault = repository_fault(self.url, "repository.url")
        if fault:
            raise SpecError([fault])


class Environment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where an environment runs: a cluster by `server` or by the name Argo CD gives it, a namespace, values for all.

    `certificate` is what secrets are sealed with there: a file beside the settings, an address, or ``cluster``.
    `context` is the kubeconfig's context of the cluster, by which a publish can look whether secrets are there.
    `kubeconfig` and `service_account` are for Flux: a Secret and a service account beside its HelmReleases.
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
        """Raise SpecError for an address with a password in it, wherever it comes from."""
        fault = address_fault(self.server, "server")
        if fault:
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
    """What the leak guard found and is no secret: the `fingerprint` that the refusal named, and why it may go out."""

    fingerprint: str
    reason: str


class _Keys(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys that `.symph.yaml` may hold."""

    team: str = ""
    repository: Repository | None = None
    environments: dict[str, Environment] = {}
    pools: list[str] = []
    template: str = ""
    allow_leaks: list[AllowedLeak] = []


class Settings(_Keys, frozen=True, kw_only=True):
    """What holds for every experiment of a project; `path` is the file, None where there is none.

    `template` is the fork of the chart template that `symph package` uses: a folder, or ``URL@REVISION``.
    """

    path: Path | None = None

    @property
    def allowed_leaks(self) -> frozenset[str]:
        """The fingerprints of what the leak guard lets out."""
        return frozenset(each.fingerprint for each in self.allow_leaks)

    def environment(self, name: str | None) -> str:
        """The environment `name`, or the only one where none is named. Raises UsageError where that is unclear."""
        names = list(self.environments)
        if name is None and len(names) == 1:
            return names[0]
        if name is None:
            which = f"--env {' or --env '.join(names)}" if names else "--env NAME, or list environments in .symph.yaml"
            raise UsageError("which environment?", next=which)
        if names and name not in names:
            meant = nearest(name, names)
            hint = f'did you mean "{meant}"?' if meant else f"{self.path} has {', '.join(names)}"
            raise UsageError(f'no environment is called "{name}"', next=hint)
        return name


def find_settings(folder: Path) -> Settings:
    """The settings of the nearest folder at or above `folder` that has any; empty ones where none has.

    Raises SpecError where one folder has two, or for what a file holds.
    """
    for parent in _upwards(folder):
        files = [parent / name for name in _NAMES if (parent / name).is_file()]
        if len(files) > 1:
            what = f"{files[0].name} and {files[1].name} are both there"
            raise SpecError.one(what, at=str(parent), next="keep one of them")
        if files:
            return read_settings(files[0])
    return Settings()


def read_settings(path: Path) -> Settings:
    """The settings in the file `path`. Raises SpecError with the line of every key that is wrong."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SpecError.one(f"cannot read the settings {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SpecError.one("the settings are not UTF-8 text", at=str(path), next="save them as UTF-8") from error
    try:
        settings = _settings_in(load(text))
    except SpecError as error:
        raise with_location(error, path, text) from error
    # Files that settings name count from their folder, wherever the command is typed.
    pools = [str(path.parent / Path(pool).expanduser()) for pool in settings.pools]
    environments = {name: _placed(each, path.parent) for name, each in settings.environments.items()}
    fork = path.parent / Path(settings.template).expanduser()
    template = str(fork) if settings.template and fork.is_dir() else settings.template
    return msgspec.structs.replace(settings, path=path, pools=pools, template=template, environments=environments)


def _settings_in(data: object) -> Settings:
    """The settings that `data` holds, in any of the short forms. Raises SpecError with every fault."""
    if not isinstance(data, dict):
        raise SpecError.one("settings are a map of keys", next="begin with `team:` and `repository:`")
    data = dict(data)
    if isinstance(data.get("repository"), str):
        data["repository"] = {"url": data["repository"]}
    if isinstance(data.get("environments"), list):
        data["environments"] = {str(name): {} for name in data["environments"]}
    if isinstance(data.get("environments"), dict):
        data["environments"] = {name: value or {} for name, value in data["environments"].items()}
    if isinstance(data.get("pools"), str):
        data["pools"] = [data["pools"]]
    faults = list(record_faults(data, _Keys))
    url = data["repository"].get("url") if isinstance(data.get("repository"), dict) else None
    if isinstance(url, str) and (fault := repository_fault(url, "repository.url")):
        faults.append(fault)
    for name, each in data["environments"].items() if isinstance(data.get("environments"), dict) else ():
        server = each.get("server") if isinstance(each, dict) else None
        if isinstance(server, str) and (fault := address_fault(server, f"environments.{name}.server")):
            faults.append(fault)
    listed = data.get("allow_leaks")
    faults += [
        Problem(what="no reason is given", path=f"allow_leaks[{index}].reason", next="say why it is no secret")
        for index, each in enumerate(listed if isinstance(listed, list) else [])
        if isinstance(each, dict) and isinstance(each.get("reason"), str) and not each["reason"].strip()
    ]
    if faults:
        raise SpecError(faults)
    return msgspec.convert(data, Settings)


def _placed(environment: Environment, folder: Path) -> Environment:
    named = environment.certificate
    if named is None or named == "cluster" or "://" in named:
        return environment
    return msgspec.structs.replace(environment, certificate=str(folder / Path(named).expanduser()))


def _upwards(folder: Path) -> Iterator[Path]:
    here = folder.absolute()
    home = Path.home()
    for parent in (here, *here.parents):
        yield parent
        if parent == home:
            return
