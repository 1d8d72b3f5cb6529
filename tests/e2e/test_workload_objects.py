"""Objects of further kinds of workload, checked field by field by a real API server that knows their definitions."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from symphony_charts.chart.build.chart import Release
from symphony_charts.chart.release import merge
from symphony_charts.kinds.registry import opened
from tests.chart.draws import charts
from tests.chart.harness import EXAMPLE_NAMES, built_of, example
from tests.e2e.programs import Programs
from tests.e2e.test_gitops_objects import accept
from tests.e2e.tools.modules import APPWRAPPER, JOBSET, MCAD, VOLCANO


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """The file and name of the definition of a kind, and the settings of a workload of this kind."""

    module: str
    path: str
    name: str
    workload: dict[str, object]


_SEED, _COUNT = int(os.environ.get("SYMPH_SEED", "1")), int(os.environ.get("SYMPH_SOAK", "12"))
_BUILT_IN = ("v1", "apps/v1", "batch/v1", "networking.k8s.io/v1", "rbac.authorization.k8s.io/v1")
_APPWRAPPERS = {"path": "config/crd/bases/workload.codeflare.dev_appwrappers.yaml"}
DEFINITIONS = {
    "jobset": Definition(
        module=JOBSET,
        path="config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml",
        name="jobsets.jobset.x-k8s.io",
        workload={"kind": "jobset"},
    ),
    "appwrapper v1beta2": Definition(
        module=APPWRAPPER, **_APPWRAPPERS, name="appwrappers.workload.codeflare.dev", workload={"kind": "appwrapper"}
    ),
    "appwrapper v1beta1": Definition(
        module=MCAD,
        **_APPWRAPPERS,
        name="appwrappers.workload.codeflare.dev",
        workload={"kind": "appwrapper", "appwrapper": {"version": "v1beta1"}, "priority": -1},
    ),
    "volcano": Definition(
        module=VOLCANO,
        path="config/crd/volcano/bases/batch.volcano.sh_jobs.yaml",
        name="jobs.batch.volcano.sh",
        workload={"kind": "volcano", "queue": "q", "volcano": {"plugins": {"ssh": []}}},
    ),
}


@pytest.fixture(params=DEFINITIONS)
def definition(request: pytest.FixtureRequest, programs: Programs) -> Iterator[Definition]:
    """Yield a definition, installed while the test runs: two versions of AppWrappers share one name."""
    one = DEFINITIONS[request.param]
    # Other workers use the same cluster: none may remove the definition during this test.
    with (programs.kubeconfig.parent / f"{one.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        programs.define(one.module, one.path)
        yield one
        programs.kubectl("delete", "crd", one.name, "--timeout=60s")


@pytest.mark.parametrize("retries", [0, 2])
def test_the_api_server_knows_every_field(
    definition: Definition, retries: int, programs: Programs, namespace: str
) -> None:
    made = [item for name in EXAMPLE_NAMES for item in objects(name, definition, retries)]
    whole = [item for item in made if _group(item) == definition.name.partition(".")[2]]
    inside = [item for item in opened(whole) if item not in whole]
    assert len(whole) >= len(EXAMPLE_NAMES) - 2
    accept(programs, namespace, *whole)
    accept(programs, namespace, *inside)


def test_the_api_server_takes_the_objects_of_drawn_experiments(programs: Programs, namespace: str) -> None:
    for chart in charts(_SEED, _COUNT, has_overlays=False):
        made = chart.objects(chart.values, Release(name=f"r-{chart.name}", namespace=namespace, is_draft=True))
        whole = opened(made)
        accept(programs, namespace, *[item for item in whole if str(item["apiVersion"]) in _BUILT_IN])


def objects(name: str, definition: Definition, retries: int) -> list[dict[str, object]]:
    """Return the objects of an example as that kind, with `retries` for each group that ends."""
    chart = built_of(example(name, definition.workload))
    groups = {
        group: {"retries": retries} for group, settings in chart.values["groups"].items() if "retries" in settings
    }
    return chart.objects(merge(chart.values, {"groups": groups}), Release(name=f"e-{name}"))


def _group(item: dict[str, object]) -> str:
    return str(item["apiVersion"]).rpartition("/")[0]
