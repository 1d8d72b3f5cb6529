"""The variables by which DI-engine's `ditask` finds its rank and its peers, for experiments with `compat: di-engine`.

Every group that ends is a node; ranks count over all replicas, in order of declaration. Source:
opendilab/DI-engine, ding/entry/cli_parsers/k8s_parser.py, which reads DI_RANK and DI_NODES.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from symphony_charts.chart.build.draft import Draft, Group, Peers
from symphony_charts.chart.syntax import go_path
from symphony_charts.chart.tree import Helper, Join, Sum, Text, Tree, function_of
from symphony_charts.environment.entrypoint import entry_point
from symphony_charts.errors import Problem
from symphony_charts.integrations.dijob.settings import pods_in_order, settings_of, task_type
from symphony_charts.spec import variable_names as names
from symphony_charts.spec.model import Process, Step

_RANK = 'DI_RANK=`expr "$DI_FIRST_RANK" + "$SYMPH_INDEX"`; export DI_RANK; exec "$@"'


class DIEngine(Peers):
    """The nodes of DI-engine: the groups that end, in order of declaration, unless the controller tells ranks."""

    def nodes_of(self, draft: Draft) -> list[Group]:
        """Return the groups that are nodes, by rank."""
        if draft.kind.has_ranks:
            return []
        return [draft.groups[pod.name] for pod in pods_in_order(draft.experiment) if pod.is_finite]

    def rank_words(self, draft: Draft, group: Group, program: Process | Step) -> list[str]:
        """Return words that set DI_RANK in front of the program of a group after the first.

        Kubernetes cannot add, so a shell does.
        """
        if isinstance(program, Step) or not self._needs_rank(draft, group):
            return []
        return ["/bin/sh", "-c", _RANK, "symph-rank", *names.beside_shells(program.env)]

    def variables(self, draft: Draft, group: Group, index: Tree) -> dict[str, Tree]:
        """Return the variables of a process of `group`, whose replica has the number `index`."""
        nodes = self.nodes_of(draft)
        if group not in nodes:
            return {}
        before = nodes[: nodes.index(group)]
        first = Sum(tuple((f"{other.path}.replicas",) for other in before), is_text=True)
        rank: dict[str, Tree] = {names.DI_FIRST_RANK: first} if before else {names.DI_RANK: index}
        return {
            names.DI_JOB_ID: Text("{.Release.Namespace}/{$fullname}-{$run}"),
            names.DI_NODES: Text("{nodes}"),
            names.di_group_nodes(group.name): self._own_hosts(draft, group),
            **rank,
        }

    def faults(self, draft: Draft) -> Iterator[Problem]:
        """Yield the processes that cannot learn their rank, since their image's own command is not known here."""
        for group in draft.groups.values():
            for name, process in group.pod.processes.items():
                if self._needs_rank(draft, group) and not entry_point(process)[0]:
                    what = f"container {name} needs a command, so that its replicas learn their ranks"
                    path = f"{group.pod.path}.processes.{name}" if group.pod.is_group else group.pod.path
                    yield Problem(what=what, path=f"{path}.command", next="set `command` or `cmds`")

    def helpers(self, draft: Draft, fullname: Helper, run: Helper) -> list[Helper]:
        """Return the helpers with the host names of all nodes, and of those of type ``none``."""
        nodes = self.nodes_of(draft)
        if not nodes:
            return []
        kin = [node for node in nodes if len(self._kin(draft, node)) > 1]
        lists = {"nodes": nodes} | ({"nodes.kin": kin} if kin else {})
        return [_hosts(draft, name, groups, fullname, run) for name, groups in lists.items()]

    def _needs_rank(self, draft: Draft, group: Group) -> bool:
        """Return True if the rank of a replica is not its index."""
        return group in self.nodes_of(draft)[1:]

    def _own_hosts(self, draft: Draft, group: Group) -> Tree:
        if len(self._kin(draft, group)) > 1:
            return Text("{nodes.kin}")
        return Join(f"{group.path}.replicas", Text(draft.host(group)))

    def _kin(self, draft: Draft, group: Group) -> list[Group]:
        """Return the groups that `group` lists as its own nodes: all tasks of type ``none``, or itself."""
        types = settings_of(draft.experiment.workload).tasks
        kin = [node for node in self.nodes_of(draft) if task_type(types, node.name) == "none"]
        return kin if group in kin else [group]


def _hosts(draft: Draft, name: str, groups: list[Group], fullname: Helper, run: Helper) -> Helper:
    lines = [
        "{{- $hosts := list -}}",
        '{{- $fullname := include "CHART.fullname" . -}}',
        '{{- $run := include "CHART.run" . -}}',
    ]
    for group in groups:
        words = draft.host(group).replace("{$fullname}", "%[1]s").replace("{$run}", "%[2]s").replace("{$i}", "%[3]d")
        lines += [
            f"{{{{- range $i := until (int {go_path(f'{group.path}.replicas')}) -}}}}",
            f'{{{{- $hosts = append $hosts (printf "{words}" $fullname $run $i) -}}}}',
            "{{- end -}}",
        ]
    paths = tuple(f"{group.path}.replicas" for group in groups)

    def hosts(root: Mapping[str, Any]) -> str:
        given = {"$fullname": function_of(fullname)(root), "$run": function_of(run)(root)}
        made = []
        for group in groups:
            for index in range(int(root["Values"]["groups"][group.name]["replicas"])):
                host = draft.host(group).replace("{$i}", str(index))
                for variable, text in given.items():
                    host = host.replace(f"{{{variable}}}", text)
                made.append(host)
        return ",".join(made)

    return Helper(name=name, go="\n".join([*lines, '{{- join "," $hosts -}}']), py=hosts, reads=paths)
