"""Every verb that reads a spec and changes nothing accepts any spec of the schema or reports its faults."""

from __future__ import annotations

import itertools
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.cli.main import main
from symphony_charts.errors import SymphError
from symphony_charts.placement.pools.pool import pools_of_spec
from symphony_charts.spec import files as specfile
from tests.local.parity.compare import compare
from tests.spec.drawn_experiments import draw

_CASES = int(os.environ.get("SYMPH_SOAK", "12"))
_SEED = int(os.environ.get("SYMPH_SEED", "4990"))
# Exit status of an unforeseen error.
_BUG = 70
_VERBS = (
    ("up", "{spec}", "--dry-run"),
    ("plan", "{spec}"),
    ("plan", "{spec}", "--pools", "pools.yaml", "-o", "json"),
    ("validate", "{spec}"),
    ("validate", "{spec}", "-o", "json", "--spec-set", "workload.kind=volcano"),
    ("package", "{spec}", "--dry-run"),
    ("render", "{spec}"),
    ("render", "{spec}", "--spec-set", "workload.kind=jobset"),
    ("export", "manifests", "{spec}"),
    ("export", "appwrapper", "{spec}"),
    ("export", "dijob", "{spec}"),
    ("sweep", "{spec}", "-g", "image=a,b", "--dry-run"),
    ("local", "render", "{spec}"),
    *(("local", "render", "{spec}", "--as", form) for form in ("tmuxp", "process-compose")),
)
# Fields that need a cluster or an image, and GPUs; most are dropped, so that this machine can plan the spec.
_FOREIGN = ("mounts", "env", "cmds", "args", "container_overlay", "preamble", "shell", "gpus", "cwd")


def _processes(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from (data.get("processes") or {}).values()
    for group in (data.get("groups") or {}).values():
        yield from (group.get("processes") or {}).values()


def _made_local(data: dict[str, Any], random_: random.Random) -> dict[str, Any]:
    """Return the spec in a form that one machine can usually run, at one address or several."""
    data = json.loads(json.dumps(data))
    data["local"] = {**(data.get("local") or {}), "ports": random_.choice(["own", "moved"])}
    for process in _processes(data):
        for field in _FOREIGN:
            if random_.random() < 0.8:
                process.pop(field, None)
        for field in ("args", "cmds", "shell", "preamble", "gpus"):
            (process.get("local") or {}).pop(field, None)
        if "cmds" not in process:
            process["command"] = ["x"]
    return data


def _may_differ(data: dict[str, Any]) -> bool:
    """Return True if the pod may differ: an overlay replaces addresses, or `pass_env` passes a variable here."""
    text, passed = json.dumps(data), (data.get("local") or {}).get("pass_env") or ()
    return "envFrom" in text or any(f"$({name})" in text for name in ([passed] if isinstance(passed, str) else passed))


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, folder in (("HOME", "home"), ("SYMPH_STATE_DIR", "state"), ("SYMPH_RUNTIME_DIR", "run")):
        (tmp_path / folder).mkdir(mode=0o700)
        monkeypatch.setenv(variable, str(tmp_path / folder))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


def _status(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    try:
        status = main(list(words))
    except SystemExit as ended:
        status = int(ended.code or 0)
    said = capsys.readouterr()
    return status, said.out + said.err


def test_no_spec_of_the_schema_ends_in_an_error_of_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = tmp_path / "work"
    planned, wrong = 0, []
    for number, drawn in enumerate(itertools.islice(draw(_SEED, work), _CASES)):
        drawn.write(work)
        data = _made_local(drawn.data, random.Random(_SEED + number))
        (work / "here.json").write_text(json.dumps(data))
        for file, verb in itertools.product(("experiment.json", "here.json"), _VERBS):
            status, said = _status(capsys, *(word.format(spec=file) for word in verb))
            if status == _BUG:
                wrong.append((drawn.data if file == "experiment.json" else data, verb, said))
        # If the spec can be planned, every process must see the same here as in its pod.
        try:
            spec = specfile.read(work / "here.json")
            pools = pools_of_spec(spec.path, spec.experiment.placement.pools)
            parity = compare(spec.experiment, spec.pins, work, probes=False, pools=pools)
        except SymphError:
            continue
        planned += not parity.differences
        if parity.differences and not _may_differ(data):
            wrong.append((data, ("parity",), str(parity.differences)))
    assert wrong == []
    assert planned >= _CASES // 6
