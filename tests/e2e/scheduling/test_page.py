"""The blocks of docs/workloads.md that need JobSet, gangs and Kueue work on this cluster."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.programs import Output, Programs
from tests.e2e.scheduling.queues import make_queue
from tests.pages.blocks import ROOT, blocks_of
from tests.pages.commands import Shown, steps_of
from tests.pages.reader import differences
from tests.tools import newest_helm
from tests.waiting import eventually

Line = Callable[[str], Output]


def steps_with(text: str) -> list[Shown]:
    (block,) = (
        block for block in blocks_of(ROOT / "docs/workloads.md") if block.kind == "tested" and text in block.text
    )
    return steps_of(block)


@pytest.fixture
def line(programs: Programs, namespace: str, tmp_path: Path) -> Line:
    """Return a runner of a page's line in a folder with its experiment; the page's namespace is the test's."""
    process = {"cmds": ["echo done"], "requests": {"cpu": 1, "memory": "64Mi"}}
    spec = {"name": "rl", "image": "busybox:1.37.0", "processes": {"agent": process}}
    (tmp_path / "experiment.yaml").write_text(json.dumps(spec))
    (tmp_path / "helm").symlink_to(str(newest_helm()))
    path = f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"

    def run(text: str) -> Output:
        words = ["sh", "-c", text.replace("-n ml", f"-n {namespace}")]
        return programs.try_run(words, cwd=tmp_path, more_env={"PATH": path, "HELM_NAMESPACE": namespace})

    return run


@pytest.mark.parametrize(
    ("text", "kind"), [("workload.kind=jobset", "jobsets"), ("workload.gang=native", "podgroups.scheduling.k8s.io")]
)
def test_a_chart_is_of_the_kind_that_its_line_says(
    text: str, kind: str, line: Line, programs: Programs, namespace: str
) -> None:
    assert line("symph package experiment.yaml").code == 0
    for words, _ in steps_with(text):
        done = line(words)
        assert done.code == 0, done
    (made,) = json.loads(programs.kubectl("-n", namespace, "get", kind, "-o", "json"))["items"]
    assert made["metadata"]["name"].startswith("rl")
    done = line("symph wait rl -n ml --timeout 60s")
    assert done.code == 0, done


def test_what_a_queue_holds_back_says_what_the_page_shows(line: Line, programs: Programs, namespace: str) -> None:
    make_queue(programs, namespace, "500m")
    ((words, shown),) = steps_with("queued in mine")
    assert shown
    assert line("symph install experiment.yaml -n ml --spec-set workload.gang=kueue,workload.queue=mine").code == 0
    eventually(lambda: not differences(shown, line(words).out), 60, lambda: differences(shown, line(words).out))
