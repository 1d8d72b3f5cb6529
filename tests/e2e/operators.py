"""Operators as processes: the real JobSet and Kueue controllers, set up from their projects' charts.

The pods of such a chart run here as processes beside the control plane, so the webhooks are reached by URL and not by
a Service. Everything else (definitions, webhooks, configuration) comes from the chart.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.programs import Programs
from tests.e2e.rig.pki import Authority
from tests.e2e.rig.process import Daemon, answers, free_ports, start, wait_for
from tests.e2e.tools.build import find_tool
from tests.e2e.tools.modules import APPWRAPPER, ARGO_WORKFLOWS, JOBSET, KUEUE, VOLCANO, module_folder

Object = dict[str, Any]

_READY_S = 60
_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A controller by the name of its program, and the Go module whose ``charts/<name>`` sets it up.

    Set `keeps_keys` for one that finds its keys in a Secret and replaces unsuitable ones.
    """

    name: str
    module: str
    settings: Mapping[str, object]
    keeps_keys: bool = False

    @property
    def namespace(self) -> str:
        return f"{self.name}-system"

    @property
    def service(self) -> str:
        """The name under which its webhooks would be reached inside a cluster."""
        return f"{self.name}-webhook-service.{self.namespace}.svc"


JOBSET_OPERATOR = Operator(
    name="jobset",
    module=JOBSET,
    settings={"metrics": {"bindAddress": "0"}, "internalCertManagement": {"enable": False}},
)
# Its visibility server listens at a fixed port and writes to a fixed folder.
KUEUE_OPERATOR = Operator(
    name="kueue",
    module=KUEUE,
    settings={"metrics": {"bindAddress": "0"}, "featureGates": {"VisibilityOnDemand": False}},
    keeps_keys=True,
)


def start_operator(operator: Operator, folder: Path, programs: Programs, helm: Path) -> Daemon:
    """Start the operator, wait for its definitions and webhooks, and return it; its state is below `folder`."""
    objects = _render(operator, programs, helm)
    health, webhook = free_ports(2)
    keys, authority = _make_keys(operator, folder)
    programs.kubectl("create", "namespace", operator.namespace)
    if operator.keeps_keys:
        programs.apply(_secret(operator, keys, authority))
    for item in objects:
        _redirect(item, webhook, authority.certificate.read_bytes())
    definitions = [item for item in objects if item["kind"] == "CustomResourceDefinition"]
    programs.apply(*definitions)
    programs.establish(*(item["metadata"]["name"] for item in definitions))
    programs.apply(*(item for item in objects if item["kind"] in _WEBHOOKS))
    config = folder / f"{operator.name}.yaml"
    config.write_text(json.dumps(_configuration(operator, objects, keys, health, webhook)))
    argv = [str(find_tool(operator.name)), f"--config={config}", "--zap-log-level=2"]
    daemon = start(folder, operator.name, argv, dies_with_us=True, env=programs.environment())
    wait_for(daemon, lambda: answers(f"http://127.0.0.1:{health}/readyz"), _READY_S)
    return daemon


def start_appwrapper(folder: Path, programs: Programs) -> Daemon:
    """Start the AppWrapper controller, without webhooks of its own: its project ships no chart and fixes their port.

    Kueue suspends AppWrappers by a webhook of Kueue's.
    """
    namespace, (health,) = "appwrapper-system", free_ports(1)
    programs.define(APPWRAPPER, "config/crd/bases/workload.codeflare.dev_appwrappers.yaml")
    programs.kubectl("create", "namespace", namespace)
    config = {
        "webhooksEnabled": False,
        "appwrapper": {"autopilot": {"monitorNodes": False, "injectAntiAffinities": False}},
        "controllerManager": {"metrics": {"bindAddress": "0"}, "health": {"bindAddress": f"127.0.0.1:{health}"}},
    }
    metadata = {"name": "appwrapper-operator-config", "namespace": namespace}
    data = {"config.yaml": json.dumps(config)}
    programs.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    env = {**programs.environment(), "NAMESPACE": namespace}
    daemon = start(folder, "appwrapper", [str(find_tool("appwrapper"))], dies_with_us=True, env=env)
    # Its readiness endpoint would start the server of its webhooks.
    wait_for(daemon, lambda: answers(f"http://127.0.0.1:{health}/healthz"), _READY_S)
    return daemon


def start_argo_workflows(folder: Path, programs: Programs) -> Daemon:
    """Start the controller of Argo Workflows for all namespaces."""
    namespace = "argo"
    programs.define(ARGO_WORKFLOWS, "manifests/base/crds/full/argoproj.io_*.yaml")
    programs.kubectl("create", "namespace", namespace)
    metadata = {"name": "workflow-controller-configmap", "namespace": namespace}
    off = {key: yaml.safe_dump({"enabled": False}) for key in ("metricsConfig", "telemetryConfig")}
    programs.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": off})
    image = f"quay.io/argoproj/argoexec:{ARGO_WORKFLOWS.rpartition('@')[2]}"
    argv = [str(find_tool("workflow-controller")), f"--executor-image={image}", f"--namespace={namespace}"]
    argv += [f"--kubeconfig={programs.kubeconfig}", "--loglevel=warn"]
    env = {**programs.environment(), "LEADER_ELECTION_DISABLE": "true"}
    daemon = start(folder, "workflow-controller", argv, dies_with_us=True, env=env)
    wait_for(daemon, lambda: answers("http://127.0.0.1:6060/healthz"), _READY_S)
    return daemon


_VOLCANO_SCHEDULER = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""


def start_volcano(folder: Path, programs: Programs) -> None:
    """Start Volcano's controllers and its scheduler, without webhooks."""
    programs.define(VOLCANO, "config/crd/*/bases/*.yaml")
    programs.kubectl("create", "namespace", "volcano-system")
    config = folder / "volcano-scheduler.conf"
    config.write_text(_VOLCANO_SCHEDULER)
    for name, more in (("vc-controller-manager", []), ("vc-scheduler", [f"--scheduler-conf={config}"])):
        (health,) = free_ports(1)
        argv = [str(find_tool(name)), f"--kubeconfig={programs.kubeconfig}", "--leader-elect=false", *more]
        argv += ["--enable-healthz", f"--healthz-address=127.0.0.1:{health}"]
        daemon = start(folder, name, argv, dies_with_us=True, env=programs.environment())
        wait_for(daemon, partial(answers, f"http://127.0.0.1:{health}/healthz"), _READY_S)


def _render(operator: Operator, programs: Programs, helm: Path) -> list[Object]:
    chart = module_folder(operator.module) / "charts" / operator.name
    argv = [str(helm), "template", operator.name, str(chart), "--namespace", operator.namespace, "--include-crds"]
    return [item for item in yaml.load_all(programs.run(argv).out, Loader=yaml.CSafeLoader) if item]


def _make_keys(operator: Operator, folder: Path) -> tuple[Path, Authority]:
    """Return a folder with ``tls.crt`` and ``tls.key`` for this machine's loopback address, and their authority."""
    keys = folder / f"{operator.name}-keys"
    authority = Authority(keys, f"{operator.name}-ca")
    authority.leaf("tls", operator.service, hosts=("127.0.0.1", operator.service))
    return keys, authority


def _secret(operator: Operator, keys: Path, authority: Authority) -> Object:
    data = {name: base64.b64encode((keys / name).read_bytes()).decode() for name in ("ca.crt", "tls.crt", "tls.key")}
    data["ca.key"] = base64.b64encode(authority.private_key).decode()
    metadata = {"name": f"{operator.name}-webhook-server-cert", "namespace": operator.namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def _redirect(item: Object, port: int, authority: bytes) -> None:
    """Point each webhook of `item` at this machine's loopback address."""
    if item["kind"] in _WEBHOOKS:
        clients = [webhook["clientConfig"] for webhook in item["webhooks"]]
    elif item["kind"] == "CustomResourceDefinition" and "webhook" in item["spec"].get("conversion", {}):
        clients = [item["spec"]["conversion"]["webhook"]["clientConfig"]]
    else:
        return
    for client in clients:
        client["url"] = f"https://127.0.0.1:{port}{client.pop('service').get('path', '/')}"
        client["caBundle"] = base64.b64encode(authority).decode()


def _configuration(operator: Operator, objects: list[Object], keys: Path, health: int, webhook: int) -> Object:
    maps = [
        item for item in objects if item["kind"] == "ConfigMap" and "controller_manager_config.yaml" in item["data"]
    ]
    shipped: Object = yaml.safe_load(maps[0]["data"]["controller_manager_config.yaml"])
    return {
        **shipped,
        **operator.settings,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "leaderElection": {"leaderElect": False},
        "webhook": {"host": "127.0.0.1", "port": webhook, "certDir": str(keys)},
    }
