"""The services of a compose file keep the names that others dial, where no variable took their place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from symphony_charts.formats.names import SERVICE_NAME
from symphony_charts.importers.report import Log
from symphony_charts.integrations.compose.files import ComposeFiles
from symphony_charts.integrations.compose.service import HEALTHY, STARTED, Alias, Service

__all__ = ["keep_names"]

_LONGEST = 63


def keep_names(services: Mapping[str, Service], files: ComposeFiles, log: Log) -> None:
    """Give each process those `names` by which programs, files and values of others find it.

    Compose lets every service be found by its name, by those of its container and host, and by its aliases.
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
        # A task that others only start after has no address.
        waited_for = (HEALTHY,) if service.is_task() else (HEALTHY, STARTED)
        is_waited_for = any(other.depends.get(key) in waited_for and key not in other.rewritten for other in others)
        for name in names[key]:
            alias = service.aliases.get(name, Alias(path=service.path))
            # What a service says of itself with a port, it tells others to dial, as a broker of Kafka does.
            is_told = any(_addresses(name).search(text) for text in service.texts())
            wanted = alias.is_wanted or (name == key and is_waited_for) or is_told or _is_dialled(name, heard)
            if wanted:
                _keep(name, key, service, alias, owners.setdefault(name, key), log)
            elif alias.what:
                log.lost(alias.path, alias.what, alias.next)


def _keep(name: str, key: str, service: Service, alias: Alias, owner: str, log: Log) -> None:
    step = "use the SYMPH_<SERVICE>_HOST and _PORT variables there"
    if owner != key:
        log.lost(alias.path, f'"{name}" leads to {owner} alone, not to {key} as well', step)
    elif not SERVICE_NAME.fullmatch(name) or len(name) > _LONGEST or name == "localhost":
        log.lost(alias.path, f'others dial "{name}", which cannot be the name of a Service', step)
    else:
        service.kept.append(name)
        what = f'who dials "{name}" finds {key} by it (`names`); on a cluster one release in a namespace has that name'
        log.changed(alias.path, what)


def _is_dialled(name: str, texts: Iterable[str]) -> bool:
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
    """`text` with ``minio{1...3}`` as the three names that it means."""

    def names(match: re.Match[str]) -> str:
        first, last = int(match[3]), int(match[4])
        return ", ".join(
            f"{match[1]}{match[2]}{number}{match[5]}" for number in range(first, min(last, first + 99) + 1)
        )

    return re.sub(r"(//|@|\b)([a-z][\w-]*)\{(\d{1,3})\.\.\.(\d{1,3})\}(:\d+)?", names, text) if "..." in text else text
