"""A TorchX application is read as ``dataclasses.asdict(app)`` or ``torchx run --dryrun --json`` gives it.

The records mirror TorchX's own (meta-pytorch/torchx: torchx/specs/api.py, releases 0.7.0 to 2026.10). They are kept
apart from the experiment because TorchX's own objects are made from them too (`importers.torchx_objects`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from symphony_charts.formats.field_reader import show
from symphony_charts.importers.report import Log
from symphony_charts.importers.torchx.mounts import AnyMount, read_mounts
from symphony_charts.integrations.common.fields import Fields

__all__ = ["AppDef", "Resource", "RetryPolicy", "Role", "read_appdef"]

RetryPolicy: TypeAlias = Literal["REPLICA", "APPLICATION", "ROLE", "HOT_SPARE"]
_POLICIES: tuple[RetryPolicy, ...] = ("REPLICA", "APPLICATION", "ROLE", "HOT_SPARE")
_UNSET = ("<MISSING>", "<NONE>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """The resources of one replica; zero or less means not set. `memory_mb` counts 10^6 bytes, as TorchX emits it."""

    cpu: float = -1
    gpu: int = -1
    memory_mb: int = -1
    capabilities: dict[str, object] = field(default_factory=dict)
    devices: dict[str, int] = field(default_factory=dict)
    tags: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """Replicas of one program; `path` is where it stands in the input."""

    path: str
    name: str
    image: str
    entrypoint: str
    args: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    num_replicas: int = 1
    min_replicas: int | None = None
    max_retries: int = 0
    retry_policy: RetryPolicy = "APPLICATION"
    resource: Resource = field(default_factory=Resource)
    port_map: dict[str, int] = field(default_factory=dict)
    metadata: dict[str, object] = field(default_factory=dict)
    mounts: list[AnyMount] = field(default_factory=list)
    base_image: str | None = None
    workspace: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AppDef:
    """A distributed application: its roles, in order (the first one holds rank 0)."""

    name: str
    roles: list[Role]
    metadata: dict[str, str] = field(default_factory=dict)


def read_appdef(data: object, log: Log, path: str = "") -> AppDef:
    """The application in `data`; faults and unknown fields go to `log`."""
    fields = Fields(data, path, log)
    name = fields.required_text("name", "app", "give the app a name")
    roles = [_read_role(role) for role in fields.maps("roles")]
    if not roles and "roles" not in fields:
        log.fault(fields.at("roles"), "the app has no roles", "give it at least one role")
    elif not roles and isinstance(fields.get("roles"), list):
        log.fault(fields.at("roles"), "the list of roles is empty", "give the app at least one role")
    metadata = fields.text_map("metadata")
    fields.note_unread("is not known to this reader of AppDefs, and not carried over")
    return AppDef(name=name, roles=roles, metadata=metadata)


def _read_role(fields: Fields) -> Role:
    role = Role(
        path=fields.path,
        name=fields.required_text("name", "role", "give the role a name"),
        image=_said(fields.text("image")),
        entrypoint=_said(fields.text("entrypoint")),
        args=fields.texts("args"),
        env=fields.text_map("env"),
        num_replicas=_or(fields.integer("num_replicas", 1, 100_000), 1),
        min_replicas=fields.integer("min_replicas", 1, 100_000),
        max_retries=_or(fields.integer("max_retries", 0, 2**31 - 1), 0),
        retry_policy=_read_policy(fields),
        resource=_read_resource(fields.map("resource")),
        port_map=_integers(fields.map("port_map")),
        metadata=_plain_map(fields, "metadata"),
        mounts=read_mounts(fields),
        base_image=fields.text("base_image"),
        workspace=fields.raw("workspace"),
    )
    if not role.entrypoint:
        fields.log.fault(fields.at("entrypoint"), f'role "{role.name}" has no entrypoint', "name its program")
    if role.min_replicas is not None and role.min_replicas > role.num_replicas:
        what = f"min_replicas ({role.min_replicas}) is more than num_replicas ({role.num_replicas})"
        fields.log.fault(fields.at("min_replicas"), what, "lower it")
    if fields.get("overrides"):
        what = "`overrides` hold values that TorchX computes when it submits; they are not carried over"
        fields.log.note(fields.at("overrides"), what)
    fields.note_unread("is not known to this reader of AppDefs, and not carried over")
    return role


def _read_policy(fields: Fields) -> RetryPolicy:
    text = fields.text("retry_policy")
    if text is None:
        return "APPLICATION"
    name = text.rpartition(".")[2]
    for policy in _POLICIES:
        if name == policy:
            return policy
    fields.log.fault(fields.at("retry_policy"), f"{show(text)} is no retry policy", f"one of {', '.join(_POLICIES)}")
    return "APPLICATION"


def _read_resource(fields: Fields) -> Resource:
    resource = Resource(
        cpu=_or(fields.number("cpu"), -1),
        gpu=_or(fields.integer("gpu"), -1),
        memory_mb=int(_or(fields.number("memMB"), -1)),
        capabilities=_plain_map(fields, "capabilities"),
        devices=_integers(fields.map("devices")),
        tags=_plain_map(fields, "tags"),
    )
    fields.note_unread("is not known to this reader of AppDefs, and not carried over")
    return resource


def _plain_map(fields: Fields, key: str) -> dict[str, object]:
    inner = fields.map(key)
    return {name: inner.raw(name) for name in inner.keys()}  # noqa: SIM118 - not a dict


def _integers(fields: Fields) -> dict[str, int]:
    return {name: number for name in fields.keys() if (number := fields.integer(name)) is not None}  # noqa: SIM118


def _said(text: str | None) -> str:
    return "" if text is None or text in _UNSET else text


def _or(value: float | int | None, default: int) -> int:
    return default if value is None else value  # type: ignore[return-value] # numbers keep the type they were read as
