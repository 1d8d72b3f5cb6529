"""Experiments prepared as by every verb, and the real scheduler's treatment of their pods."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from symphony_charts.errors import SpecError
from symphony_charts.placement.fit.verdicts import Group
from symphony_charts.placement.plan import Plan
from symphony_charts.prepare import Prepared, prepare_experiment
from symphony_charts.spec.data import from_data
from tests.e2e.oracle.live import Scheduler
from tests.e2e.oracle.nodes import NodePool, as_file, random_pools, read
from tests.e2e.oracle.pods import PodOf, pods_of_objects
from tests.e2e.oracle.specs import Spec, random_spec
from tests.e2e.rig.api import ApiError


@dataclass(frozen=True, kw_only=True)
class Case:
    """One experiment on pools: its spec, its plan, and the pods that its objects make."""

    seed: int
    pools: Sequence[NodePool]
    spec: Spec
    prepared: Prepared
    pods: Sequence[PodOf]

    @property
    def plan(self) -> Plan:
        plan = self.prepared.plan
        if plan is None:
            raise ValueError("a plan needs pools")
        return plan

    @property
    def is_gang(self) -> bool:
        """True if all pods start together or not at all, or if they name another scheduler than kube-scheduler."""
        workload = self.spec.data.get("workload", {})
        return "gang" in workload or workload.get("kind") == "volcano"

    def told(self) -> str:
        files = {"spec": self.spec.data, "overrides": self.spec.overrides, "pools": as_file(self.pools)}
        return f"seed {self.seed}\n" + "\n".join(f"  {name}: {json.dumps(data)}" for name, data in files.items())


@dataclass
class Report:
    """The results of the experiments; `faults` must stay empty: (kind, text)."""

    cases: int = 0
    refused_specs: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[str, str]] = field(default_factory=list)


def make_case(seed: int) -> Case | int:
    """Return the case of `seed`, or `seed` if its spec is rightly refused.

    Most cases are small, since a scheduler finds its surprises there; one in thirty may have 500 pods.
    """
    rng = random.Random(seed)
    most_pods = 500 if seed % 30 == 0 else rng.choice((12, 24, 24, 40, 60))
    pools = random_pools(rng)
    spec = random_spec(rng, pools, most_pods=most_pods)
    try:
        prepared = prepare_experiment(
            from_data(spec.data), overrides=spec.overrides or None, pools=read(pools), force=True
        )
    except SpecError:
        return seed
    return Case(seed=seed, pools=pools, spec=spec, prepared=prepared, pods=pods_of_objects(prepared.objects))


def compare_experiments(real: Scheduler, seeds: range, *, workers: int = 8) -> Report:
    """Run the cases of `seeds` in three orders each, `workers` in parallel; refused specs are only counted."""
    report = Report()
    make_case(seeds.start)  # the first conversion of msgspec to a type may crash if two threads begin it

    def run(seed: int) -> tuple[Case | int, list[Counter[str]]]:
        case = make_case(seed)
        if isinstance(case, int):
            return case, []
        refusal = ""
        try:
            try:
                return case, _outcomes(real, case)
            except SpecError as error:
                # Then the API server has to refuse the pods, too.
                refusal = str(error)
                real.outcome(case.pools, case.pods, f"c{seed}-refused", is_gang=case.is_gang)
                report.faults.append(("accepted pod", f"{refusal}\n{case.told()}"))
        except ApiError as error:
            # Resources of a pod as a whole are drawn independently of its containers, which may ask for more.
            if not refusal or "must be greater than or equal to aggregate" not in str(error):
                report.faults.append(("refused pod", f"{error}\n{refusal}\n{case.told()}"))
        return seed, []

    with ThreadPoolExecutor(workers) as pool:
        for case, outcomes in pool.map(run, seeds):
            if isinstance(case, int):
                report.refused_specs += 1
                continue
            report.cases += 1
            report.verdicts.update(group.verdict for group in case.plan.groups)
            report.faults += [(kind, f"{text}\n{case.told()}") for kind, text in _faults(case, outcomes)]
    return report


def _outcomes(real: Scheduler, case: Case) -> list[Counter[str]]:
    """Return the outcomes in three orders; an outcome that contradicts a proof is retried with more patience."""
    forward = list(case.pods)
    orders = (forward, forward[::-1], random.Random(case.seed).sample(forward, len(forward)))
    proven = [group for group in case.plan.groups if group.verdict == "PROVEN"]
    outcomes = []
    for number, order in enumerate(orders):
        name = f"c{case.seed}-{number}"
        bound = real.outcome(case.pools, order, name, is_gang=case.is_gang)
        if any(bound[group.name] < group.count for group in proven):
            bound = real.outcome(case.pools, order, f"{name}-again", is_gang=case.is_gang, patience_s=15.0)
        outcomes.append(bound)
    return outcomes


def _faults(case: Case, outcomes: Sequence[Counter[str]]) -> Iterator[tuple[str, str]]:
    plan, own = case.plan, Counter(pod.group for pod in case.pods)
    if own != {group.name: group.count for group in plan.groups}:
        yield (
            "false count",
            f"{dict(own)} pods, and the plan says {[(group.name, group.count) for group in plan.groups]}",
        )
    all_bound = any(sum(bound.values()) == len(case.pods) for bound in outcomes)
    for group in plan.groups:
        found = [bound[group.name] for bound in outcomes]
        if group.verdict == "PROVEN" and min(found) < group.count:
            yield "false PROVEN", f"{group.name} is PROVEN, and {found} of {group.count} were bound"
        if group.verdict == "NO" and (all_bound or (_fits_nowhere(case, group) and max(found) > 0)):
            yield "false NO", f"{group.name} is NO ({group.why}), and {found} of {group.count} were bound"
        if group.name in case.spec.unmodelled and group.verdict in ("PROVEN", "PACKABLE"):
            yield "false knowledge", f"{group.name} is {group.verdict}, though no model knows what it asks for"


def _fits_nowhere(case: Case, group: Group) -> bool:
    """Return True if the NO is about each single pod, False if it is about all groups together."""
    return not case.plan.cluster.fits[group.demand]
