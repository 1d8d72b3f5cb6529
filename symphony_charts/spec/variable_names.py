"""Names of the variables that processes get, and the shells that run their lines.

`spec.environment` defines their values. `system.sockets`, which does not know experiments, finds a process by RUN and
EXPERIMENT in its environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from symphony_charts.errors import Problem

ROLE = "SYMPHONY_ROLE"
EXPERIMENT = "SYMPH_EXPERIMENT"
GROUP = "SYMPH_GROUP"
INDEX = "SYMPH_INDEX"
REPLICAS = "SYMPH_REPLICAS"
RUN = "SYMPH_RUN"
ATTEMPT = "SYMPH_ATTEMPT"
CONFIG_FOLDER = "SYMPH_CONFIG_DIR"
SECRETS_FOLDER = "SYMPH_SECRETS_DIR"
# The identity of a process. The chart and the local mode rely on these; experiments cannot set them.
RESERVED = frozenset((EXPERIMENT, GROUP, INDEX, REPLICAS, RUN, ATTEMPT))

# DI-engine's variables: opendilab/DI-orchestrator v1.1.3, pkg/context/pod.go.
DI_JOB_ID = "DI_JOB_ID"
DI_NODES = "DI_NODES"
DI_RANK = "DI_RANK"
# Pods get these instead: the namespace, which only the pod knows, and the rank of its group's first replica.
DI_JOB_NAMESPACE = "DI_JOB_NAMESPACE"
DI_FIRST_RANK = "DI_FIRST_RANK"


# Facts about a service.
Part: TypeAlias = Literal["HOST", "PORT", "ADDR", "HOSTS", "BIND_HOST"]

# A value in quotes, before a comment.
_QUOTED = re.compile(r"""(['"])(.*?)\1(?:\s+#.*)?""")
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class Variable(str):
    """A change of a spec, ``KEY=VALUE``, that sets a variable in every process."""

    __slots__ = ()


def parse_env_file(text: str) -> dict[str, str]:
    """Return the variables of a ``KEY=value`` file, without comments, blank lines and quotes around values."""
    variables: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and not name.startswith("#"):
            quoted = _QUOTED.fullmatch(value.strip())
            variables[name.strip()] = quoted[2] if quoted else value.split(" #", 1)[0].strip()
    return variables


def service_prefix(service: str) -> str:
    """Return the prefix of a service's variables: ``replay-server`` -> ``SYMPH_REPLAY_SERVER``."""
    return f"SYMPH_{_upper(service)}"


def service_variable(service: str, part: Part) -> str:
    """Return the variable of a fact about a service: ``SYMPH_REPLAY_SERVER_HOST``."""
    return f"{service_prefix(service)}_{part}"


def is_known_late(name: str, before: str | None, after: str | None) -> bool:
    """Return True if a process may keep running although its variable `name` changed because of other processes.

    These are numbers and addresses of replicas, and services that were added or removed.
    """
    if name == REPLICAS or (name.startswith("SYMPH_") and name.endswith("_HOSTS")):
        return before is not None and after is not None
    is_address = name.startswith("SYMPH_") and name.endswith(("_HOST", "_PORT", "_ADDR"))
    return is_address and not name.endswith("_BIND_HOST") and None in (before, after)


def di_group_nodes(pod: str) -> str:
    """Return the variable with the nodes of a pod's own replicas: ``DI_COLLECTOR_NODES``."""
    return f"DI_{_upper(pod)}_NODES"


def is_shell_name(name: str) -> bool:
    """Return True if a shell can set a variable of this name; many shells drop other variables from the environment."""
    return _SHELL_NAME.fullmatch(name) is not None


def beside_shells(names: Iterable[str]) -> list[str]:
    """Return the words between shell and command that restore dropped variables in `names`; empty if there are none."""
    dropped = sorted(name for name in names if not is_shell_name(name))
    return ["env", "--", *(f"{name}=$({name})" for name in dropped)] if dropped else []


def is_ours(name: str) -> bool:
    """Return True if the name is reserved for the variables that we set in every process."""
    return name == ROLE or name.startswith("SYMPH_")


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")


def reference_order(name: str) -> tuple[bool, str]:
    """Return the sort key of variables with references: users' variables may refer to ours."""
    return not name.startswith("SYMPH_"), name


# msgspec reads this alias; a list has the words before the script, which is the last argument.
Shell: TypeAlias = Literal["sh", "bash"] | list[str]

DEFAULT_SHELL: Literal["sh"] = "sh"
_ARGV = {"sh": ("/bin/sh", "-e", "-c"), "bash": ("bash", "-eo", "pipefail", "-c")}


def shell_argv(shell: Shell | None) -> list[str]:
    """Return the words before a script that `shell` runs; None is the default shell."""
    if isinstance(shell, list):
        return list(shell)
    return list(_ARGV[shell or DEFAULT_SHELL])


def named_shell(argv: Sequence[str]) -> Shell:
    """Return the shell whose `shell_argv` is `argv`, by name if it has one."""
    return "sh" if tuple(argv) == _ARGV["sh"] else "bash" if tuple(argv) == _ARGV["bash"] else list(argv)


def shell_script(command: Sequence[str]) -> str | None:
    """Return the script of a `command` that runs it in one of the named shells; None for other commands."""
    *shell, script = command or ("",)
    return script if tuple(shell) in _ARGV.values() else None


def not_handed_on(argv: Sequence[str], names: Iterable[str]) -> list[str]:
    """Return the variables in `names` that dash or busybox would drop if `argv` runs them as `sh`."""
    is_sh = bool(argv) and argv[0].rpartition("/")[2] in ("sh", "dash", "ash")
    return sorted(name for name in names if not is_shell_name(name)) if is_sh else []


def shell_faults(shell: Shell | None, path: str, *, has_lines: bool) -> Iterator[Problem]:
    """Yield faults of `shell` at `path`; `has_lines` is True if it has lines to run."""
    if isinstance(shell, list) and (not shell or not shell[0]):
        yield Problem("`shell` is empty", path, "write sh, bash, or a list such as [/bin/bash, -c]")
    if shell not in (None, DEFAULT_SHELL) and not has_lines:
        yield Problem("`shell` has no effect without `cmds` or `preamble`", path, "remove it, or add `cmds`")
