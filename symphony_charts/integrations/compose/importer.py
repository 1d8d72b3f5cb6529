"""Convert a compose file, with the files beside it, to an experiment.

Compose services find each other by name; processes do so by environment variables. The importer replaces a service
name that is an address in an environment value or an argument by the variable. Names that only programs or files dial
stay names of the process.

Source: compose-spec/compose-spec.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from symphony_charts.errors import SpecError, UsageError
from symphony_charts.formats.yaml_read import OverridingList, OverridingMap
from symphony_charts.importers.input_file import Source
from symphony_charts.importers.report import Imported, Log, build
from symphony_charts.integrations.common.fields import Fields, UniqueNames
from symphony_charts.integrations.compose.files import MOST_BYTES, ComposeFiles
from symphony_charts.integrations.compose.links import link
from symphony_charts.integrations.compose.service import NETWORKS, Service, read_service
from symphony_charts.integrations.compose.values import interpolate, without_resets
from symphony_charts.spec.variable_names import parse_env_file

_MOST_EXTENDS = 20


def _read_nothing(path: str) -> str | None:
    del path
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposeContext:
    """The context of a compose file: its default name, folder, variables and active profiles.

    `images` are the images of services, for example of built ones. `read_text` returns the text of a file that the
    compose file names (path as written), or None. `texts_below` returns the texts of a mounted file or folder,
    `is_there` returns True if such a path exists on this machine, `is_program` if such a file may be executed, and
    `is_installed` if a command is found here.
    """

    name: str = "compose"
    folder: str = "/"
    variables: Mapping[str, str] = field(default_factory=dict)
    profiles: Collection[str] = ()
    images: Mapping[str, str] = field(default_factory=dict)
    read_text: Callable[[str], str | None] = _read_nothing
    texts_below: Callable[[str], Sequence[str]] = lambda _: ()
    is_there: Callable[[str], bool] = lambda _: True
    is_program: Callable[[str], bool] = lambda _: False
    is_installed: Callable[[str], bool] = lambda _: True
    home: str = "/root"


def import_compose(source: Source, context: ComposeContext) -> Imported:
    """Return the experiment of a compose file.

    Raises SpecError with every fault.
    """
    log = Log()
    prefix = source.prefix(0)
    if len(source.documents) > 1:
        log.lost(source.prefix(1), "symph reads only the first document")
    data = interpolate(source.documents[0].data, context.variables, log, prefix)
    if isinstance(data, dict):
        data = {key: value if key == "services" else without_resets(value) for key, value in data.items()}
    root = Fields(data, prefix, log)
    files = ComposeFiles(
        root,
        context.folder,
        context.read_text,
        home=context.home,
        texts_below=context.texts_below,
        is_there=context.is_there,
        is_program=context.is_program,
    )
    services = _services(root, files, context)
    links = link(services, files, log)
    for service in services.values():
        _run_here(service.path, links[service.name], context, log)
    for key in ("name", "version", "services", "volumes", "configs", "secrets"):
        root.skip(key)
    if isinstance(networks := root.get("networks"), dict) and networks != {"default": None}:
        root.drop("networks", "networks are not carried over: every process can reach every service", NETWORKS)
    for key in root.unread():
        if key.startswith("x-"):
            root.skip(key)
    root.note_unread("is not carried over")
    names = UniqueNames(log)
    data = {
        "name": names.clean(root.text("name") or context.name, root.at("name")),
        "processes": {service.name: links[service.name] for service in services.values()},
        "volumes": files.volumes.declared,
        "configs": files.configs,
        "secrets": files.secrets,
        "prepare": files.steps,
    }
    origins = {f"processes.{service.name}": service.path for service in services.values()}
    return build({key: value for key, value in data.items() if value not in ({}, [])}, log, origins)


def _run_here(path: str, process: dict[str, object], context: ComposeContext, log: Log) -> None:
    """Let `symph up` start the `command` of a service in place of the image's program, and report services it cannot.

    Most images run a `command` as it is; on this machine there are no images.
    """
    command, args = process.get("command"), process.get("args")
    if not command and (not isinstance(args, list) or str(args[0]).startswith("-")):
        what = "`symph up` cannot start it: the image sets its program"
        log.changed(path, what, "name a program of this machine: `local: {command: [...]}`")
        return
    local: dict[str, object] = {}
    if not command:
        local |= {"command": args, "args": []}
    program = str((command if isinstance(command, list) else args)[0])  # type: ignore[index] # one of them is a list
    if not context.is_installed(program):
        what = f"`symph up` starts `{program}`, which is not installed on this machine"
        log.changed(path, what, "install it, or set `local: {command: [...]}`")
    mounts = process.get("mounts")
    places = [str(mount["at"]).rstrip("/") for mount in mounts] if isinstance(mounts, list) else []
    cwd = process.get("cwd")
    if cwd is not None and not any(f"{cwd}/".startswith(f"{place}/") for place in places):
        local["cwd"] = "."
    if local:
        process["local"] = local


def _services(root: Fields, files: ComposeFiles, context: ComposeContext) -> dict[str, Service]:
    inner = root.map("services")
    if not inner:
        root.log.fault(root.at("services"), "the file has no services", "give a compose file with `services:`")
    names = UniqueNames(root.log)
    services: dict[str, Service] = {}
    for key in inner.keys():  # noqa: SIM118 - not a dict
        fields = _extended(inner, key, root.log)
        profiles = set(fields.texts("profiles"))
        if profiles and not profiles & set(context.profiles):
            what = f'service "{key}" is not imported: its profiles ({", ".join(sorted(profiles))}) are not active'
            fields.skip(*fields.keys())
            root.log.lost(fields.path, what, f"--profile {sorted(profiles)[0]}")
            continue
        services[key] = read_service(fields, key, names.give(key, fields.path), files, context.images)
    for key in [key for key in context.images if key not in services]:
        known = ", ".join(services) or "none"
        root.log.fault(inner.path, f'--image names "{key}", which is not a service', f"the services: {known}")
    for service in services.values():
        service.drop_absent(services, root.log)
    return services


def _extended(services: Fields, key: str, log: Log) -> Fields:
    """Return the service merged with the services it extends."""
    data = services.get(key)
    path = services.at(key)
    seen = {key}
    for _ in range(_MOST_EXTENDS):
        extends = data.get("extends") if isinstance(data, dict) else None
        if extends is None or not isinstance(data, dict):
            break
        base = extends.get("service") if isinstance(extends, dict) else extends
        if isinstance(extends, dict) and extends.get("file") is not None:
            log.fault(
                f"{path}.extends",
                "symph does not read services of other files",
                "run `docker compose config` first, and import its output",
            )
            break
        held = services.get(base) if isinstance(base, str) else None
        if not isinstance(held, dict) or base in seen:
            log.fault(f"{path}.extends", "it does not extend another service of this file", "name another service")
            break
        seen.add(str(base))
        data = _merge(held, {name: value for name, value in data.items() if name != "extends"})
    if isinstance(data, dict):
        data = {name: value for name, value in data.items() if name != "extends"}
    return Fields(without_resets(data) if data is not None else {}, path, log)


def _merge(base: dict[str, object], over: dict[str, object]) -> dict[str, object]:
    """Return `base` overridden by `over`: maps merge, lists append, `command`, `entrypoint` and `!override` replace."""
    result = dict(base)
    for key, value in over.items():
        old = None if isinstance(value, (OverridingMap, OverridingList)) else result.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            result[key] = _merge(old, value)
        elif isinstance(old, list) and isinstance(value, list) and key not in ("command", "entrypoint"):
            result[key] = [*old, *(item for item in value if item not in old)]
        else:
            result[key] = value
    return result


# Files below a mounted folder that are read.
_MOST_FILES = 200


def read_compose(source: Source, args: argparse.Namespace) -> Imported:
    """Return the experiment of a compose file, with the files beside it that it names."""
    folder = Path.cwd() if args.source == "-" else Path(args.source).absolute().parent

    def read_text(name: str) -> str | None:
        try:
            return (folder / Path(name).expanduser()).read_text("utf-8")
        except (OSError, UnicodeError, ValueError, RuntimeError):
            return None  # the importer reports the unreadable name and its location

    def texts_below(name: str) -> list[str]:
        try:
            found = islice((path for path in (folder / name).rglob("*") if path.is_file()), _MOST_FILES)
            paths = [folder / name] if (folder / name).is_file() else sorted(found)
            small = [str(path) for path in paths if path.stat().st_size <= MOST_BYTES]
        except (OSError, ValueError):
            return []
        return [text for path in small if (text := read_text(path)) is not None]

    texts = [_read_text(name) for name in args.env_file] or [read_text(".env") or ""]
    variables = {name: value for text in texts for name, value in parse_env_file(text).items()}
    context = ComposeContext(
        name=args.name or folder.name or "compose",
        folder=str(folder),
        variables=variables,
        profiles=args.profile,
        images=_images(args.image),
        read_text=read_text,
        texts_below=texts_below,
        is_there=os.path.lexists,
        is_program=lambda name: os.access(folder / name, os.X_OK),
        is_installed=lambda name: "/" in name or shutil.which(name) is not None,
        home=os.path.expanduser("~"),  # noqa: PTH111 - Path.home raises where there is none
    )
    return import_compose(source, context)


def _images(given: list[str]) -> dict[str, str]:
    images: dict[str, str] = {}
    for text in given:
        service, equals, image = text.partition("=")
        if not (service and equals and image):
            raise UsageError(f'--image takes SERVICE=IMAGE, got "{text}"', next="for example: --image web=host/web:1")
        images[service] = image
    return images


def _read_text(name: str) -> str:
    try:
        return Path(name).read_text("utf-8")
    except OSError as error:
        raise SpecError.one(
            f"cannot read {name}: {error.strerror or error}", name, "give a file that exists"
        ) from error
    except UnicodeError as error:
        raise SpecError.one(f"{name} is not UTF-8 text", next="save it as UTF-8") from error
