"""Answer a coordinator of operator v0 like that operator's server: list, add, delete, replace.

Paths, fields, messages and statuses match opendilab/DI-orchestrator v0.2.2, server/http. On one machine, replicas are
those of the run with the resources of the experiment, and a learner has at most one GPU. A file records the replicas
given to a coordinator, so that a restarted server knows them.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from symphony_charts.errors import SymphError
from symphony_charts.local.run_files import read_json, write_json
from symphony_charts.local.runs import Run
from symphony_charts.local.supervisor.requests import request

TABLE = "di-server/replicas.json"
"""The server's address, the coordinators, and the replicas that they can get."""

GIVEN = "di-server/given.json"
"""The replicas given to coordinators."""

DELETED = "di-server/deleted"
"""A folder with a file for each replica that a coordinator has deleted."""


_PATH = "/v1alpha1/replicas"
_PARAMETERS = ("namespace", "coordinator", "name", "aggregator")
_ROLES = {"collectors": "collector", "learners": "learner"}
# Time for a supervisor to end a replica and start it again.
_RESTART_S = 120.0
_DIAL_S = 1.0
Row = dict[str, Any]


class RefusedError(Exception):
    """A request that is answered with an error status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Replicas:
    """The replicas of one run, and the replicas given to its coordinator.

    `restart` ends the processes in some slots and starts them again; it may return before that has happened.
    """

    def __init__(self, folder: Path, restart: Callable[[Sequence[int]], None]) -> None:
        self._given_file, self._deleted = folder / GIVEN, folder / DELETED
        table = read_json(folder / TABLE)
        self._coordinators: list[Row] = table["coordinators"]
        self._rows: list[Row] = table["replicas"]
        self._restart = restart
        self._given: list[str] = read_json(self._given_file)["pods"] if self._given_file.exists() else []
        self._lock = threading.Lock()

    def listed(self, query: dict[str, list[str]]) -> object:
        """Return the replicas given to the coordinator, or to every coordinator."""
        wanted: dict[str, str] = {}
        for name, values in query.items():
            if name.lower() not in _PARAMETERS:
                raise RefusedError(400, f"request param {name} is not supported")
            wanted[name.lower()] = values[0]
        everybody = [self._answer(one, self._rows_given()) for one in self._coordinators]
        if "namespace" not in wanted:
            return everybody
        if "coordinator" in wanted:
            return self._answer(self._coordinator(wanted), self._rows_given())
        if "name" in wanted:
            return None
        if "aggregator" in wanted:
            raise RefusedError(404, f"pod: {wanted['namespace']}/{wanted['aggregator']} not exists in cache")
        return [one for one in everybody if one["namespace"] == wanted["namespace"]]

    def add(self, body: Row) -> object:
        """Give the coordinator the requested replicas; raise RefusedError and give none if too few are free."""
        coordinator = self._coordinator(body)
        with self._lock:
            added: list[Row] = []
            for field, role in _ROLES.items():
                count, gpus = _number(body, field, "replicas"), _number(body, field, "gpus")
                free = [row for row in self._rows if row["role"] == role and row["pod"] not in self._given]
                if gpus > 1 and count:
                    what = "a local run cannot start an aggregator with several learners"
                    raise RefusedError(501, f"{what}: request `gpus: 1`")
                if count > len(free):
                    there = len([row for row in self._rows if row["role"] == role])
                    what = f"the coordinator requests {count} more of {role}, and {len(free)} of {there} are free"
                    raise RefusedError(500, f"{what}: set `replicas` of {role} in the experiment")
                added += free[:count]
            self._keep([*self._given, *(row["pod"] for row in added)])
            for row in added:
                (self._deleted / row["pod"]).unlink(missing_ok=True)
        return self._answer(coordinator, added)

    def delete(self, body: Row) -> object:
        """Take back and end the number of replicas that the coordinator names, or all if it has fewer."""
        coordinator = self._coordinator(body)
        with self._lock:
            gone: list[Row] = []
            for field, role in _ROLES.items():
                count = _number(body, field, "replicas")
                gone += [row for row in self._rows_given() if row["role"] == role][:count]
            for row in gone:
                (self._deleted / row["pod"]).touch(mode=0o600)
            self._keep([pod for pod in self._given if pod not in {row["pod"] for row in gone}])
        self._restart_all(gone)
        return self._answer(coordinator, gone)

    def replace(self, body: Row) -> object:
        """Restart replicas that the coordinator reports as failed.

        It names a replica by its host without the last label, which here is only the beginning of an address. Of all
        matching replicas, those that refuse connections are restarted.
        """
        failed: list[Row] = []
        for field, role in _ROLES.items():
            names = body.get(field) or []
            if not isinstance(names, list):
                raise RefusedError(400, f"failed to decode request body: {field} is no list")
            for name in dict.fromkeys(map(str, names)):
                meant = [row for row in self._rows_given() if row["role"] == role and _is_called(row, name)]
                if not meant:
                    raise RefusedError(404, f"pod: {body.get('namespace', '')}/{name} not exists in cache")
                failed += [row for row in meant if row["pod"] == name or not _answers(row["url"])]
        self._restart_all(failed)
        return self._answer({"namespace": body.get("namespace", ""), "pod": body.get("coordinator", "")}, failed)

    def _coordinator(self, body: Row) -> Row:
        namespace, pod = body.get("namespace", ""), body.get("coordinator", "")
        for row in self._coordinators:
            if (row["namespace"], row["pod"]) == (namespace, pod):
                return row
        raise RefusedError(404, f"pod: {namespace}/{pod} not exists in cache")

    def _rows_given(self) -> list[Row]:
        return [row for row in self._rows if row["pod"] in self._given]

    def _answer(self, coordinator: Row, rows: Iterable[Row]) -> Row:
        rows = list(rows)
        urls = {field: [row["url"] for row in rows if row["role"] == role] for field, role in _ROLES.items()}
        return {"namespace": coordinator["namespace"], "coordinator": coordinator["pod"], **urls}

    def _keep(self, given: list[str]) -> None:
        write_json(self._given_file, {"pods": given})
        self._given = given

    def _restart_all(self, rows: Sequence[Row]) -> None:
        if slots := [slot for row in rows for slot in row["slots"]]:
            self._restart(slots)


def _is_called(row: Row, name: str) -> bool:
    host = str(row["url"]).rpartition(":")[0]
    return name in (row["pod"], host, host.rpartition(".")[0])


def _answers(url: str) -> bool:
    host, _, port = url.rpartition(":")
    try:
        socket.create_connection((host, int(port)), _DIAL_S).close()
    except OSError:
        return False
    return True


def _number(body: Row, role: str, field: str) -> int:
    """Return a number of a request, which may be text for resources; 0 if not set."""
    asked = body.get(role) or {}
    value = asked.get(field) or 0 if isinstance(asked, dict) else None
    if isinstance(value, str) and field != "replicas" and value.isdecimal():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise RefusedError(400, f"failed to decode request body: {role}.{field} is no number")
    return value


def _object_in(text: bytes) -> Row:
    try:
        body = json.loads(text)
    except ValueError as error:
        raise RefusedError(400, f"failed to decode request body: {error}") from error
    if not isinstance(body, dict):
        raise RefusedError(400, "failed to decode request body: it is no object")
    return body


class _Handler(BaseHTTPRequestHandler):
    """Answer one connection; `replicas` is set on the class that serves."""

    replicas: Replicas
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.path == "/healthz":
            self._send(200, b"")
        else:
            query = parse_qs(address.query, keep_blank_values=True)
            self._serve("get", lambda _body: self.replicas.listed(query))

    def do_POST(self) -> None:
        if urlsplit(self.path).path == f"{_PATH}/failed":
            self._serve("recreate", self.replicas.replace, path=f"{_PATH}/failed")
        else:
            self._serve("create", self.replicas.add)

    def do_DELETE(self) -> None:
        self._serve("delete", self.replicas.delete)

    def do_PUT(self) -> None:
        self._serve("", self._refuse_method)

    def do_PATCH(self) -> None:
        self._serve("", self._refuse_method)

    def _refuse_method(self, _body: Row) -> object:
        raise RefusedError(501, f"{self.command} not implemented")

    def _serve(self, verb: str, answer: Callable[[Row], object], path: str = _PATH) -> None:
        # A client may send a body with any method, and another request after it.
        length = self.headers.get("Content-Length", "0")
        text = self.rfile.read(int(length) if length.isdecimal() else 0)
        data: object = None
        status, message = 200, f"successfully {verb} replicas"
        try:
            if urlsplit(self.path).path != path:
                self._send(404, b"404 page not found\n")
                return
            data = answer(_object_in(text) if self.command in ("POST", "DELETE") else {})
        except RefusedError as refused:
            status, message = refused.status, str(refused)
        except (OSError, SymphError) as error:
            status, message = 500, str(error)
        sys.stderr.write(f"{self.command} {self.path}: {message}\n")
        reply = {"success": status == 200, "code": int(status != 200), "message": message, "data": data}
        self._send(status, json.dumps(reply).encode(), "application/json")

    def _send(self, status: int, content: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: `_serve` does."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True


def server_of(folder: Path, restart: Callable[[Sequence[int]], None]) -> ThreadingHTTPServer:
    """Return the server of the run in `folder`, bound to its address; `restart` is as for `Replicas`."""
    table = read_json(folder / TABLE)
    handler = type("Handler", (_Handler,), {"replicas": Replicas(folder, restart)})
    return _Server((table["host"], table["port"]), handler)


def _in_background(run: Run, slots: Sequence[int]) -> None:
    def restart() -> None:
        try:
            request(run, dict.fromkeys(slots, "restart"), _RESTART_S)
        except SymphError as error:
            sys.stderr.write(f"cannot restart: {error}\n")

    threading.Thread(target=restart, daemon=True).start()


def main() -> None:
    """Serve the run in the folder given as the only argument."""
    run = Run(Path(sys.argv[1]))
    server_of(run.folder, lambda slots: _in_background(run, slots)).serve_forever()
