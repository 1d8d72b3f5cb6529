"""Requests of the TorchX scheduler: options, app ids, and their submission.

TorchX asks for the image before it asks for the request. Here nothing is read or pushed until the request is
submitted, so that a dry run has no effects; until then the role's metadata records the workspace folder. Images are
pushed without Docker.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args
from urllib.parse import quote, unquote

from symphony_charts.backend.status import ExperimentStatus
from symphony_charts.clusters.base import Cluster
from symphony_charts.errors import Conflict, SpecError, UsageError
from symphony_charts.formats.data import sub
from symphony_charts.formats.names import shorten
from symphony_charts.formats.yaml_write import dump, dump_all
from symphony_charts.importers.report import Log, Report
from symphony_charts.integrations.common.fields import Fields
from symphony_charts.integrations.torchx.appdef import AppDef, read_appdef
from symphony_charts.integrations.torchx.importer import experiment_of
from symphony_charts.integrations.torchx.objects import NO_VOLCANO, app_wrapper
from symphony_charts.integrations.torchx.options import OPTIONS, SCHEDULER_OPTIONS, RunOptions, read_options
from symphony_charts.oci.images import with_images
from symphony_charts.oci.transport import Access
from symphony_charts.oci.workspace import PatchedImage, patch_image, read_workspace
from symphony_charts.package import package, template, write
from symphony_charts.prepare import prepare, prepare_experiment
from symphony_charts.secrets.files import guard_of
from symphony_charts.settings.project import find_settings
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.data import Lock, from_data, to_data, to_yaml
from symphony_charts.spec.files import SpecFile, lock_path_of, read_lock
from symphony_charts.spec.model import Experiment
from symphony_charts.system.files import write_file

Backend = Literal["tmux", "kube", "chart"]

_TYPES: Mapping[str, type] = {"str": str, "int": int, "bool": bool}
_OWN = frozenset(option.name for option in SCHEDULER_OPTIONS)
_APP_ID_HINT = "add app_id=ID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The target and form of a submission; `run` are the options that describe the application.

    `app_id` is the required name. `is_compat` requests TorchX's own objects instead of ours. `registry` is the access
    to the registry of `image_repo`.
    """

    run: RunOptions
    on: Backend = "tmux"
    context: str | None = None
    app_id: str | None = None
    dest: str = "dist"
    is_compat: bool = False
    registry: Access = field(default_factory=Access)


def declare(opts: Any, names: Collection[str] = ()) -> None:
    """Add all options, or only those in `names`, to a `torchx.specs.runopts`, with type, default and help."""
    for option in (*SCHEDULER_OPTIONS, *OPTIONS):
        if names and option.name not in names:
            continue
        opts.add(option.name, type_=_TYPES[option.type], default=option.value, help=option.help)


def read(cfg: Mapping[str, object], log: Log) -> Options:
    """Return the options of a run, ignoring those that are None. Raises SpecError with every fault."""
    given = {key: value for key, value in cfg.items() if value is not None}
    fields = Fields({key: value for key, value in given.items() if key in _OWN}, "cfg", log)
    options = Options(
        run=read_options({key: value for key, value in given.items() if key not in _OWN}, log, "cfg"),
        on=cast("Backend", _one_of(fields, "on", get_args(Backend))),
        context=fields.text("context"),
        app_id=fields.text("app_id"),
        dest=fields.text("dest") or "dist",
        is_compat=_one_of(fields, "compat", ("none", "torchx")) == "torchx",
        registry=_access(fields),
    )
    if options.is_compat and options.app_id is None:
        log.fault(
            "cfg.app_id", "TorchX's own objects need an app id, which TorchX would choose at random", _APP_ID_HINT
        )
    log.raise_faults()
    return options


def _access(fields: Fields) -> Access:
    """Return the access to the registry, from options named like helm's flags."""
    access = Access(
        plain_http=bool(fields.flag("plain_http")),
        ca_file=fields.text("ca_file") or "",
        cert_file=fields.text("cert_file") or "",
        key_file=fields.text("key_file") or "",
        insecure_skip_tls_verify=bool(fields.flag("insecure_skip_tls_verify")),
    )
    if access.plain_http and access.asks_for_tls:
        fields.log.fault(
            "cfg.plain_http", "plain_http means no TLS, and other options set up TLS", "remove one of them"
        )
    if access.key_file and not access.cert_file:
        fields.log.fault("cfg.key_file", "key_file needs cert_file", "give both")
    return access


def _one_of(fields: Fields, key: str, choices: tuple[str, ...]) -> str:
    """Return the text of a field with fixed choices; the first is the default."""
    text = fields.text(key) or choices[0]
    if text not in choices:
        fields.log.fault(fields.at(key), f'"{text}" is not a value of `{key}`', f"use one of {', '.join(choices)}")
    return text


@dataclass(kw_only=True)
class SymphRequest:
    """The request of one application, as plain data that callers may change before they schedule it.

    `on` is the target. `experiment` is what will be started. `objects` are the objects for a cluster (empty for this
    machine), or with `is_compat` TorchX's own objects and no experiment. `workspaces` maps images to the folders whose
    files they get on submission; the new images go to `image_repo`, accessed by `registry`.
    """

    on: str
    app_id: str | None
    namespace: str | None
    context: str | None
    dest: str
    experiment: dict[str, object] = field(default_factory=dict)
    objects: list[dict[str, object]] = field(default_factory=list)
    workspaces: dict[str, str] = field(default_factory=dict)
    image_repo: str | None = None
    registry: Access = field(default_factory=Access)
    is_compat: bool = False

    def named(self, name: str) -> Experiment:
        """Return the checked experiment under this name. Raises SpecError."""
        return finish(from_data({**self.experiment, "name": name}), for_cluster=self.on != "tmux")

    def __str__(self) -> str:
        shown = dump_all(self.objects) if self.objects else dump(self.experiment)
        patches = (f"# {image} gets the files of {folder}\n" for image, folder in self.workspaces.items())
        return "".join(patches) + shown


def request_of(data: object, cfg: Mapping[str, object], workspaces: Mapping[str, str]) -> tuple[SymphRequest, Report]:
    """Return the request for an AppDef in plain data, and the import's report; it needs no cluster or network.

    `workspaces` are the folders for images; programs on this machine run in their folder directly.

    Raises SpecError with every fault of the application and of the run options.
    """
    log = Log()
    app = read_appdef(data, log)
    options = read(cfg, log)
    request = SymphRequest(
        on=options.on,
        app_id=options.app_id,
        namespace=options.run.namespace,
        context=options.context,
        dest=options.dest,
        image_repo=options.run.image_repo,
        registry=options.registry,
        is_compat=options.is_compat,
    )
    if workspaces and options.on != "tmux":
        if options.run.image_repo and not options.is_compat:
            request.workspaces = dict(workspaces)
        else:
            what = f"the files of {', '.join(dict.fromkeys(workspaces.values()))} are not in the image"
            log.note("workspace", what, "to add them: -cfg image_repo=HOST/PATH; to run without them: --workspace ''")
    if options.is_compat:
        request.objects = [_torchx_object(app, options)]
        return request, Report(notes=tuple(log.notes))
    imported = experiment_of(app, options.run, log)
    request.experiment = to_data(imported.experiment)
    checked = request.named(options.app_id or imported.experiment.name)
    if options.app_id not in (None, checked.name):
        what = f'"{options.app_id}" is not a valid app id'
        raise SpecError.one(what, "cfg.app_id", f'use lower-case letters, digits and dashes: "{checked.name}"')
    request.experiment = to_data(checked)
    if options.on != "tmux":
        request.objects = [_placed(item, request.namespace) for item in prepare_experiment(checked).objects]
    return request, imported.report


def _torchx_object(app: AppDef, options: Options) -> dict[str, object]:
    if options.run.kind not in (None, "appwrapper"):
        what = f'compat=torchx makes AppWrappers, not objects of kind "{options.run.kind}"'
        raise SpecError.one(what, "cfg.kind", NO_VOLCANO)
    return app_wrapper(app, options.run, options.app_id or "")


def _placed(item: dict[str, object], namespace: str | None) -> dict[str, object]:
    metadata = item.get("metadata")
    if namespace is None or not isinstance(metadata, dict):
        return item
    return {**item, "metadata": {**metadata, "namespace": namespace}}


# `echo` is on this machine, `ml:echo` in namespace `ml` of the current cluster, `gke:ml:echo` on the cluster of context
# `gke` (percent-encoded, since contexts may contain any character), `chart::echo` a chart that was written.


@dataclass(frozen=True, slots=True, kw_only=True)
class AppId:
    """The id of experiment `name`, on this machine unless it has a namespace."""

    name: str
    namespace: str | None = None
    context: str | None = None
    is_chart: bool = False

    def __str__(self) -> str:
        if self.is_chart:
            return f"chart::{self.name}"
        parts = (quote(self.context, safe="") if self.context else None, self.namespace, self.name)
        return ":".join(part for part in parts if part)

    def cluster(self) -> Cluster:
        return cluster_of(self.namespace, self.context) if self.namespace else Cluster.new("tmux")


def parse(text: str) -> AppId:
    """Return the app id in `text`; any text is valid."""
    *cluster_parts, name = text.split(":")
    if cluster_parts == ["chart", ""]:
        return AppId(name=name, is_chart=True)
    context = unquote(":".join(cluster_parts[:-1])) or None
    return AppId(name=name, namespace=cluster_parts[-1] if cluster_parts else None, context=context)


def cluster_of(namespace: str | None, context: str | None) -> Cluster:
    return Cluster.new("kube", namespace=namespace, context=context)


_KEY = "symph.dev/workspace"


def note_workspace(metadata: dict[str, Any], workspace: str) -> None:
    """Record the folder in the metadata of a role. Raises SpecError if it is not a folder of this machine."""
    folder = workspace.removeprefix("file://")
    if "://" in folder:
        what = f"the workspace {workspace} is not a folder of this machine"
        raise SpecError.one(what, "workspace", "give --workspace FOLDER, or --workspace '' for none")
    metadata[_KEY] = folder


def take_workspaces(app: dict[str, Any]) -> dict[str, str]:
    """Remove the workspace of each image from an AppDef in plain data, and return the folders by image."""
    folders: dict[str, str] = {}
    for role in app["roles"]:
        folder = role["metadata"].pop(_KEY, None)
        if folder is not None:
            role.pop("workspace", None)
            folders.setdefault(role["image"], folder)
    return folders


def patch_workspaces(
    experiment: Experiment,
    workspaces: Mapping[str, str],
    repository: str,
    access: Access | None = None,
) -> tuple[Experiment, list[PatchedImage]]:
    """Return the experiment with images that contain the folders' files, and these images, pushed to `repository`.

    Raises Conflict for a secret in a file, and errors of reading or pushing images.
    """
    images = []
    for base, folder in workspaces.items():
        entries = read_workspace(Path(folder))
        guard_of([], find_settings(Path(folder)).allow_leaks).refuse(
            {str(Path(folder) / entry.path): entry.content for entry in entries}
        )
        images.append(patch_image(base, entries, repository, access=access))
    spec = SpecFile(path=Path("experiment.yaml"), experiment=experiment, lock_path=Path("-"), lock=Lock())
    return with_images(spec, {image.base: image.image for image in images}).experiment, images


_LONGEST = 40
_TRIES = 5
_log = logging.getLogger(__name__)


def submit(request: SymphRequest) -> AppId:
    """Start the request's experiment (with `on=chart` write its chart) and return its app id.

    Without an `app_id` it gets the experiment's name, or the first free of `name-2`, `name-3`...: every submission is a
    separate application, and earlier runs are never touched. Raises Conflict for an `app_id` that is taken.
    """
    if request.is_compat:
        next_step = f"save the dry run and create it with kubectl create -f, or use torchx run -s {_owner(request)}"
        raise UsageError("symph prints TorchX's own objects, and does not submit them", next=next_step)
    wanted = str(request.experiment["name"])
    if request.workspaces and request.image_repo:
        experiment, images = patch_workspaces(
            request.named(wanted), request.workspaces, request.image_repo, request.registry
        )
        request = replace(request, experiment=to_data(experiment), workspaces={})
        for image in images:
            _log.info("%s", f"image {image.image} is {image.base} with a layer of {image.layer_bytes} bytes")
    if request.on == "chart":
        return _write_chart(request.named(wanted), Path(request.dest))
    cluster = Cluster.new("tmux")
    if request.on != "tmux":
        cluster = cluster_of(request.namespace, request.context)
        request = replace(request, experiment=_as_new_run(request.experiment))
    experiment, status = _start(cluster, request, wanted)
    if request.on == "tmux":
        return AppId(name=experiment.name)
    namespace = status.namespace if isinstance(status, ExperimentStatus) else request.namespace
    return AppId(name=experiment.name, namespace=namespace or "default", context=request.context)


def _as_new_run(experiment: dict[str, object]) -> dict[str, object]:
    """Return the experiment with a unique run key, so that names such as `${app_id}` are unique to this run."""
    return {**experiment, "workload": {**sub(experiment, "workload"), "run_key": secrets.token_hex(8)}}


def _start(cluster: Cluster, request: SymphRequest, wanted: str) -> tuple[Experiment, object]:
    for _ in range(_TRIES - 1):
        experiment = request.named(_free(wanted, _names(cluster)) if request.app_id is None else wanted)
        try:
            return experiment, cluster.start(experiment, folder=Path.cwd(), pins={})
        except Conflict:
            # Another process may have taken the name since it was looked up.
            if request.app_id is not None or experiment.name not in _names(cluster):
                raise
    experiment = request.named(_free(wanted, _names(cluster)))
    return experiment, cluster.start(experiment, folder=Path.cwd(), pins={})


def _names(cluster: Cluster) -> set[str]:
    return {status.name for status in cluster.list(ended=True)}


def _free(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{shorten(wanted, _LONGEST - len(str(number)) - 1)}-{number}"
    return name


def _owner(request: SymphRequest) -> str:
    return "kubernetes_mcad" if request.objects[0]["kind"] == "AppWrapper" else "kubernetes"


def _write_chart(experiment: Experiment, dest: Path) -> AppId:
    """Write the chart like `symph package`, with the experiment beside it, for use without TorchX."""
    path = dest / f"{experiment.name}.yaml"
    lock_path = lock_path_of(path)
    spec = SpecFile(path=path, experiment=experiment, lock_path=lock_path, lock=read_lock(lock_path))
    write(package(prepare(spec), spec, dest, template()))
    write_file(path, to_yaml(experiment).encode())
    return AppId(name=experiment.name, is_chart=True)
