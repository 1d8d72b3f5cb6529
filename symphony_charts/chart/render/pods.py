"""The pod template of a group: the twin of ``charts/symph/templates/_pods.tpl``."""

from __future__ import annotations

from symphony_charts.chart.render.containers import Role, container, secret_volume
from symphony_charts.chart.render.images import pull_secrets
from symphony_charts.chart.render.model import Model
from symphony_charts.chart.render.values import Values, integer, is_true, ordered, said, strings, texts
from symphony_charts.errors import SpecError
from symphony_charts.formats.data import sub
from symphony_charts.formats.overlay import merge_overlay
from symphony_charts.kinds.group import Group

__all__ = ["pod_template"]

_PASSED_ON = (
    "serviceAccountName",
    "priorityClassName",
    "schedulerName",
    "affinity",
    "topologySpreadConstraints",
    "tolerations",
)


def pod_template(model: Model, group: Group) -> Values:
    """Metadata and spec of the pods of `group`, without the label of the run."""
    values, defaults = dict(group.values), model.defaults
    init, main = _containers(model, group)
    grace = said(values, defaults, "terminationGracePeriodSeconds")
    optional: Values = {
        "initContainers": init,
        "volumes": _volumes(model, group),
        **{key: (values if key in values else defaults).get(key) for key in _PASSED_ON},
        "nodeSelector": said(_texts_of(values), _texts_of(defaults), "nodeSelector"),
        "securityContext": said(values, defaults, "podSecurityContext", "securityContext"),
        "imagePullSecrets": pull_secrets(model.values),
        "subdomain": group.pods if group.is_indexed and not group.selector_patterns else None,
    }
    spec: Values = {
        "enableServiceLinks": False,
        "automountServiceAccountToken": is_true(said(values, defaults, "automountServiceAccountToken")),
        "containers": main,
        "terminationGracePeriodSeconds": integer(grace, 30, f"groups.{group.name}.terminationGracePeriodSeconds"),
        "restartPolicy": group.restart,
        **{key: value for key, value in optional.items() if value},
    }
    metadata = {"labels": _labels(model, group), "annotations": _annotations(model, group, str(main[0]["name"]))}
    return merge_overlay({"metadata": metadata, "spec": spec}, sub(values, "overlay"))


def _texts_of(values: Values) -> Values:
    return {key: strings(values[key]) for key in ("nodeSelector",) if key in values}


def _containers(model: Model, group: Group) -> tuple[list[Values], list[Values]]:
    """Init containers (steps, then the services of a pod that ends) and containers."""
    values = dict(group.values)
    steps, containers = sub(values, "initContainers"), sub(values, "containers")
    if not containers:
        path = f"groups.{group.name}"
        raise SpecError.one(f"{path} has no containers", path, "set its replicas to 0 to leave it out")
    init = [container(model, group, name, sub(steps, name), "step") for name in ordered(steps, values.get("initOrder"))]
    main = []
    for name in ordered(containers, values.get("order")):
        one = sub(containers, name)
        if group.is_finite and one.get("lifecycle") == "service":
            init.append(container(model, group, name, one, "sidecar"))
        else:
            main.append(container(model, group, name, one, "main"))
    return init, main


def _volumes(model: Model, group: Group) -> list[Values]:
    values = dict(group.values)
    volumes = [{**sub(sub(values, "volumes"), name), "name": name} for name in sorted(sub(values, "volumes"))]
    if model.configs is not None:
        volumes.append(
            {"name": "symph-config", "configMap": {"name": model.configs.name, "items": model.configs.items}}
        )
    roles: dict[Role, Values] = {"main": sub(values, "containers"), "step": sub(values, "initContainers")}
    secrets = {
        str(volume["name"]): volume
        for role, members in roles.items()
        for name in members
        if (volume := secret_volume(model, group, name, role)) is not None
    }
    return [*volumes, *(secrets[name] for name in sorted(secrets))]


def _labels(model: Model, group: Group) -> dict[str, str]:
    containers = list(sub(dict(group.values), "containers"))
    return {
        **strings(model.values.get("labels")),
        **strings(group.values.get("labels")),
        **model.identity,
        "app.kubernetes.io/component": "experiment",
        "symph.dev/experiment": model.experiment,
        "symph.dev/group": group.name,
        **({"symph.dev/process": containers[0]} if len(containers) == 1 else {}),
    }


def _annotations(model: Model, group: Group, first: str) -> dict[str, str]:
    networks = ",".join(texts(model.values.get("networks")))
    return {
        "kubectl.kubernetes.io/default-container": first,
        **({"k8s.v1.cni.cncf.io/networks": networks} if networks else {}),
        **strings(model.values.get("annotations")),
        **strings(group.values.get("annotations")),
    }
