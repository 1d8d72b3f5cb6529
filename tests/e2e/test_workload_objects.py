"""The objects of further kinds of workload before a real API server that knows their definitions, field by field."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from symphony_charts.chart.render.assemble import Release, assemble
from symphony_charts.chart.values.merge import merge
from symphony_charts.kinds.children import opened
from tests.chart.harness import EXAMPLE_NAMES, example_chart
from tests.e2e.programs import Programs
from tests.e2e.test_gitops_objects import accept
from tests.e2e.tools.modules import APPWRAPPER, JOBSET, MCAD, VOLCANO, module_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """Where the definition of a kind stands and what it is called; the values of ``workload`` that ask for the kind."""

    module: str
    path: str
    name: str
    workload: dict[str, object]


_APPWRAPPERS = {"path": "config/crd/bases/workload.codeflare.dev_appwrappers.yaml"}
DEFINITIONS = {
    "jobset": Definition(
        module=JOBSET,
        path="config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml",
        name="jobsets.jobset.x-k8s.io",
        workload={"kind": "jobset"},
    ),
    "appwrapper v1beta2": Definition(
        module=APPWRAPPER,
        **_APPWRAPPERS,
        name="appwrappers.workload.codeflare.dev",
        workload={"kind": "appwrapper"},
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
    """A definition that is in the cluster while the test runs: two versions of AppWrappers go by one name."""
    one = DEFINITIONS[request.param]
    file = module_folder(one.module) / one.path
    # Other workers have the same cluster: none may take the definition away from under this test.
    with (programs.kubeconfig.parent / f"{one.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        programs.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(file))
        programs.establish(one.name)
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


def objects(name: str, definition: Definition, retries: int) -> list[dict[str, object]]:
    """The objects of an example under the kind of a definition, each group with so many retries."""
    chart = example_chart(name)
    groups = {group: {"backoffLimit": retries} for group in chart.values["groups"]}  # type: ignore[attr-defined]  # a map
    values = merge(chart.values, {"workload": {"gang": "none", **definition.workload}, "groups": groups})
    return assemble(values, Release(name=f"e-{name}", chart_name=chart.name))


def _group(item: dict[str, object]) -> str:
    """The API group of an object."""
    return str(item["apiVersion"]).rpartition("/")[0]
