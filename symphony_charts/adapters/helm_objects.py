"""The objects of releases on the cluster itself, by the official client: judged before helm sends them, watched, swept.

Everything here names its namespace, and what is deleted must carry the marks that helm and our charts leave together.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from symphony_charts.adapters.helm_command import Target
from symphony_charts.errors import ToolFailed

__all__ = ["Refusal", "ReleaseObjects"]

Object = dict[str, Any]

_TIMEOUT_S = 30
_CORE = {"v1": "/api/v1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An object that the API server does not take: `kind/name`, HTTP status, and its message."""

    title: str
    status: int
    message: str


class ReleaseObjects:
    """One cluster's API as releases need it. Raises ToolFailed where no kubeconfig leads to a cluster."""

    def __init__(self, target: Target | None = None) -> None:
        # The client costs half a second; only those who speak to a cluster pay.
        from kubernetes import client, config

        chosen = target or Target()
        # The client reads $KUBECONFIG once, when it is imported; here it counts as it stands now.
        files = str(chosen.kubeconfig or os.environ.get("KUBECONFIG") or Path("~/.kube/config").expanduser())
        try:
            self._api = config.new_client_from_config(config_file=files, context=chosen.context)
            contexts, active = config.list_kube_config_contexts(config_file=files)
        except config.ConfigException as error:
            what = f"no cluster is configured: {error}"
            raise ToolFailed(what, next="set $KUBECONFIG, or choose a --context") from error
        named = [one for one in contexts if one["name"] == chosen.context] or [active]
        self.default_namespace: str = named[0]["context"].get("namespace") or "default"
        self._failure = client.ApiException
        self._places: dict[str, dict[str, tuple[str, bool]]] = {}

    def close(self) -> None:
        """Give the connections back."""
        self._api.close()

    def has_namespace(self, namespace: str) -> bool:
        """Whether the namespace is there."""
        return self._try("GET", f"/api/v1/namespaces/{quote(namespace)}") is not None

    def dry_run(self, item: Object, namespace: str, *, is_new: bool) -> Refusal | None:
        """Let the API server judge an object with strict fields, changing nothing; None if it takes it.

        With `is_new` an object of that name that is there already is a refusal, too.
        """
        title = f"{item['kind']}/{item['metadata']['name']}"
        place = self._place(item)
        if place is None:
            return Refusal(title=title, status=404, message=f"the cluster knows no {item['apiVersion']} {item['kind']}")
        path = place[0].format(namespace=quote(item["metadata"].get("namespace") or namespace))
        query = {"dryRun": "All", "fieldValidation": "Strict", "fieldManager": "helm"}
        try:
            if is_new:
                self._call("POST", path, query=query, body=item)
            else:
                name = quote(item["metadata"]["name"])
                query["force"] = "true"
                self._call("PATCH", f"{path}/{name}", query=query, body=item, kind="application/apply-patch+yaml")
        except self._failure as error:
            return Refusal(title=title, status=error.status or 0, message=_message(error))
        return None

    def listed(self, api_version: str, kind: str, namespace: str, selector: str) -> list[Object]:
        """The objects of a kind in a namespace that bear the labels; empty where the cluster lacks the kind."""
        place = self._place({"apiVersion": api_version, "kind": kind})
        if place is None:
            return []
        found = self._try("GET", place[0].format(namespace=quote(namespace)), query={"labelSelector": selector})
        items: list[Object] = (found or {"items": []})["items"]
        return [{"apiVersion": api_version, "kind": kind, **item} for item in items]

    def delete(self, item: Object) -> None:
        """Delete exactly this object (by uid), its dependents in the background; fine if it is gone."""
        place = self._place(item)
        if place is None:
            return
        meta = item["metadata"]
        path = f"{place[0].format(namespace=quote(meta['namespace']))}/{quote(meta['name'])}"
        body = {"propagationPolicy": "Background", "preconditions": {"uid": meta["uid"]}}
        self._try("DELETE", path, body=body)

    def apply(self, item: Object, namespace: str) -> None:
        """Make an object what this says, as field manager ``symph``. Raises ToolFailed."""
        place = self._place(item)
        path = place[0].format(namespace=quote(namespace)) if place else ""
        query = {"fieldManager": "symph", "fieldValidation": "Strict"}
        name = quote(item["metadata"]["name"])
        try:
            self._call("PATCH", f"{path}/{name}", query=query, body=item, kind="application/apply-patch+yaml")
        except self._failure as error:
            # The object may be a Secret: nothing of its content may come back in a message.
            what = f"{item['kind']}/{item['metadata']['name']} was not pushed: {error.status} {error.reason}"
            raise ToolFailed(what, namespace) from error

    def changes(self, api_version: str, kind: str, namespace: str, selector: str, seconds: float) -> Iterator[None]:
        """One step for each change of such objects, for at most so many seconds; the first step comes at once.

        A watch that breaks is one that has ended. Raises ToolFailed where it cannot begin.
        """
        from urllib3.exceptions import HTTPError

        place = self._place({"apiVersion": api_version, "kind": kind})
        if place is None:
            return
        path = place[0].format(namespace=quote(namespace))
        query = {"labelSelector": selector, "watch": "true", "timeoutSeconds": str(max(1, round(seconds)))}
        try:
            response = self._raw("GET", path, query=query, timeout_s=seconds + 5)
        except self._failure as error:
            raise ToolFailed(f"the cluster refuses: {_message(error)}", f"GET {path}") from error
        yield None
        try:
            for _line in response.stream(decode_content=False):
                yield None
        except HTTPError:
            return
        finally:
            response.close()

    def _place(self, item: Mapping[str, Any]) -> tuple[str, bool] | None:
        """The collection's path, with ``{namespace}`` to be filled in where the kind has one; None if unknown."""
        version = str(item["apiVersion"])
        if version not in self._places:
            root = _CORE.get(version, f"/apis/{version}")
            found = self._try("GET", root) or {"resources": []}
            self._places[version] = {
                one["kind"]: (_collection(root, one), bool(one["namespaced"]))
                for one in found["resources"]
                if "/" not in one["name"]
            }
        return self._places[version].get(str(item["kind"]))

    def _try(self, method: str, path: str, **request: Any) -> Object | None:
        """The answer, or None for 404."""
        try:
            return self._call(method, path, **request)
        except self._failure as error:
            if error.status == 404:
                return None
            raise ToolFailed(f"the cluster refuses: {_message(error)}", f"{method} {path}") from error

    def _call(self, method: str, path: str, **request: Any) -> Object:
        data: Object = json.loads(self._raw(method, path, **request).read())
        return data

    def _raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        kind: str = "application/json",
        timeout_s: float = _TIMEOUT_S,
    ) -> Any:
        from urllib3.exceptions import HTTPError

        try:
            return self._api.call_api(
                path,
                method,
                query_params=list((query or {}).items()),
                header_params={"Accept": "application/json", "Content-Type": kind},
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _request_timeout=timeout_s,
                _return_http_data_only=True,
            )
        except HTTPError as error:
            next_step = "kubectl cluster-info shows where it should be"
            raise ToolFailed(f"the cluster does not answer: {error}", next=next_step) from error


def _collection(root: str, resource: Mapping[str, Any]) -> str:
    middle = "/namespaces/{namespace}" if resource["namespaced"] else ""
    return f"{root}{middle}/{resource['name']}"


def _message(error: Any) -> str:
    """What the server says of a refusal, of its Status object."""
    try:
        return str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        return str(error.reason)
