"""The verdict before an upgrade matches what helm then does, object for object.

helm 3 merges three ways and helm 4 applies on the server unless the release was made otherwise, so each pair of
releases is judged and then sent by either helm, and by helm 4 after helm 3. `SYMPH_SOAK=200` also runs that many
generated pairs.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from symphony_charts.errors import Conflict, SpecError, SymphError
from symphony_charts.kubernetes.client import KubeApi
from symphony_charts.kubernetes.releases.helm_client import HelmReleases, Target
from symphony_charts.kubernetes.releases.rehearsal import Rehearsal, rehearse
from tests.e2e.programs import Output, Programs
from tests.e2e.release_pairs import CHART, SCENARIOS, WIDGETS, Pair, pair_of
from tests.e2e.rig.api import Object
from tests.tools import HELM_VERSIONS, helm

HELMS = (("3.19", "3.19"), ("4.3", "4.3"), ("3.19", "4.3"))
Step = Callable[[HelmReleases], object]
Verdict = Rehearsal | SymphError
_GIVEN = dict(os.environ)
SEEDS = range(int(os.environ.get("SYMPH_SOAK", "1")))
# Values that the server or its controllers choose for each write, dry or not.
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


@pytest.fixture(scope="module")
def widgets(programs: Programs) -> None:
    programs.apply(WIDGETS)
    programs.establish(WIDGETS["metadata"]["name"])


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    folder = tmp_path / "pair"
    (folder / "templates").mkdir(parents=True)
    for name, text in CHART.items():
        (folder / name).write_text(text)
    return folder


def send(programs: Programs, version: str, chart: Path, objects: list[Object], namespace: str) -> Output:
    """Return the output of a real helm that installs or upgrades the release `pair`."""
    argv = [
        str(helm(version)),
        "upgrade",
        "--install",
        "pair",
        str(chart),
        "-n",
        namespace,
        "--reset-values",
        "-f",
        "-",
    ]
    return programs.try_run(argv, stdin=json.dumps({"objects": objects}) + "\n")


def verdict_of(programs: Programs, version: str, step: Step, namespace: str, env: pytest.MonkeyPatch) -> Verdict:
    env.setenv("HELM_BIN", str(helm(version)))
    env.setenv("HOME", str(programs.home))

    def manifest() -> list[Object]:
        return HelmReleases(Target(kubeconfig=programs.kubeconfig)).manifest("pair", namespace)

    with KubeApi(programs.kubeconfig) as api:
        try:
            return rehearse(api, step, "pair", namespace, manifest=manifest)
        except (SpecError, Conflict) as error:
            return error


def titles_in(said: str) -> set[str]:
    """Return the objects that helm's error names, in lower case: its two wordings, and the server's."""
    named = re.findall(r'(?i)patch "([\w.-]+)" with kind (\w+)', said)
    found = {f"{kind}/{name}" for name, kind in named}
    found |= {
        f"{kind.partition('.')[0]}/{name}" for kind, name in re.findall(r'([\w.-]+) "([\w.-]+)" is invalid', said)
    }
    return {title.lower() for title in found}


def settled(item: Object) -> Object:
    """Return an object without fields that change on each write, and with uids (used in labels) made equal."""
    meta = {key: value for key, value in item["metadata"].items() if key not in _VOLATILE}
    managers = {(one["manager"], one["operation"]) for one in item["metadata"].get("managedFields", [])}
    spec = dict(item.get("spec") or {})
    if item["kind"] == "Service":
        spec["clusterIP"] = spec["clusterIPs"] = str(spec.get("clusterIP") == "None")
        spec["ports"] = [{**port, "nodePort": None} for port in spec.get("ports") or []]
    rest = {key: value for key, value in item.items() if key not in ("metadata", "spec", "status")}
    helms = sorted(one for one in managers if not one[0].startswith("kube-"))
    found: Object = json.loads(_UID.sub("UID", json.dumps({**rest, "metadata": meta, "spec": spec, "managers": helms})))
    return found


def live(programs: Programs, namespace: str, titles: Iterable[str]) -> dict[str, Object]:
    words = ("get", *titles, "--ignore-not-found", "-o", "json", "--show-managed-fields")
    found: Object = json.loads(programs.kubectl("-n", namespace, *words))
    return {f"{item['kind']}/{item['metadata']['name']}": settled(item) for item in found.get("items", [found])}


def edit(programs: Programs, pair: Pair, namespace: str) -> None:
    for argv, text in pair.edits:
        whole = [str(programs.kubectl_path), "-n", namespace, *argv]
        programs.try_run(whole, stdin=text.replace("NAMESPACE", namespace))


def upgraded(
    programs: Programs, pair: Pair, helms: tuple[str, str], chart: Path, namespace: str, env: pytest.MonkeyPatch
) -> Verdict:
    """Return the verdict on the upgrade, after a comparison with what helm did."""
    installed = send(programs, helms[0], chart, pair.first, namespace)
    assert installed.code == 0, f"{installed.err}\n{pair}"
    edit(programs, pair, namespace)
    values = {"objects": pair.second}
    verdict = verdict_of(
        programs, helms[1], lambda it: it.apply("pair", chart, values, namespace=namespace, hooks=False), namespace, env
    )
    hold(programs, verdict, send(programs, helms[1], chart, pair.second, namespace), namespace, pair)
    return verdict


def rolled_back(programs: Programs, pair: Pair, version: str, namespace: str, env: pytest.MonkeyPatch) -> Verdict:
    """Return the verdict on the rollback to the first revision, after a comparison with what helm did."""
    edit(programs, pair, namespace)
    verdict = verdict_of(programs, version, lambda it: it.rollback("pair", namespace, 1, hooks=False), namespace, env)
    done = programs.try_run([str(helm(version)), "rollback", "pair", "1", "-n", namespace])
    hold(programs, verdict, done, namespace, pair)
    return verdict


def hold(programs: Programs, verdict: Verdict, done: Output, namespace: str, pair: Pair) -> None:
    if isinstance(verdict, SymphError):
        assert done.code != 0, f"refused what helm does: {verdict}\n{pair}"
        missing = {title for title in titles_in(done.err) if title not in str(verdict).lower()}
        assert not missing, f"not named: {missing}\n{verdict}\n{done.err}"
        return
    assert done.code == 0, f"not foreseen: {done.err}\n{pair}"
    foreseen = {f"{item['kind']}/{item['metadata']['name']}": settled(item) for item in verdict.answers}
    assert (live(programs, namespace, foreseen) if foreseen else {}) == foreseen


# After helm 3, helm 4 merges like helm 3: it depends on what edits left in the managed fields.
AFTER_BOTH = (
    *("an env entry goes from value to source", "nothing changes after somebody scaled"),
    *("a new object was left over by this release", "a field is misspelt"),
)


@pytest.mark.parametrize("helms", HELMS, ids="-then-".join)
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_verdict_on_a_scenario_is_what_helm_does(
    name: str,
    helms: tuple[str, str],
    programs: Programs,
    widgets: None,
    chart: Path,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if helms[0] != helms[1] and name not in AFTER_BOTH and "SYMPH_SOAK" not in _GIVEN:
        pytest.skip("the same way as with one helm: SYMPH_SOAK=1 tries it")
    verdict = upgraded(programs, SCENARIOS[name], helms, chart, namespace, monkeypatch)
    if name == "a field is misspelt" and helms[1] == "3.19":  # the cluster drops it
        assert isinstance(verdict, Rehearsal)
        assert verdict.warnings == ['StatefulSet/web: unknown field "spec.replcas"']


@pytest.mark.parametrize("helms", HELMS, ids="-then-".join)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_verdict_on_a_generated_pair_and_its_rollback_is_what_helm_does(
    seed: int,
    helms: tuple[str, str],
    programs: Programs,
    widgets: None,
    chart: Path,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, str], None],
) -> None:
    pair = pair_of(seed)
    verdict = upgraded(programs, pair, helms, chart, namespace, monkeypatch)
    record_property("upgrade", type(verdict).__name__)
    if isinstance(verdict, Rehearsal):
        record_property("rollback", type(rolled_back(programs, pair, helms[1], namespace, monkeypatch)).__name__)


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_a_verdict_changes_nothing_on_the_cluster(
    version: str, programs: Programs, widgets: None, chart: Path, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def state() -> str:
        everything = "statefulsets,services,configmaps,secrets,jobs,networkpolicies,widgets"
        form = "jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.generation} {.metadata.uid} {.data}{end}"
        return programs.kubectl("-n", namespace, "get", everything, "-o", form)

    pair = SCENARIOS["an env entry goes from value to source"]
    assert send(programs, version, chart, pair.first, namespace).code == 0
    before = state()
    # One object is changed, one is new, and helm deletes all the others.
    one = json.loads(json.dumps(pair.first[0]).replace('"1"', '"9"'))
    changed = {"objects": [one, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}]}
    verdict = verdict_of(
        programs,
        version,
        lambda it: it.apply("pair", chart, changed, namespace=namespace, hooks=False),
        namespace,
        monkeypatch,
    )
    assert (isinstance(verdict, Rehearsal), state()) == (True, before)
