"""The keywords of the builders, for type checkers and editors: they mean nothing when a program runs.

`scripts/builder_keywords.py` writes this file from the JSON Schema; what is wrong in a value only `finish` knows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict

import msgspec

if sys.version_info >= (3, 11):
    from typing import Unpack
else:
    from typing_extensions import Unpack

__all__ = [
    "AssignmentFields",
    "ConfigFields",
    "ExperimentFields",
    "ExperimentKeywords",
    "GroupKeywords",
    "PodFields",
    "ProcessFields",
    "ProcessKeywords",
    "Unpack",
]

# A record, or its data as in a file.
Data = Mapping[str, object] | msgspec.Struct
# Not any sequence: a text is one, too.
Items = list[Any] | tuple[Any, ...]


class PodFields(TypedDict, total=False):
    """Keywords of lone processes and groups."""

    replicas: int | None
    min_replicas: int | None
    restart: Literal["always", "on-failure", "never", "Always", "OnFailure", "Never"] | None
    restart_policy: Literal["always", "on-failure", "never", "Always", "OnFailure", "Never"] | None
    retries: int | None
    until: Literal["run", "uninstall"] | None
    names: Items | str | None
    node_selector: Mapping[str, object] | None
    capabilities: Mapping[str, object] | None
    tolerations: Items | Data | None
    labels: Mapping[str, object] | None
    annotations: Mapping[str, object] | None
    service_account: str | None
    priority_class: str | None
    grace_period: int | str | None
    deadline: int | str | None
    pod_overlay: Mapping[str, object] | None


class GroupKeywords(PodFields, total=False):
    """Keywords of groups."""

    preamble_cmds: str | Iterable[str] | None
    start_dir: str | None


class ProcessKeywords(PodFields, total=False):
    """Keywords of processes, without shell lines."""

    image: str | None
    container_image: str | None
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None
    command: Items | str | None
    args: Items | str | None
    cmd: Items | str | None
    preamble: Items | str | None
    preamble_cmds: Items | str | None
    shell: Literal["bash", "sh"] | Items | None
    env: Mapping[str, object] | None
    cwd: str | None
    start_dir: str | None
    lifecycle: Literal["finite", "service"] | None
    binds: str | Items | Mapping[str, object] | None
    connects: str | Items | None
    exposes: str | Items | Mapping[str, object] | None
    requests: Mapping[str, object] | None
    limits: Mapping[str, object] | None
    gpus: int | None
    reserve: bool | None
    pod_share: Items | None
    mounts: Data | str | Items | None
    ready: Literal["none"] | Data | int | str | None
    after: Items | str | None
    assign_to: Data | Literal["machine", "gpu", "resource", "node_pool"] | None
    local: Data | None
    container_overlay: Mapping[str, object] | None


class ProcessFields(ProcessKeywords, total=False):
    """Keywords of processes."""

    cmds: Items | str | None


class ExperimentFields(TypedDict, total=False):
    """Settings of experiments."""

    team: str | None
    owner: str | None
    namespace: str | None
    image: str | None
    container_image: str | None
    env: Mapping[str, object] | None
    env_file: Items | str | None
    volumes: Mapping[str, object] | None
    configs: Mapping[str, object] | None
    secrets: Items | str | Data | None
    secret_source: Data | None
    prepare: Mapping[str, object] | None
    port_range: Items | str | range | None
    done_when: Items | str | None
    on_failure: Literal["continue", "stop"] | None
    linger: int | str | None
    expose: Mapping[str, object] | None
    workload: Data | None
    compat: Literal["di-engine"] | None
    service_account: str | None
    image_pull_secrets: str | Items | None
    networks: str | Items | None
    security: Data | None
    placement: Data | None
    labels: Mapping[str, object] | None
    annotations: Mapping[str, object] | None
    chart: Data | None
    local: Data | None


class AssignmentFields(TypedDict, total=False):
    """Further keywords of assignments."""

    node_pool_name: str | None
    process_per_machine: int | None
    exclusive: bool | None
    cpu: float | None
    memory_m: float | None
    gpu_type: str | None
    gpu_count: int | None


class ConfigFields(TypedDict, total=False):
    """Sources of configuration files other than a text."""

    base64: str | None
    file: str | None
    mode: str | None


class ExperimentKeywords(ExperimentFields, total=False):
    """Keywords of experiments."""

    preamble_cmds: str | Iterable[str] | None
    start_dir: str | None
