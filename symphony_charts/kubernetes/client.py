"""Access a cluster: lists in pages, watches that survive broken connections, server-side apply, typed errors.

The official client, which takes a quarter of a second to load, is imported when a `KubeApi` is created; it reads the
kubeconfig (see `kubernetes.login`).
"""

from __future__ import annotations

import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from urllib3.exceptions import HTTPError

from symphony_charts.errors import NotFound, SpecError, SymphError, ToolFailed
from symphony_charts.kubernetes.connection import READ_S, Connection, ExpiredError, Response
from symphony_charts.kubernetes.login import Login

Object = dict[str, Any]

FIELD_MANAGER = "symph"
_PAGE = 500
# The server ends a watch after this many seconds, and a new one continues at the same version.
_WATCH_S = 290
# Metadata only: Secrets and large ConfigMaps are listed without their content.
_METADATA_ONLY = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}


class KubeApi:
    """One cluster, by a context of the kubeconfig (default: the current one).

    `context` and `namespace` are taken from that context. Raises ToolFailed if no kubeconfig defines a cluster,
    SpecError for one that is broken or lacks the context.
    """

    def __init__(self, kubeconfig: Path | None = None, context: str | None = None) -> None:
        login = Login(kubeconfig, context)
        self.connection = Connection(login)
        self.context: str = login.context.name
        self.namespace: str = login.context.namespace
        self._kinds: dict[str, dict[str, tuple[str, bool]]] = {}
        self._groups: set[str] | None = None
        self._watching: set[Response] = set()

    def __enter__(self) -> KubeApi:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.connection.close()

    def get(self, path: str) -> Object:
        """Return the response to a GET. Raises NotFound, ToolFailed."""
        return self._call("GET", path)

    def find(self, path: str) -> Object | None:
        try:
            return self.get(path)
        except NotFound:
            return None

    def listed(self, path: str, selector: str = "", *, fields: str = "", metadata_only: bool = False) -> list[Object]:
        """Return all objects of a collection with the labels, read page by page. Raises NotFound."""
        query = {"limit": str(_PAGE), "labelSelector": selector, "fieldSelector": fields}
        headers = _METADATA_ONLY if metadata_only else None
        items: list[Object] = []
        while True:
            try:
                page = self._call("GET", path, query=query, headers=headers)
            except ExpiredError:
                # The pages were read too slowly, and the first ones belong to an expired state: start again.
                items = []
                query |= {"limit": "", "continue": ""}
                continue
            items += page.get("items") or []
            query["continue"] = page["metadata"].get("continue") or ""
            if not query["continue"]:
                return items

    def watch(
        self, path: str, selector: str = "", timeout_s: float | None = None, over: threading.Event | None = None
    ) -> Iterator[Object | None]:
        """Yield the changes of a collection: None at the start and after each gap (list again), else the raw event.

        A broken connection continues at the same version; if the server has dropped that version (410 Gone), None is
        yielded. Ends after `timeout_s`, or once `over` is set and `interrupt` is called. Raises the errors of `listed`.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        version = ""
        while (deadline is None or time.monotonic() < deadline) and not (over and over.is_set()):
            if not version:
                first = {"limit": "1", "labelSelector": selector}
                page = self._call("GET", path, query=first, headers=_METADATA_ONLY)
                version = page["metadata"]["resourceVersion"]
                yield None
            left = _WATCH_S if deadline is None else min(_WATCH_S, max(1, round(deadline - time.monotonic())))
            try:
                for event in self._watch_once(path, selector, version, left):
                    if event["type"] == "ERROR":
                        raise ExpiredError("the server has dropped this version")
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        yield event
            except ExpiredError:
                version = ""
            except (HTTPError, ValueError):
                # The connection broke in the middle: request the missed events again.
                time.sleep(0.2)

    def interrupt(self) -> None:
        """Wake every watch: those that are over end, the others continue."""
        for response in tuple(self._watching):
            with suppress(AttributeError, OSError):
                response.connection.sock.shutdown(socket.SHUT_RDWR)  # urllib3 has no public way

    def log(self, namespace: str, pod: str, query: Mapping[str, str], *, read_s: float | None = READ_S) -> Response:
        """Return the log of a container as a stream; the caller closes it. `read_s` None waits without limit."""
        path = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(pod)}/log"
        return self.connection.checked("GET", path, query=query, read_s=read_s)

    def has_group(self, group: str) -> bool:
        """Return True if the cluster serves an API group such as ``jobset.x-k8s.io``."""
        if self._groups is None:
            self._groups = {entry["name"] for entry in self.get("/apis")["groups"]}
        return group in self._groups

    def serves(self, api_version: str, kind: str) -> bool:
        """Return True if the cluster serves a kind in exactly this API version."""
        group, slash, _ = api_version.partition("/")
        if slash and not self.has_group(group):
            return False
        try:
            self.collection(api_version, kind, None)
        except NotFound:
            return False
        return True

    def collection(self, api_version: str, kind: str, namespace: str | None) -> str:
        """Return the path of a kind's objects (None: in all namespaces). Raises NotFound for unknown kinds."""
        if api_version not in self._kinds:
            root = "/api/v1" if api_version == "v1" else f"/apis/{api_version}"
            listed = self.find(root) or {"resources": []}
            self._kinds[api_version] = {
                resource["kind"]: (f"{root}/{{}}{resource['name']}", resource["namespaced"])
                for resource in listed["resources"]
                if "/" not in resource["name"]
            }
        if kind not in self._kinds[api_version]:
            raise NotFound(f"the cluster does not serve {api_version} {kind}")
        path, is_namespaced = self._kinds[api_version][kind]
        return path.format(f"namespaces/{quote(namespace)}/" if namespace and is_namespaced else "")

    def apply(self, item: Object, namespace: str, *, dry_run: bool = False, force: bool = False) -> Object:
        """Create or update an object by server-side apply under our own field manager, with strict fields.

        `force` takes fields over from other managers. Raises Conflict if another manager owns a field, and SpecError
        for an object that the server refuses; for a Secret without the server's message, since messages quote contents.
        """
        collection = self.collection(item["apiVersion"], item["kind"], namespace)
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        query |= {"dryRun": "All" if dry_run else "", "force": "true" if force else ""}
        path = f"{collection}/{quote(item['metadata']['name'])}"
        title = title_of(item)
        try:
            return self._call("PATCH", path, query=query, body=item, kind="application/apply-patch+yaml", title=title)
        except SpecError:
            if item["kind"] != "Secret":
                raise
            # No cause: it contains the server's message.
            raise ToolFailed(f"the cluster rejected {title} as invalid", namespace) from None

    def delete(self, item: Object) -> bool:
        """Delete exactly this object (by uid), its dependents in the background; return False if it was gone."""
        meta = item["metadata"]
        path = f"{self.collection(item['apiVersion'], item['kind'], meta.get('namespace'))}/{quote(meta['name'])}"
        body = {"propagationPolicy": "Background", "preconditions": {"uid": meta["uid"]}}
        try:
            self._call("DELETE", path, body=body)
        except NotFound:
            return False
        return True

    def _watch_once(self, path: str, selector: str, version: str, seconds: float) -> Iterator[Object]:
        query = {"watch": "true", "allowWatchBookmarks": "true", "labelSelector": selector}
        query |= {"resourceVersion": version, "timeoutSeconds": str(int(seconds))}
        response = self.connection.checked("GET", path, query=_given(query), read_s=seconds + 10)
        rest = b""
        self._watching.add(response)
        try:
            for piece in response.stream(decode_content=False):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    yield json.loads(line)
        finally:
            self._watching.discard(response)
            response.close()

    def _call(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        kind: str = "application/json",
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        title: str = "",
    ) -> Object:
        data = None if body is None else json.dumps(body).encode()
        sent = {"Content-Type": kind, **(headers or {})}
        response = self.connection.checked(method, path, title=title, query=_given(query), body=data, headers=sent)
        try:
            answer: Object = json.loads(self.connection.body(response))
        except ValueError as error:
            what = f"{self.connection.login.server} is not a Kubernetes API"
            raise ToolFailed(
                what, f"{method} {path}", "check the server of the context: kubectl cluster-info"
            ) from error
        return answer


def _given(query: Mapping[str, str] | None) -> dict[str, str]:
    """Return the parameters that have a value."""
    return {name: value for name, value in (query or {}).items() if value}


def title_of(item: Object) -> str:
    return f"{item['kind']}/{item['metadata']['name']}"


Kind = tuple[str, str]

# Several changes come together; handle them at once.
_SETTLE_S = 0.05
_BROKEN_S = 0.5


def changes(
    api: KubeApi, path_of: Callable[[Kind], str], watched: Sequence[tuple[Kind, str]], timeout_s: float | None
) -> Generator[None, None, None]:
    """Yield at once and after each change of an object with kind and labels in `watched`, until `timeout_s`."""
    steps: queue.Queue[None] = queue.Queue()
    over = threading.Event()
    deadline = None if timeout_s is None else time.monotonic() + timeout_s

    def follow(kind: Kind, selector: str) -> None:
        while not over.is_set():
            try:
                for _ in api.watch(path_of(kind), selector, timeout_s, over):
                    steps.put(None)
                return
            except SymphError:
                # The next read meets the same cluster and reports the error, if there still is one.
                over.wait(_BROKEN_S)
                steps.put(None)

    for kind_and_selector in watched:
        threading.Thread(target=follow, args=kind_and_selector, daemon=True).start()
    try:
        while True:
            left = None if deadline is None else deadline - time.monotonic()
            # On a busy cluster the queue may never be empty.
            if left is not None and left <= 0:
                return
            try:
                steps.get(timeout=left)
            except queue.Empty:
                return
            time.sleep(_SETTLE_S)
            while not steps.empty():
                steps.get_nowait()
            yield None
    finally:
        over.set()
        api.interrupt()
