"""Build the chart of an experiment: its helpers, templates, values and files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from symphony_charts.chart.build import conductor, data, pods, services
from symphony_charts.chart.build import notes as build_notes
from symphony_charts.chart.build.containers import container_helpers
from symphony_charts.chart.build.draft import MAX_NAME, Draft, draft, with_names
from symphony_charts.chart.build.faults import check_helper, container_faults, experiment_faults
from symphony_charts.chart.build.registry import KINDS, peers_of
from symphony_charts.chart.build.values import chart_values
from symphony_charts.chart.emit import Emitter
from symphony_charts.chart.evaluate import Evaluator, digest_helper
from symphony_charts.chart.helpers import cut, label_helpers, leaf_helpers
from symphony_charts.chart.tree import Frame, Helper, Text, Tree, function_of
from symphony_charts.errors import SpecError
from symphony_charts.kinds import registry
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import Service

# Templates that belong to no group or kind.
_TEMPLATES = ("config", "podgroup", "ingress", "secrets", "networkpolicy", "serviceaccount", "conductor")
_EXTRA = """\
{{- range .Values.extraObjects }}
---
{{ toYaml . }}
{{- end }}
"""


@dataclass(frozen=True, kw_only=True)
class Release:
    """A release as Helm sees it, without its values.

    `alias` is the chart's name in a parent chart, if it has one. A release that `is_draft` is only for inspection, so
    sealed secrets may be missing.
    """

    name: str
    namespace: str = "default"
    version: str = "0.1.0"
    service: str = "Helm"
    alias: str = ""
    is_draft: bool = False


@dataclass(frozen=True, kw_only=True)
class BuiltChart:
    """A chart as trees.

    `templates` are by file name; `local_helpers` are the helpers that each of them defines. `notes` is NOTES.txt.
    `check` fails if a release cannot work; config.yaml begins with its Go text.
    """

    draft: Draft
    frame: Frame
    templates: Mapping[str, Tree]
    local_helpers: Mapping[str, Sequence[str]]
    values: Mapping[str, Any]
    notes: str
    check: Helper

    def texts(self) -> dict[str, str]:
        emitter = Emitter(self.frame)
        local = {name for names in self.local_helpers.values() for name in names}
        shared = [name for name in self.frame.helpers if name not in local]
        texts = {"_helpers.tpl": emitter.definitions(shared)}
        for file, tree in self.templates.items():
            texts[file] = emitter.definitions(self.local_helpers.get(file, ())) + emitter.template(tree)
        texts["config.yaml"] = f"{self._raw(self.check.go)}\n{texts['config.yaml']}{_EXTRA}"
        return {**texts, "NOTES.txt": self._raw(self.notes)}

    def _raw(self, text: str) -> str:
        return text.replace("CHART.", f"{self.frame.chart}.")

    @property
    def experiment(self) -> Experiment:
        return self.draft.experiment

    @property
    def name(self) -> str:
        return self.frame.chart

    def with_values(self, values: Mapping[str, Any]) -> BuiltChart:
        """Return the chart with other default `values`, which have their own digest."""
        check = check_helper(self.draft, values["specDigest"], self.frame.helpers.get("secretName"))
        return replace(self, values=values, check=check)

    def objects(self, values: Mapping[str, Any], release: Release) -> list[dict[str, Any]]:
        """Return the objects of a release with complete `values`.

        Raises:
            SpecError: The release cannot work; Helm would fail, too.
        """
        if not release.is_draft:
            function_of(self.check)(self._root(values, release))
        evaluator = Evaluator(self.frame, self._root(values, release))
        made = [item for tree in self.templates.values() for item in evaluator.objects(tree)]
        return [*made, *values["extraObjects"]]

    def text(self, text: str, values: Mapping[str, Any], release: Release) -> str:
        """Return the text of a `Text` format in a release, such as ``{run}`` or ``{$fullname}-web``."""
        return str(Evaluator(self.frame, self._root(values, release)).value(with_names(Text(text))))

    def secret_name(self, values: Mapping[str, Any], release: Release) -> str:
        """Return the name of the Secret that the pods of a release mount; empty if the experiment has no secrets."""
        return self.text("{secretName}", values, release) if "secretName" in self.frame.helpers else ""

    def host(self, service: str, values: Mapping[str, Any], release: Release) -> str:
        """Return the name of the Service of `service` in the namespace of a release."""
        return self.text(self.draft.name(service).format, values, release)

    def _root(self, values: Mapping[str, Any], release: Release) -> dict[str, Any]:
        return {
            "Values": values,
            "Release": {"Name": release.name, "Namespace": release.namespace, "Service": release.service},
            "Chart": {
                "Name": release.alias or self.frame.chart,
                "Version": release.version,
                "IsRoot": not release.alias,
            },
        }


def build(experiment: Experiment, allocated: Iterable[Service]) -> BuiltChart:
    """Return the chart of a finished experiment. `allocated` are its services with their ports.

    Raises:
        SpecError: No chart can run the experiment.
    """
    problems = list(experiment_faults(experiment))
    if problems:
        raise SpecError(problems)
    plan = draft(
        experiment,
        allocated,
        KINDS[experiment.workload.kind](experiment.workload),
        peers_of(experiment.compat),
        ends_services=registry.KINDS[experiment.workload.kind].ends_services(experiment),
    )
    faults = [*container_faults(plan), *plan.kind.faults(plan), *plan.peers.faults(plan)]
    if faults:
        raise SpecError(faults)
    plan = replace(plan, pods={name: pods.pod_template(plan, group) for name, group in plan.groups.items()})
    values = chart_values(plan)
    local = {group.name: data.own_variables(plan, group) for group in plan.groups.values()}
    frame = Frame(
        chart=experiment.name,
        helpers={helper.name: helper for helper in _helpers(plan, local)},
        files={**data.config_files(plan), **build_notes.scripts(plan)},
    )
    frame = _with_digests(plan, frame, values)
    return BuiltChart(
        draft=plan,
        frame=frame,
        templates=dict(_templates(plan)),
        local_helpers=_local_names(plan, local),
        values=values,
        notes=build_notes.notes(plan),
        check=check_helper(plan, values["specDigest"], frame.helpers.get("secretName")),
    )


def _with_digests(plan: Draft, frame: Frame, values: Mapping[str, Any]) -> Frame:
    """Return `frame` with the helpers that hash: the name of the ConfigMap of variables, and the run."""
    tree = with_names(data.shared_environment(plan))
    digest = digest_helper("environment", tree, frame, values, "Changes with the addresses of services.")
    name = data.environment_name_helper(digest, frame.helpers["fullname"])
    frame = replace(frame, helpers={**frame.helpers, "environment": name})
    comment = "Changes with everything that is immutable in a Job."
    live = [f"{group.path}.replicas" for group in plan.groups.values() if plan.is_scaled_live(group)]
    fixed = with_names([*pods.immutable_trees(plan), *conductor.fixed(plan)])
    run = digest_helper("run", fixed, frame, values, comment, live)
    nodes = {helper.name: helper for helper in plan.peers.helpers(plan, frame.helpers["fullname"], run)}
    return replace(frame, helpers={**frame.helpers, "run": run, **nodes})


def _local_names(plan: Draft, local: Mapping[str, list[Helper]]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = defaultdict(list)
    for group, helpers in local.items():
        is_member = plan.kind.file and plan.kind.runs(plan.groups[group])
        names[plan.kind.file if is_member else _file_of(plan, group)] += [helper.name for helper in helpers]
    names[plan.kind.file] += [helper.name for helper in plan.kind.local_helpers(plan)]
    return names


def _helpers(plan: Draft, local: Mapping[str, list[Helper]]) -> Iterable[Helper]:
    leaves = leaf_helpers(plan.fullname_limit)
    fullname = next(helper for helper in leaves if helper.name == "fullname")
    yield from leaves
    if plan.experiment.service_account:
        yield data.name_helper("serviceAccountName", "serviceAccount", fullname)
    if plan.experiment.secrets:
        suffix = cut("secrets", MAX_NAME - 1 - plan.fullname_limit)
        yield data.name_helper("secretName", "secrets", fullname, f"-{suffix}")
    if plan.experiment.service_account or any(service.is_exposed for service in plan.services.values()):
        yield data.ANNOTATIONS
    if conductor.is_conducted(plan):
        yield conductor.account_helper(fullname)
    part_of = "app.kubernetes.io/part-of"
    own = {} if part_of in plan.experiment.labels else {part_of: plan.experiment.name}
    yield from label_helpers({**own, "symph.dev/experiment": plan.experiment.name})
    yield data.OWN_LABELS
    yield data.METADATA
    # Placeholders: the real helpers hash trees that use these names.
    yield Helper(name="environment", py=str, go="-")
    run = Helper(name="run", py=lambda _: "", go="-")
    yield run
    yield from plan.peers.helpers(plan, fullname, run)
    yield pods.SELECTOR
    yield from plan.kind.helpers(plan)
    yield from pods.pod_helpers(plan)
    yield from container_helpers(plan)
    for helpers in local.values():
        yield from helpers
    yield from plan.kind.local_helpers(plan)


def _file_of(plan: Draft, group: str) -> str:
    file = f"{group}.yaml"
    # The prefix "extra-" is for files of users.
    is_taken = group in _TEMPLATES or file == plan.kind.file or group.startswith("extra-")
    return f"group-{file}" if is_taken or group.startswith("group-") else file


def _templates(plan: Draft) -> Iterable[tuple[str, Tree]]:
    for group in plan.groups.values():
        if plan.kind.runs(group):
            objects = plan.kind.group_objects(plan, group)
        else:
            objects = [pods.job(plan, group) if group.is_ended else pods.stateful_set(plan, group)]
        objects += services.services_of(plan, group)
        if objects:
            yield _file_of(plan, group.name), with_names(pods.with_group(group, objects))
    whole = plan.kind.objects(plan) if any(map(plan.kind.runs, plan.groups.values())) else []
    if whole:
        yield plan.kind.file, with_names(whole)
    yield "config.yaml", with_names(data.config_maps(plan))
    for name, tree in (
        ("podgroup", pods.pod_groups(plan)),
        ("ingress", services.routes(plan)),
        ("secrets", data.secret(plan)),
        ("conductor", conductor.objects(plan)),
        ("tests/connect", build_notes.connection_test(plan)),
    ):
        if tree:
            yield f"{name}.yaml", with_names(tree)
    if plan.experiment.security.network_policy:
        yield "networkpolicy.yaml", with_names(services.network_policies(plan))
    if plan.experiment.service_account:
        yield "serviceaccount.yaml", data.service_account()
