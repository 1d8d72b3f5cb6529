"""The plan of a run: what each pane starts, when, and under which policies; also the layout of `plan.json`.

The records hold no times, process ids or other runtime facts. Process `slot` numbers are positions in
`LocalPlan.processes`; they name folders and panes, so that user-defined names never reach a shell.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

_HOSTS_PER_BLOCK = 254
# Skip 127.0.x.x: resolvers and Debian's host name entry use it.
_FIRST_BLOCK, _LAST_BLOCK = 1 << 8, (255 << 8) - 1


class AddressRange(Struct, frozen=True, kw_only=True):
    """Consecutive /24 blocks of 127.0.0.0/8, beginning with number `block` (``127.<block // 256>.<block % 256>``).

    Number 0 means 127.0.0.1 alone, which all pods then share.
    """

    block: int

    def address(self, index: int) -> str:
        """Return the address of pod number `index`, from 0; `.0` and `.255` are never used."""
        if self.block == 0:
            return "127.0.0.1"
        block = self.block + index // _HOSTS_PER_BLOCK
        return f"127.{block >> 8}.{block & 255}.{index % _HOSTS_PER_BLOCK + 1}"

    def index(self, address: str) -> int:
        """Return the number of the pod with that address, the inverse of `address`."""
        _, second, third, last = map(int, address.split("."))
        return (second * 256 + third - self.block) * _HOSTS_PER_BLOCK + last - 1


ONE_ADDRESS = AddressRange(block=0)


def candidate_ranges(experiment: str, pods: int, home: str = "", tries: int = 64) -> Iterator[AddressRange]:
    """Yield ranges for `experiment` with its `pods`, best first: always the same ones for the same name and `home`.

    `home` is the folder of all runs of a user: two users may start the same experiment at once.
    """
    blocks = -(-max(pods, 1) // _HOSTS_PER_BLOCK)
    room = _LAST_BLOCK - _FIRST_BLOCK - blocks
    for attempt in range(tries):
        digest = hashlib.sha256(f"{home}\0{experiment}\0{attempt}".encode("utf-8", "surrogateescape")).digest()
        yield AddressRange(block=_FIRST_BLOCK + int.from_bytes(digest[:8], "big") % room)


def range_at(address: str) -> AddressRange:
    _, second, third, _ = address.split(".")
    return AddressRange(block=int(second) * 256 + int(third))


# ``wait``: a watched process that failed waits for its restart, and the run does not end before that.
OnFailure = Literal["stop", "continue", "wait"]
# At the end of the run: ``stop`` ends at once, ``linger`` after the linger period, ``stay`` with `symph down`.
AtEnd = Literal["stop", "linger", "stay"]
Restart = Literal["always", "on-failure", "never"]


class Gpus(Struct, frozen=True, kw_only=True):
    """The ids of the GPUs of each process (``pod/process``); with `is_shared` others may have them, too."""

    ids: Mapping[str, tuple[str, ...]] = {}
    is_shared: bool = False
    notes: tuple[str, ...] = ()


class Limit(Struct, frozen=True, kw_only=True):
    """The limit of a process: `amount` in bytes or millicores, `said` as in the spec, `by` the mechanism."""

    resource: str
    amount: int
    said: str
    by: Literal["systemd", "rlimit"]


class Limiter(Struct, frozen=True, kw_only=True):
    """The mechanism for each resource, and `why` no better one is available; `scope` is the command of a scope."""

    by: Mapping[str, Literal["systemd", "rlimit"]] = {}
    scope: tuple[str, ...] = ()
    why: str = ""


class _Private(Struct, frozen=True, kw_only=True):
    def __repr__(self) -> str:
        """Return only the type: fields hold secrets."""
        return type(self).__name__


class Machine(_Private, frozen=True, kw_only=True):
    """The facts of the machine and of this run that a plan needs.

    `caller_env` is the environment of the caller; `run_dir` the run's private folder, `claims_dir` the folder of
    persistent volumes; `secrets` the content of each declared secret file by key. `has_namespace` is true if private
    mounts are possible; `enter` is the command that then drops the extra capabilities. `hosts` is the text of the
    machine's own hosts file. `moved` maps services with other ports here to the port of each replica; `notes` are for
    users. `kept` are the names and address numbers of the replicas (``pod/index``) of a run that this plan changes.
    """

    run_id: str
    run_dir: str
    claims_dir: str
    spec_dir: str
    hostname: str
    addresses: AddressRange
    has_namespace: bool
    caller_env: Mapping[str, str]
    moved: Mapping[str, tuple[int, ...]] = {}
    notes: tuple[str, ...] = ()
    hosts: str = ""
    secrets: Mapping[str, bytes] = {}
    gpus: Gpus = Gpus()
    enter: tuple[str, ...] = ()
    limiter: Limiter = Limiter()
    kept: Mapping[str, tuple[str, int]] = {}


class File(_Private, frozen=True, kw_only=True):
    """A file that processes see; `path` is relative to the run's private folder, `mode` the permission bits."""

    path: str
    content: bytes
    mode: int


class Bind(Struct, frozen=True, kw_only=True):
    """A mount of `source` at `target`, both absolute; `sub_path`, the end of `source`, may not leave the volume."""

    source: str
    target: str
    read_only: bool = False
    sub_path: str = ""

    @property
    def volume(self) -> str:
        """The folder or file of this machine that is the whole volume."""
        return self.source[: -len(self.sub_path) - 1] if self.sub_path else self.source


class Checkout(Struct, frozen=True, kw_only=True):
    """A Git volume: `revision` of `repository` in the absolute `folder`, filled before any process starts."""

    volume: str
    repository: str
    revision: str
    folder: str


class Wait(Struct, frozen=True, kw_only=True):
    """Do not start before the process in `slot` is ready or has succeeded; `service` is the connection to it."""

    slot: int
    until: Literal["ready", "done"]
    service: str = ""


class Check(Struct, frozen=True, kw_only=True):
    """A check: a connection to `host`:`port`, a GET of `path`, or `command` exiting 0.

    `failures` or `successes` in a row change the result, like Kubernetes' thresholds; times are in seconds. `grace_s`
    is the time between TERM and KILL for a process that is no longer `alive` (None: the usual grace period). An
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


class Backoff(Struct, frozen=True, kw_only=True):
    """Seconds before restart number 0, 1, 2...: `base_s` doubling to `cap_s`, reset after a long run.

    Kubernetes waits 10 s doubling to 300 s and resets after 10 minutes; on one machine shorter pauses suffice.
    """

    base_s: float = 1.0
    cap_s: float = 30.0
    forget_s: float = 600.0

    def delay_s(self, restarts: int) -> float:
        """Return the pause before the next start of a process that was restarted `restarts` times already."""
        return min(self.cap_s, self.base_s * float(2 ** min(restarts, 30)))


class RunMounts(Struct, frozen=True, kw_only=True):
    """Mounts that only a new run can change: those shared by all processes, and the targets of the others."""

    shared: tuple[Bind, ...] = ()
    targets: tuple[str, ...] = ()


class PlannedProcess(_Private, frozen=True, kw_only=True, omit_defaults=True):
    """One program on this machine.

    `name` is the user's name for it (``agent-1``), `group` its group (empty: none), `pod` the replica of the pod, which
    is also the tmux window. `gpus` are the ids of its GPUs, `binds` paths that only this pod sees. `enter` is a prefix
    of `argv`: programs that exec it; `scope` starts all of it within limits. With `counts_tries` it gets the number of
    its earlier tries. `spec_path` is its path in the experiment, `log_bytes` the maximum size of its log, after which
    the log loses its beginning (0: unlimited), `digest` covers everything whose change needs a restart: argv, env and
    cwd, and after a dot the rest. `plan.json` has no `env` and no `preamble`: they are in the start script. A process
    that a change of a run has removed keeps its slot, with `is_removed`. `at_end` tells when it ends after the run.
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
    env: dict[str, str] = {}
    preamble: tuple[str, ...] = ()
    cwd: str
    tty: bool
    address: str
    waits: tuple[Wait, ...]
    checks: tuple[Check, ...]
    health: tuple[Check, ...]
    restart: Restart
    retries: int
    counts_tries: bool
    on_failure: OnFailure
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
    is_removed: bool = False
    at_end: AtEnd = "stop"

    @property
    def declared_pod(self) -> str:
        """The pod in the experiment, of which `pod` is a replica; a process without a group has one of its own name."""
        return self.group or self.process

    @property
    def path(self) -> str:
        """``group/name``, or the name of a process without a group."""
        return f"{self.group}/{self.name}" if self.group else self.name


class LocalPlan(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All processes of a run. `done_when` lists the slots whose success ends it; `notes` are for users.

    `linger_s` is the time that services keep running after the end.

    `ports` are the ports in the pod; services in `moved` have others here, one for each replica.
    `caller` is the part of the caller's environment that every process gets, whatever the experiment sets.
    `labels` are the labels of the experiment; `not_passed` names variables of the caller that no process has.
    `folders` are private folders to make and `binds` the paths that all processes see in place; both are absolute.
    `plan.json` has no `files`; `mounts`, `folder` (the spec's folder) and `started_in` are only there.
    """

    experiment: str
    processes: tuple[PlannedProcess, ...]
    done_when: tuple[int, ...]
    linger_s: int = 0
    files: tuple[File, ...] = ()
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
    not_passed: tuple[str, ...] = ()
    notes: tuple[str, ...]
    mounts: RunMounts = RunMounts()
    folder: str = ""
    started_in: str = ""
    backoff: Backoff = Backoff()

    def __post_init__(self) -> None:
        """Raise ValueError for slots that do not match the processes."""
        count = len(self.processes)
        for number, process in enumerate(self.processes):
            if process.slot != number:
                raise ValueError(f"processes[{number}].slot is {process.slot}")
            if any(not 0 <= wait.slot < count for wait in process.waits):
                raise ValueError(f"processes[{number}].waits names an unknown process")
        if any(not 0 <= slot < count for slot in self.done_when):
            raise ValueError("done_when names an unknown process")


def log_pipe(folder: str) -> str:
    """Return the shell line that writes the log of a process; its `folder` is safe in tmux and shell quotes."""
    return f'exec cat >>"{folder}/log"'
