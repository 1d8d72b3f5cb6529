"""One container of a running pod: started, probed, restarted by its policy, stopped."""

from __future__ import annotations

import asyncio
import os
import sys
import time
import uuid
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING

from tests.e2e.rig.api import ApiError, Object
from tests.e2e.rig.kubelet.channel import Exit, Launched, StartError, launch
from tests.e2e.rig.kubelet.environment import ConfigMissing, ImageRefused
from tests.e2e.rig.kubelet.probes import probe_once, watch_probe
from tests.e2e.rig.kubelet.status import ContainerState

if TYPE_CHECKING:
    from tests.e2e.rig.kubelet.pod import Pod

_CONFIG_RETRY_S = 0.5
_FIRST_BACKOFF_S = 1.0


class Container:
    def __init__(self, spec: Object, host: Pod, *, is_init: bool, restarts: str) -> None:
        """Take the restart policy as `restarts`: Always, OnFailure or Never."""
        self.spec, self.host, self.restarts = spec, host, restarts
        is_sidecar = is_init and spec.get("restartPolicy") == "Always"
        self.state = ContainerState(spec["name"], spec["image"], is_init=is_init, is_sidecar=is_sidecar)
        self.run: Launched | None = None
        self.run_spec: Object = {}
        self.has_started = asyncio.Event()
        self._probes: list[asyncio.Task[None]] = []

    @property
    def name(self) -> str:
        return self.state.name

    async def supervise(self) -> int:
        """Run the container, restarting it by its policy; return the last exit code."""
        backoff = _FIRST_BACKOFF_S
        while True:
            ended = await self._run_once()
            again = self.restarts == "Always" or (self.restarts == "OnFailure" and ended.code != 0)
            if not again:
                return ended.code
            await asyncio.sleep(0)
            self.state.restarts += 1
            if self.state.restarts > 1:
                self.host.event("BackOff", f"Back-off restarting failed container {self.name}", is_warning=True)
                self.state.wait("CrashLoopBackOff", f"back-off {backoff:g}s restarting failed container={self.name}")
                self.host.changed()
                await asyncio.sleep(backoff)
                backoff = min(backoff * 2, 300.0)
            self.state.last_state = self.state.state if "terminated" in self.state.state else self.state.last_state

    async def stop(self, grace_s: float) -> None:
        """Stop the current run: preStop hook, TERM, KILL after `grace_s` seconds."""
        self._end_probes()
        run = self.run
        if run is None or "terminated" in self.state.state:
            return
        deadline = time.monotonic() + grace_s
        self.host.event("Killing", f"Stopping container {self.name}")
        hook = self.spec.get("lifecycle", {}).get("preStop", {})
        if grace_s > 0:
            await self._pre_stop(hook, grace_s)
        run.send("TERM" if grace_s > 0 else "KILL")
        try:
            ended = await asyncio.wait_for(run.wait(), max(0.0, deadline - time.monotonic()))
        except asyncio.TimeoutError:
            run.send("KILL")
            ended = await run.wait()
        if "terminated" not in self.state.state:
            self.state.end(ended)
        self.host.changed()

    async def execute(self, argv: list[str], timeout_s: float) -> tuple[int, str]:
        """Run `argv` inside; return its exit code (-1 on timeout) and output."""
        ours, theirs = await _pipe()
        try:
            command = await self.start_exec(argv, (-3, theirs, theirs))
        except StartError as error:
            os.close(theirs)
            return 126, str(error)
        os.close(theirs)
        try:
            output = await asyncio.wait_for(ours.read(), timeout_s)
            return (await command.wait()).code, output.decode(errors="replace")
        except asyncio.TimeoutError:
            command.send("KILL")
            return -1, f"timed out after {timeout_s:g} s"

    async def start_exec(self, argv: list[str], streams: tuple[int, int, int]) -> Launched:
        """Start `argv` inside the running container on the given descriptors (-3: none).

        Raises StartError if it does not run or `argv` cannot be started.
        """
        if self.run is None or not self.run.is_running:
            raise StartError(f"container {self.name} is not running")
        spec = {**self.run_spec, "mode": "exec", "argv": argv, "target": self.run.pid}
        return await launch(spec, streams)

    async def _run_once(self) -> Exit:
        folder = self.host.container_folder(self.name)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            spec = await self._resolve(folder)
            self.run_spec = spec
            self.run = await launch(spec)
        except StartError as error:
            self.host.event("Failed", f"Error: {error}", is_warning=True)
            ended = Exit(code=128)
            self.state.end(ended, "StartError", str(error))
            self.host.changed()
            return ended
        self.state.run(f"process://{uuid.uuid4().hex}")
        self.host.event("Started", f"Started container {self.name}")
        self._start_probes()
        self.host.changed()
        ended = await self.run.wait()
        self._end_probes()
        self.state.end(ended)
        self.host.changed()
        return ended

    async def _resolve(self, folder: Path) -> Object:
        """Return the launcher's instructions, waiting for missing images, ConfigMaps, Secrets or an answer."""
        told = is_printed = False
        image = self.spec["image"]
        while True:
            try:
                log = folder / f"{self.state.restarts}.log"
                log.touch()
                return await self.host.launch_spec(self.spec, folder / "root", log)
            except ImageRefused as error:
                # Source: kubernetes/kubernetes pkg/kubelet/images/image_manager.go.
                if not told:
                    self.state.wait("ErrImagePull", str(error))
                    self.host.event("Failed", f'Failed to pull image "{image}": {error}', is_warning=True)
                    self.host.event("Failed", "Error: ErrImagePull", is_warning=True)
                else:
                    self.state.wait("ImagePullBackOff", f'Back-off pulling image "{image}": ErrImagePull: {error}')
                told = True
                self.host.changed()
                await asyncio.sleep(_CONFIG_RETRY_S)
            except ConfigMissing as error:
                self.state.wait("CreateContainerConfigError", str(error))
                if not told:
                    self.host.event("Failed", f"Error: {error}", is_warning=True)
                told = True
                self.host.changed()
                await asyncio.sleep(_CONFIG_RETRY_S)
            except (OSError, HTTPException, ApiError) as error:
                if not is_printed:
                    print(f"container {self.name} waits: {error}", file=sys.stderr, flush=True)
                is_printed = True
                await asyncio.sleep(_CONFIG_RETRY_S)

    async def _pre_stop(self, hook: Object, grace_s: float) -> None:
        if "exec" in hook:
            await self.execute(hook["exec"]["command"], grace_s)
        elif "sleep" in hook:
            await asyncio.sleep(min(hook["sleep"]["seconds"], grace_s))

    # --- probes ---

    def _start_probes(self) -> None:
        if self.spec.get("startupProbe"):
            self._watch("Startup", self._on_startup, starts_as=None)
        else:
            self._on_startup(passed=True)

    def _on_startup(self, passed: bool) -> None:
        if not passed:
            return self._kill()
        self.state.is_started = True
        self.has_started.set()
        self.state.is_ready = "readinessProbe" not in self.spec
        if "readinessProbe" in self.spec:
            self._watch("Readiness", self._on_readiness, starts_as=False)
        if "livenessProbe" in self.spec:
            self._watch("Liveness", self._on_liveness, starts_as=True)
        self.host.changed()
        return None

    def _on_readiness(self, passed: bool) -> None:
        self.state.is_ready = passed
        self.host.changed()

    def _on_liveness(self, passed: bool) -> None:
        if not passed:
            self._kill()

    def _kill(self) -> None:
        self._probes.append(asyncio.ensure_future(self._end_unhealthy()))

    async def _end_unhealthy(self) -> None:
        run = self.run
        if run:
            run.send("TERM")
            try:
                await asyncio.wait_for(run.wait(), 5)
            except asyncio.TimeoutError:
                run.send("KILL")

    def _watch(self, kind: str, report: Callable[[bool], None], *, starts_as: bool | None) -> None:
        run, probe, told = self.run, self.spec[f"{kind.lower()}Probe"], ""

        async def check() -> bool:
            nonlocal told
            # asyncio.wait_for may swallow the cancellation of a probe, before Python 3.12.
            if run is None or not run.is_running:
                raise asyncio.CancelledError
            said = await probe_once(probe, self.spec, self.host.sandbox_pid, self.host.address, self.execute)
            if said not in ("", told):
                # The kubelet reports each failure; a repeated message would only increase the Event's count.
                self.host.event("Unhealthy", f"{kind} probe failed: {said}", is_warning=True)
            told = said
            return not said

        self._probes.append(asyncio.ensure_future(watch_probe(probe, check, report, starts_as=starts_as)))

    def _end_probes(self) -> None:
        current = asyncio.current_task()
        for task in self._probes:
            if task is not current:
                task.cancel()
        self._probes.clear()


async def _pipe() -> tuple[asyncio.StreamReader, int]:
    ours, theirs = os.pipe()
    reader = asyncio.StreamReader()
    transport_of = asyncio.get_running_loop().connect_read_pipe
    await transport_of(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours, "rb"))
    return reader, theirs
