"""JSON over HTTP between the processes of an experiment. Addresses come from SYMPH_* alone."""

import http.server
import json
import os
import threading
import time
import urllib.request

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def address(service):
    """Return host and port of `service`: where its own process listens, and where others connect."""
    prefix = "SYMPH_" + service.upper().replace("-", "_")
    return os.environ[prefix + "_HOST"], int(os.environ[prefix + "_PORT"])


def serve(service, answer):
    """Answer requests to `service` in threads, one at a time, with `answer(path, data)`."""
    lock = threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = 30

        def do_POST(self):
            data = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "null")
            with lock:
                body = json.dumps(answer(self.path, data)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.do_POST()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(address(service), Handler)
    # Finish the answers in progress before the process ends.
    server.daemon_threads = False
    threading.Thread(target=server.serve_forever, daemon=True).start()


def call(service, path, data=None, patience_s=60):
    """Send `data` to `service` and return its answer; wait while it is still starting."""
    host, port = address(service)
    request = urllib.request.Request(f"http://{host}:{port}{path}", json.dumps(data).encode())
    deadline = time.monotonic() + patience_s
    while True:
        try:
            with _OPENER.open(request, timeout=30) as response:
                return json.load(response)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def wait_until(condition, patience_s=120):
    """Wait until `condition()` is true."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit("gave up waiting")
        time.sleep(0.05)
