"""A plan records what each pane of a run starts, when, and under which policies.

The records hold no clock, no process id and nothing that is found out while running. Process `slot` numbers are
positions in `LocalPlan.processes`; they name folders and panes, so that no name of a user ever reaches a shell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from symphony_charts.local.plan.addresses import AddressRange

__all__ = [
    "Bind",
    "Check",
    "Checkout",
    "File",
    "Gpus",
    "Limit",
    "Limiter",
    "LocalPlan",
    "Machine",
    "OnExit",
    "PlannedProcess",
    "Restart",
    "Wait",
]

OnExit = Literal["stop-all", "keep", "restart"]
Restart = Literal["always", "on-failure", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpus:
    """The ids of the GPUs that each process (``pod/process``) gets; `notes` is what users must know of them.

    With `is_shared` other processes and runs may have them, too.
    """

    ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    is_shared: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What a process may use at most: `amount` in bytes or millicores, as it was `said`, and who holds it to that."""

    resource: str
    amount: int
    said: str
    by: Literal["systemd", "rlimit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limiter:
    """By what means a machine limits each resource, and `why` not better; `scope` begins the command of a scope."""

    by: Mapping[str, Literal["systemd", "rlimit"]] = field(default_factory=dict)
    scope: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a plan needs to know of the machine and of this run.

    `caller_env` is the environment of the person who starts the run; `run_dir` the run's private folder, `claims_dir`
    that of the volumes which outlive it; `secrets` the content of each declared secret file by key. `has_namespace`
    says whether private mounts are possible, `enter` is the command through which a process then becomes an ordinary
    one. `hosts` is the text of the machine's own file of host names. `moved` has for services whose port is another
    here the port at each replica; `notes` is what users must know of the machine.
    """

    run_id: str
    run_dir: str
    claims_dir: str
    spec_dir: str
    hostname: str
    addresses: AddressRange
    has_namespace: bool
    caller_env: Mapping[str, str]
    moved: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    hosts: str = ""
    secrets: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    gpus: Gpus = field(default_factory=Gpus)
    enter: tuple[str, ...] = ()
    limiter: Limiter = field(default_factory=Limiter)


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that processes see; `path` is relative to the run's private folder, `mode` the permission bits."""

    path: str
    content: bytes = field(repr=False)
    mode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """`source` (an absolute path of this machine) seen at the absolute path `target`.

    `sub_path` is the end of `source` that lies inside the volume, and may not lead out of it.
    """

    source: str
    target: str
    read_only: bool = False
    sub_path: str = ""

    @property
    def volume(self) -> str:
        """The folder or file of this machine that is the whole volume."""
        return self.source[: -len(self.sub_path) - 1] if self.sub_path else self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A Git volume: `revision` of `repository` in the absolute `folder`, filled before anything starts."""

    volume: str
    repository: str
    revision: str
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Do not start before the process in `slot` is ready, or has ended well; `service` is what is dialled there."""

    slot: int
    until: Literal["ready", "done"]
    service: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """How something is found out: by a connection to `host`:`port`, a GET of `path`, or `command` exiting 0.

    `failures` or `successes` in a row change the answer, as Kubernetes' thresholds do; times are in seconds. `grace_s`
    is how long a process that is not `alive` any more gets between TERM and KILL (None: as long as at any end). An
    `automatic` check comes from a bound port; it is tried quickly and then less often, until it passes once.
    """

    kind: Literal["tcp", "http", "exec"]
    host: str = ""
    port: int = 0
    role: Literal["ready", "alive", "started"] = "ready"
    path: str = "/"
    is_tls: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    command: tuple[str, ...] = ()
    initial_delay_s: float = 0.0
    period_s: float = 10.0
    timeout_s: float = 1.0
    failures: int = 3
    successes: int = 1
    grace_s: int | None = None
    automatic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedProcess:
    """One program on this machine.

    `name` is what users type (``agent-1``), `group` the group it belongs to (empty: alone), `pod` the replica of the
    pod, which is also the tmux window. `gpus` are the ids of its GPUs, `binds` paths that only this pod sees. `enter`
    is put before `argv`: programs that become it; `scope` starts all of it, in bounds of its own. One that
    `counts_tries` gets the number of its earlier tries. `spec_path` is where it stands in the experiment, `log_bytes`
    the size beyond which its log loses its beginning (0: never), `digest` covers all whose change needs a restart.
    """

    slot: int
    name: str
    group: str
    pod: str
    process: str
    index: int
    is_step: bool
    is_service: bool
    argv: tuple[str, ...]
    env: dict[str, str] = field(repr=False)
    preamble: tuple[str, ...]
    cwd: str
    tty: bool
    address: str
    waits: tuple[Wait, ...]
    checks: tuple[Check, ...]
    health: tuple[Check, ...]
    restart: Restart
    retries: int
    counts_tries: bool
    on_exit: OnExit
    grace_s: int
    deadline_s: int | None
    log_bytes: int
    gpus: tuple[str, ...]
    enter: tuple[str, ...]
    limits: tuple[Limit, ...]
    scope: tuple[str, ...]
    binds: tuple[Bind, ...]
    spec_path: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPlan:
    """All processes of a run. `done_when` lists the slots whose success ends it; `notes` is what users must know.

    `ports` are the pod's; services in `moved` have others here, one for each replica.
    `caller` is what every process has of the environment of whoever started the run, whatever the experiment says.
    `labels` are the experiment's own.
    `folders` are private folders to make and `binds` the paths that all processes see in place; both are absolute.
    """

    experiment: str
    processes: tuple[PlannedProcess, ...]
    done_when: tuple[int, ...]
    files: tuple[File, ...]
    folders: tuple[str, ...]
    checkouts: tuple[Checkout, ...]
    binds: tuple[Bind, ...]
    has_namespace: bool
    base_address: str
    ports: dict[str, int]
    moved: dict[str, tuple[int, ...]]
    is_sharing_gpus: bool
    caller: dict[str, str]
    labels: dict[str, str]
    notes: tuple[str, ...]
