"""The objects of a release from its values, without helm: the twin of the templates, object by object.

For every experiment and every override of its values the real `helm template` yields the same objects; the tests hold
that for helm 3.19 and 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from symphony_charts.chart.render.dial_pod import dial_pod
from symphony_charts.chart.render.model import Model, build_model
from symphony_charts.chart.render.names import Release
from symphony_charts.chart.render.network_policies import network_policies
from symphony_charts.chart.render.run import Run, run_of, unit_of
from symphony_charts.chart.render.secrets import secret_objects
from symphony_charts.chart.render.services import exposure_objects, service_objects
from symphony_charts.chart.render.values import is_true, strings
from symphony_charts.formats.data import sub
from symphony_charts.kinds import gang
from symphony_charts.kinds.service import stateful_set

__all__ = ["Release", "Run", "assemble", "objects_of", "run_of"]


def assemble(values: Mapping[str, object], release: Release) -> list[dict[str, object]]:
    """All objects that the chart gives for merged `values`, the test pod included.

    Raises SpecError where the templates fail.
    """
    return objects_of(build_model(values, release))


def objects_of(model: Model) -> list[dict[str, object]]:
    """All objects of the release that `model` is computed for."""
    run = run_of(model)
    made = [
        *_service_account(model),
        *_config_maps(model),
        *secret_objects(model),
        *service_objects(model, run.hash),
        *exposure_objects(model),
        *network_policies(model, run.hash),
        *_workloads(model, run),
        *dial_pod(model),
    ]
    common = strings(model.values.get("commonAnnotations"))
    return [_annotated(item, common) for item in made] if common else made


def _annotated(item: dict[str, object], common: Mapping[str, str]) -> dict[str, object]:
    metadata = sub(item, "metadata")
    return {**item, "metadata": {**metadata, "annotations": {**common, **sub(metadata, "annotations")}}}


def _workloads(model: Model, run: Run) -> Iterator[dict[str, object]]:
    settings = sub(model.values, "workload")
    for one in run.gangs:
        yield gang.pod_group(one, settings, {**model.labels, "symph.dev/run": run.hash})
    yield from model.kind.build(unit_of(model, run))
    for name, group in model.groups.items():
        if not group.in_unit:
            labels = {**model.labels, "symph.dev/group": name, **({} if group.keep else {"symph.dev/run": run.hash})}
            selector = {**model.identity, "symph.dev/group": name}
            metadata = {"name": run.workload(group), "labels": labels}
            yield stateful_set(group, metadata, run.templates[name], selector)


def _service_account(model: Model) -> Iterator[dict[str, object]]:
    own = sub(model.values, "serviceAccount")
    if not is_true(own.get("create")):
        return
    metadata: dict[str, object] = {"name": model.account, "labels": model.labels}
    if own.get("annotations"):
        metadata["annotations"] = strings(own["annotations"])
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "automountServiceAccountToken": False}


def _config_maps(model: Model) -> Iterator[dict[str, object]]:
    if model.addresses:
        yield _config_map(model, model.addresses_name, {"data": model.addresses})
    if model.configs is not None:
        content = {"data": model.configs.data, "binaryData": model.configs.binary}
        yield _config_map(model, model.configs.name, {key: value for key, value in content.items() if value})


def _config_map(model: Model, name: str, content: Mapping[str, object]) -> dict[str, object]:
    metadata = {"name": name, "labels": model.labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content, "immutable": True}
