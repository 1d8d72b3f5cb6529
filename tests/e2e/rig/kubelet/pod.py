"""One pod, from its binding to a node of this rig until it is removed."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import sys
import time
import traceback
from collections.abc import Iterable
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING

from tests.e2e.rig.api import ApiError, Object
from tests.e2e.rig.kubelet.channel import Exit, Launched, launch
from tests.e2e.rig.kubelet.container import Container
from tests.e2e.rig.kubelet.environment import check_image, command_line, environment_of, programs_of, quantity
from tests.e2e.rig.kubelet.security import identity_of
from tests.e2e.rig.kubelet.services import API_ADDRESS, DNS_ADDRESS
from tests.e2e.rig.kubelet.status import phase_of, status_of
from tests.e2e.rig.kubelet.volumes import VolumeMissing, files_of, is_read_only, memory_size, write_files

if TYPE_CHECKING:
    from tests.e2e.rig.kubelet.agent import Agent

_MOUNT_RETRY_S = 0.5
# The time that a pod may take to end beyond its grace period, in seconds.
_STOP_MARGIN_S = 10.0


class Pod:
    def __init__(self, pod: Object, agent: Agent) -> None:
        self.pod, self.agent = pod, agent
        spec, policy = pod["spec"], pod["spec"].get("restartPolicy", "Always")
        self.inits = [
            Container(c, self, is_init=True, restarts=_init_policy(c, policy)) for c in spec.get("initContainers", [])
        ]
        self.mains = [Container(c, self, is_init=False, restarts=policy) for c in spec["containers"]]
        for container in self.mains:
            container.state.state = {"waiting": {"reason": "PodInitializing" if self.inits else "ContainerCreating"}}
        self.address = ""
        self._sandbox: Launched | None = None
        self._is_initialised = not self.inits
        self._phase_override = ""
        self._life = asyncio.ensure_future(self._live())
        self._life.add_done_callback(_print_failure)
        self._end: asyncio.Task[None] | None = None

    # --- needs of its containers ---

    @property
    def containers(self) -> list[Container]:
        return [*self.inits, *self.mains]

    @property
    def folder(self) -> Path:
        return self.agent.scratch / str(self.pod["metadata"]["uid"])

    @property
    def has_sandbox(self) -> bool:
        return self._sandbox is not None

    @property
    def sandbox_pid(self) -> int:
        assert self._sandbox is not None
        return self._sandbox.launcher_pid

    def container_folder(self, name: str) -> Path:
        """Return the log folder of one container; it outlives the pod, for debugging."""
        meta = self.pod["metadata"]
        return self.agent.logs / f"{meta['namespace']}_{meta['name']}_{meta['uid'][:8]}" / name

    def changed(self) -> None:
        phase = self._phase_override or phase_of(
            self.pod["spec"].get("restartPolicy", "Always"),
            [container.state for container in self.mains],
            is_initialised=self._is_initialised,
        )
        states = [container.state for container in self.containers]
        if phase in ("Succeeded", "Failed") and any("running" in state.state for state in states):
            phase = "Running"  # a pod is still running while a sidecar ends
        status = status_of(self.pod, states, phase, self.address, is_initialised=self._is_initialised)
        self.pod["status"].update(status)
        self.agent.tell(self.pod, status)

    def event(self, reason: str, message: str, *, is_warning: bool = False) -> None:
        self.agent.event(self.pod, reason, message, is_warning)

    async def launch_spec(self, container: Object, root: Path, log: Path) -> Object:
        """Return the launcher's instructions for `container`; raises ConfigMissing."""
        check_image(container["image"])
        lookup = self.agent.lookup_in(self.pod["metadata"]["namespace"])
        own = await self.agent.in_thread(environment_of, self.pod, container, lookup, self._addresses())
        identity = identity_of(self.pod, container)
        base = {
            "PATH": os.environ["PATH"],
            "HOSTNAME": _hostname(self.pod),
            "HOME": "/root" if identity["user"] == 0 else "/",
            "KUBERNETES_SERVICE_HOST": API_ADDRESS,
            "KUBERNETES_SERVICE_PORT": "443",
        }
        return {
            "mode": "container",
            "sandbox": self.sandbox_pid,
            "argv": command_line(container, own) or ["(the image's own command)"],
            "env": {**base, **own},
            "cwd": container.get("workingDir") or "/",
            "root": str(root),
            "log": str(log),
            "shm": str(self.folder / "shm"),
            "mounts": [*programs_of(container["image"]), *self._own_files(), *self._mounts(container, own)],
            "keep": self.agent.keep,
            "open_paths": self.agent.keep,
            **identity,
        }

    # --- lifecycle ---

    async def stop(self, grace_s: float) -> None:
        """Stop the pod within `grace_s` seconds and delete it from the API server; a later call may shorten this."""
        if self._end is None:
            self._end = asyncio.ensure_future(self._finish(grace_s))
        elif grace_s == 0:
            for container in self.containers:
                if container.run:
                    container.run.send("KILL")
        await asyncio.shield(self._end)

    async def _finish(self, grace_s: float) -> None:
        self._life.cancel()
        await asyncio.gather(self._life, return_exceptions=True)
        try:
            await asyncio.wait_for(self._stop_containers(grace_s), grace_s + _STOP_MARGIN_S)
        except asyncio.TimeoutError:
            # Processes that do not end are killed with their sandbox below; they must not keep the pod alive.
            self.event("FailedKillPod", "containers did not end in time", is_warning=True)
            for container in self.containers:
                if "running" in container.state.state:
                    container.state.end(Exit(code=137, signal=9))
        self._settle()
        self.changed()
        await self._clean_up()
        await self.agent.delete(self.pod)

    async def _live(self) -> None:
        self.changed()
        await self._make_sandbox()
        deadline = self.pod["spec"].get("activeDeadlineSeconds")
        try:
            await asyncio.wait_for(self._run_all(), deadline)
        except asyncio.TimeoutError:
            # Since Python 3.11, a socket's timeout is the same class.
            if deadline is None:
                raise
            self._phase_override = "Failed"
            self.pod["status"] |= {"reason": "DeadlineExceeded"}
            await self._stop_containers(self._grace_s)
        self.changed()
        await self._clean_up()

    async def _run_all(self) -> None:
        sidecars: list[asyncio.Future[int]] = []
        try:
            if not await self._initialise(sidecars):
                return
            self._is_initialised = True
            for container in self.mains:
                container.state.wait("ContainerCreating")
            await _all(asyncio.ensure_future(container.supervise()) for container in self.mains)
        finally:
            for task in sidecars:
                task.cancel()
            await asyncio.gather(*sidecars, return_exceptions=True)
        await self._stop_sidecars(time.monotonic() + self._grace_s)

    async def _initialise(self, sidecars: list[asyncio.Future[int]]) -> bool:
        """Run the init containers in turn, leaving sidecars running; return True if all succeeded."""
        for container in self.inits:
            if container.state.is_sidecar:
                sidecars.append(asyncio.ensure_future(container.supervise()))
                await container.has_started.wait()
            elif await container.supervise() != 0:
                self._phase_override = "Failed"
                for main in self.mains:
                    main.state.wait("PodInitializing")
                await self._stop_sidecars(time.monotonic() + self._grace_s)
                return False
        return True

    @property
    def _grace_s(self) -> float:
        return float(self.pod["spec"].get("terminationGracePeriodSeconds", 30))

    async def _stop_containers(self, grace_s: float) -> None:
        """Stop ordinary containers first, then sidecars in reverse start order, within the remaining time."""
        deadline = time.monotonic() + grace_s
        await asyncio.gather(*(c.stop(grace_s) for c in self.containers if not c.state.is_sidecar))
        await self._stop_sidecars(deadline)

    async def _stop_sidecars(self, deadline: float) -> None:
        for container in reversed([c for c in self.inits if c.state.is_sidecar]):
            await container.stop(max(0.0, deadline - time.monotonic()))

    def _settle(self) -> None:
        codes = [container.state.exit_code for container in self.mains]
        if not self._phase_override:
            self._phase_override = "Succeeded" if all(code == 0 for code in codes) else "Failed"

    # --- sandbox and volumes ---

    async def _make_sandbox(self) -> None:
        meta, spec = self.pod["metadata"], self.pod["spec"]
        volumes = spec.get("volumes", [])
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        memory = {str(self.folder / "shm"): "64m"}
        for volume in volumes:
            size = memory_size(volume)
            if size is not None:
                memory[str(self._volume_folder(volume["name"]))] = str(int(quantity(size))) if size else ""
        sysctls = self.agent.network.pod_sysctls()
        self._sandbox = await launch(
            {"mode": "sandbox", "hostname": _hostname(self.pod), "sysctls": sysctls, "memory": memory}
        )
        self.address = await self.agent.network.attach(self._sandbox.launcher_pid)
        await self._fill_volumes(volumes)
        files = {
            "hosts": _hosts(self.pod, self.address),
            "hostname": f"{_hostname(self.pod)}\n",
            "resolv.conf": _resolv_conf(meta["namespace"], spec),
            "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
        }
        for name, text in files.items():
            (self.folder / name).write_text(text)

    async def _fill_volumes(self, volumes: list[Object]) -> None:
        told: set[str] = set()
        meta = self.pod["metadata"]
        lookup = self.agent.lookup_in(meta["namespace"])
        group = (self.pod["spec"].get("securityContext") or {}).get("fsGroup")
        for volume in volumes:
            folder = self._volume_folder(volume["name"])
            while True:
                try:
                    files = await self.agent.in_thread(files_of, volume, self.pod, lookup, self._make_token)
                    break
                except VolumeMissing as error:
                    if str(error) not in told:
                        told.add(str(error))
                        said = f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}'
                        self.event("FailedMount", said, is_warning=True)
                except (OSError, HTTPException, ApiError) as error:
                    if str(error) not in told:
                        told.add(str(error))
                        print(f"volume {volume['name']} waits: {error}", file=sys.stderr, flush=True)
                await asyncio.sleep(_MOUNT_RETRY_S)
            if files is not None:
                write_files(folder, files, group)
            elif memory_size(volume) is None and "hostPath" not in volume:
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(0o777)

    async def _clean_up(self) -> None:
        if self._sandbox:
            await self._sandbox.release()
            self._sandbox = None
        await self.agent.in_thread(shutil.rmtree, self.folder, True)

    def _addresses(self) -> dict[str, str]:
        return {"podIP": self.address, "hostIP": "127.0.0.1"}

    def _make_token(self, source: Object) -> str:
        meta = self.pod["metadata"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        spec = {"audiences": [source["audience"]] if "audience" in source else [], "boundObjectRef": bound}
        account = f"/api/v1/namespaces/{meta['namespace']}/serviceaccounts/{self.pod['spec']['serviceAccountName']}"
        made = self.agent.api.call("POST", f"{account}/token", {"spec": spec})
        return str(made["status"]["token"])

    def _volume_folder(self, name: str) -> Path:
        return self.folder / "volumes" / name

    def _own_files(self) -> list[Object]:
        return [
            {"source": str(self.folder / name), "target": f"/etc/{name}", "read_only": False}
            for name in ("hosts", "hostname", "resolv.conf", "nsswitch.conf")
        ]

    def _mounts(self, container: Object, environment: dict[str, str]) -> list[Object]:
        volumes = {volume["name"]: volume for volume in self.pod["spec"].get("volumes", [])}
        found = []
        for mount in sorted(container.get("volumeMounts", []), key=lambda m: str(m["mountPath"]).count("/")):
            volume = volumes[mount["name"]]
            source = self._volume_folder(mount["name"])
            if "hostPath" in volume:
                source = Path(volume["hostPath"]["path"])
            if mount.get("subPath"):
                mode = stat.S_IMODE(source.stat().st_mode)
                source = source / mount["subPath"]
                if not source.exists():
                    source.mkdir(parents=True)
                    source.chmod(mode)
            read_only = bool(mount.get("readOnly")) or is_read_only(volume)
            found.append({"source": str(source), "target": mount["mountPath"], "read_only": read_only})
        return found


def _print_failure(life: asyncio.Task[None]) -> None:
    if not life.cancelled() and life.exception():
        traceback.print_exception(life.exception(), file=sys.stderr)
        sys.stderr.flush()


async def _all(tasks: Iterable[asyncio.Future[int]]) -> None:
    """Wait for all; a cancellation cancels them, and they have ended when this returns."""
    group = list(tasks)
    try:
        await asyncio.gather(*group)
    finally:
        for task in group:
            task.cancel()
        await asyncio.gather(*group, return_exceptions=True)


def _init_policy(container: Object, pod_policy: str) -> str:
    if container.get("restartPolicy") == "Always":
        return "Always"
    return "Never" if pod_policy == "Never" else "OnFailure"


def _hostname(pod: Object) -> str:
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63].rstrip("-.")


def _hosts(pod: Object, address: str) -> str:
    meta, spec = pod["metadata"], pod["spec"]
    own = _hostname(pod)
    if spec.get("subdomain"):
        own = f"{own}.{spec['subdomain']}.{meta['namespace']}.svc.cluster.local\t{own}"
    lines = ["127.0.0.1\tlocalhost", "::1\tlocalhost", f"{address}\t{own}"]
    lines += [f"{alias['ip']}\t" + "\t".join(alias["hostnames"]) for alias in spec.get("hostAliases", [])]
    return "\n".join([*lines, ""])


def _resolv_conf(namespace: str, spec: Object) -> str:
    policy = spec.get("dnsPolicy", "ClusterFirst")
    if policy == "Default" or (policy == "ClusterFirst" and spec.get("hostNetwork")):
        # The DNS server of the node does not know the cluster's names.
        return "options timeout:1 attempts:1\n"
    config = spec.get("dnsConfig") or {}
    search = [f"{namespace}.svc.cluster.local", "svc.cluster.local", "cluster.local", *config.get("searches", [])]
    options = {"ndots": "5", **{o["name"]: o.get("value", "") for o in config.get("options", [])}}
    words = " ".join(f"{name}:{value}" if value else name for name, value in options.items())
    return f"nameserver {DNS_ADDRESS}\nsearch {' '.join(search)}\noptions {words}\n"
