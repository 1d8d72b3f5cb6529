"""The kubelet: watches pods bound to its nodes and runs each, and forwards Services to the pods behind them."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import threading
import traceback
import uuid
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

from symphony_charts.errors import SymphError
from symphony_charts.placement.pools.pool import Pool
from tests.e2e.rig.api import Api, ApiError, Object
from tests.e2e.rig.kubelet.dns import DnsServer
from tests.e2e.rig.kubelet.environment import Lookup
from tests.e2e.rig.kubelet.network import Network
from tests.e2e.rig.kubelet.pod import Pod
from tests.e2e.rig.kubelet.services import forwards, names
from tests.e2e.rig.kubelet.status import Reporter
from tests.e2e.rig.nodes import LEASE_S, now, register, renew
from tests.e2e.tools.build import cache_folder

_TRIES = 60
_RETRY_S = 0.5
_LOAD_BALANCERS = "198.18"  # for benchmarks (RFC 2544): unassigned, so it leads nowhere else


class Agent:
    """The kubelet of all nodes of one cluster."""

    def __init__(self, state: Path, pools: tuple[Pool, ...], port: int) -> None:
        """Serve the nodes of `pools`; `state` is the cluster's folder, `port` the one of the kubelet's API."""
        self.api = Api(state / "kubelet.kubeconfig")
        self.scratch, self.logs = state / "pods", state / "containers"
        places = (Path(__file__).resolve().parents[4], sys.prefix, sys.base_prefix, cache_folder().parent)
        self.keep = tuple(sorted({os.path.realpath(place) for place in places}))
        self.network: Network
        self._pools, self._port = pools, port
        self.pods: dict[str, Pod] = {}
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(max_workers=16)
        self._nodes: set[str] = set()
        self._services: dict[str, Object] = {}
        self._slices: dict[str, Object] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        self._dirty = asyncio.Event()
        self._reporter = Reporter(self._send_status)
        self.tell = self._reporter.tell
        self._background: set[asyncio.Future[Any]] = set()

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then end every pod at once."""
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.network = await Network.up(str(self.scratch / "router"))
        dns = self.network.socket_for_dns()
        await self._loop.create_datagram_endpoint(lambda: DnsServer(lambda: self._names), sock=dns)
        await asyncio.start_server(self._relay, sock=self.network.socket_for_api())
        self._nodes = set(await self.in_thread(register, self.api, self._pools, self._port))
        self._keep(self._renew_leases())
        self._keep(self._forward_services())
        for path, handle in (
            ("/api/v1/services", self._on_service),
            ("/apis/discovery.k8s.io/v1/endpointslices", self._on_slice),
            ("/api/v1/pods", self._on_pod),
        ):
            threading.Thread(target=self._watch, args=(path, handle), daemon=True).start()
        await stop.wait()
        await asyncio.gather(*(pod.stop(0) for pod in list(self.pods.values())), return_exceptions=True)
        await self.network.down()

    async def in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await self._loop.run_in_executor(self._threads, functools.partial(function, *arguments))

    def lookup_in(self, namespace: str) -> Lookup:
        return lambda kind, name: self.api.find(f"/api/v1/namespaces/{namespace}/{kind}/{name}")

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        for pod in self.pods.values():
            if (pod.pod["metadata"]["namespace"], pod.pod["metadata"]["name"]) == (namespace, name):
                return pod
        return None

    # --- from the API server ---

    def _watch(self, path: str, handle: Callable[[str, Object], None]) -> None:
        """In a thread of its own, feed every event to the loop, and restart the watch whenever it breaks."""
        while True:
            seen: set[str] = set()
            try:
                for kind, item in self.api.watch(path):
                    if kind == "SYNCED":
                        self._loop.call_soon_threadsafe(handle, kind, {"seen": seen.copy()})
                    else:
                        seen.add(item["metadata"]["uid"])
                        self._loop.call_soon_threadsafe(handle, kind, item)
            except (OSError, HTTPException, SymphError, ValueError) as error:
                print(f"watch {path} broke: {error}", file=sys.stderr, flush=True)
            except RuntimeError:
                return  # the loop is closed: the kubelet ends
            threading.Event().wait(0.3)

    def _on_service(self, kind: str, item: Object) -> None:
        self._store(self._services, kind, item)
        if kind in ("ADDED", "MODIFIED"):
            self._give_address(item)

    def _on_slice(self, kind: str, item: Object) -> None:
        self._store(self._slices, kind, item)

    def _store(self, store: dict[str, Object], kind: str, item: Object) -> None:
        if kind == "SYNCED":
            for uid in set(store) - item["seen"]:
                del store[uid]
        elif kind == "DELETED":
            store.pop(item["metadata"]["uid"], None)
        else:
            store[item["metadata"]["uid"]] = item
        self._dirty.set()

    def _on_pod(self, kind: str, item: Object) -> None:
        if kind == "SYNCED":
            for uid in set(self.pods) - item["seen"]:
                self._keep(self._remove(self.pods[uid], 0))
            return
        if item["spec"].get("nodeName") not in self._nodes:
            return
        uid, meta = item["metadata"]["uid"], item["metadata"]
        mine = self.pods.get(uid)
        is_over = item["status"].get("phase") in ("Succeeded", "Failed")
        if mine:
            mine.pod["metadata"] = meta
            # Others give the reason of a pod's end (DisruptionTarget), which our later statuses must not remove.
            ours = mine.pod["status"].get("conditions", [])
            types = {condition["type"] for condition in ours}
            others = [c for c in item["status"].get("conditions", []) if c["type"] not in types]
            # A new list: the reporter compares with the old one, which it has sent.
            mine.pod["status"]["conditions"] = [*ours, *others]
        if kind == "DELETED":
            if mine:
                self._keep(self._remove(mine, 0))
        elif "deletionTimestamp" in meta:
            if mine:
                self._keep(self._remove(mine, float(meta.get("deletionGracePeriodSeconds", 30))))
            else:
                self._keep(self.delete(item))
        elif mine is None and not is_over:
            item["status"] = {"conditions": item["status"].get("conditions", [])}
            self.pods[uid] = Pod(item, self)

    async def _remove(self, pod: Pod, grace_s: float) -> None:
        try:
            await pod.stop(grace_s)
        finally:
            # Even if its deletion was not confirmed: the next event of the pod repeats the request.
            self.pods.pop(pod.pod["metadata"]["uid"], None)

    # --- to the API server ---

    async def _send_status(self, pod: Object, status: Object) -> None:
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        try:
            await self._persist(self.api.merge, f"{_path(pod)}/status", body)
        except ApiError as error:
            # Another pod has the name by now: ours is gone.
            if error.status != 422 or "metadata.uid" not in str(error):
                raise

    async def delete(self, pod: Object) -> None:
        await self._reporter.finish(pod)
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        await self._persist(self.api.delete, _path(pod), body)

    async def _persist(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Retry a call until the API server has answered it.

        Raises ApiError if the answer is a refusal, the last error if no try was answered.
        """
        for attempt in range(1, _TRIES + 1):
            try:
                await self.in_thread(call, *arguments)
                return
            except (OSError, HTTPException, ApiError) as error:
                is_refusal = isinstance(error, ApiError) and (error.status or 0) < 500 and error.status != 429
                if is_refusal or attempt == _TRIES:
                    raise
                print(f"try {attempt}: {error}", file=sys.stderr, flush=True)
                await asyncio.sleep(_RETRY_S)

    def event(self, pod: Object, reason: str, message: str, is_warning: bool) -> None:
        meta = pod["metadata"]
        body = {
            # A name of ours, so that a repeated request makes no second Event.
            "metadata": {"name": f"{meta['name']}.{uuid.uuid4().hex}", "namespace": meta["namespace"]},
            "involvedObject": {
                "kind": "Pod", "apiVersion": "v1", "name": meta["name"], "namespace": meta["namespace"],
                "uid": meta["uid"],
            },
            "reason": reason,
            "message": message[:1000],
            "type": "Warning" if is_warning else "Normal",
            "source": {"component": "kubelet", "host": pod["spec"]["nodeName"]},
            "firstTimestamp": now(),
            "lastTimestamp": now(),
            "count": 1,
        }  # fmt: skip
        self._keep(self._post_event(f"/api/v1/namespaces/{meta['namespace']}/events", body))

    async def _post_event(self, path: str, body: Object) -> None:
        try:
            await self._persist(functools.partial(self.api.create, path, body, exists_ok=True))
        except (SymphError, OSError, HTTPException) as error:
            # A namespace that is being deleted takes no new objects.
            print(f"event not recorded: {error}", file=sys.stderr, flush=True)

    def _give_address(self, service: Object) -> None:
        spec = service["spec"]
        is_ours = spec.get("type") == "LoadBalancer" and not spec.get("loadBalancerClass")
        if is_ours and not service["status"].get("loadBalancer"):
            # Two bytes, since the cluster's addresses are in a /16.
            address = ".".join([_LOAD_BALANCERS, *spec["clusterIP"].split(".")[2:]])
            body = {"status": {"loadBalancer": {"ingress": [{"ip": address}]}}}
            self._keep(self._persist(self.api.merge, f"{_path(service, 'services')}/status", body))

    # --- background work ---

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a client in a pod with the API server, which is outside of the pods' network."""
        try:
            answers, server = await asyncio.open_connection(*self.api.address)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, server), _copy(answers, writer))

    async def _forward_services(self) -> None:
        while True:
            await self._dirty.wait()
            await asyncio.sleep(0.01)  # a release changes many at once
            self._dirty.clear()
            services, slices = list(self._services.values()), list(self._slices.values())
            self._names = names(services, slices)
            try:
                await self.network.forward(forwards(services, slices))
            except (OSError, SymphError) as error:
                print(f"services not forwarded: {error}", file=sys.stderr, flush=True)
                self._dirty.set()
                await asyncio.sleep(_RETRY_S)

    async def _renew_leases(self) -> None:
        while True:
            await asyncio.sleep(LEASE_S / 4)
            for name in self._nodes:
                try:
                    await self._persist(renew, self.api, name)
                except (OSError, HTTPException, ApiError) as error:
                    print(f"lease of {name} not renewed: {error}", file=sys.stderr, flush=True)

    def _keep(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run `work` in the background; its errors are printed, not lost."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Future[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled() and task.exception():
            traceback.print_exception(task.exception(), file=sys.stderr)
            sys.stderr.flush()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


def _path(item: Object, collection: str = "pods") -> str:
    return f"/api/v1/namespaces/{item['metadata']['namespace']}/{collection}/{item['metadata']['name']}"
