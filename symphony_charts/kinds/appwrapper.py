"""Kind `appwrapper`: the Jobs of all groups that end, queued and started as one.

Sources: project-codeflare/appwrapper v1.2.2, api/v1beta2, internal/controller, internal/webhook, config/rbac;
project-codeflare/multi-cluster-app-dispatcher v1.40.0, pkg/apis/controller/v1beta1, pkg/controller/queuejob.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.field_reader import Fields
from symphony_charts.kinds.base import End, Kind, Object, described_job
from symphony_charts.kinds.jobset import JobSet

__all__ = ["GROUP", "MAX_POD_SETS", "AppWrapper"]

GROUP = "workload.codeflare.dev"
MAX_POD_SETS = 8
"""The most kinds of pods that the webhook accepts, as Kueue does."""

_RETRY_LIMIT = "workload.codeflare.dev.appwrapper/retryLimit"


class AppWrapper(Kind):
    """An AppWrapper around the Jobs of all groups that end."""

    name = "appwrapper"
    runs_as = "Job in an AppWrapper"
    controller = "the AppWrapper controller, or MCAD"
    gvks = ((f"{GROUP}/v1beta2", "AppWrapper"), (f"{GROUP}/v1beta1", "AppWrapper"))
    ends_either_way = True
    # Of v1beta2; MCAD (v1beta1) lets everything change, and acts on these.
    mutable = ("spec.suspend", "spec.priority", "spec.schedulingSpec")
    kueue_paths = (".spec.components[].podSetInfos",)
    argo_conditions = ("status.phase == Succeeded", "status.phase == Failed")

    def children(
        self, item: Mapping[str, object], beside: Sequence[Mapping[str, object]] = ()
    ) -> Iterator[dict[str, object]]:
        """Yield the objects inside."""
        spec = sub(item, "spec")
        yield from (sub(part, "template") for part in maps(spec, "components"))
        yield from (sub(part, "generictemplate") for part in maps(sub(spec, "resources"), "GenericItems"))

    def parts(self, item: Fields) -> Iterator[Fields]:
        """Yield the objects inside."""
        spec = item.block("spec")
        yield from [part.block("template") for part in spec.blocks("components")]
        yield from [part.block("generictemplate") for part in spec.block("resources").blocks("GenericItems")]

    def jobs(self, item: Object) -> list[Object]:
        """Return the Jobs inside, and those of a JobSet inside."""
        return [job for inside in _wrapped_items(item["spec"]) for job in self._jobs_inside(item, inside)]

    def _jobs_inside(self, wrapper: Object, item: Object) -> list[Object]:
        if item.get("kind") == "Job":
            return [described_job(wrapper, self.outcome(wrapper), str(item["metadata"]["name"]), item)]
        whole = {**item, "metadata": wrapper["metadata"], "status": wrapper.get("status") or {}}
        return JobSet().jobs(whole) if item.get("kind") == "JobSet" else []

    def outcome(self, item: Object) -> End | None:
        """Return how it ended. MCAD reports Completed also if pods have failed.

        MCAD also counts failed pods that were replaced.
        """
        end = super().outcome(item)
        return "failed" if end and item["status"].get("failed") and not _has_retries(item) else end

    def restarts(self, item: Object) -> bool:
        """Return True if it has a try left or begins one. MCAD tries again only if a minimum of pods is set."""
        spec = item["spec"]
        if "components" not in spec:
            return bool((spec.get("schedulingSpec") or {}).get("minAvailable"))
        limit = str((item["metadata"].get("annotations") or {}).get(_RETRY_LIMIT, ""))
        status = item.get("status") or {}
        # A try is counted before the Jobs of the previous one are deleted.
        is_at_it = status.get("phase") in ("Resetting", "Resuming")
        # Without our annotation the controller uses its own limit.
        return is_at_it or not limit.isdecimal() or int(status.get("retries") or 0) < int(limit)


def _wrapped_items(spec: Object) -> list[Object]:
    items = [one.get("template") for one in spec.get("components") or []]
    items += [one.get("generictemplate") for one in (spec.get("resources") or {}).get("GenericItems") or []]
    return [item for item in items if item]


def _has_retries(wrapper: Object) -> bool:
    specs = [item.get("spec") or {} for item in _wrapped_items(wrapper.get("spec") or {})]
    return any(spec.get("backoffLimit") or spec.get("backoffLimitPerIndex") for spec in specs)
