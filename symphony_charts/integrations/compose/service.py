"""Convert a compose service to a process with its resources."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from types import MappingProxyType

from symphony_charts.formats.field_reader import show
from symphony_charts.formats.names import join
from symphony_charts.importers.report import Log
from symphony_charts.integrations.common.fields import Fields, text_of
from symphony_charts.integrations.compose.files import ComposeFiles
from symphony_charts.integrations.compose.values import (
    Port,
    literal,
    parse_port,
    seconds_of,
    size_of,
    words_of,
)
from symphony_charts.spec.variable_names import parse_env_file


def read_resources(service: Fields) -> dict[str, object]:
    deploy = service.map("deploy")
    resources = deploy.map("resources")
    upper, lower = resources.map("limits"), resources.map("reservations")
    limits = _one_amount(_amounts(upper, "cpus", "memory"), _amounts(service, "cpus", "mem_limit"), upper)
    requests = _one_amount(_amounts(lower, "cpus", "memory"), _amounts(service, "", "mem_reservation"), lower)
    replicas = deploy.integer("replicas", 0, 100_000)
    if replicas is None:
        replicas = service.integer("scale", 0, 100_000)
    gpus = sum(_gpus(device) for device in lower.maps("devices"))
    gpus += _service_gpus(service)
    if (mode := deploy.text("mode")) not in (None, "replicated"):
        what = f"deploy mode {mode} is not carried over: a spec has a fixed number of replicas"
        deploy.log.lost(deploy.at("mode"), what, "set `replicas`")
    deploy.get("restart_policy")  # `_restart` reads it
    upper.note_unread("of the limits is not carried over")
    lower.note_unread("of the reservations is not carried over")
    resources.note_unread("of the resources is not carried over")
    deploy.note_unread("of deploy is not carried over")
    data: dict[str, object] = {"limits": limits, "requests": requests}
    if replicas is not None and replicas != 1:
        data["replicas"] = replicas
    if gpus:
        data["gpus"] = gpus
    return data


def _one_amount(deployed: dict[str, str], own: dict[str, str], resources: Fields) -> dict[str, str]:
    """Return the amounts of a service; its own override those of `deploy`, which compose requires to be equal."""
    for name, amount in own.items():
        if deployed.get(name, amount) != amount:
            path = resources.at({"cpu": "cpus"}.get(name, name))
            resources.log.lost(path, f"the service itself has another amount of {name}, which is used")
    return deployed | own


def _amounts(fields: Fields, cpu: str, memory: str) -> dict[str, str]:
    amounts: dict[str, str] = {}
    if cpu and (cores := fields.number(cpu)) is not None:
        if cores <= 0:
            fields.log.lost(fields.at(cpu), "0 CPUs means no limit, so no limit is set")
        else:
            amounts["cpu"] = f"{max(round(cores * 1000), 1)}m"
    if (value := fields.get(memory)) is not None and (size := size_of(value, fields.log, fields.at(memory))):
        amounts["memory"] = size
    return amounts


def _gpus(device: Fields) -> int:
    """Return the number of GPUs of one reserved device; `count: all` is unknown here and counts as one."""
    capabilities = device.texts("capabilities")
    count, ids = device.get("count"), device.texts("device_ids")
    if device.text("driver") not in (None, "nvidia"):
        device.drop("driver", "GPUs are asked for as nvidia.com/gpu")
    device.note_unread("of a device is not carried over")
    if "gpu" not in capabilities and "nvidia" not in capabilities:
        device.log.lost(device.path, "of devices, only GPUs are carried over")
        return 0
    if ids:
        device.log.lost(device.at("device_ids"), "only the number of GPUs is carried over, not their ids")
        return len(ids)
    if count in (None, "all"):
        device.log.lost(
            device.at("count"), "all GPUs of the machine: how many these are is not known; one is asked for"
        )
        return 1
    return device.integer("count", 0, 1000) or 0


def _service_gpus(service: Fields) -> int:
    """Return the number of GPUs in `gpus` of the service itself: `all` or a list of devices."""
    value = service.get("gpus")
    if value == "all":
        service.log.lost(
            service.at("gpus"), "all GPUs of the machine: how many these are is not known; one is asked for"
        )
        return 1
    total = 0
    for device in service.maps("gpus"):
        device.texts("capabilities")
        if device.text("driver") not in (None, "nvidia"):
            device.drop("driver", "GPUs are asked for as nvidia.com/gpu")
        total += device.integer("count", 0, 1000) or len(device.texts("device_ids")) or 1
    return total


NETWORKS = "to allow only the connections in `connects`: `security.network_policy: true`"

_PULL = {"always": "Always", "never": "Never", "missing": "IfNotPresent", "if_not_present": "IfNotPresent"}
DONE = "service_completed_successfully"
HEALTHY = "service_healthy"
STARTED = "service_started"
_CONDITIONS = (STARTED, HEALTHY, DONE)
ALWAYS = ("always", "unless-stopped")
# Words in the commands of servers: `redis-server`, `manage.py runserver`, `mongod`.
_SERVER = re.compile(
    r"(?<!ob)servers?\b|(?<![a-z])serve\b|daemon"
    r"|(?:^|[/ ])(?:mongod|mysqld|mariadbd|postgres|etcd|memcached|httpd|nginx|consul|vault|uvicorn|gunicorn)(?= |$)"
)
_SERVER_OPTION = re.compile(r"--(?:bind|listen|serve|daemon)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """Another name of a service, declared at `path`. If it is unused and not `is_wanted`, a note reports `what`."""

    path: str
    what: str = ""
    next: str = ""
    is_wanted: bool = False


@dataclass(slots=True, kw_only=True)
class Service:
    """A service: `name` of its process, the process's data so far, its ports, and its dependencies.

    `depends` maps the compose names of services to the condition waited for. `rewritten` holds services whose name
    became a variable in its values. `restart` is compose's restart word. `aliases` are other names of this service,
    `links` its own names for other services, and `kept` the names by which others find the process.
    """

    name: str
    path: str
    process: dict[str, object]
    ports: list[Port] = field(default_factory=list)
    depends: dict[str, str] = field(default_factory=dict)
    rewritten: set[str] = field(default_factory=set)
    restart: str = "no"
    has_healthcheck: bool = False
    aliases: dict[str, Alias] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)

    def texts(self) -> list[str]:
        """Return the texts that may contain addresses of other services: command, arguments and variables."""
        texts: list[str] = []
        for part in ("command", "args"):
            held = self.process.get(part)
            texts += [text for text in held if isinstance(text, str)] if isinstance(held, list) else []
        env = self.process.get("env")
        if isinstance(env, dict):
            texts += [text for text in env.values() if isinstance(text, str)]
        return texts

    def is_task(self) -> bool:
        """Return True if nothing in the file shows that it serves others or runs forever.

        Such a service has a command of its own that names no server, and no port, health check or restart policy that
        keeps it running. Options alone, as in ``command: --save 60``, belong to the image's own program, which may
        serve.
        """
        words = [
            word for part in ("command", "args") if isinstance(held := self.process.get(part), list) for word in held
        ]
        if not words or str(words[0]).startswith("-") or any(_is_of_server(str(word)) for word in words):
            return False
        return not (self.ports or self.has_healthcheck or self.restart in ALWAYS)

    def drop_absent(self, services: Mapping[str, Service], log: Log) -> None:
        for name in [name for name in self.depends if name not in services]:
            log.lost(f"{self.path}.depends_on", f'it depends on "{name}", which is not carried over')
            del self.depends[name]


def _is_of_server(word: str) -> bool:
    """Return True if a word of a command names a server; an address or an option may name another server."""
    if word.startswith("-"):
        return _SERVER_OPTION.match(word) is not None
    return "://" not in word and _SERVER.search(re.sub(r"\$\(SYMPH_\w+\)", "", word)) is not None


def read_service(
    fields: Fields, key: str, name: str, files: ComposeFiles, images: Mapping[str, str] = MappingProxyType({})
) -> Service:
    """Return the service `key` as data of the process `name`; `images` override images, also of built services."""
    log = fields.log
    command = words_of(fields.get("entrypoint"), log, fields.at("entrypoint"))
    for part in ("entrypoint", "command"):
        if fields.get(part) in ("", []):
            log.lost(
                fields.at(part),
                f"an empty `{part}` would remove the image's own, which a spec cannot do",
                "set the whole command",
            )
    args = words_of(fields.get("command"), log, fields.at("command"))
    ready = _ready(fields.map("healthcheck")) if "healthcheck" in fields else None
    image = _image(fields, key, images, files)
    process: dict[str, object] = {
        "image": image,
        "image_pull_policy": _pull_policy(fields),
        "command": command or None,
        "args": args or None,
        "cwd": fields.text("working_dir"),
        "env": _environment(fields, files),
        "mounts": files.mounts(fields, name, image),
        "ready": ready,
        "annotations": _pairs(fields, "labels") | _pairs(fields, "annotations"),
        **read_resources(fields),
        **_pod(fields),
    }
    if (period := fields.get("stop_grace_period")) is not None:
        process["grace_period"] = seconds_of(period, log, fields.at("stop_grace_period"))
    service = Service(
        name=name,
        path=fields.path,
        process={part: value for part, value in process.items() if value not in (None, {}, [])},
        ports=_ports(fields),
        depends=_depends(fields),
        restart=_restart(fields, process),
        has_healthcheck=ready is not None,
        aliases=_aliases(fields, key),
        links={
            alias: target
            for target, _, alias in (link.partition(":") for link in fields.texts("links"))
            if alias not in ("", target)
        },
    )
    service.process.update({part: process[part] for part in ("retries", "restart") if part in process})
    for part in [part for part in fields.unread() if part.startswith("x-")]:
        fields.skip(part)
    fields.note_unread("of a service is not carried over")
    return service


def _image(fields: Fields, key: str, images: Mapping[str, str], files: ComposeFiles) -> str | None:
    image = images.get(key) or fields.text("image")
    if "build" in fields:
        context = fields.get("build")
        if isinstance(context, dict):
            context = context.get("context", ".")
        files.look_into(f"./{context}".replace("././", "./"))
        what = f'service "{key}" is built from source, and symph does not build images'
        tag = image or f"HOST/{key}"
        step = f"docker build -t {tag} {shlex.quote(str(context))}, docker push {tag}"
        if image is None:
            fields.log.fault(
                fields.at("build"), what, f"{step}, then --image {key}={tag} (for local runs, use any name)"
            )
        elif key not in images:
            fields.log.lost(fields.at("build"), what, step)
    elif image is None:
        fields.log.fault(fields.at("image"), f'service "{key}" has no image or build', "set its image")
    return image


def _pull_policy(fields: Fields) -> str | None:
    policy = fields.text("pull_policy")
    if policy is not None and policy not in _PULL:
        fields.log.lost(fields.at("pull_policy"), f"pull policy {show(policy)} is not carried over")
    return _PULL.get(policy or "")


def _environment(fields: Fields, files: ComposeFiles) -> dict[str, str]:
    """Return the variables of `env_file`, overridden by `environment`."""
    variables: dict[str, str] = {}
    value = fields.get("env_file")
    for index, item in enumerate(value if isinstance(value, list) else [] if value is None else [value]):
        path = join(fields.at("env_file"), index)
        inner = Fields(item, path, fields.log) if isinstance(item, dict) else None
        name = inner.text("path") if inner is not None else text_of(item)
        is_required = inner is None or inner.flag("required") is not False
        text = files.read_text(name) if name else None
        if text is None:
            if is_required:
                fields.log.fault(path, f"cannot read the environment file {show(name)}", "is it there, and UTF-8?")
            continue
        variables |= parse_env_file(text)
    variables |= _pairs(fields, "environment", from_shell=True)
    return {name: literal(text) for name, text in variables.items()}


def _pairs(fields: Fields, key: str, *, from_shell: bool = False) -> dict[str, str]:
    """Return a map, or a list of `KEY=value`, as a dict; compose would take a key without value from its shell."""
    value = fields.get(key)
    if not isinstance(value, list):
        inner = fields.map(key)
        for name in inner.keys():  # noqa: SIM118 - not a dict
            if from_shell and inner.get(name) is None:
                fields.log.lost(
                    inner.at(name), f"{name} would come from the shell", "add it to `local.pass_env`, or set it"
                )
        return {name: text for name in inner.keys() if (text := inner.text(name)) is not None}  # noqa: SIM118
    pairs: dict[str, str] = {}
    for text in fields.texts(key):
        name, equals, content = text.partition("=")
        if equals or not from_shell:
            pairs[name] = content
        else:
            fields.log.lost(
                fields.at(key), f"{name} would come from the shell", "add it to `local.pass_env`, or set it"
            )
    return pairs


def _ports(fields: Fields) -> list[Port]:
    ports: list[Port] = []
    value = fields.get("ports")
    if value is not None and not isinstance(value, list):
        fields.log.fault(fields.at("ports"), f"{show(value)} is not a list", 'write `- "8080:80"`')
    for index, item in enumerate(value if isinstance(value, list) else []):
        path = join(fields.at("ports"), index)
        if isinstance(item, dict):
            ports += _long_port(Fields(item, path, fields.log))
        else:
            ports += parse_port(text_of(item) or "", fields.log, path)
    for index, text in enumerate(fields.texts("expose")):
        hidden = parse_port(text, fields.log, join(fields.at("expose"), index))
        ports += [Port(target=port.target, is_open=False) for port in hidden]
    return ports


def _long_port(fields: Fields) -> list[Port]:
    target = fields.integer("target", 1, 65535)
    published, host = fields.text("published") or "", fields.text("host_ip") or ""
    if fields.text("mode") not in (None, "host", "ingress"):
        fields.drop("mode", "unknown mode of a port")
    fields.drop("app_protocol", "services of a spec have no application protocol")
    protocol = fields.text("protocol") or "tcp"
    name = fields.text("name") or ""
    fields.note_unread("of a port is not carried over")
    if protocol != "tcp":
        fields.log.lost(fields.path, "only TCP ports are services of an experiment; this one is not carried over")
        return []
    if target is None:
        fields.log.fault(fields.at("target"), "the port has no target", "add `target: 80`")
        return []
    return [Port(target=target, published=published, is_open=host not in ("127.0.0.1", "::1"), name=name)]


def _aliases(fields: Fields, key: str) -> dict[str, Alias]:
    """Return the other names by which compose finds a service: of its container, host and networks."""
    aliases: dict[str, Alias] = {}
    if isinstance(fields.get("networks"), dict):
        networks = fields.map("networks")
        for network in networks.keys():  # noqa: SIM118 - not a dict
            of_network = networks.map(network)
            said = Alias(path=of_network.at("aliases"), is_wanted=True)
            aliases |= dict.fromkeys(of_network.texts("aliases"), said)
    fields.drop("networks", "networks are not carried over: every process can reach every service", NETWORKS)
    what = "containers are named after their processes; no service connects to this name"
    for part, next_step in (("container_name", ""), ("hostname", "`pod_overlay: {spec: {hostname: NAME}}`")):
        if (name := fields.text(part)) and name != key:
            aliases.setdefault(name, Alias(path=fields.at(part), what=what, next=next_step))
    return aliases


def _depends(fields: Fields) -> dict[str, str]:
    value = fields.get("depends_on")
    conditions: dict[str, str] = {}
    for link in fields.texts("links"):
        conditions[link.partition(":")[0]] = STARTED
    if not isinstance(value, dict):
        return conditions | dict.fromkeys(fields.texts("depends_on"), STARTED)
    inner = fields.map("depends_on")
    for name in inner.keys():  # noqa: SIM118 - not a dict
        options = inner.map(name)
        condition = options.text("condition") or STARTED
        if condition not in _CONDITIONS:
            fields.log.fault(
                options.at("condition"), f"{show(condition)} is not a condition", f"use one of {', '.join(_CONDITIONS)}"
            )
        if options.flag("required") is False:
            options.drop("required", f"it always waits for {name}")
        options.note_unread("of a dependency is not carried over")
        conditions[name] = condition
    return conditions


def _restart(fields: Fields, process: dict[str, object]) -> str:
    """Return compose's restart word; put the number of attempts into the process."""
    text = fields.text("restart") or "no"
    policy = fields.map("deploy").map("restart_policy")
    if policy:
        text = {"none": "no", "any": "always"}.get(policy.text("condition") or "any", "on-failure")
        if (attempts := policy.integer("max_attempts", 0, 2**31 - 1)) is not None:
            process["retries"] = attempts
    condition, _, attempts_text = text.partition(":")
    if attempts_text.isdecimal() and len(attempts_text) < 6:
        process["retries"] = int(attempts_text)
    if condition not in ("no", "false", "always", "on-failure", "unless-stopped"):
        fields.log.fault(
            fields.at("restart"),
            f"{show(text)} is not a restart policy",
            "use no, always, on-failure or unless-stopped",
        )
    if condition == "on-failure":
        process["restart"] = "on-failure"
    return condition


def _ready(check: Fields) -> dict[str, object] | None:
    test = check.get("test")
    if check.flag("disable") or test in ("NONE", ["NONE"]):
        for key in check.keys():  # noqa: SIM118 - not a dict
            check.get(key)  # mark as read: the check is disabled
        return None
    if isinstance(test, str):
        words = ["sh", "-c", test]
    else:
        words = check.texts("test")
        kind, rest = (words[0], words[1:]) if words else ("", [])
        if kind not in ("CMD", "CMD-SHELL") or not rest:
            check.log.fault(check.at("test"), "write a text, or a list that begins with CMD or CMD-SHELL", "correct it")
            return None
        words = rest if kind == "CMD" else ["sh", "-c", " ".join(rest)]
    ready: dict[str, object] = {"exec": {"command": words}}
    for theirs, ours in (("interval", "period"), ("timeout", "timeout")):
        value = check.get(theirs)
        seconds = seconds_of(value, check.log, check.at(theirs)) if value is not None else 30
        ready[ours] = max(seconds or 0, 1)
    # These ignore failed checks before the first success, as a readiness probe does anyway.
    for spared in ("start_period", "start_interval"):
        check.get(spared)
    ready["failures"] = max(check.integer("retries", 0, 2**31 - 1) or 3, 1)
    check.note_unread("of a health check is not carried over")
    return ready


def _pod(fields: Fields) -> dict[str, object]:
    """Return the security context, host aliases and node selector, as overlays and settings of the pod."""
    security: dict[str, object] = {}
    if fields.flag("privileged"):
        security["privileged"] = True
    if fields.flag("read_only"):
        security["readOnlyRootFilesystem"] = True
    if added := fields.texts("cap_add"):
        security["capabilities"] = {"add": added}
    if dropped := fields.texts("cap_drop"):
        held = security.setdefault("capabilities", {})
        if isinstance(held, dict):
            held["drop"] = dropped
    user, _, group = (fields.text("user") or "").partition(":")
    for name, value in (("runAsUser", user), ("runAsGroup", group)):
        if value.isdecimal() and len(value) < 10:
            security[name] = int(value)
        elif value:
            fields.log.lost(
                fields.at("user"), f"{show(value)} is not a number, and Kubernetes needs the number of a user"
            )
    result: dict[str, object] = {"container_overlay": {"securityContext": security}} if security else {}
    if hosts := fields.get("extra_hosts"):
        pairs = (
            _pairs(fields, "extra_hosts")
            if isinstance(hosts, dict)
            else dict(
                text.replace("=", ":", 1).split(":", 1)
                for text in fields.texts("extra_hosts")
                if ":" in text or "=" in text
            )
        )
        aliases = []
        for name, address in pairs.items():
            try:
                aliases.append({"ip": str(ip_address(address.strip("[]"))), "hostnames": [name]})
            except ValueError:
                what = f"{name}: {show(address)} is not an address"
                fields.log.lost(fields.at("extra_hosts"), what, "give an IP address")
        result["pod_overlay"] = {"spec": {"hostAliases": aliases}} if aliases else {}
    system, _, machine = (fields.text("platform") or "").partition("/")
    if machine:
        result["node_selector"] = {"kubernetes.io/os": system, "kubernetes.io/arch": machine.split("/")[0]}
    if "/" in machine or (system and not machine):
        fields.log.lost(fields.at("platform"), "only the system and architecture of a platform are carried over")
    return result
