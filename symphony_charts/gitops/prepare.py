"""Turn a spec file into an operation on the repository: the chart, its checks, and its source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from symphony_charts.chart.files import Chart, ChartTemplate
from symphony_charts.chart.lint.security import check_rights
from symphony_charts.errors import CheckFailed, SpecError
from symphony_charts.formats.data import Values
from symphony_charts.gitops.operations import Publish
from symphony_charts.gitops.pointer import Given
from symphony_charts.gitops.snapshot import check_names, flux_secret_path
from symphony_charts.prepare import Verdict, judge, prepare
from symphony_charts.secrets.files import encrypted_secret, secret_name
from symphony_charts.settings.project import Environment
from symphony_charts.spec.data import Lock, render
from symphony_charts.spec.files import SpecFile
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import pins_of
from symphony_charts.system.git.program import source_commit

# Returns the values of sealed secrets for a namespace and a name.
Seal: TypeAlias = Callable[[SpecFile, str, str], Values]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A spec file's chart and the operation that publishes it; `ports` are the ports that its services keep.

    `verdicts` are about the chart with the environment's values, one for each time that the operation was tried.
    """

    spec: SpecFile
    chart: Chart
    operation: Publish
    ports: dict[str, int]
    verdicts: list[Verdict]

    def lock(self, version: str) -> bytes:
        """Return the lock file for the published `version`."""
        return render(Lock(ports=self.ports, version=version, digest=self.chart.digest)).encode()


def prepare_publish(
    spec: SpecFile,
    filled: ChartTemplate,
    *,
    team: str,
    env: str | None,
    place: Environment | None,
    given: Given | None = None,
    overrides: Values,
    seal: Seal | None = None,
    pools: Sequence[str] = (),
    force_unschedulable: bool = False,
    version: str | None = None,
    expect: str | None = None,
    at: str = "",
    by: str = "",
) -> Candidate:
    """Return the chart of `spec` as an operation, with a check of the chart under the environment's own values.

    `overrides` become defaults of the chart; `place` is the environment in the settings, `given` the command's options
    about its values. Raises SpecError if packaging fails, and PlacementError and CheckFailed if the chart under its own
    defaults cannot be scheduled or breaks a rule.
    """
    prepared = prepare(spec, overrides=overrides or None, pools=pools, force=True)
    experiment = prepared.experiment
    check_names(team=team, **({"env": env} if env else {}))
    chart = prepared.chart(filled, version)
    namespace = place.namespace if place else experiment.namespace or "default"
    verdicts: list[Verdict] = []

    def check(env_values: Values) -> None:
        """Raise an error unless the chart under an environment's values is valid and can be scheduled."""
        rendering = prepared.under(env_values, namespace=namespace)
        verdicts.append(judge(spec, prepared, chart, rendering, is_forced=force_unschedulable))
        verdicts[-1].refuse()
        for finding in check_rights(rendering.objects):
            raise CheckFailed(finding.what, str(spec.path), finding.next)

    if env is None:
        check({})
    sealed, secret_file = _secrets(spec, experiment, seal, namespace, env, team) if env else ({}, None)
    commit = source_commit(spec.path.absolute().parent)
    operation = Publish(
        team=team,
        name=chart.name,
        chart_files=chart.files,
        values=chart.values,
        digest=chart.digest,
        env=env or "",
        version=version,
        settings=place.values if place else None,
        given=given or Given(),
        sealed_values=sealed,
        secret_file=secret_file,
        destination=place.destination if place else None,
        expect=expect,
        source={"spec": spec.path.name, **({"source": commit} if commit else {})},
        at=at,
        by=by,
        check=check,
    )
    ports = dict(pins_of(prepared.services))
    return Candidate(spec=spec, chart=chart, operation=operation, ports=ports, verdicts=verdicts)


def _secrets(
    spec: SpecFile, experiment: Experiment, seal: Seal | None, namespace: str, env: str, team: str
) -> tuple[Values, bytes | None]:
    """Return the values with sealed secrets, and the encrypted Secret for Flux."""
    source = experiment.secret_source.source if experiment.secrets else ""
    if source == "sops":
        path = flux_secret_path(env, team, experiment.name)
        return {}, encrypted_secret(spec, path, namespace, secret_name(spec))
    if source != "sealed":
        return {}, None
    if seal is None:
        raise SpecError.one("symph needs a certificate to seal the secrets", "secret_source", "give it: --cert FILE")
    return seal(spec, namespace, secret_name(spec)), None


def team_of(spec: SpecFile, given: str | None, default: str) -> str:
    """Return the team of an experiment. Raises SpecError if it is not set."""
    team = given or spec.experiment.team or default
    if not team:
        step = "set `team` in the spec or in .symph.yaml, or give --team"
        raise SpecError.one("the experiment has no team", "team", step, str(spec.path))
    return team
