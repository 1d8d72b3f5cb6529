"""The report of `symph doctor --cluster` on a real API server, before and after a definition exists."""

from __future__ import annotations

import json

from tests.e2e.programs import Programs
from tests.e2e.tools.modules import KUEUE


def offers(programs: Programs, *flags: str) -> dict[str, dict[str, str]]:
    done = programs.symph("doctor", "--cluster", "-o", "json", *flags)
    assert done.code == 0, done.err
    return {item["name"]: item for item in json.loads(done.out)["items"]}


def test_the_doctor_names_what_a_cluster_serves_and_the_setting_that_asks_for_it(programs: Programs) -> None:
    before = offers(programs)
    assert before["kind jobs"]["status"] == "ok"
    assert before["gang coscheduling"] | {"detail": ""} == {
        "name": "gang coscheduling",
        "status": "missing",
        "detail": "",
        "next": "install scheduler-plugins",
    }
    programs.define(KUEUE, "config/components/crd/bases/*_localqueues.yaml")
    after = offers(programs, "-n", "nobody-queues-here")
    assert after["gang kueue"]["status"] == "ok"
    assert after["gang kueue"]["detail"].endswith("workload.gang: kueue")
    assert after["queues of Kueue"]["status"] == "missing"
