"""Readiness, liveness and startup probes of runs in real tmux, and the counting behind them."""

from __future__ import annotations

import datetime as dt
import os
import signal
import time
from pathlib import Path
from typing import Literal

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.local import up as local_run
from symphony_charts.local.machine.machine import plan_here
from symphony_charts.local.plan.records import Check
from symphony_charts.local.runs import Run
from symphony_charts.local.status import run_status
from symphony_charts.local.supervisor.probes import Health
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate
from tests.local.runs import log_of, python, start, supervisor_pid, until
from tests.waiting import is_alive

# Answers each GET by the content of the file `answer`: a status, and optionally a redirect target.
WEB = """
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, _, place = open('answer').read().partition(' ')
        if self.path == '/else':
            status, place = '500', ''
        self.send_response(int(status))
        if place:
            self.send_header('Location', place)
        self.end_headers()
        self.wfile.write(self.headers.get('X-Who', '').encode())
        print('asked', self.path, self.headers.get('X-Who'), flush=True)
    def log_message(self, *words): pass
http.server.ThreadingHTTPServer((os.environ['SYMPH_X_HOST'], int(os.environ['SYMPH_X_PORT'])), Handler).serve_forever()
"""
# Appended to a server to make it speak TLS.
TLS = """
import ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('pem')
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
# The name of an experiment determines its addresses; a unique one keeps probes away from concurrent tests.
MINE = f"exp-{os.getpid()}"
QUICK = {"period": 1, "timeout": 5, "failures": 1}
LIVENESS = {"periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": 1}
# After a restart, a server takes a moment until it answers.
PATIENT = {"periodSeconds": 1, "failureThreshold": 3}


def health(role: Literal["ready", "alive", "started"] = "ready", **more: int) -> Health:
    return Health(Check(kind="tcp", role=role, **more))  # type: ignore[arg-type]  # thresholds only


def ready(run: Run) -> bool:
    return run.state().processes[0].ready


def exists(name: str) -> dict[str, object]:
    return {"exec": {"command": ["test", "-e", name]}}


@pytest.mark.parametrize(("role", "begins"), [("ready", False), ("alive", True), ("started", False)])
def test_a_check_begins_with_the_answer_of_the_kubelet(
    role: Literal["ready", "alive", "started"], begins: bool
) -> None:
    assert health(role).passes is begins


def test_an_answer_changes_after_enough_tries_in_a_row_only() -> None:
    one = health(failures=3, successes=2)
    settled = [one.note(passed) for passed in (True, False, True, True, False, False, True, False, False, False)]
    assert settled == [False, False, False, True, False, False, False, False, False, True]
    assert one.passes is False


@pytest.mark.usefixtures("here")
def test_a_ready_process_becomes_unready_and_ready_again(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": {**python("input()"), "ready": {**exists("up"), **QUICK}}})
    until(lambda: run_status(run).instances[0].reason == "not ready: exit status 1")
    assert not ready(run)
    (tmp_path / "up").touch()
    until(lambda: ready(run))
    (tmp_path / "up").unlink()
    until(lambda: not ready(run))
    (tmp_path / "up").touch()
    until(lambda: ready(run))
    assert run.state().processes[0].restarts == 0


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("answer", "is_ready"),
    [("204", True), ("302 http://127.0.0.99:1/", True), ("404", False), ("302 /else", False), ("301 /", False)],
)
def test_http_answers_count_as_for_the_kubelet(tmp_path: Path, answer: str, is_ready: bool) -> None:
    (tmp_path / "answer").write_text(answer)
    web = {**python(WEB), "binds": "x", "ready": {"http": {"port": "x", "path": "/"}, **QUICK}}
    run = start(tmp_path, MINE, processes={"a": web})
    until(lambda: ready(run) or "HTTP status" in (text := unready(run)) or "redirects" in text)
    assert ready(run) is is_ready


@pytest.mark.usefixtures("here")
def test_https_is_asked_without_regard_to_who_signed(tmp_path: Path) -> None:
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "nobody")])
    now = dt.datetime.now(dt.timezone.utc)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + dt.timedelta(days=1))
    signed = builder.sign(key, hashes.SHA256())
    form = serialization.PrivateFormat.TraditionalOpenSSL
    text = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    (tmp_path / "pem").write_bytes(text + signed.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "answer").write_text("200")
    secure = WEB.replace("http.server.ThreadingHTTPServer(", "server = http.server.ThreadingHTTPServer(")
    secure = secure.replace(".serve_forever()", "").strip() + TLS
    web = {**python(secure), "binds": "x", "ready": {"http": {"port": "x", "scheme": "HTTPS"}, **QUICK}}
    run = start(tmp_path, MINE, processes={"a": web})
    until(lambda: ready(run))


def unready(run: Run) -> str:
    return run.state().processes[0].unready


@pytest.mark.usefixtures("here")
def test_a_liveness_probe_restarts_what_does_not_answer_any_more(tmp_path: Path) -> None:
    (tmp_path / "answer").write_text("200")
    probe = {"httpGet": {"port": "x", "httpHeaders": [{"name": "X-Who", "value": "me"}]}, **PATIENT}
    # Regardless of the time that its start takes.
    overlay = {"livenessProbe": probe, "startupProbe": {**probe, "failureThreshold": 60}}
    web = {**python(WEB), "binds": "x", "lifecycle": "service", "container_overlay": overlay}
    run = start(tmp_path, MINE, processes={"a": web, "b": python("input()")})
    until(lambda: "asked / me" in log_of(run, "a"))
    (tmp_path / "answer").write_text("500")
    until(lambda: run.state().processes[0].phase == "backoff")
    assert "(liveness probe failed: HTTP status 500)" in run_status(run).instances[0].state
    (tmp_path / "answer").write_text("200")
    until(lambda: run.state().processes[0].restarts == 1)
    until(lambda: ready(run))


@pytest.mark.usefixtures("here")
def test_a_liveness_probe_has_a_grace_period_of_its_own(tmp_path: Path) -> None:
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(99)"
    )
    probe = {"exec": {"command": ["false"]}, "initialDelaySeconds": 1, **LIVENESS, "terminationGracePeriodSeconds": 0}
    run = start(tmp_path, processes={"a": {**python(stubborn), "container_overlay": {"livenessProbe": probe}}})
    began = time.monotonic()
    assert local_run.wait(run) == 137
    assert time.monotonic() - began < 10


@pytest.mark.usefixtures("here")
def test_a_startup_probe_holds_readiness_and_liveness_back(tmp_path: Path) -> None:
    overlay = {
        "startupProbe": {**exists("started"), "periodSeconds": 1, "failureThreshold": 60},
        "livenessProbe": {**exists("alive"), **LIVENESS},
    }
    service = {"lifecycle": "service", "container_overlay": overlay}
    run = start(tmp_path, processes={"a": {**python("print('up', flush=True); input()"), **service}})
    until(lambda: log_of(run, "a") == "up\n")
    time.sleep(2.5)
    assert not ready(run)
    assert log_of(run, "a") == "up\n"
    (tmp_path / "alive").touch()
    (tmp_path / "started").touch()
    until(lambda: ready(run))
    (tmp_path / "alive").unlink()
    # On a busy machine the next program may be ended before it prints.
    until(lambda: run.state().processes[0].restarts > 0)


@pytest.mark.usefixtures("here")
def test_a_process_that_never_starts_up_is_ended(tmp_path: Path) -> None:
    # A process that is ended before it can receive TERM gets KILL at once, as its session does.
    probe = {"exec": {"command": ["sh", "-c", "echo not yet; exit 3"]}, "initialDelaySeconds": 2, **LIVENESS}
    overlay = {"startupProbe": probe}
    run = start(tmp_path, processes={"a": {**python("input()"), "container_overlay": overlay}})
    assert local_run.wait(run) == 143
    assert run.state().processes[0].unhealthy == "startup probe failed: exit status 3: not yet"


@pytest.mark.usefixtures("here")
def test_a_probe_that_hangs_holds_nothing_up_and_is_killed(tmp_path: Path) -> None:
    hang = {"exec": {"command": ["sh", "-c", "echo $$ > pid; sleep 300"]}, "period": 1, "timeout": 8, "failures": 1}
    run = start(
        tmp_path,
        processes={"a": {**python("input()"), "ready": hang}, "b": python("raise SystemExit(4)")},
        on_failure="continue",
    )
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    pid = int((tmp_path / "pid").read_text())
    local_run.restart(run, [1])
    assert is_alive(pid)
    until(lambda: unready(run) == "no answer within 8 s")
    assert not is_alive(pid)


@pytest.mark.usefixtures("here")
def test_a_server_that_sends_its_answer_slowly_is_given_up_at_the_timeout(tmp_path: Path) -> None:
    server = """
import os, socket, time
listener = socket.create_server((os.environ["SYMPH_WEB_HOST"], int(os.environ["SYMPH_WEB_PORT"])))
while True:
    connection = listener.accept()[0]
    try:
        for byte in b"HTTP/1.1 200 OK\\r\\nX: " + 600 * b"x":
            connection.sendall(bytes([byte]))
            time.sleep(0.2)
    except OSError:
        pass
"""
    ready = {"http": {"port": "web"}, "period": 1, "timeout": 1, "failures": 1}
    run = start(tmp_path, processes={"a": {**python(server), "binds": "web", "ready": ready}})
    until(lambda: unready(run) == "no answer within 1 s")


@pytest.mark.usefixtures("here")
def test_a_supervisor_that_takes_over_goes_on_with_the_probes(tmp_path: Path) -> None:
    run = start(tmp_path, processes={"a": {**python("input()"), "ready": {**exists("up"), **QUICK}}})
    os.kill(supervisor_pid(run), signal.SIGKILL)
    until(lambda: not run.is_supervised)
    (tmp_path / "up").touch()
    local_run.ensure_supervised(run)
    until(lambda: ready(run))


@pytest.mark.usefixtures("here")
def test_a_run_without_probes_is_idle_once_its_ports_are_open(tmp_path: Path) -> None:
    (tmp_path / "answer").write_text("200")
    run = start(tmp_path, MINE, processes={"a": {**python(WEB), "binds": "x"}})
    until(lambda: ready(run))
    stat = Path(f"/proc/{supervisor_pid(run)}/stat")
    time.sleep(1.2)
    # It also wakes when a terminal of another program closes.
    for _ in range(3):
        before = stat.read_text().split()[13:15]
        time.sleep(1.5)
        if stat.read_text().split()[13:15] == before:
            return
    raise AssertionError("it is never idle")


@pytest.mark.parametrize(
    ("probe", "what"),
    [
        ({"grpc": {"port": 1}}, "not grpc"),
        ({"exec": {"command": "words"}}, "a list of words"),
        ({"httpGet": {"port": 1, "host": "example.org"}}, "is a name"),
        ({"tcpSocket": {"port": 1}, "exec": {"command": ["x"]}}, "not tcpSocket and exec"),
        ({"tcpSocket": {"port": 1}, "periodSeconds": "often"}, "'often' is not a number"),
    ],
)
def test_a_probe_that_cannot_be_tried_here_is_refused_by_its_path(
    tmp_path: Path, probe: dict[str, object], what: str
) -> None:
    overlay = {"container_overlay": {"livenessProbe": probe}}
    experiment = from_data({"name": "exp", "processes": {"a": {**python("pass"), **overlay}}})
    with pytest.raises(SpecError, match=what) as caught:
        plan_here(experiment, allocate(experiment), tmp_path, "run")
    assert caught.value.problems[0].path.startswith("processes.a.container_overlay.livenessProbe")


def test_an_overlay_changes_the_readiness_probe_as_in_the_chart(tmp_path: Path) -> None:
    overlay = {"container_overlay": {"readinessProbe": {"periodSeconds": 2}}}
    experiment = from_data({"name": "exp", "processes": {"a": {**python("pass"), "binds": {"x": 7001}, **overlay}}})
    [check] = plan_here(experiment, allocate(experiment), tmp_path, "run").processes[0].checks
    assert (check.kind, check.port, check.period_s, check.automatic) == ("tcp", 7001, 2, False)


@pytest.mark.parametrize(("port", "wanted"), [("web", 8080), ("api", 7000), ("8081", 8081)])
def test_a_probe_names_a_port_of_its_container_or_a_service(tmp_path: Path, port: str, wanted: int) -> None:
    ports = [{"name": "web", "containerPort": 8080}, {"name": "api", "containerPort": 8082}]
    overlay = {"ports": ports, "livenessProbe": {"httpGet": {"port": port}}}
    process = {**python("pass"), "binds": {"api": 7000}, "ready": "none", "container_overlay": overlay}
    experiment = from_data({"name": "exp", "processes": {"a": process}})
    [check] = plan_here(experiment, allocate(experiment), tmp_path, "run").processes[0].health
    assert (check.kind, check.port) == ("http", wanted)


def test_with_ready_none_nobody_asks_whether_its_ports_are_open(tmp_path: Path) -> None:
    process = {"command": ["x"], "binds": {"api": 7000}, "ready": "none"}
    experiment = from_data({"name": "e", "processes": {"p": process}})
    assert plan_here(experiment, allocate(experiment), tmp_path, "run").processes[0].checks == ()
