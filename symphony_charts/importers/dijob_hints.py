"""What a DIJob says that an experiment has no field for: kept in annotations, so that it can be written back.

Experiment level: `DIALECT`, `CLEAN_POD_POLICY`, `GROUP`, `PRIORITY`, `TOPOLOGY`, `PARALLEL_WORKERS`, `MAX_REPLICAS`;
process level: `TASK_TYPE`. Defaults are not written. On other workload kinds none has an effect.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = [
    "CLEAN_POD_POLICY",
    "DIALECT",
    "GROUP",
    "MAX_REPLICAS",
    "PARALLEL_WORKERS",
    "PRIORITY",
    "TASK_TYPE",
    "TASK_TYPES",
    "TOPOLOGY",
    "Dialect",
]

# The operator version that first had the shape: v0.x has roles, v1.0 one template, v1.1 tasks (v1.1.0: no volumes).
Dialect: TypeAlias = Literal["v0", "v1.0", "v1.1.0", "v1.1"]

_PREFIX = "diengine.opendilab.org/"
DIALECT = f"{_PREFIX}dialect"
CLEAN_POD_POLICY = f"{_PREFIX}clean-pod-policy"
GROUP = f"{_PREFIX}group"
PRIORITY = f"{_PREFIX}priority"
TOPOLOGY = f"{_PREFIX}topology"
PARALLEL_WORKERS = f"{_PREFIX}parallel-workers"
MAX_REPLICAS = f"{_PREFIX}max-replicas"
TASK_TYPE = f"{_PREFIX}task-type"

TASK_TYPES = ("learner", "collector", "evaluator", "none")
