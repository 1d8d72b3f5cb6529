"""The conductor of a run: a Job that ends what still runs when the run is over.

It waits for the Jobs of the run, or for the object of its kind, and then sets `spec.suspend` of Jobs. The chart never
writes this field, so neither helm nor Argo CD sets it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symphony_charts.chart.build.containers import CONFINED, image_of
from symphony_charts.chart.build.data import account_with_rights
from symphony_charts.chart.build.draft import Draft, Group
from symphony_charts.chart.build.pods import runs, when_any
from symphony_charts.chart.tree import (
    Block,
    Call,
    Either,
    File,
    Helper,
    Include,
    Merged,
    Not,
    Text,
    Tree,
    Value,
    When,
    function_of,
    optional,
)
from symphony_charts.kinds.base import COMPONENT
from symphony_charts.kinds.registry import KINDS

CONDUCTOR_SCRIPT = "scripts/conductor.sh"

_JOBS = ("jobs", '.status.conditions[?(@.status=="True")].type')

ACCOUNT = ".Values.conductor.serviceAccountName"
# The objects of a GitOps repository bring this account, since Argo CD takes no rights from Git.
SHARED_ACCOUNT = ".Values.global.conductorAccount"
# https://hub.docker.com/r/alpine/kubectl: a shell and kubectl.
_IMAGE = {"registry": "", "repository": "alpine/kubectl", "tag": "1.35.0", "digest": ""}

# A Job has conditions, other objects one word: MCAD says Completed, the others Succeeded.
SCRIPT = r"""# conductor.sh LINGER ON_FAILURE RESOURCE STATE-PATH DECIDING... -- OTHER-JOB... -- SERVICE-JOB...
# A shell as the first process of its container ignores TERM otherwise.
trap 'exit 143' TERM
linger=$1 on_failure=$2 resource=$3 state=$4 done= rest= services= place=done
shift 4
for word; do
  case $place$word in
    done--) place=rest ;;
    rest--) place=services ;;
    done*) done="$done $word" ;;
    rest*) rest="$rest $word" ;;
    *) services="$services $word" ;;
  esac
done
states() {
  [ $# -eq 0 ] || kubectl get "$resource" "$@" --ignore-not-found --no-headers \
    -o "custom-columns=NAME:.metadata.name,ENDS:$state"
}
count() { echo "$1" | grep -c "$2"; }
good='Complete\|Succeeded' over='Complete\|Succeeded\|Failed'
end='{"metadata":{"annotations":{"symph.dev/ended":"true"}},"spec":{"suspend":true}}'
suspend() {
  for job in "$@"; do
    until kubectl patch job "$job" --type merge -p "$end"; do
      sleep 2
      if left=`kubectl get jobs "$job" --ignore-not-found -o name` && [ -z "$left" ]; then break; fi
    done
  done
}
words() { echo $#; }
while :; do
  if deciding=`states $done` && all=`states $done $rest`; then
    if [ -n "$done" ] && [ `count "$deciding" "$good"` -eq `words $done` ]; then break; fi
    if [ `count "$all" "$over"` -eq `words $done $rest` ]; then break; fi
    if [ "$on_failure" = stop ] && [ `count "$all" Failed` -gt 0 ]; then break; fi
  fi
  sleep 2
done
echo "symph: the run is over"
suspend `echo "$all" | grep -v "$over" | sed 's/ .*//'`
sleep "$linger" & wait $!
suspend $services
"""


def is_conducted(draft: Draft) -> bool:
    """Return True if something of a run may have to be ended by a conductor."""
    if draft.kind.watched():
        return bool(draft.ended)
    if not KINDS[draft.kind.name].is_conducted(draft.kind.workload) or len(draft.finite) < 2:
        return False
    decides = len(draft.done) or len(draft.finite)
    return draft.experiment.on_failure == "stop" or decides < len(draft.finite)


def values(draft: Draft) -> dict[str, Any]:
    """Return the values of the conductor and of the containers that wait for the end of a run."""
    pod = {"serviceAccountName": "", "nodeSelector": {}, "tolerations": []} if is_conducted(draft) else {}
    return {"image": dict(_IMAGE), **pod} if pod or draft.ended else {}


def objects(draft: Draft) -> list[Tree]:
    """Return the Job and, unless a service account is set, its account with rights on the Jobs of the run."""
    if not is_conducted(draft):
        return []
    name = Text("{$fullname}-conductor")
    watched = draft.kind.watched()
    resource, path = watched or _JOBS
    whole = Text("{$fullname}-{$run}")
    jobs = draft.ended if watched else draft.finite
    done = [] if watched else [*draft.done.values()] or draft.finite
    done_names = {group.name for group in done}
    rest = [group for group in jobs if group.name not in done_names and not group.is_ended]
    plural, _, api = resource.partition(".")
    rules: list[Tree] = [
        {"apiGroups": ["batch"], "resources": ["jobs"], "resourceNames": _names(draft, jobs), "verbs": ["get", "patch"]}
    ]
    if watched:
        rules.append({"apiGroups": [api], "resources": [plural], "resourceNames": [whole], "verbs": ["get"]})
    args = Merged(
        [str(draft.experiment.linger), draft.experiment.on_failure, resource, path],
        [whole] if watched else _names(draft, done),
        ["--"],
        *([_names(draft, rest)] if rest else []),
        ["--"],
        *([_names(draft, draft.ended)] if draft.ended else []),
    )
    container = Merged(
        {"name": "conductor"},
        image_of(".Values.conductor"),
        {
            "command": ["/bin/sh", "-c", File(CONDUCTOR_SCRIPT), "conductor"],
            "args": args,
            "resources": {"requests": {"cpu": "5m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
            "securityContext": CONFINED,
        },
    )
    component = {"app.kubernetes.io/component": COMPONENT}
    own = {**component, "symph.dev/experiment": draft.experiment.name}
    pod = {
        "metadata": {"labels": Merged(Include("selectorLabels"), own)},
        "spec": {
            "restartPolicy": "OnFailure",
            "serviceAccountName": Call("conductorAccount"),
            "nodeSelector": Block(".Values.conductor.nodeSelector", via="strings"),
            "tolerations": Block(".Values.conductor.tolerations"),
            "enableServiceLinks": False,
            "imagePullSecrets": Block(".Values.imagePullSecrets"),
            "containers": [container],
        },
    }
    labels = Merged(Include("labels"), {**component, "symph.dev/run": Value("$run", is_text=True)})
    common = Block(".Values.commonAnnotations", via="strings")
    made = {"name": name, "labels": labels, "annotations": common}
    rights = account_with_rights(made, name, rules)
    # No group's Job has this name: their names end in the run.
    job_name = Text("{$fullname}-{$run}-conductor")
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job_name, "labels": labels, "annotations": common},
        "spec": {"backoffLimit": 2**31 - 1, "template": pod},
    }
    is_ours = Not(Either((ACCOUNT, SHARED_ACCOUNT)))
    made_all: Tree = [*(When(is_ours, each) for each in rights), job]
    if watched:
        made_all = when_any(draft.members, made_all)
    return [when_any(jobs if watched else [*done, *rest], made_all)]


def fixed(draft: Draft) -> list[Tree]:
    """Return the parts of the conductor that cannot change during a run."""
    if not is_conducted(draft):
        return []
    return [
        draft.experiment.linger,
        draft.experiment.on_failure,
        [group.part for group in draft.done.values()],
        image_of(".Values.conductor"),
        Value(ACCOUNT, is_text=True),
        Block(".Values.conductor.nodeSelector", via="strings"),
        Block(".Values.conductor.tolerations"),
        optional(SHARED_ACCOUNT),
    ]


def account_helper(fullname: Helper) -> Helper:
    """Return the helper with the name of the conductor's service account."""
    full = function_of(fullname)
    return Helper(
        name="conductorAccount",
        comment="Set by hand, or by the GitOps tool for all charts; else the account of this chart.",
        reads=(ACCOUNT, SHARED_ACCOUNT),
        py=lambda root: (
            root["Values"]["conductor"]["serviceAccountName"]
            or root["Values"]["global"].get("conductorAccount")
            or f"{full(root)}-conductor"
        ),
        go="""
{{- $own := print (include "CHART.fullname" .) "-conductor" -}}
{{- .Values.conductor.serviceAccountName | default .Values.global.conductorAccount | default $own -}}
""",
    )


def _names(draft: Draft, groups: Sequence[Group]) -> Tree:
    return Merged([When(runs(group), Text(draft.workload(group))) for group in groups], is_sure=True)
