"""`symph gitops init` creates a repository of charts, and asks for or reads the places of its environments.

The cluster's objects and later publishes use the same settings: those above the folder, or those that this command
writes into it.
"""

from __future__ import annotations

import argparse
import getpass
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from symphony_charts.cli import git_repository, output
from symphony_charts.errors import Conflict, SpecError, UsageError
from symphony_charts.formats.names import DNS_LABEL, repository_fault, sanitize
from symphony_charts.formats.yaml_write import dump
from symphony_charts.gitops.argocd import place_key
from symphony_charts.gitops.base import Change
from symphony_charts.gitops.bootstrap import FluxSetup, Initialise, Setup, at_top, setup_files, usual_name
from symphony_charts.gitops.flux import needs_secret
from symphony_charts.gitops.snapshot import check_names
from symphony_charts.gitops.store.store import PushResult
from symphony_charts.settings.project import Destination, Environment, Repository, Settings, read_settings
from symphony_charts.system import installation
from symphony_charts.system.files import write_file
from symphony_charts.system.git.program import origin_of

_FILE = ".symph.yaml"
_HEADER = "# What holds for every experiment in this folder and below it; `symph gitops init` wrote it first.\n"
_NEW = "rl"


def run(args: argparse.Namespace) -> int:
    """Write the files of the repository, and the settings if there are none."""
    found = git_repository.settings_of(args)
    settings = _completed(args, found)
    environments = {name: place.destination for name, place in settings.environments.items()}
    repository = settings.repository
    assert repository is not None  # noqa: S101 - _completed has checked it
    read_url = args.cluster_url or repository.url
    if fault := repository_fault(read_url, "--cluster-url"):
        raise SpecError([fault])
    name = args.name or usual_name(settings.team, repository.url)
    check_names(
        name=name, argocd_namespace=args.argocd_namespace, **({"project": args.project} if args.project else {})
    )
    flux = None
    if args.flux:
        secret = args.git_secret or (name if needs_secret(read_url) else "")
        flux = FluxSetup(git_secret=secret, sops_secret=args.sops_secret)
    setup = Setup(
        url=read_url,
        name=name,
        branch=repository.branch,
        root=repository.path,
        namespace=args.argocd_namespace,
        project=args.project,
        protects=args.protect,
        flux=flux,
    )
    files = setup_files(setup, environments, requirement=_requirement(args), forge=_forge(args, repository.url))
    above: list[tuple[Change, str]] = []
    if repository.path:
        above = [_lay_at_top(args, settings, repository, at_top(files))]
        files = {path: content for path, content in files.items() if not at_top({path: content})}
    store = git_repository.store_or_none(args, settings)
    operation = Initialise(contents=files, replaces=args.force, converts=True)
    changes, receipt = git_repository.carry_out(args, store, [operation])
    written, kept = (output.texts(changes[0].facts[key]) for key in ("written", "kept"))
    text = f"{len(written)} files" + (f", {len(kept)} left as they are: {', '.join(kept)}" if kept else "")
    text += f" in {repository.path}" if repository.path else ""
    if settings is not found:
        text += f"\n{_write_settings(settings, repository, is_dry=args.dry_run)}"
    changes = (*(change for change, _ in above), *changes)
    texts = [*(said for _, said in above), text]
    git_repository.print_changes(args, settings, changes, receipt, *texts)
    if args.output == "table" and not args.dry_run:
        output.next_step("apply bootstrap/ to the cluster as its README says", *_publish_steps(settings, environments))
    return 0


def _lay_at_top(
    args: argparse.Namespace, settings: Settings, repository: Repository, files: Mapping[str, bytes]
) -> tuple[Change, str]:
    """Commit the files that forges read only at the repository's top, before those of the folder; also describe it."""
    folder, args.repo_path = args.repo_path, ""
    whole = msgspec.structs.replace(settings, repository=msgspec.structs.replace(repository, path=""))
    store = git_repository.store_or_none(args, whole)
    changes, receipt = git_repository.carry_out(args, store, [Initialise(contents=files)])
    args.repo_path = folder
    written, kept = (output.texts(changes[0].facts[key]) for key in ("written", "kept"))
    for path in kept:
        output.warn(f"{path} is there already and stays; add to it:\n{files[path].decode().rstrip()}")
    done = f", commit {receipt.commit[:7]}" if isinstance(receipt, PushResult) and receipt.commit else ""
    names = ", ".join(written) or "none"
    return changes[0], f"{len(written)} files at the top of the repository, where forges read them: {names}{done}"


def _requirement(args: argparse.Namespace) -> str:
    """Return the requirement that the repository's CI installs; empty if it is unknown and there is no CI.

    Raises UsageError if this installation's source is not available to others.
    """
    given = args.install_from
    where = installation.pinned_source() if given is None else installation.check_pinned(given)
    if where is not None:
        return installation.requirement(where)
    if args.ci == "none":
        return ""
    what = "what shall the repository's check install? This symph did not come from where others find the same"
    raise UsageError(what, "", f"--install-from WHERE: {installation.FORMS}")


def _forge(args: argparse.Namespace, url: str) -> str:
    """Return the forge whose CI runs the check: that of `--ci`, else by host name, else all."""
    if args.ci:
        return str(args.ci)
    host = re.sub(r"^[a-z+]+://", "", url).partition("/")[0].partition(":")[0]
    return next((forge for forge in ("github", "gitlab") if forge in host), "all")


def _completed(args: argparse.Namespace, settings: Settings) -> Settings:
    """Return the settings with repository and a destination per environment; `settings` itself if a file has them all.

    Raises UsageError if an environment has no destination, Conflict if the file has another one.
    """
    given = dict(_destination(text) for text in args.destination)
    if settings.path is not None:
        if not settings.environments:
            example = _flow(given or {"dev": Environment(namespace="NAMESPACE")})
            raise UsageError(f"{settings.path} has no environments", next=f"add this to it: {example}")
        _agree(settings, given)
        return _with_repository(args, settings)
    names = list(given) or (["dev", "prod"] if output.can_ask() else [])
    unknown = [name for name in names if name not in given]
    if (unknown or not names) and not output.can_ask():
        shown = " ".join(f"--destination {name}=NAMESPACE" for name in unknown or ["dev"])
        raise UsageError("where do the environments run?", next=f"{shown}, or ENV=CLUSTER/NAMESPACE")
    for name in unknown:
        answer = output.ask(f"where does {name} run? [CLUSTER/]NAMESPACE", name)
        given |= dict([_destination(f"{name}={answer}")])
    settings = _with_repository(args, settings)
    assert settings.repository is not None  # noqa: S101 - checked by _with_repository
    team = args.team or _likely_team(settings.repository.url)
    if not args.team and output.can_ask():
        team = output.ask("whose experiments are these? TEAM", team)
    check_names(team=team)
    return msgspec.structs.replace(settings, team=team, environments={name: given[name] for name in names})


def _destination(text: str) -> tuple[str, Environment]:
    name, _, place = text.partition("=")
    cluster, _, namespace = place.rpartition("/")
    check_names(environment=name, namespace=namespace)
    if cluster.startswith(("https://", "http://")):
        return name, Environment(server=cluster, namespace=namespace)
    return name, Environment(cluster=cluster, namespace=namespace)


def _agree(settings: Settings, given: Mapping[str, Environment]) -> None:
    """Raise UsageError or Conflict unless the settings file has the environments and destinations of the flags."""
    for name, place in given.items():
        if name not in settings.environments:
            what = f"{settings.path} has no environment {name}"
            raise UsageError(what, next=f"add this to it: {_flow({name: place})}")
        said = settings.environments[name].destination
        if place_key(said) != place_key(place.destination):
            where = f"{said.name or said.server}/{said.namespace}"
            raise Conflict(f"{settings.path} lets {name} run in {where}", next="change it there, or leave it out here")


def _flow(environments: Mapping[str, Environment]) -> str:
    places = []
    for name, environment in environments.items():
        text = ", ".join(f"{key}: {value}" for key, value in _place(environment).items())
        places.append(f"{name}: {{{text}}}")
    return f"`environments: {{{', '.join(places)}}}`"


def _place(environment: Environment) -> dict[str, object]:
    """Return the settings of an environment that differ from the defaults, and always the namespace."""
    usual = Environment()
    changed = [key for key in ("server", "cluster") if getattr(environment, key) != getattr(usual, key)]
    return {key: getattr(environment, key) for key in (*changed, "namespace")}


def _with_repository(args: argparse.Namespace, settings: Settings) -> Settings:
    """Return settings with a repository: by default the origin of the checkout `--into`. Raises UsageError."""
    if settings.repository is not None:
        return settings
    url = origin_of(Path(args.into).expanduser()) if args.into is not None else ""
    if not url:
        raise UsageError("which repository is this a checkout of?", next="--repo URL")
    return msgspec.structs.replace(settings, repository=Repository(url=url))


def _likely_team(url: str) -> str:
    owner = re.split(r"[/:]", url.rstrip("/"))[-2:-1]
    is_remote = not Path(url).exists()
    if is_remote and owner and DNS_LABEL.fullmatch(owner[0].lower()):
        return owner[0].lower()
    return sanitize(getpass.getuser())


def _write_settings(settings: Settings, repository: Repository, *, is_dry: bool) -> str:
    is_here = "://" not in repository.url and Path(repository.url).is_dir()
    data = {
        "team": settings.team,
        "repository": {
            "url": str(Path(repository.url).absolute()) if is_here else repository.url,
            "branch": repository.branch,
            **({"path": repository.path} if repository.path else {}),
        },
        "environments": {name: _place(place) for name, place in settings.environments.items()},
    }
    if is_dry:
        return f"{_FILE} would be written"
    path = Path.cwd() / _FILE
    write_file(path, (_HEADER + dump(data)).encode())
    read_settings(path)
    return f"{_FILE} written: team {settings.team}, environments {', '.join(settings.environments)}"


def _publish_steps(settings: Settings, environments: Mapping[str, Destination]) -> list[str]:
    first = next(iter(environments))
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in sorted(Path.cwd().glob("*.yaml"))}
    specs = [path for path, text in texts.items() if re.search(r"^(processes|groups):", text, re.MULTILINE)]
    flags = f"--env {first}" + ("" if settings.team else " --team TEAM")
    if specs:
        return [f"symph publish {specs[0].name} {flags}"]
    return [f"symph init {_NEW}", f"symph publish {_NEW}/experiment.yaml {flags}"]
