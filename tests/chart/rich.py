"""An experiment in which every branch of the templates runs, and values under which what is rare shows."""

from __future__ import annotations

from symphony_charts.chart.compile.experiment import with_digest
from symphony_charts.chart.files.chart import Chart, make_chart
from symphony_charts.chart.values.merge import merge
from tests.chart.harness import chart_of, experiment_of, set_values, template

__all__ = ["ARGO", "COMMON", "DIJOB", "LIMITS", "OLD", "RANKS", "ROLES", "rich"]

# Groups in all shapes, so that every branch of the templates runs.
_RICH = {
    "groups": {
        "mixed": {
            "processes": {
                "first": {"command": ["a"], "args": ["b"], "cwd": "/w", "binds": {"data": 7001}},
                "beside": {"lifecycle": "service", "binds": "side", "exposes": "web", "connects": "data"},
            },
            "annotations": {"note": "x"},
            "labels": {"tier": "x"},
        }
    },
    "processes": {
        "many": {
            "command": ["m"],
            "replicas": 3,
            "retries": 2,
            "deadline": 60,
            "binds": "peers",
            "connects": ["data"],
            "requests": {"memory": "1Gi", "rdma/ib": "1"},
            "mounts": [{"volume": "scratch", "at": "/s", "read_only": True, "sub_path": "x"}],
            "tolerations": [{"key": "spot", "operator": "Exists"}],
            "node_selector": {"pool": "x"},
            "image_pull_policy": "Always",
            "service_account": "runner",
            "env": {"FROM": {"field": "spec.nodeName"}, "REF": "$(SYMPH_EXPERIMENT)", "PLAIN": "1"},
        },
        "serve": {"lifecycle": "service", "replicas": 2, "binds": "api", "restart": "always"},
        "keep": {"lifecycle": "service", "keep": True, "binds": "state"},
    },
    "volumes": {"scratch": {"type": "empty_dir"}},
    "configs": {"a.yaml": {"text": "x", "mode": "0600"}, "b.bin": {"base64": "AAE="}},
    "secrets": [{"file": "/tmp/token"}, {"file": "/tmp/key", "only": ["many"], "also_at": "/run/secrets/key"}],
    "prepare": {"fetch": {"command": ["get"], "groups": ["many"]}},
    "networks": ["macvlan"],
    "image_pull_secrets": ["pull"],
    "security": {"network_policy": True},
    "labels": {"cost": "x"},
    "annotations": {"every": "pod"},
    "workload": {"gang": "kueue", "queue": "q", "run_key": "7"},
    "done_when": ["many"],
}


DIJOB = (
    "workload.kind=dijob",
    "workload.gang=none",
    "workload.queue=null",
    "networks=null",
    "groups.mixed.replicas=0",
    "groups.many.restartPolicy=OnFailure",
)
ROLES = (
    *DIJOB,
    "workload.dijob.operator=v0",
    "groups.many.replicas=0",
    "groups.coordinator.containers.c.image=a",
    "groups.aggregator.containers.a.image=a",
)
OLD = (
    *DIJOB,
    "workload.dijob.operator=v1.1.0",
    "workload.dijob.group=g",
    "workload.dijob.priority=high",
    "networkPolicy.enabled=false",
)
RANKS = ("compat=di-engine", "workload.order={many,mixed}")
ARGO = (
    "workload.kind=argo",
    "workload.argo.parameters={PLAIN}",
    "workload.argo.needs.pre={data}",
    "workload.argo.needs.data={}",
    "workload.argo.retries=2",
)
COMMON = ("commonAnnotations.a=b", "serviceAccount.create=true")
LIMITS = ("groups.many.containers.many.resources.limits.cpu=2",)
# Operator v0 finds what a group listens on by the name of its port.


def rich() -> Chart:
    """The chart of an experiment that has something of everything."""
    chart = chart_of(experiment_of(**_RICH))
    sets = ["defaults.resources.limits.ephemeral-storage=1Gi", "groups.many.backoffLimit=2"]
    probe = {"readinessProbe": {"tcpSocket": {"port": "8080"}}}
    values = merge(chart.values, {"groups": {"keep": {"containers": {"keep": probe}}}})
    return make_chart(chart.name, with_digest(merge(values, set_values(sets))), "0.1.0", template())
