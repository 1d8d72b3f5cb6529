"""Convert the mounts, configs and secrets of compose services."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence

from symphony_charts.formats.field_reader import show
from symphony_charts.formats.names import join
from symphony_charts.importers.report import Log
from symphony_charts.integrations.common.fields import Fields, UniqueNames, Volumes, text_of
from symphony_charts.integrations.compose.values import size_of
from symphony_charts.spec.sources import CONFIG_DIR

# Larger files are data.
MOST_BYTES = 65_536
_SECRET_NAME = re.compile(
    r"(?i)\.(?:key|pem|p12|pfx|env|htpasswd)$|id_(?:rsa|ed25519)|passw|secret|token(?!iz)|credential"
)
_BIND_KEYS = {"type", "source", "target", "read_only"}
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
        is_program: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._is_program = is_program
        self._programs: set[str] = set()
        self.volumes = Volumes()
        self.texts_of_configs: dict[str, str] = {}
        self.secrets: list[object] = []
        self.steps: dict[str, object] = {}
        self.read_text = read_text
        self._folder, self._home, self._texts_below, self._is_there = folder, home, texts_below, is_there
        self._mounted: dict[str, None] = {}
        self._named = root.map("volumes")
        self._configs = root.map("configs")
        self._secrets = root.map("secrets")

    @property
    def configs(self) -> dict[str, dict[str, str]]:
        """The configuration files of the experiment; programs keep that they may be executed."""
        return {
            name: {"text": text, **({"mode": "0755"} if name in self._programs else {})}
            for name, text in self.texts_of_configs.items()
        }

    def mounts(self, service: Fields, process: str, image: str | None) -> list[dict[str, object]]:
        """Return the mounts of a service; `image` is that of its process, in which files are copied."""
        mounts: list[dict[str, object]] = []
        value = service.get("volumes")
        items = value if isinstance(value, list) else []
        if value is not None and not isinstance(value, list):
            service.log.fault(service.at("volumes"), f"{show(value)} is not a list", "write `- a:/b`")
        for index, item in enumerate(items):
            path = join(service.at("volumes"), index)
            read = self._short if isinstance(item, str) else self._long
            found = self._file_mount(item, process, image, path, service.log)
            if found is None:
                mount = read(item, path, service.log)
                found = [mount] if mount is not None else []
            mounts += found
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
        mounts += self._config_mounts(service, process, image)
        mounts += self._secret_mounts(service, process)
        return [mount for mount in mounts if self._has_place(mount, service)]

    def look_into(self, source: str) -> None:
        """Remember files beside the compose file, which may name services as hosts."""
        if source.startswith("."):
            self._mounted.setdefault(source)

    def texts(self) -> list[str]:
        """Return the texts of configs, and of small files beside the compose file that are mounted or built from."""
        below = [text for source in self._mounted for text in self._texts_below(source)]
        return [*self.texts_of_configs.values(), *below]

    def _has_place(self, mount: dict[str, object], service: Fields) -> bool:
        path = str(mount["at"])
        if path.startswith("/") and "\0" not in path:
            return True
        service.log.fault(service.path, f"{show(path)} is not an absolute path in the container", "begin it with /")
        return False

    def _file_mount(
        self, item: object, process: str, image: str | None, path: str, log: Log
    ) -> list[dict[str, object]] | None:
        """Return the mount of a text file beside the compose file; None if `item` mounts anything else.

        The file becomes a configuration file, or a secret, which needs no mount.
        """
        if isinstance(item, str):
            source, _, rest = item.partition(":")
            target, _, options = rest.partition(":")
            is_read_only = "ro" in options.split(",")
        elif isinstance(item, dict) and item.get("type") == "bind" and not set(item) - _BIND_KEYS:
            source, target = str(item.get("source")), str(item.get("target"))
            is_read_only = item.get("read_only") is True
        else:
            return None
        if not source.startswith("./") or not target.startswith("/"):
            return None
        text = self.read_text(source)
        if text is None or "\0" in text or len(text.encode()) > MOST_BYTES:
            return None
        if isinstance(item, dict):
            Fields(item, path, log).skip(*item)
        self.look_into(source)
        name = re.sub(r"[^A-Za-z0-9._-]", "-", posixpath.basename(source))[-60:]
        if _SECRET_NAME.search(source) or "PRIVATE KEY-----" in text:
            self._add_secret(name, source, process, target)
            what = f"{source} looks like a secret, so it is imported as secret {name}; it is also at {target}"
            log.changed(path, what, "to put it on a cluster: symph secrets push")
            return []
        config = self._add_config(name, text)
        self._programs |= {config} if self._is_program(source) else set()
        what = (
            f"the chart contains a copy of {source}, as configuration file {config}; a local run uses the file itself"
        )
        log.changed(path, what, "import again when the file changes")
        mount = self._copied(config, target, process, image, read_only=is_read_only)
        return [{**mount, "local": self._here(source)}]

    def _here(self, source: str) -> str:
        """Return the path on this machine of a file that the compose file names."""
        return posixpath.normpath(posixpath.join(self._folder, source))

    def _copied(
        self, config: str, target: str, process: str, image: str | None, *, read_only: bool
    ) -> dict[str, object]:
        """Return the mount of a configuration file at `target`, to which a step copies it."""
        volume = self.volumes.declare(f"config-{config}", {"type": "empty_dir"})
        self._add_copy(volume, config, process, image)
        mount: dict[str, object] = {"volume": volume, "at": target, "sub_path": config}
        return {**mount, "read_only": True} if read_only else mount

    def _short(self, text: str, path: str, log: Log) -> dict[str, object] | None:
        if _WINDOWS.match(text):
            log.fault(path, f"{show(text)} is a Windows path", "use a path of this machine")
            return None
        pieces = text.split(":")
        if len(pieces) > 3 or not all(pieces):
            log.fault(path, f"{show(text)} is not a volume", "write it like data:/data:ro")
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
        target = fields.required_text("target", "/volume", "give the path where it is mounted")
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
            host = self._here(source)
            log.lost(
                path,
                f"{source} is a path of this machine; on a cluster, it is a path of the node",
                "use a claim or NFS there",
            )
            # Compose creates missing folders; a folder in place of a missing docker.sock would be useless.
            is_made = is_beside and not self._is_there(host)
            kind = {"kind": "DirectoryOrCreate"} if is_made else {}
            return self.volumes.find({"type": "host_path", "path": host, **kind}, f"host-{posixpath.basename(host)}")
        return self._named_volume(source, path, log)

    def _named_volume(self, name: str, path: str, log: Log) -> str:
        if name not in self._named.keys():  # noqa: SIM118 - a volume may stand there without a value
            log.fault(path, f'unknown volume "{name}"', "declare it under the top-level `volumes:`")
            return name
        fields = self._named.map(name)
        options = fields.map("driver_opts")
        if (options.text("type") or "").startswith("nfs"):
            address = re.search(r"(?:^|,)addr=([^,]+)", options.text("o") or "")
            device = (options.text("device") or "").rpartition(":")[2]
            if address and device:
                return self.volumes.declare(name, {"type": "nfs", "server": address[1], "path": device})
        fields.drop("driver_opts", "symph does not create volumes: create the claim with these options")
        claim = UniqueNames.label(fields.text("name") or name)
        log.changed(fields.path, f'volume "{name}" is the claim "{claim}" on a cluster', "create the claim first")
        fields.flag("external")
        fields.note_unread("of a volume is not carried over")
        return self.volumes.declare(name, {"type": "claim", "claim": claim})

    def _device(self, text: str, path: str, log: Log) -> dict[str, object]:
        source, _, rest = text.partition(":")
        target, _, perm = rest.partition(":")
        volume: dict[str, object] = {"type": "device", "path": source}
        if perm:
            volume["perm"] = perm
        log.changed(path, f"device {source} makes the process privileged on a cluster")
        return {"volume": self.volumes.declare(f"device-{source}", volume), "at": target or source}

    def _config_mounts(self, service: Fields, process: str, image: str | None) -> list[dict[str, object]]:
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
            file = self._configs.map(name).text("file")
            here = {"local": self._here(file)} if file else {}
            mounts.append({**self._copied(config, place, process, image, read_only=True), **here})
        return mounts

    def _add_config(self, name: str, text: str) -> str:
        free, count = name, 2
        while self.texts_of_configs.setdefault(free, text) != text:
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
            log.fault(path, f'unknown config "{name}"', "declare it under the top-level `configs:`")
            return None
        fields = self._configs.map(name)
        if "content" in fields:
            return fields.text("content")
        if "file" in fields:
            file = fields.text("file") or ""
            text = self.read_text(file)
            if text is None:
                log.fault(
                    fields.at("file"), f"cannot read {show(file)} as text", "check that it exists and is UTF-8 text"
                )
            return text
        log.lost(
            fields.path, f'config "{name}" has no content in this file; it is not carried over', "add it to `configs`"
        )
        return None

    def _secret_mounts(self, service: Fields, process: str) -> list[dict[str, object]]:
        mounts: list[dict[str, object]] = []
        for name, target, path in _granted(service, "secrets"):
            if name not in self._secrets.keys():  # noqa: SIM118
                service.log.fault(path, f'unknown secret "{name}"', "declare it under the top-level `secrets:`")
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
                what = f'secret "{name}" comes from the key "{name}" of the Secret {secret}'
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
