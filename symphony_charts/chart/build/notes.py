"""The notes that Helm prints after an installation, and the pod of `helm test`."""

from __future__ import annotations

from symphony_charts.chart.build.conductor import CONDUCTOR_SCRIPT, SCRIPT, is_conducted
from symphony_charts.chart.build.containers import CONFINED, HOLD_SCRIPT, image_of, may_be_held
from symphony_charts.chart.build.data import annotated
from symphony_charts.chart.build.draft import Draft
from symphony_charts.chart.build.pods import runs, when_any
from symphony_charts.chart.tree import Block, File, Include, Merged, Text, Tree, When, go_path
from symphony_charts.kinds.registry import runs_on
from symphony_charts.spec.pods import Service

CONNECT_SCRIPT = "scripts/connect.sh"

# Keep a failed pod for its log; nothing else outlives the release.
_HOOK = {"helm.sh/hook": "test", "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded"}

# Kubernetes expands $$ and $(NAME) in a command, so scripts avoid them.
_SCRIPTS = {
    CONNECT_SCRIPT: """\
dial() {
  if command -v nc >/dev/null 2>&1; then nc -z -w 2 "$1" "$2"
  elif command -v python3 >/dev/null 2>&1; then
    python3 -c 'import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2).close()' "$1" "$2"
  else timeout 2 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2"
  fi
}
status=0
for address in "$@"; do
  left=30
  until dial "${address%:*}" "${address##*:}" 2>/dev/null; do
    left=`expr "$left" - 1`
    if [ "$left" -eq 0 ]; then echo "no answer: $address"; status=1; break; fi
    sleep 2
  done
  if [ "$left" -ne 0 ]; then echo "answers: $address"; fi
done
exit "$status"
""",
    HOLD_SCRIPT: r"""trap 'kill "$child" 2>/dev/null; exit 143' TERM
"$0" "$@" & child=$!
wait "$child" || exit $?
echo "symph: succeeded; listens on the ports of its services until it is stopped"
set --
for name in `env | sed -n 's/^\(SYMPH_[A-Z0-9_]*\)_BIND_HOST=.*/\1_PORT/p'`; do
  eval "set -- \"\$@\" \"\${$name}\""
done
if command -v python3 >/dev/null 2>&1; then
  python3 -c '
import select, socket, sys
servers = [socket.create_server(("", int(port))) for port in sys.argv[1:]]
while True:
  for server in select.select(servers, [], [])[0]: server.accept()[0].close()
' "$@" & child=$!
elif command -v nc >/dev/null 2>&1; then
  for port in "$@"; do (while :; do nc -l -p "$port" >/dev/null </dev/null; done) & done
  sleep 2147483647 & child=$!
else
  sleep 2147483647 & child=$!
fi
wait "$child"
""",
    CONDUCTOR_SCRIPT: SCRIPT,
}


def scripts(draft: Draft) -> dict[str, bytes]:
    """Return the test scripts by their path in the chart."""
    names = [CONNECT_SCRIPT] if any(service.is_bound for service in draft.services.values()) else []
    names += [HOLD_SCRIPT] if may_be_held(draft) else []
    names += [CONDUCTOR_SCRIPT] if is_conducted(draft) else []
    return {name: _SCRIPTS[name].encode() for name in names}


def connection_test(draft: Draft) -> Tree | None:
    """Return the pod that connects to every bound service; None if there is none."""
    bound = [service for service in draft.services.values() if service.is_bound]
    if not bound:
        return None
    listeners = [draft.groups[name] for name in dict.fromkeys(service.listener.pod for service in bound)]
    addresses: list[Tree] = [
        [
            Text(f"{draft.name(service.name).format}:{{.Values.services.{service.name}.port}}")
            for service in bound
            if service.listener.pod == group.name
        ]
        for group in listeners
    ]
    if len(listeners) > 1:
        addresses = [When(runs(group), part) for group, part in zip(listeners, addresses, strict=True)]
    container = Merged(
        {"name": "connect"},
        image_of(".Values.tests"),
        {
            "command": ["/bin/sh", "-c", File(CONNECT_SCRIPT), "connect"],
            "args": addresses[0] if len(listeners) == 1 else Merged(*addresses, is_sure=True),
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
            "securityContext": CONFINED,
        },
    )
    labels = Merged(Include("labels"), {"app.kubernetes.io/component": "test"})
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**annotated(draft.name("test-connect"), _HOOK), "labels": labels},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "restartPolicy": "Never",
            "imagePullSecrets": Block(".Values.imagePullSecrets"),
            "containers": [container],
        },
    }
    return when_any(listeners, pod)


def notes(draft: Draft) -> str:
    """Return NOTES.txt, in which ``CHART.`` is a placeholder for the prefix of helpers."""
    name = draft.experiment.name
    selector = "app.kubernetes.io/instance={{ .Release.Name }},symph.dev/experiment=" + name
    group = next(iter(draft.groups), "")
    lines = [
        f'Experiment {name} runs as release {{{{ .Release.Name }}}}, run {{{{ include "CHART.run" . }}}}.',
        "",
        f"  kubectl -n {{{{ .Release.Namespace }}}} get pods -l {selector} -w",
        f"  kubectl -n {{{{ .Release.Namespace }}}} logs -l {selector},symph.dev/group={group} --all-containers -f",
    ]
    if any(service.is_bound for service in draft.services.values()):
        lines.append("  helm -n {{ .Release.Namespace }} test {{ .Release.Name }}")
    for service in draft.services.values():
        if service.is_exposed:
            lines += _exposed(draft, service)
    groups = {name: {"replicas": 1} for name in draft.groups}
    left = list(dict.fromkeys(name for name, _ in runs_on(draft, {"groups": groups})))
    if left and len(left) < len(groups):
        lines += [f"These groups run until you uninstall the release: {', '.join(left)}."]
    return "\n".join(lines) + "\n"


def _exposed(draft: Draft, service: Service) -> list[str]:
    values = f".Values.services.{service.name}"
    host = draft.name(service.name).format.replace("{$fullname}", '{{ include "CHART.fullname" . }}')
    port = go_path(f"{values}.port")
    return [f"  kubectl -n {{{{ .Release.Namespace }}}} port-forward service/{host} {{{{ {port} }}}}"]
