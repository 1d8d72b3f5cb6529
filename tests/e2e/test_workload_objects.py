"""The objects of further kinds of workload before a real API server that knows their definitions, field by field."""

from __future__ import annotations

import pytest

from symphony_charts.chart.assemble import Release, assemble
from tests.chart.harness import EXAMPLE_NAMES, example_chart
from tests.e2e.programs import Programs
from tests.e2e.test_gitops_objects import accept
from tests.e2e.tools.modules import JOBSET, module_folder


@pytest.fixture(scope="module")
def definitions(programs: Programs) -> None:
    """The definition of JobSet is in the cluster, and served."""
    (path,) = module_folder(JOBSET).glob("config/components/crd/bases/*_jobsets.yaml")
    programs.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(path))
    programs.establish("jobsets.jobset.x-k8s.io")


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize("name", EXAMPLE_NAMES)
def test_the_api_server_knows_every_field_of_a_jobset(name: str, programs: Programs, namespace: str) -> None:
    chart = example_chart(name)
    values = {**chart.values, "workload": {"kind": "jobset", "gang": "none"}}
    objects = assemble(values, Release(name="r1", chart_name=chart.name))
    sets = [item for item in objects if item["kind"] == "JobSet"]
    assert sets or not [item for item in objects if item["kind"] == "Job"]
    accept(programs, namespace, *sets)
