"""The steps that need a cluster and helm: every verb that speaks to the API server, in a namespace of the leg's own."""

from __future__ import annotations

from tests.matrix.journey import Journey

__all__ = ["cluster_steps"]


def cluster_steps(user: Journey, namespace: str) -> None:
    """Install, look at, enter, change and remove releases and experiments."""
    user.symph("doctor", "--cluster", "-n", "default", says="cluster")
    place = ("-n", namespace)
    user.write("key.txt", "hush")
    spec = user.write("app.json", _app(replicas=1))
    user.symph("install", spec, *place, "--create-namespace", "--wait", "--timeout", "90s", says="app")
    user.symph("secrets", "push", spec, *place)
    user.symph("secrets", "check", spec, *place)
    user.symph("ls", "--on", "kube", *place, says="app")
    there = ("--on", "kube", *place)
    for verb in ("process", "describe", "events"):
        user.symph(verb, "app", *there)
    user.symph("top", "app", "--once", *there)
    user.symph("wait", "app", "--for", "ready", "--timeout", "60s", *there)
    user.symph("logs", "web", "app", *there, says="up")
    user.symph("exec", "web", "app", *there, "--", "sh", "-c", "echo inside", says="inside")
    user.symph("ssh", "web", "app", *there, stdin="echo shell\n", says="shell")
    user.symph("scp", "web:/etc/secrets/key.txt", "copied", "app", *there)
    user.expect("scp brought the file", _text(user, "copied") == "hush", _text(user, "copied"))
    user.begins("visit", "--url-only", "page", "app", *there, says="http://127.0.0.1:")
    user.symph("collect", "app", "--to", "from-cluster", *there)
    user.symph("switch-experiment", "app", *there)
    user.symph("upgrade", spec, "--set", "groups.web.replicas=2", *place, "--wait", "--timeout", "90s")
    user.symph("history", "app", *place, says="2")
    user.symph("status", "app", *place, says="running")
    user.symph("rollback", "app", *place, "--yes")
    user.symph("uninstall", "app", *place, "--yes", says="web")
    user.symph(
        "sweep",
        "rl/experiment.yaml",
        "-g",
        "processes.client.replicas=1,2",
        "--on",
        "kube",
        "--up",
        *place,
        "--timeout",
        "90s",
    )
    user.symph("delete-batch", "rl-.*", "--yes", *there)
    user.symph("install", spec, *place, "--name", "late", says="late")
    user.symph("delete", "late", "--yes", *there)
    user.symph("ls", "--on", "kube", *place)


def _app(replicas: int) -> dict[str, object]:
    """A service that says where it is and shows a page."""
    script = "echo up; exec python3 -m http.server --bind $SYMPH_PAGE_BIND_HOST $SYMPH_PAGE_PORT"
    web = {"cmds": [script], "lifecycle": "service", "binds": "page", "replicas": replicas, "grace_period": 1}
    return {"name": "app", "image": "python:3.12-slim", "secrets": ["key.txt"], "processes": {"web": web}}


def _text(user: Journey, path: str) -> str:
    target = user.work / path
    return target.read_text() if target.is_file() else ""
