"""Read compose files: interpolation, includes, extends and merges."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from symphony_charts.formats.field_reader import show
from symphony_charts.formats.names import join
from symphony_charts.importers.report import Log
from symphony_charts.integrations.common.fields import Fields, UniqueNames, Volumes, text_of
from symphony_charts.spec.sources import CONFIG_DIR

# Source: compose-spec/compose-spec, 05-services.md, 11-extension.md, 12-interpolation.md.

_VARIABLE = re.compile(
    r"\$(?:(?P<dollar>\$)|(?P<plain>[A-Za-z_][A-Za-z0-9_]*)"
    r"|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:(?P<operator>:?[-?+])(?P<word>[^{}]*))?\})",
    re.ASCII,
)
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([bkmgt]?)(i?b)?", re.IGNORECASE)
_DURATION = re.compile(r"(?:([0-9]{1,9}(?:\.[0-9]{1,6})?)(ns|us|µs|ms|s|m|h|d))")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_REFERENCE = re.compile(r"\$(?=[$(])")
_MOST_PORTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A container's port, its port on the host if set, and `is_open` if other machines reach it."""

    target: int
    published: str = ""
    is_open: bool = True
    name: str = ""


def interpolate(value: object, variables: Mapping[str, str], log: Log, path: str) -> object:
    """Return `value` with `$VAR`, `${VAR:-default}` and so on replaced, at any depth; keys stay unchanged."""
    if isinstance(value, str) and "$" in value:
        return _fill(value, variables, log, path)
    if isinstance(value, dict):
        return {key: interpolate(item, variables, log, join(path, str(key))) for key, item in value.items()}
    if isinstance(value, list):
        return [interpolate(item, variables, log, join(path, index)) for index, item in enumerate(value)]
    return value


def _fill(text: str, variables: Mapping[str, str], log: Log, path: str) -> str:
    def replace(match: re.Match[str]) -> str:
        if match["dollar"]:
            return "$"
        name, operator, word = match["plain"] or match["name"], match["operator"] or "", match["word"] or ""
        value = variables.get(name)
        is_said = value is not None and not (operator.startswith(":") and value == "")
        if operator.endswith("+"):
            return word if is_said else ""
        if is_said and value is not None:
            return value
        if operator.endswith("-"):
            return word
        if operator.endswith("?"):
            log.fault(path, f"variable {name} is needed: {word or 'it has no value'}", "set it in .env or --env-file")
        else:
            log.changed(path, f"variable {name} has no value; it is empty", "set it in .env or --env-file")
        return ""

    return _VARIABLE.sub(replace, text)


def literal(text: str) -> str:
    """Return `text` with dollar signs escaped: Kubernetes would expand `$(NAME)`."""
    return _REFERENCE.sub("$$", text) if "$" in text else text


def words_of(value: object, log: Log, path: str) -> list[str] | None:
    """Return the words of a command: a list unchanged, a text split like in a shell; None for null."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            return [literal(word) for word in shlex.split(value)]
        except ValueError as error:
            log.fault(path, f"{show(value)} cannot be split into words: {error}", "close its quotes, or write a list")
            return None
    if isinstance(value, list) and all(isinstance(item, (str, int, float)) for item in value):
        return [literal(str(item)) for item in value]
    log.fault(path, f"{show(value)} is no command", "write a list of words, or one text")
    return None


def size_of(value: object, log: Log, path: str) -> str | None:
    """Return a size in Kubernetes' notation. Compose's units are binary: ``50M`` is 50 MiB."""
    text = str(value).strip() if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
    match = _SIZE.fullmatch(text)
    if match is None:
        log.fault(path, f"{show(value)} is no size", "write it as in 512m or 2g")
        return None
    number, unit = match[1], match[2].lower()
    if unit in ("", "b"):
        return str(int(float(number)))
    if "." in number:
        power = "bkmgt".index(unit)
        return str(int(float(number) * 1024**power))
    return f"{number}{unit.upper()}i"


def seconds_of(value: object, log: Log, path: str) -> int | None:
    """Return a duration (``1m30s``) in whole seconds, at least 1 unless it is 0."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31:
        return value
    text = value.strip() if isinstance(value, str) else ""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        log.fault(path, f"{show(value)} is no duration", "write it as in 1m30s")
        return None
    total = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if total >= 2**31:
        log.fault(path, f"{show(value)} is too long", "write it as in 1m30s")
        return None
    return max(round(total), 1) if total else 0


def parse_port(text: str, log: Log, path: str) -> list[Port]:
    """Return the ports of ``[[HOST:]PUBLISHED:]TARGET[/PROTOCOL]``, where each number may be a range."""
    address, _, protocol = text.partition("/")
    host, _, rest = address.rpartition("]:") if "]:" in address else ("", "", address)
    pieces = rest.split(":")
    if len(pieces) == 3:
        host, pieces = pieces[0], pieces[1:]
    target, published = pieces[-1], pieces[-2] if len(pieces) > 1 else ""
    if protocol not in ("", "tcp"):
        log.lost(path, f"only TCP ports are services of an experiment; {text} is not carried over")
        return []
    numbers = _numbers(target)
    if not numbers or len(pieces) > 2 or (published and not _numbers(published)):
        log.fault(path, f"{show(text)} is no port", 'write it as in "8080:80"')
        return []
    is_open = host.strip("[]") not in ("127.0.0.1", "::1", "localhost")
    return [Port(target=number, published=published, is_open=is_open) for number in numbers]


def _numbers(text: str) -> list[int]:
    """Return the numbers of a port or a port range; empty if the text is invalid."""
    first, dash, last = text.partition("-")
    if not (first.isascii() and first.isdecimal() and len(first) < 6):
        return []
    if not dash:
        return [int(first)] if 0 < int(first) < 65536 else []
    if not (last.isascii() and last.isdecimal() and len(last) < 6):
        return []
    numbers = list(range(int(first), min(int(last), int(first) + _MOST_PORTS) + 1))
    return numbers if numbers and numbers[0] > 0 and int(last) < 65536 else []


_WINDOWS = re.compile(r"[A-Za-z]:(?:\\|/[^:]*:/)")


class ComposeFiles:
    """Convert mounts of services to volumes, `configs`, `secrets` and copying `steps` of the experiment."""

    def __init__(
        self,
        root: Fields,
        folder: str,
        read_text: Callable[[str], str | None],
        *,
        home: str = "",
        texts_below: Callable[[str], Sequence[str]] = lambda _: (),
        is_there: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self.volumes = Volumes()
        self.configs: dict[str, str] = {}
        self.secrets: list[object] = []
        self.steps: dict[str, object] = {}
        self.read_text = read_text
        self._folder, self._home, self._texts_below, self._is_there = folder, home, texts_below, is_there
        self._mounted: dict[str, None] = {}
        self._named = root.map("volumes")
        self._configs = root.map("configs")
        self._secrets = root.map("secrets")

    def mounts(self, service: Fields, process: str) -> list[dict[str, object]]:
        mounts: list[dict[str, object]] = []
        value = service.get("volumes")
        items = value if isinstance(value, list) else []
        if value is not None and not isinstance(value, list):
            service.log.fault(service.at("volumes"), f"{show(value)} is not a list", "write `- a:/b`")
        for index, item in enumerate(items):
            path = join(service.at("volumes"), index)
            mount = (
                self._short(item, path, service.log) if isinstance(item, str) else self._long(item, path, service.log)
            )
            mounts += [mount] if mount is not None else []
        for index, text in enumerate(service.texts("tmpfs")):
            target, _, options = text.partition(":")
            if options:
                service.log.lost(join(service.at("tmpfs"), index), f"the options {options} are not carried over")
            mounts.append({"volume": self.volumes.declare(f"{process}-tmpfs-{index}", _MEMORY), "at": target})
        if (size := service.get("shm_size")) is not None:
            volume = {**_MEMORY, "size": size_of(size, service.log, service.at("shm_size"))}
            mounts.append({"volume": self.volumes.declare("shm", volume), "at": "/dev/shm"})  # noqa: S108
        for index, text in enumerate(service.texts("devices")):
            mounts.append(self._device(text, join(service.at("devices"), index), service.log))
        mounts += self._config_mounts(service, process)
        mounts += self._secret_mounts(service, process)
        return [mount for mount in mounts if self._has_place(mount, service)]

    def look_into(self, source: str) -> None:
        """Remember files beside the compose file, which may name services as hosts."""
        if source.startswith("."):
            self._mounted.setdefault(source)

    def texts(self) -> list[str]:
        """Return the texts of configs, and of small files beside the compose file that are mounted or built from."""
        below = [text for source in self._mounted for text in self._texts_below(source)]
        return [*self.configs.values(), *below]

    def _has_place(self, mount: dict[str, object], service: Fields) -> bool:
        path = str(mount["at"])
        if path.startswith("/") and "\0" not in path:
            return True
        service.log.fault(service.path, f"{show(path)} is no absolute path in the container", "begin it with /")
        return False

    def _short(self, text: str, path: str, log: Log) -> dict[str, object] | None:
        if _WINDOWS.match(text):
            log.fault(path, f"{show(text)} is a Windows path", "use a path of this machine")
            return None
        pieces = text.split(":")
        if len(pieces) > 3 or not all(pieces):
            log.fault(path, f"{show(text)} is no volume", "write it as in data:/data:ro")
            return None
        source, target = (pieces[0], pieces[1]) if len(pieces) > 1 else ("", pieces[0])
        options = pieces[2].split(",") if len(pieces) == 3 else []
        if unknown := [option for option in options if option not in ("ro", "rw")]:
            log.lost(path, f"the options {', '.join(unknown)} of a mount are not carried over")
        read_only = "ro" in options
        volume = self._volume(source, target, path, log)
        return {"volume": volume, "at": target, **({"read_only": True} if read_only else {})}

    def _long(self, item: object, path: str, log: Log) -> dict[str, object] | None:
        fields = Fields(item, path, log)
        kind = fields.text("type") or "volume"
        target = fields.required_text("target", "/volume", "say where it is mounted")
        source = fields.text("source") or ""
        options = fields.map(kind) if kind in ("volume", "bind", "tmpfs") else Fields({}, path, log)
        mount: dict[str, object] = {"at": target, **({"read_only": True} if fields.flag("read_only") else {})}
        if kind == "tmpfs":
            size = options.get("size")
            volume = {**_MEMORY, **({"size": size_of(size, log, options.at("size"))} if size is not None else {})}
            mount["volume"] = self.volumes.declare("tmpfs", volume)
        elif kind in ("bind", "volume"):
            if kind == "bind" and not source.startswith(("/", "~", ".")):
                source = f"./{source}"
            mount["volume"] = self._volume(source, target, path, log)
            if (sub_path := options.text("subpath")) is not None:
                mount["sub_path"] = sub_path
        else:
            log.lost(path, f"mounts of type {show(kind)} are not carried over")
            return None
        options.note_unread("of a mount is not carried over")
        fields.note_unread("of a mount is not carried over")
        return mount

    def _volume(self, source: str, target: str, path: str, log: Log) -> str:
        if not source:
            return self.volumes.declare(f"scratch-{target}", {"type": "empty_dir"})
        if source.startswith(("/", ".", "~")):
            self.look_into(source)
            is_beside = source.startswith(".")
            if source == "~" or source.startswith("~/"):
                source = f"{self._home}{source[1:]}"
            host = posixpath.normpath(posixpath.join(self._folder, source))
            log.lost(
                path, f"{source} is a path of this machine; in a cluster it is the node's", "use a claim or NFS there"
            )
            # Compose creates missing folders; a folder in place of a missing docker.sock would be useless.
            is_made = is_beside and not self._is_there(host)
            kind = {"kind": "DirectoryOrCreate"} if is_made else {}
            return self.volumes.find({"type": "host_path", "path": host, **kind}, f"host-{posixpath.basename(host)}")
        return self._named_volume(source, path, log)

    def _named_volume(self, name: str, path: str, log: Log) -> str:
        if name not in self._named.keys():  # noqa: SIM118 - a volume may stand there without a value
            log.fault(path, f'no volume is called "{name}"', "declare it under the top-level `volumes:`")
            return name
        fields = self._named.map(name)
        options = fields.map("driver_opts")
        if (options.text("type") or "").startswith("nfs"):
            address = re.search(r"(?:^|,)addr=([^,]+)", options.text("o") or "")
            device = (options.text("device") or "").rpartition(":")[2]
            if address and device:
                return self.volumes.declare(name, {"type": "nfs", "server": address[1], "path": device})
        fields.drop("driver_opts", "how the volume is made is left to who makes the claim")
        claim = UniqueNames.label(fields.text("name") or name)
        log.changed(
            fields.path, f'volume "{name}" is the claim "{claim}" in a cluster', "make the claim before it runs"
        )
        fields.flag("external")
        fields.note_unread("of a volume is not carried over")
        return self.volumes.declare(name, {"type": "claim", "claim": claim})

    def _device(self, text: str, path: str, log: Log) -> dict[str, object]:
        source, _, rest = text.partition(":")
        target, _, perm = rest.partition(":")
        volume: dict[str, object] = {"type": "device", "path": source}
        if perm:
            volume["perm"] = perm
        log.changed(path, f"device {source} makes the process privileged in a cluster")
        return {"volume": self.volumes.declare(f"device-{source}", volume), "at": target or source}

    def _config_mounts(self, service: Fields, process: str) -> list[dict[str, object]]:
        """Return mounts of config files. Outside their common folder, a step first copies to an empty volume."""
        mounts: list[dict[str, object]] = []
        for name, target, path in _granted(service, "configs"):
            text = self._config_text(name, path, service.log)
            if text is None:
                continue
            config = self._add_config(UniqueNames.label(name, 60) if "/" in name else name, text)
            place = target or f"/{name}"
            if place == f"{CONFIG_DIR}/{config}":
                continue
            volume = self.volumes.declare(f"config-{config}", {"type": "empty_dir"})
            self._add_copy(volume, config, process, service.text("image"))
            mounts.append({"volume": volume, "at": place, "sub_path": config, "read_only": True})
        return mounts

    def _add_config(self, name: str, text: str) -> str:
        free, count = name, 2
        while self.configs.setdefault(free, text) != text:
            free, count = f"{name}-{count}", count + 1
        return free

    def _add_copy(self, volume: str, config: str, process: str, image: str | None) -> None:
        folder = f"/mnt/{volume}"
        step = self.steps.setdefault(
            f"{process}-{volume}"[:60].rstrip("-"),
            {
                "cmds": [f'cp "$SYMPH_CONFIG_DIR/{config}" "{folder}/{config}"'],
                "mounts": [{"volume": volume, "at": folder}],
                "groups": [process],
            },
        )
        if isinstance(step, dict) and image:
            step["image"] = image

    def _config_text(self, name: str, path: str, log: Log) -> str | None:
        if name not in self._configs.keys():  # noqa: SIM118
            log.fault(path, f'no config is called "{name}"', "declare it under the top-level `configs:`")
            return None
        fields = self._configs.map(name)
        if "content" in fields:
            return fields.text("content")
        if "file" in fields:
            file = fields.text("file") or ""
            text = self.read_text(file)
            if text is None:
                log.fault(fields.at("file"), f"cannot read {show(file)} as text", "is it there, and UTF-8?")
            return text
        log.lost(fields.path, f'config "{name}" is outside of this file; it is not carried over', "add it to `configs`")
        return None

    def _secret_mounts(self, service: Fields, process: str) -> list[dict[str, object]]:
        mounts: list[dict[str, object]] = []
        for name, target, path in _granted(service, "secrets"):
            if name not in self._secrets.keys():  # noqa: SIM118
                service.log.fault(path, f'no secret is called "{name}"', "declare it under the top-level `secrets:`")
                continue
            fields = self._secrets.map(name)
            where = target if target and target.startswith("/") else f"/run/secrets/{target or name}"
            if "file" in fields:
                self._add_secret(name, fields.text("file") or "", process, where)
            elif fields.flag("external"):
                secret = UniqueNames.label(fields.text("name") or name, 60)
                volume = self.volumes.declare(f"secret-{name}", {"type": "secret", "secret": secret})
                # One mount per file: nothing can be mounted beside or below a Secret that is mounted as a folder.
                mounts.append({"volume": volume, "at": where, "sub_path": name, "read_only": True})
                what = f'secret "{name}" is read from the key "{name}" of the Secret {secret}'
                service.log.changed(path, what, f"kubectl create secret generic {secret} --from-file={name}=FILE")
            else:
                what = f'secret "{name}" has no file and is not external; it is not carried over'
                service.log.lost(path, what, "push it with `symph secrets`")
        return mounts

    def _add_secret(self, name: str, file: str, process: str, where: str) -> None:
        """Give a process access to a secret; all processes with access see it at all of its places."""
        for secret in self.secrets:
            if isinstance(secret, dict) and secret["key"] == name:
                for part, value in (("only", process), ("also_at", where)):
                    if value not in secret[part]:
                        secret[part].append(value)
                return
        self.secrets.append({"file": file, "key": name, "only": [process], "also_at": [where]})


_MEMORY: dict[str, object] = {"type": "empty_dir", "memory": True}


def _granted(service: Fields, key: str) -> list[tuple[str, str | None, str]]:
    """Return the configs or secrets granted to a service: name, target if set, path."""
    value = service.get(key)
    if value is not None and not isinstance(value, list):
        service.log.fault(service.at(key), f"{show(value)} is not a list", "write `- name`")
    grants: list[tuple[str, str | None, str]] = []
    for index, item in enumerate(value if isinstance(value, list) else []):
        path = join(service.at(key), index)
        if (text := text_of(item)) is not None:
            grants.append((text, None, path))
            continue
        fields = Fields(item, path, service.log)
        grants.append((fields.required_text("source", ""), fields.text("target"), path))
        fields.note_unread("of it is not carried over")
    return [grant for grant in grants if grant[0]]
