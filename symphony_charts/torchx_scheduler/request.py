"""A request is what a dry run shows and a submission starts: an experiment, or the objects that TorchX would make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_write import dump, dump_all
from symphony_charts.importers.report import Log, Report
from symphony_charts.importers.torchx.importer import experiment_of
from symphony_charts.integrations.torchx.appdef import AppDef, read_appdef
from symphony_charts.integrations.torchx.objects import NO_VOLCANO, app_wrapper
from symphony_charts.oci.transport import Access
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.data import from_data, to_data
from symphony_charts.spec.model import Experiment
from symphony_charts.torchx_scheduler.options import Options, read

__all__ = ["SymphRequest", "request_of"]


@dataclass(kw_only=True)
class SymphRequest:
    """The request of one application, as plain data that callers may change before they schedule it.

    `on` says where it goes. `experiment` is what will be started; `objects` is what a cluster would get (empty for
    this machine), or with `is_compat` TorchX's own objects and no experiment. `workspaces` maps images to the folders
    whose files they get on submission, in `image_repo`, which is
    reached by way of `registry`.
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
        """The experiment, checked, under this name; raises SpecError."""
        return finish(from_data({**self.experiment, "name": name}), for_cluster=self.on != "tmux")

    def __str__(self) -> str:
        shown = dump_all(self.objects) if self.objects else dump(self.experiment)
        patches = (f"# {image} gets the files of {folder}\n" for image, folder in self.workspaces.items())
        return "".join(patches) + shown


def request_of(data: object, cfg: Mapping[str, object], workspaces: Mapping[str, str]) -> tuple[SymphRequest, Report]:
    """The request for an AppDef as plain data, and what became of it; nothing outside is asked.

    `workspaces` are the folders that images should have; programs here run in theirs as it is.

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
            log.note("workspace", what, "-cfg image_repo=HOST/PATH puts them there, --workspace '' says that none are")
    if options.is_compat:
        request.objects = [_torchx_object(app, options)]
        return request, Report(notes=tuple(log.notes))
    imported = experiment_of(app, options.run, log)
    request.experiment = to_data(imported.experiment)
    checked = request.named(options.app_id or imported.experiment.name)
    if options.app_id not in (None, checked.name):
        what = f'"{options.app_id}" cannot be an app id'
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
