"""The folder that every case begins with: a project that has packaged, published and run, then the case's damage."""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

BOX, TOOLS, _TEMPLATE = Path("/tmp/box"), Path("/tmp/tools"), Path("/tmp/template")
_PROGRAMS = ("sh", "bash", "env", "cat", "sleep", "setsid", "true", "false", "git", "tmux", "helm", "ls", "ps", "tr")
_SPEC = """\
name: rl
image: busybox:1.37.0
secrets: [secret.txt]
processes:
  learner: {command: [serve], binds: data, requests: {cpu: "1", memory: 1Gi}}
  agent: {command: [work], connects: data, replicas: 2, env: {LR: "1"}, requests: {cpu: "1", memory: 1Gi}}
"""
_NAPS = "name: naps\nprocesses: {a: {command: [sh, -c, 'echo hello; sleep 0.1'], restart: never}}\n"
_FILES = {
    "rl.yaml": _SPEC,
    "rl.json": '{"name": "rl", "image": "i", "processes": {"a": {"command": ["x"]}}}',
    "rl.py": "experiment = {'name': 'py', 'image': 'i', 'processes': {'a': {'command': ['x']}}}\n",
    "naps.yaml": _NAPS,
    "study.yaml": _SPEC.replace("name: rl", "name: study"),
    "wrong.yaml": "name: wrong\nprocesses: {a: {comand: x, binds: [1]}}\n",
    "secret.txt": "hidden",
    ".symph.yaml": "team: ml\nrepository: {url: REPO, author: Ann <ann@example.org>}\nenvironments:\n"
    "  dev: {namespace: rl-dev}\n  prod: {namespace: rl-prod, values: {groups: {agent: {replicas: 8}}}}\n",
    "values.yaml": "groups: {agent: {replicas: 4}}\n",
    "pools.yaml": "pools: {std: {machine_type: n1-standard-4, nodes: 3}}\n",
    "cluster.tf.json": '{"resource": {"google_container_node_pool": {"a": {"node_count": 2}}}}',
    "job.yaml": "apiVersion: diengine.opendilab.org/v2alpha1\nkind: DIJob\nmetadata: {name: j}\nspec: {tasks: []}\n",
    "compose.yaml": "services: {a: {image: x, command: y, ports: ['80:80']}}\n",
    "app.json": '{"name": "a", "roles": [{"name": "r", "image": "i", "entrypoint": "x", "args": ["1"]}]}',
    "cert.pem": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    "kubeconfig": "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
    "contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\ncurrent-context: c\n",
}
_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


def variables() -> dict[str, str | None]:
    return {
        "PATH": str(TOOLS / "all"),
        "HOME": str(BOX / "home"),
        "SYMPH_STATE_DIR": str(BOX / "state"),
        "SYMPH_RUNTIME_DIR": str(BOX / "run"),
        "TMUX_TMPDIR": str(BOX / "run"),
        "KUBECONFIG": str(BOX / "work/kubeconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "BROWSER": "true",
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(Path(__file__).parents[3]),
    }


def prepare(helm: str | None) -> None:
    """Make tools and the template; link `helm` under that name."""
    _tools(helm)
    work = BOX / "work"
    for place in (work, BOX / "home", BOX / "state", BOX / "run"):
        place.mkdir(parents=True, mode=0o700)
    for name, text in _FILES.items():
        (work / name).write_text(text.replace("REPO", str(work / "repo.git")))
    (work / "noise").write_bytes(bytes(range(256)) * 9)
    _run("git", "init", "-q", "--bare", "-b", "main", "repo.git")
    _symph("package", "rl.yaml")
    _symph("publish", "rl.yaml", "--env", "dev")
    _symph("promote", "rl", "--from", "dev", "--to", "prod")
    (work / "rl.yaml").write_text(_SPEC.replace("replicas: 2", "replicas: 3"))
    _symph("publish", "rl.yaml", "--env", "dev")
    _symph("up", "naps.yaml", "--wait")
    _run("git", "clone", "-q", "repo.git", "checkout")
    shutil.copytree(BOX, _TEMPLATE, symlinks=True, ignore=_pipes)


def lay_out() -> None:
    for folder, _, _ in os.walk(BOX):
        Path(folder).chmod(0o755)
    shutil.rmtree(BOX, ignore_errors=True)
    shutil.copytree(_TEMPLATE, BOX, symlinks=True, ignore=_pipes)


def _pipes(folder: str, names: list[str]) -> list[str]:
    """Return the sockets and pipes of the finished run: they cannot be copied."""
    kinds = {name: (Path(folder) / name).lstat().st_mode for name in names}
    return [
        name for name, mode in kinds.items() if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))
    ]


def damage(name: str, how: str, chance: random.Random) -> None:
    """Damage a file of the sandbox in one way; ``folder/*`` is any file in a folder."""
    root = BOX if name.startswith("state") else BOX / "work"
    if name.endswith("/*"):
        files = sorted(path for path in (root / name[:-2]).rglob("*") if path.is_file() and not path.is_symlink())
        if not files:
            return
        path = chance.choice(files)
    else:
        path = root / name
    data = path.read_bytes() if path.is_file() else b""
    if how in ("directory", "remove", "loop"):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        if how == "directory":
            path.mkdir(parents=True)
        elif how == "loop":
            path.symlink_to(path.name)
    elif how == "unreadable":
        path.chmod(0) if path.exists() else None
    elif path.is_dir():
        shutil.rmtree(path)
    elif path.parent.is_dir():
        path.chmod(0o644) if path.exists() else None
        path.write_bytes(_damaged(data, how, chance))


def _damaged(data: bytes, how: str, chance: random.Random) -> bytes:
    cut = chance.randrange(len(data) + 1)
    match how:
        case "truncate":
            return data[:cut]
        case "binary":
            return chance.randbytes(300)
        case "latin":
            return data[:cut] + b"\xe9\xff" + data[cut:]
        case "number":
            return data.replace(b"1", b"9" * 400, 1) + b"\nx: 1e400\n"
        case "bomb":
            return _BOMB.encode()
        case "deep":
            return b"a: " + b"[" * 5000 if chance.random() < 0.5 else b"[" * 5000 + b"]" * 5000
        case "nul":
            return data[:cut] + b"\0" + data[cut:]
        case "utf16":
            return data.decode("utf-8", "replace").encode("utf-16")
        case "list" | "null" | "text":
            return {"list": b"[]", "null": b"null", "text": b"just text"}[how]
        case "flip" if data:
            at = min(cut, len(data) - 1)
            return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
        case "twist" if b":" in data:
            words = [
                word for word in (b"name", b"replicas", b"url", b"version", b"env", b"pid", b"server") if word in data
            ]
            values = [b": 3", b": []", b": null", b": {}", b': "x"', b": -1", b": 1e999"]
            return re.sub(
                rb"(\"?%s\"?): ?[^,\n}]*" % chance.choice(words or [b"x"]),
                rb"\1" + chance.choice(values),
                data,
                count=1,
            )
        case _:
            return b""


def digest(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.rglob("*")):
        kind = "link" if path.is_symlink() else "folder" if path.is_dir() else "file"
        readable = kind == "file" and os.access(path, os.R_OK)
        found[str(path)] = kind + (hashlib.sha256(path.read_bytes()).hexdigest() if readable else "")
    return found


def _tools(helm: str | None) -> None:
    for missing in ("", "helm", "tmux", "git"):
        folder = TOOLS / (f"no-{missing}" if missing else "all")
        folder.mkdir(parents=True)
        for name in _PROGRAMS:
            found = helm if name == "helm" else shutil.which(name)
            if found and name != missing:
                (folder / name).symlink_to(Path(found).resolve())


def _symph(*words: str) -> None:
    _run(sys.executable, "-m", "symphony_charts", *words)


def _run(*argv: str) -> None:
    env = {name: value for name, value in variables().items() if value is not None}
    done = subprocess.run(argv, cwd=BOX / "work", env=env, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(f"{argv}: {done.stderr}")
