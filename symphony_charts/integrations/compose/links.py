"""Find the connections between compose services, and the names by which they reach each other."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from symphony_charts.formats.names import SERVICE_NAME
from symphony_charts.importers.report import Log
from symphony_charts.integrations.compose.files import ComposeFiles
from symphony_charts.integrations.compose.service import ALWAYS, DONE, HEALTHY, STARTED, Alias, Service
from symphony_charts.integrations.compose.values import Port
from symphony_charts.spec.variable_names import service_variable

_LONGEST = 63


def keep_names(services: Mapping[str, Service], files: ComposeFiles, log: Log) -> None:
    """Set the `names` of each process by which other programs, files and values find it.

    Compose resolves a service by its own name, the names of its container and host, and its aliases.
    """
    for service in services.values():
        for own, target in service.links.items():
            if target in services and own not in services:
                said = Alias(path=f"{service.path}.links", is_wanted=True)
                services[target].aliases.setdefault(own, said)
    names = {key: [*dict.fromkeys((key, *service.aliases))] for key, service in services.items()}
    texts = files.texts()
    owners = {key: key for key in services}
    for key, service in services.items():
        others = [other for other in services.values() if other is not service]
        heard = [*texts, *(text for other in others for text in other.texts())]
        # A task that others only wait to start has no address.
        waited_for = (HEALTHY,) if service.is_task() else (HEALTHY, STARTED)
        is_waited_for = any(other.depends.get(key) in waited_for and key not in other.rewritten for other in others)
        for name in names[key]:
            alias = service.aliases.get(name, Alias(path=service.path))
            # An address in a service's own values is one that it advertises to clients, as a Kafka broker does.
            is_told = any(_addresses(name).search(text) for text in service.texts())
            wanted = alias.is_wanted or (name == key and is_waited_for) or is_told or _is_dialled_name(name, heard)
            if wanted:
                _keep(name, key, service, alias, owners.setdefault(name, key), log)
            elif alias.what:
                log.lost(alias.path, alias.what, alias.next)


def _keep(name: str, key: str, service: Service, alias: Alias, owner: str, log: Log) -> None:
    step = "use the SYMPH_<SERVICE>_HOST and _PORT variables there"
    if owner != key:
        log.lost(alias.path, f'"{name}" reaches only {owner}, not {key}', step)
    elif not SERVICE_NAME.fullmatch(name) or len(name) > _LONGEST or name == "localhost":
        log.lost(alias.path, f'other services connect to "{name}", which is not a valid name of a Service', step)
    else:
        service.kept.append(name)
        what = f'{key} keeps the name "{name}" (`names`); on a cluster, only one release per namespace can have it'
        log.changed(alias.path, what)


def _is_dialled_name(name: str, texts: Iterable[str]) -> bool:
    """Return True if a text names a host: in an address, alone, or in a list of words."""
    word = re.escape(name)
    end = r"(?![\w.-])"
    places = (
        _addresses(name).pattern,
        rf"(?i:\b(?:host|hostname|server)\s*[=:\s]\s*[\"']?){word}{end}",
        rf"[\"']{word}[\"']",
        rf"\A(?:[\w.-]+,\s*)*{word}(?:,\s*[\w.-]+)*\Z",
    )
    pattern = re.compile("|".join(places))
    return any(name in text and pattern.search(text) for text in map(_spelled_out, texts))


def _addresses(name: str) -> re.Pattern[str]:
    """Return a pattern that finds a host before a port or in a URL."""
    word, end = re.escape(name), r"(?![\w.-])"
    return re.compile(rf"(?<![\w./-]){word}:[0-9]|(?<=//){word}{end}|(?<=@){word}{end}")


def _spelled_out(text: str) -> str:
    """Return `text` with ranges such as ``minio{1...3}`` expanded to three names."""

    def names(match: re.Match[str]) -> str:
        first, last = int(match[3]), int(match[4])
        return ", ".join(
            f"{match[1]}{match[2]}{number}{match[5]}" for number in range(first, min(last, first + 99) + 1)
        )

    return re.sub(r"(//|@|\b)([a-z][\w-]*)\{(\d{1,3})\.\.\.(\d{1,3})\}(:\d+)?", names, text) if "..." in text else text


@dataclass(slots=True)
class _Listener:
    """A service as others see it: the names of its ports, by number."""

    service: Service
    names: dict[int, str] = field(default_factory=dict)


def link(services: Mapping[str, Service], files: ComposeFiles, log: Log) -> dict[str, dict[str, object]]:
    """Return the finished processes by name: ports are services, addresses are variables, dependencies are `after`.

    A service keeps its name if `files` or programs dial it.
    """
    listeners = {key: _Listener(service) for key, service in services.items()}
    for key, listener in listeners.items():
        _name_ports(key, listener, listeners, log)
    for service in services.values():
        _rewrite(service, listeners, log)
    keep_names(services, files, log)
    serving = {key for key, service in services.items() if _serves(key, service, services)}
    for key, service in services.items():
        _depend(key, service, services, serving, log)
    return {service.name: _finish(key, service, serving, log) for key, service in services.items()}


def _name_ports(key: str, listener: _Listener, listeners: Mapping[str, _Listener], log: Log) -> None:
    """Give each port a service name; includes ports that appear only in other services' values."""
    service = listener.service
    numbers: dict[int, Port | None] = {port.target: port for port in service.ports}
    for other in listeners.values():
        for text in other.service.texts():
            for match in re.finditer(rf"(?<![\w.-]){re.escape(key)}:([0-9]{{1,5}})(?![0-9])", text):
                if 0 < int(match[1]) < 65536:
                    numbers.setdefault(int(match[1]), None)
    exposes: dict[str, object] = {}
    binds: dict[str, object] = {}
    for number, port in numbers.items():
        name = service.name if len(numbers) == 1 else f"{service.name}-{number}"
        listener.names[number] = name
        if port is not None and port.is_open:
            exposes[name] = number
            what = (
                f"port {number} of {key} is reachable only inside a cluster: `symph open` forwards it to this machine"
            )
            step = f"`expose: {{{name}: {{type: LoadBalancer}}}}` makes it public"
            log.changed(f"{service.path}.ports", what, step)
            if port.published and port.published != str(number):
                what = f"port {number} of {key} is reachable as {number}, not as {port.published}"
                log.changed(f"{service.path}.ports", what)
        if port is not None and port.published and not port.is_open:
            what = f"port {number} of {key} is reachable only for the other processes"
            log.changed(f"{service.path}.ports", what, "add it to `exposes`, or use `symph open`")
        binds[name] = number
    if exposes:
        service.process["exposes"] = exposes
    if hidden := {name: number for name, number in binds.items() if name not in exposes or _is_dialled(key, listeners)}:
        service.process["binds"] = hidden


def _is_dialled(key: str, listeners: Mapping[str, _Listener]) -> bool:
    """Return True if another service names `key` or waits for it."""
    pattern = re.compile(rf"(?<![\w.-]){re.escape(key)}(?![\w.-])")
    others = (listener.service for other, listener in listeners.items() if other != key)
    return any(key in other.depends or any(pattern.search(text) for text in other.texts()) for other in others)


def _rewrite(service: Service, listeners: Mapping[str, _Listener], log: Log) -> None:
    """Replace host names of other services in values by variables."""
    others = {key: listener for key, listener in listeners.items() if listener.service is not service}
    connects: list[str] = []
    for part in ("command", "args"):
        held = service.process.get(part)
        if isinstance(held, list):
            texts = [_replaced(str(text), False, others, connects, service.rewritten) for text in held]
            if texts != held:
                _note(service, part, texts, log)
            service.process[part] = texts
    env = service.process.get("env")
    if isinstance(env, dict):
        for name, text in env.items():
            is_host = re.search(r"HOST|SERVER|ADDR|BROKER|MASTER", name, re.IGNORECASE) is not None
            env[name] = _replaced(str(text), is_host, others, connects, service.rewritten)
            if env[name] != text:
                _note(service, f"environment {name}", [env[name]], log)
    if connects:
        service.process["connects"] = connects


def _note(service: Service, where: str, texts: list[str], log: Log) -> None:
    """Report the variables that replaced host names, without the values, which may contain secrets."""
    names = sorted({name for text in texts for name in re.findall(r"\$\(SYMPH_[A-Z0-9_]+\)", text)})
    log.changed(service.path, f"{where}: {', '.join(names)} replace names of services")


def _replaced(
    text: str, is_host: bool, others: Mapping[str, _Listener], connects: list[str], rewritten: set[str]
) -> str:
    result = text
    for key, listener in others.items():
        if key not in text or not listener.names:
            continue
        before = result
        for number, name in listener.names.items():
            # `zoo1:2888:3888` is a host with two ports, which is not an address.
            pattern = rf"(?<![\w.-]){re.escape(key)}:{number}(?!:?[0-9])"
            result = _put(result, pattern, f"$({service_variable(name, 'ADDR')})", name, connects)
        first = next(iter(listener.names.values()))
        pattern = rf"(?<=//){re.escape(key)}(?=[/?#]|\Z)|(?<=@){re.escape(key)}(?=[/?#]|\Z)"
        result = _put(result, pattern, f"$({service_variable(first, 'HOST')})", first, connects)
        if is_host:
            result = _put(result, rf"\A{re.escape(key)}\Z", f"$({service_variable(first, 'HOST')})", first, connects)
        if result != before:
            rewritten.add(key)
    return result


def _put(text: str, pattern: str, value: str, name: str, connects: list[str]) -> str:
    result, count = re.subn(pattern, lambda _: value, text)
    if count and name not in connects:
        connects.append(name)
    return result


def _conditions_on(key: str, services: Mapping[str, Service]) -> list[str]:
    return [other.depends[key] for other in services.values() if key in other.depends]


def _serves(key: str, service: Service, services: Mapping[str, Service]) -> bool:
    """Return True if the service runs until the others end, False if it is a task that ends by itself."""
    conditions = _conditions_on(key, services)
    if DONE in conditions:
        return False
    listens = "binds" in service.process or "exposes" in service.process or bool(service.kept)
    is_needed = HEALTHY in conditions or (bool(conditions) and not service.is_task())
    return service.restart in ALWAYS or listens or service.has_healthcheck or is_needed


def _depend(key: str, service: Service, services: Mapping[str, Service], serving: Collection[str], log: Log) -> None:
    after: list[str] = []
    for name, condition in service.depends.items():
        if condition == DONE or name in serving:
            after += [services[name].name] if name != key else []
        else:
            what = f"{key} does not wait for {name}, a task: the file requires only its start"
            step = "set `condition: service_completed_successfully`, or make it a service: `restart: always`"
            log.changed(f"{service.path}.depends_on", what, step)
    if after:
        service.process["after"] = after
        what = "a local run waits for them (`after`); on a cluster all start at once, so the program must retry"
        log.changed(f"{service.path}.depends_on", what)
    connects = service.process.setdefault("connects", [])
    for name, condition in service.depends.items():
        binds = services[name].process.get("binds")
        if condition != DONE and isinstance(binds, dict) and isinstance(connects, list):
            connects += [bound for bound in binds if bound not in connects]
    if not connects:
        del service.process["connects"]


def _finish(key: str, service: Service, serving: Collection[str], log: Log) -> dict[str, object]:
    if key in serving:
        service.process["lifecycle"] = "service"
        counted = [service.process.pop(part, None) for part in ("restart", "retries")]
        if any(part is not None for part in counted):
            log.changed(f"{service.path}.restart", "other services need it, so it always restarts, without a limit")
    elif service.restart in ALWAYS:
        what = "another service waits for its end, so it does not restart afterwards"
        log.changed(f"{service.path}.restart", what, "`restart: on-failure`")
    return {**service.process, "names": service.kept} if service.kept else service.process
