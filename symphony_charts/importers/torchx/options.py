"""The values that one run gives to TorchX's run options are read by the option table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from symphony_charts.formats.paths import nearest
from symphony_charts.importers.report import Log
from symphony_charts.integrations.common.fields import Fields
from symphony_charts.integrations.torchx.options import OPTIONS

__all__ = ["RunOptions", "parse_cfg", "pushed_image", "read_options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The values of the options for one run; None where not said."""

    namespace: str | None = None
    image_repo: str | None = None
    service_account: str | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    image_secret: str | None = None
    coscheduler_name: str | None = None
    network: str | None = None
    queue: str | None = None
    reserved_millicpu: int | None = None
    reserved_memmb: int | None = None
    efa_device_count: int | None = None
    kind: str | None = None
    appwrapper_version: str | None = None
    gang: str | None = None
    reserve: bool | None = None

    @property
    def is_for_mcad(self) -> bool:
        """True if MCAD queues it, which reads AppWrappers of its own version."""
        return self.kind == "appwrapper" and self.appwrapper_version == "v1beta1"

    @property
    def starts_as_gang(self) -> bool:
        """True if pods wait for one another before they start."""
        has_gang = self.gang not in (None, "none") or self.coscheduler_name is not None
        return has_gang or self.kind == "volcano" or self.is_for_mcad


# Other names of an option, and options that only steer TorchX itself.
_SYNONYMS = {"priority_class": "priority_class_name"}
_ONLY_TORCHX = ("quiet", "validate_spec", "priority_boost")


def pushed_image(image: str, options: RunOptions) -> str | None:
    """Return the name of a pushed image: a patched one (``sha256:...``) is under its hash in the image repository.

    None for a patched image when no repository is given.
    """
    if not image.startswith("sha256:"):
        return image
    return f"{options.image_repo}:{image.removeprefix('sha256:')}" if options.image_repo else None


def parse_cfg(text: str, log: Log) -> RunOptions:
    """The options of ``key=value,key=value``, as ``torchx run -cfg`` takes them.

    A piece without ``=`` belongs to the value before it, as in TorchX.
    """
    values: dict[str, object] = {}
    key = ""
    for piece in text.split(","):
        name, equals, value = piece.partition("=")
        if equals:
            key = name.strip()
            values[key] = value
        elif key:
            values[key] = f"{values[key]},{piece}"
        elif piece.strip():
            log.fault("cfg", f'"{piece}" is no option', "write key=value,key=value")
    return read_options(values, log, "cfg")


def read_options(values: Mapping[str, object], log: Log, path: str) -> RunOptions:
    """The options that a map holds; unknown ones are faults, as a silent typo would change the run."""
    fields = Fields({_SYNONYMS.get(key, key): _none(value) for key, value in values.items()}, path, log)
    version, kind = fields.text("appwrapper_version"), fields.text("kind")
    if version is not None and version not in ("v1beta1", "v1beta2"):
        what = f'"{version}" is no version of AppWrappers'
        log.fault(fields.at("appwrapper_version"), what, "v1beta1 (MCAD) or v1beta2")
    options = RunOptions(
        namespace=fields.text("namespace"),
        image_repo=fields.text("image_repo"),
        service_account=fields.text("service_account"),
        priority=fields.integer("priority", -(2**31), 2**31 - 1),
        priority_class_name=fields.text("priority_class_name"),
        image_secret=fields.text("image_secret"),
        coscheduler_name=fields.text("coscheduler_name"),
        network=fields.text("network"),
        queue=fields.text("queue"),
        reserved_millicpu=fields.integer("reserved_millicpu", 0),
        reserved_memmb=fields.integer("reserved_memmb", 0),
        efa_device_count=fields.integer("efa_device_count", 0),
        kind=kind or ("appwrapper" if version else None),
        appwrapper_version=version,
        gang=fields.text("gang"),
        reserve=fields.flag("reserve"),
    )
    for key in _ONLY_TORCHX:
        if key in fields:
            fields.skip(key)
            log.changed(fields.at(key), f"`{key}` steers TorchX itself; it has no meaning here")
    for key in list(fields.unread()):
        names = [option.name for option in OPTIONS]
        meant = nearest(key, names)
        log.fault(fields.at(key), f'unknown option "{key}"', f'did you mean "{meant}"?' if meant else _list(names))
    return options


def _none(value: object) -> object:
    return None if value in ("", "None", "null") else value


def _list(names: list[str]) -> str:
    return f"options: {', '.join(names)}"
