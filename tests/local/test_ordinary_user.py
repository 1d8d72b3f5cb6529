"""Runs of a user other than root: files at the pod's paths in a user namespace, and the fallback without one."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.local.ordinary import Person, find_person
from tests.local.runs import until

LOOK = """
import json, os, sys
out = {'uid': os.getuid(), 'config': open(sys.argv[1]).read(), 'secret': open(os.environ['TOKEN']).read()}
out['capabilities'] = [line.split()[1] for line in open('/proc/self/status') if line.startswith('CapEff')]
open(sys.argv[2] + '/from-a', 'w').write('shared')
print(json.dumps(out), flush=True)
"""
SPEC = {
    "name": "plain",
    "configs": {"a.txt": {"text": "conf"}},
    "secrets": ["token"],
    "volumes": {"v": {"type": "empty_dir"}},
    "local": {"tty": False},
    "groups": {
        "g": {
            "processes": {
                "a": {
                    "command": ["/usr/bin/python3", "-c", LOOK, "/etc/symph/config/a.txt", "/mnt"],
                    "env": {"TOKEN": "/etc/secrets/token"},
                    "mounts": [{"volume": "v", "at": "/mnt"}],
                },
                "b": {
                    "cmds": ["cat /mnt/from-a"],
                    "after": ["a"],
                    "mounts": [{"volume": "v", "at": "/mnt"}],
                },
            }
        }
    },
}
STUBBORN = (
    "trap '' HUP TERM; (setsid sh -c \"trap '' TERM HUP; sleep 300\" &) ; env -i setsid sleep 314 & echo up; wait"
)


@pytest.fixture
def person(need_tool: Callable[[str], str]) -> Iterator[Person]:
    """Yield an ordinary user with their own folder; end their runs."""
    for name in ("tmux", "unshare", "setpriv", "python3"):
        need_tool(name)
    folder = Path(tempfile.mkdtemp(prefix="symph-o-", dir="/tmp"))
    folder.chmod(0o755)
    someone = find_person(folder, _lacking)
    (folder / "token").write_text("s3cret")
    yield someone
    for name in ("plain", "tree"):
        someone.symph("down", name)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def free(person: Person) -> Person:
    """Return a user whom the kernel gives namespaces; skip the test otherwise."""
    if not person.has_namespaces:
        pytest.skip("the kernel gives ordinary users no namespaces here, which the other tests of this file are about")
    return person


def _allow(person: Person, refusing: bool) -> None:
    if not refusing and not person.has_namespaces:
        pytest.skip("the kernel gives ordinary users no namespaces here; the same test without them runs")


def _lacking(reason: str) -> None:
    if os.environ.get("CI") or os.environ.get("SYMPH_REQUIRE_TOOLS"):
        pytest.fail(reason)
    pytest.skip(reason)


def write(person: Person, spec: Mapping[str, object]) -> str:
    path = person.folder / "spec.json"
    path.write_text(json.dumps(spec))
    return str(path)


def log_of(person: Person, name: str) -> str:
    done = person.symph("logs", name, "plain")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_files_and_volumes_stand_where_a_pod_has_them(free: Person) -> None:
    done = free.symph("up", write(free, SPEC), "--wait")
    assert done.returncode == 0
    assert all(re.search(r" \* (succeeded after|waits for .*) \d+s$", line) for line in done.stderr.splitlines()), (
        done.stderr
    )
    seen = json.loads(log_of(free, "a"))
    assert (seen["config"], seen["secret"]) == ("conf", "s3cret")
    # The process has no rights of the namespace.
    assert (seen["uid"], [int(word, 16) for word in seen["capabilities"]]) == (int(free.run("id", "-u").stdout), [0])
    assert log_of(free, "b").strip() == "shared"
    assert not Path("/etc/symph/config/a.txt").exists()
    assert not Path("/mnt/from-a").exists()


def test_without_user_namespaces_files_are_in_folders_and_commands_name_those(person: Person) -> None:
    done = person.symph("up", write(person, SPEC), "--wait", refusing=True)
    assert done.returncode == 0, done.stderr + log_of(person, "a")
    assert "this machine has no private mounts: /etc/symph/config is " in done.stderr
    assert "so commands and variables use other paths: /mnt is " in done.stderr
    seen = json.loads(log_of(person, "a"))
    assert (seen["config"], seen["secret"]) == ("conf", "s3cret")
    assert log_of(person, "b").strip() == "shared"
    assert not Path("/mnt/from-a").exists()


def test_without_user_namespaces_a_volume_is_refused_where_writes_could_be_lost(person: Person) -> None:
    mounts = [{"volume": "v", "at": "/job"}, {"volume": "c", "at": "/job/ckpt"}]
    volumes = {"v": {"type": "empty_dir"}, "c": {"type": "claim", "claim": "c"}}
    spec = {"name": "plain", "volumes": volumes, "processes": {"a": {"cmds": ["true"], "mounts": mounts}}}
    done = person.symph("up", write(person, spec), refusing=True)
    assert (done.returncode, "processes.a.mounts[1]" in done.stderr) == (3, True)
    assert "files in /job/ckpt may be lost" in done.stderr
    assert not list((person.folder / "state").rglob("plan.json"))
    if person.has_namespaces:
        assert person.symph("up", write(person, spec), "--wait").returncode == 0


def test_without_user_namespaces_secrets_of_some_are_in_folders_of_their_own(person: Person) -> None:
    show = {"cmds": ['ls "$SYMPH_SECRETS_DIR"', "cat /run/secrets/word 2> /dev/null || true"]}
    spec = {
        "name": "plain",
        "secrets": [{"file": "token", "only": ["a"], "also_at": "/run/secrets/word"}],
        "processes": {"a": show, "b": show},
        "local": {"tty": False},
    }
    done = person.symph("up", write(person, spec), "--wait", refusing=True)
    assert done.returncode == 0, done.stderr + log_of(person, "b")
    assert (log_of(person, "a"), log_of(person, "b")) == ("token\ns3cret\n", "")


def test_probes_and_commands_reach_into_the_namespace(free: Person) -> None:
    wait = {"cmds": ["touch /mnt/there", "exec sleep 300"], "mounts": [{"volume": "v", "at": "/mnt"}]}
    probe = {"exec": {"command": ["test", "-e", "/mnt/there"]}, "period": 1}
    spec = {"name": "plain", "volumes": SPEC["volumes"], "processes": {"a": {**wait, "ready": probe}}}
    assert free.symph("up", write(free, spec)).returncode == 0
    until(lambda: json.loads(free.symph("p", "plain", "-o", "json").stdout)["items"][0]["ready"])
    assert free.symph("exec", "a", "plain", "--", "ls", "/mnt").stdout == "there\n"


@pytest.mark.parametrize("refusing", [False, True])
def test_stopping_leaves_nothing_of_a_stubborn_tree(person: Person, refusing: bool) -> None:
    _allow(person, refusing)
    spec = {"name": "tree", "processes": {"a": {"command": ["sh", "-c", STUBBORN], "grace_period": 1}}}
    assert person.symph("up", write(person, spec), refusing=refusing).returncode == 0
    until(lambda: "up" in person.symph("logs", "a", "tree").stdout)
    done = person.symph("down", "tree")
    assert done.returncode == 0, done.stderr
    state = json.loads(next((person.folder / "state").rglob("state.json")).read_text())
    assert (state["phase"], state["survivors"]) == ("stopped", [])
    assert str(person.folder) not in "".join(_mounts())
    assert "sleep 314" not in person.run("ps", "-eo", "args").stdout


def _mounts() -> Iterator[str]:
    """Yield the mounts of every running process."""
    for path in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            yield path.read_text()
        except OSError:
            continue


_COMPARE = """
import sys
from symphony_charts.spec import files
from tests.local.parity.compare import compare
spec = files.read(sys.argv[1])
print([one.text for one in compare(spec.experiment, spec.pins, spec.path.parent, probes=True).differences])
"""


@pytest.mark.parametrize("refusing", [False, True])
def test_what_processes_see_agrees_with_their_pods(person: Person, refusing: bool) -> None:
    _allow(person, refusing)
    process = {"command": ["prog", "--data=/mnt/x"], "env": {"D": "/mnt/y"}, "mounts": [{"volume": "v", "at": "/mnt"}]}
    spec = {"name": "plain", "image": "i", "volumes": SPEC["volumes"], "configs": SPEC["configs"]}
    path = write(person, {**spec, "processes": {"a": process, "b": {"command": ["c"]}}})
    done = person.run(person.python, "-c", _COMPARE, path, refusing=refusing)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


def test_where_experiments_have_no_files_their_folders_are_the_pods_all_the_same(person: Person) -> None:
    path = write(person, {"name": "plain", "image": "i", "processes": {"a": {"command": ["c"]}}})
    done = person.run(person.python, "-c", _COMPARE, path, refusing=True)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
