"""The run options are listed by ``torchx runopts symph`` and taken by ``torchx run -cfg``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from symphony_charts.importers.report import Log
from symphony_charts.importers.torchx.options import RunOptions, read_options
from symphony_charts.integrations.common.fields import Fields
from symphony_charts.integrations.torchx.options import OPTIONS, SCHEDULER_OPTIONS
from symphony_charts.oci.transport import Access

__all__ = ["Backend", "Options", "declare", "read"]

Backend = Literal["tmux", "kube", "chart"]

_TYPES: Mapping[str, type] = {"str": str, "int": int, "bool": bool}
_OWN = frozenset(option.name for option in SCHEDULER_OPTIONS)
_APP_ID_HINT = "add app_id=ID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The target and form of a submission; `run` are the options that describe the application.

    `app_id` is the name that it must get; `is_compat` asks for TorchX's own objects instead of ours; `registry` is how
    that of `image_repo` is reached.
    """

    run: RunOptions
    on: Backend = "tmux"
    context: str | None = None
    app_id: str | None = None
    dest: str = "dist"
    is_compat: bool = False
    registry: Access = field(default_factory=Access)


def declare(opts: Any, names: Collection[str] = ()) -> None:
    """Add all options, or those called so, to a ``torchx.specs.runopts``, with their types, defaults and meaning."""
    for option in (*SCHEDULER_OPTIONS, *OPTIONS):
        if names and option.name not in names:
            continue
        opts.add(option.name, type_=_TYPES[option.type], default=option.value, help=option.help)


def read(cfg: Mapping[str, object], log: Log) -> Options:
    """The options of a run, those that are None left out; raises SpecError with every fault."""
    given = {key: value for key, value in cfg.items() if value is not None}
    fields = Fields({key: value for key, value in given.items() if key in _OWN}, "cfg", log)
    options = Options(
        run=read_options({key: value for key, value in given.items() if key not in _OWN}, log, "cfg"),
        on=cast("Backend", _one_of(fields, "on", get_args(Backend))),
        context=fields.text("context"),
        app_id=fields.text("app_id"),
        dest=fields.text("dest") or "dist",
        is_compat=_one_of(fields, "compat", ("none", "torchx")) == "torchx",
        registry=_access(fields),
    )
    if options.is_compat and options.app_id is None:
        log.fault("cfg.app_id", "TorchX's own objects carry an app id, which TorchX makes at random", _APP_ID_HINT)
    log.raise_faults()
    return options


def _access(fields: Fields) -> Access:
    """Return the access to the registry, from options that are called as helm's flags."""
    access = Access(
        plain_http=bool(fields.flag("plain_http")),
        ca_file=fields.text("ca_file") or "",
        cert_file=fields.text("cert_file") or "",
        key_file=fields.text("key_file") or "",
        insecure_skip_tls_verify=bool(fields.flag("insecure_skip_tls_verify")),
    )
    if access.plain_http and access.asks_for_tls:
        fields.log.fault("cfg.plain_http", "it is without TLS, of which other options speak", "leave one of them out")
    if access.key_file and not access.cert_file:
        fields.log.fault("cfg.key_file", "it is the key of cert_file", "give both")
    return access


def _one_of(fields: Fields, key: str, choices: tuple[str, ...]) -> str:
    """The text of a field that has but these values; the first one when nothing is said."""
    text = fields.text(key) or choices[0]
    if text not in choices:
        fields.log.fault(fields.at(key), f'"{text}" is no value of `{key}`', f"one of {', '.join(choices)}")
    return text
