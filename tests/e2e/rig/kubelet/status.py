"""The state of the containers of a pod, and status updates to the API server: the newest arrives, none is sent twice.

Source: kubernetes/kubernetes pkg/kubelet/kubelet_pods.go (getPhase) and pkg/kubelet/status/generate.go.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any

from symphony_charts.errors import SymphError
from tests.e2e.rig.api import Object
from tests.e2e.rig.kubelet.channel import Exit
from tests.e2e.rig.nodes import now


@dataclass(slots=True)
class ContainerState:
    """One container of a pod, as in its status; `is_init` and `is_sidecar` follow from its place in the pod."""

    name: str
    image: str
    is_init: bool = False
    is_sidecar: bool = False
    state: Object = field(default_factory=lambda: {"waiting": {"reason": "PodInitializing"}})
    last_state: Object = field(default_factory=dict)
    restarts: int = 0
    is_ready: bool = False
    is_started: bool = False
    container_id: str = ""

    def wait(self, reason: str, message: str = "") -> None:
        """Set the container to waiting for `reason`."""
        if "terminated" in self.state:
            self.last_state = self.state
        self.state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
        self.is_ready = self.is_started = False

    def run(self, container_id: str) -> None:
        self.container_id = container_id
        self.state = {"running": {"startedAt": now()}}

    def end(self, exit: Exit, reason: str = "", message: str = "") -> None:
        began = self.state.get("running", {}).get("startedAt", now())
        self.is_ready = self.is_started = False
        self.state = {
            "terminated": {
                "exitCode": exit.code,
                "reason": reason or ("Completed" if exit.code == 0 else "Error"),
                "startedAt": began,
                "finishedAt": now(),
                "containerID": self.container_id,
                **({"signal": exit.signal} if exit.signal else {}),
                **({"message": message} if message else {}),
            }
        }

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs."""
        ended = self.state.get("terminated")
        return int(ended["exitCode"]) if ended else None

    def to_json(self) -> Object:
        return {
            "name": self.name,
            "image": self.image,
            "imageID": f"process://{self.image}",
            "containerID": self.container_id,
            "state": self.state,
            "lastState": self.last_state,
            "restartCount": self.restarts,
            "ready": self.is_ready,
            "started": self.is_started,
        }


def phase_of(restart_policy: str, containers: Iterable[ContainerState], *, is_initialised: bool) -> str:
    """Return the pod's phase, from its ordinary containers; sidecars do not count."""
    states = list(containers)
    if not is_initialised:
        return "Pending"
    if any("running" in state.state for state in states):
        return "Running"
    codes = [state.exit_code for state in states]
    if all(code is not None for code in codes) and restart_policy != "Always":
        if all(code == 0 for code in codes):
            return "Succeeded"
        if restart_policy == "Never":
            return "Failed"
        return "Running"
    if all("waiting" in state.state and not state.last_state for state in states):
        return "Pending"
    return "Running"


def status_of(
    pod: Object, states: Iterable[ContainerState], phase: str, address: str, *, is_initialised: bool
) -> Object:
    """Return the status to merge into the pod's; times of unchanged conditions are kept."""
    states = list(states)
    mains = [state for state in states if not state.is_init]
    is_over = phase in ("Succeeded", "Failed")
    all_ready = is_initialised and not is_over and all(s.is_ready for s in states if not s.is_init or s.is_sidecar)
    why = "PodCompleted" if is_over else "ContainersNotReady"
    wanted = [
        ("PodReadyToStartContainers", bool(address) and not is_over, ""),
        ("Initialized", is_initialised, "PodCompleted" if phase == "Succeeded" else ""),
        ("ContainersReady", all_ready, "" if all_ready else why),
        ("Ready", all_ready, "" if all_ready else why),
    ]
    previous = {c["type"]: c for c in pod["status"].get("conditions", [])}
    conditions = [_condition(previous.get(kind), kind, holds, reason) for kind, holds, reason in wanted]
    known = {kind for kind, _, _ in wanted}
    conditions += [condition for kind, condition in previous.items() if kind not in known]
    return {
        "phase": phase,
        **({"reason": pod["status"]["reason"]} if "reason" in pod["status"] else {}),
        "hostIP": "127.0.0.1",
        "hostIPs": [{"ip": "127.0.0.1"}],
        **({"podIP": address, "podIPs": [{"ip": address}]} if address else {}),
        "startTime": pod["status"].get("startTime") or now(),
        "conditions": conditions,
        "initContainerStatuses": [state.to_json() for state in states if state.is_init],
        "containerStatuses": [state.to_json() for state in mains],
        "observedGeneration": pod["metadata"].get("generation"),
    }


def _condition(previous: Object | None, kind: str, holds: bool, reason: str) -> Object:
    status = "True" if holds else "False"
    same = previous is not None and previous["status"] == status
    since = previous["lastTransitionTime"] if previous and same else now()
    return {
        "type": kind,
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": since,
        **({"reason": reason} if reason else {}),
    }


class Reporter:
    """Sends statuses by `send` (pod, status), one at a time per pod; changes during a request are merged into one."""

    def __init__(self, send: Callable[[Object, Object], Coroutine[Any, Any, None]]) -> None:
        self._send = send
        self._sent: dict[str, Object] = {}
        self._waiting: dict[str, Object] = {}
        self._sending: dict[str, asyncio.Task[None]] = {}

    def tell(self, pod: Object, status: Object) -> None:
        """Send `status` unless it equals the last one sent."""
        uid = pod["metadata"]["uid"]
        self._waiting[uid] = status
        if uid not in self._sending:
            self._sending[uid] = asyncio.ensure_future(self._send_all(pod))

    async def finish(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if uid in self._sending:
            await asyncio.gather(self._sending[uid], return_exceptions=True)
        self._sent.pop(uid, None)

    async def _send_all(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        try:
            while uid in self._waiting:
                status = self._waiting.pop(uid)
                if status == self._sent.get(uid):
                    continue
                try:
                    await self._send(pod, status)
                    self._sent[uid] = status
                except (OSError, HTTPException, SymphError) as error:
                    # A newer status may wait, and may be accepted.
                    print(f"status of pod {uid} not sent: {error}", file=sys.stderr, flush=True)
        finally:
            # Here and not when the task is done, which is a turn of the loop later: a status reported between would
            # be lost.
            del self._sending[uid]
