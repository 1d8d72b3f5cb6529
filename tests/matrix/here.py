"""The steps that need no cluster: tmux, charts, plans, and a bare Git repository."""

from __future__ import annotations

import json

from tests.matrix.journey import Journey

__all__ = ["chart_steps", "extra_steps", "git_steps", "local_steps", "tool_steps"]

_INSTALLED_FROM = f"git+https://example.org/symphony-charts.git@{'a' * 40}"


def tool_steps(user: Journey, version: str) -> None:
    """Version, help, completion, schema, doctor, and the new folder of `init`."""
    user.symph("--version", says=version)
    user.run(str(user.programs / "symphony"), "--version", says=version)
    user.symph("--help", says="promote")
    for shell in ("bash", "zsh", "fish"):
        user.symph("completion", shell, says="symph")
    user.symph("schema", says="$schema")
    user.symph("doctor", says="tmux")
    user.symph("catalog", "show", "e2-standard-8", says="e2-standard-8")
    for template, name in (("yaml", "rl"), ("python", "rl-py")):
        user.symph("init", name, "--template", template)
        made = sorted(path.name for path in (user.work / name).rglob("*"))
        spec = "experiment.py" if template == "python" else "experiment.yaml"
        user.expect(f"init makes three files: {template}", made == ["counter.py", spec, "pools.yaml"], made)


def chart_steps(user: Journey) -> None:
    """From the spec to the archive, and the verdict on node pools."""
    for spec in ("rl/experiment.yaml", "rl-py/experiment.py"):
        user.symph("validate", spec, says="0 error")
        user.symph("render", spec, says="kind: Job")
        user.symph("plan", spec, "--pools", "rl/pools.yaml", says="PROVEN")
        user.symph("package", spec, says="0.1.0")
    user.symph("package", "rl/experiment.yaml", "--set", "groups.client.replicas=3", says="0.1.1")
    values = json.loads(user.symph("render", "rl/experiment.yaml", "-o", "json") or "{}")
    user.expect("render gives objects", bool(values), values)
    user.write("compose.yaml", "services: {web: {image: 'nginx:1', ports: ['8080:80']}}\n")
    user.symph("import", "compose", "compose.yaml", says="web")


def local_steps(user: Journey) -> None:
    """An experiment in tmux, from its start to nothing left."""
    user.symph("up", "rl/experiment.yaml", "--wait")
    user.symph("ls", "-a", says="rl")
    user.symph("p", "rl", says="client")
    user.symph("logs", "client/0", "rl", says="heard")
    user.symph("describe", "rl", says="server")
    user.symph("up", _long_lived(user))
    user.symph("wait", "web", "--for", "ready", "--timeout", "60s")
    user.symph("exec", "web", "web", "--", "sh", "-c", "echo inside", says="inside")
    user.symph("visit", "--url-only", "page", "web", says="http://")
    user.symph("top", "web", "--once", says="web")
    user.symph("restart", "-e", "web")
    user.symph("collect", "web", "--to", "collected")
    user.symph("down", "web")
    user.symph("ls", "-o", "name")
    user.symph("up", "rl-py/experiment.py", "--wait")
    user.symph("delete", "rl-py", "--yes")


def _long_lived(user: Journey) -> str:
    command = "exec python3 -m http.server --bind $SYMPH_PAGE_BIND_HOST $SYMPH_PAGE_PORT"
    web = {"cmds": [command], "lifecycle": "service", "binds": "page", "grace_period": 1}
    return user.write("web.json", {"name": "web", "image": "python:3.12-slim", "processes": {"web": web}})


def git_steps(user: Journey) -> None:
    """A repository from its first commit to a publish after a rollback."""
    user.run("git", "init", "--quiet", "--bare", "-b", "main", "charts.git")
    user.write(
        ".symph.yaml",
        f"team: ml\nrepository: {user.work}/charts.git\n"
        "environments:\n  dev: {namespace: rl-dev}\n  prod: {namespace: rl-prod}\n",
    )
    user.symph("gitops", "init", "--install-from", _INSTALLED_FROM, says="next:")
    user.symph("publish", "rl/experiment.yaml", "--env", "dev", says="0.1.0")
    user.symph("promote", "rl", "--from", "dev", "--to", "prod", says="0.1.0")
    user.symph("publish", "rl/experiment.yaml", "--env", "dev", "--set", "groups.client.replicas=3", says="0.1.1")
    user.symph("diff", "rl", "0.1.0", "0.1.1", says="client")
    user.symph("rollback", "rl", "--env", "dev", says="0.1.0")
    user.symph("publish", "rl/experiment.yaml", "--env", "dev", "--set", "groups.client.replicas=4", says="0.1.2")
    user.symph("publish", "rl/experiment.yaml", "--env", "prod", "--version", "0.3.0", says="0.3.0")
    user.symph("history", "rl", "--env", "dev", says="rollback")
    user.symph("status", "rl", "--env", "dev", says="0.1.2")
    user.run("git", "clone", "--quiet", "charts.git", "checkout")
    user.symph("gitops", "lint", "checkout", says="0 error")
    user.symph("retire", "rl", "--env", "prod", "--yes")


def extra_steps(user: Journey, extras: frozenset[str]) -> None:
    """What each extra adds, and what is said where it is missing."""
    has = extras | ({"seal", "argo", "top"} if "all" in extras else set())
    flows = "from symphony_charts.clusters.hera_flows import hera_flows; print(list(hera_flows('rl/experiment.yaml')))"
    user.run(
        str(user.programs / "python"),
        "-c",
        flows,
        status=0 if "argo" in has else 1,
        says="WorkflowTemplate" if "argo" in has else "ToolMissing",
    )
    cockpit = "import symphony_charts.cli.cockpit"
    user.run(
        str(user.programs / "python"),
        "-c",
        cockpit,
        status=0 if "top" in has else 1,
        says="" if "top" in has else "textual",
    )
    tune = user.write(
        "tune.yaml", "name: tune\nprocesses: {w: {cmds: ['echo loss=$X'], env: {X: '0'}, restart: never}}\n"
    )
    words = ("sweep", tune, "--grid", "x=1,2", "--search", "1", "--up", "--metric", "loss")
    _needs(user, "optuna" in has, words, "tune-x")
    _needs(user, "torchx" in has, ("import", "torchx", "dist.ddp", "--", "-j", "1x1", "--script", "main.py"), "dist")
    user.run(
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=x",
        "-keyout",
        "k.pem",
        "-out",
        "c.pem",
    )
    user.write("key.txt", "hush")
    process = {"a": {"cmds": ["true"]}}
    spec = user.write(
        "sealed.json",
        {
            "name": "s",
            "image": "busybox:1",
            "secrets": ["key.txt"],
            "secret_source": {"source": "sealed"},
            "processes": process,
        },
    )
    _needs(user, "seal" in has, ("secrets", "seal", spec, "-n", "ml", "--cert", "c.pem"), "sealed")


def _needs(user: Journey, is_there: bool, words: tuple[str, ...], says: str) -> None:
    if is_there:
        user.symph(*words, says=says)
    else:
        user.symph(*words, status=5, says="[")
