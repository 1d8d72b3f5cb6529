"""Symphony could not read back its own dumps; this package can."""

from __future__ import annotations

import pytest

from symphony_charts.errors import SpecError
from symphony_charts.formats.data import sub
from symphony_charts.importers.input_file import from_data, read
from symphony_charts.importers.report import Imported
from symphony_charts.integrations.symphony.importer import import_legacy
from symphony_charts.kinds.registry import opened
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.pods import allocate
from symphony_charts.spec.sources import HostPathVolume, Mount, NfsVolume, SecretFile, Toleration
from tests.importers.oracle.symphony import original_pods
from tests.importers.samples import EXAMPLES, notes_of
from tests.importers.test_dijob_oracle import differences, is_added, seen


def dump(text: str) -> Imported:
    return import_legacy(read(text.encode(), "experiment.yaml", python_tags=True))


def example(name: str) -> Imported:
    return dump((EXAMPLES / name).read_text())


def test_groups_processes_and_services_of_a_kube_experiment_with_the_ports_that_symphony_gave() -> None:
    experiment = example("symphony-kube.yaml").experiment
    assert experiment.name == "ada-first-experiment"
    assert list(experiment.groups["nonagent"].processes) == ["learner", "replay", "tensorboard"]
    assert list(experiment.processes) == ["agent-0"]
    assert experiment.groups["nonagent"].processes["replay"].binds == {"replay": None}
    assert experiment.processes["agent-0"].connects == ["replay"]
    assert {service.name: service.port for service in allocate(experiment)} == {"tensorboard": 6006, "replay": 7000}


def test_a_container_and_its_pod_come_over_whole() -> None:
    experiment = example("symphony-kube.yaml").experiment
    learner = experiment.groups["nonagent"].processes["learner"]
    assert learner.args == ["--env gym:HalfCheetah-v2 --num-agents 2"]
    assert (learner.requests, learner.gpus) == ({"cpu": "7.4", "memory": "26624Mi"}, 1)
    assert learner.mounts == [Mount(volume="nfs-server", at="/mnt")]
    assert experiment.volumes == {"nfs-server": NfsVolume(server="nfs-server", path="/data")}
    assert experiment.groups["nonagent"].node_selector == {"surreal-node": "nonagent-gpu"}
    group = experiment.groups["nonagent"]
    assert group.tolerations == [Toleration(key="surreal", operator="Exists", effect="NoExecute")]
    # Symphony computed some labels.
    assert (group.labels, experiment.secrets) == ({}, [SecretFile(file="~/keys/mjkey.txt")])


def test_the_secret_mounted_everywhere_is_not_mounted_twice() -> None:
    text = """
name: x
processes:
- name: a
  container_image: i
  container_yml:
    data: {name: a, volumeMounts: [{name: symph-default-secret, mountPath: /etc/secrets}]}
    mounted_volumes:
    - {type: KubeSecretVolume, name: symph-default-secret, secret_name: symph-default-secret, defaultMode: 420}
"""
    assert dump(text).experiment.processes["a"].mounts == []


def test_a_tmux_experiment_keeps_lines_folders_and_preambles() -> None:
    experiment = example("symphony-tmux.yaml").experiment
    server = experiment.groups["hello"].processes["server"]
    assert (server.cmds, server.cwd, server.preamble) == (["python server.py"], "/work", ["echo in the group"])
    assert experiment.processes["alone"].cmds == ["python client.py", "echo done"]
    assert experiment.local.preamble == ["source activate demo"]


def test_a_subproc_and_a_docker_process() -> None:
    text = """
name: x
processes:
- {name: a, cmd: "python a.py --x", binded_services: {s: null}, connected_services: {}, exposed_services: {}}
- name: b
  container_image: i
  service_yml: {name: b, data: {image: i, environment: {A: "1"}}}
"""
    processes = dump(text).experiment.processes
    assert processes["a"].cmds == ["python a.py --x"]
    assert (processes["b"].image, processes["b"].env) == ("i", {"A": "1"})


def test_what_symphony_exposed_stays_a_load_balancer() -> None:
    text = """
name: x
processes:
- {name: a, container_image: i, binded_services: {}, connected_services: {}, exposed_services: {board: 6006}}
"""
    assert dump(text).experiment.expose["board"].type == "LoadBalancer"


def test_tags_of_python_objects_and_their_wrapping_are_passed_over() -> None:
    text = """
name: x
processes:
- name: a
  container_image: i
  pod_yml:
    data: !!python/object/new:benedict.core.BeneDict
      dictitems:
        spec: {nodeSelector: {a: b}}
"""
    assert dump(text).experiment.processes["a"].node_selector == {"a": "b"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7000-8999", (7000, 8999)),
        ("1000-1003,1006-1006", (1000, 1006)),
        ("1-1,None-None", (7000, 8999)),
        ("x", (7000, 8999)),
    ],
)
def test_port_ranges_also_of_the_form_that_lost_numbers(text: str, expected: tuple[int, int]) -> None:
    assert dump(f"name: x\nport_range: '{text}'\nprocesses: [{{name: a, cmds: [x]}}]").experiment.port_range == expected


def test_names_are_made_valid_and_said() -> None:
    imported = dump("name: x\nprocesses: [{name: a/b, cmds: [x]}]")
    assert list(imported.experiment.processes) == ["a-b"]
    assert "is not a valid name" in notes_of(imported)


def test_a_host_path_with_symphonys_own_key_is_read() -> None:
    text = """
name: x
processes:
- name: a
  container_yml:
    data: {name: a, volumeMounts: [{name: v, mountPath: /v}]}
    mounted_volumes: [{type: KubeHostPathVolume, name: v, path: /p, hostpath_type: Directory}]
"""
    assert dump(text).experiment.volumes == {"v": HostPathVolume(path="/p", kind="Directory")}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("name: x", "is not a dump of a Symphony experiment"),
        ("- a", "expected a map, got a list"),
        ("processes: [{name: a}]", '"name" is missing'),
        ("name: x\nprocesses: [{name: a, binded_services: {s: seven}}]", "expected a whole number"),
        ("name: x\nprocesses: [{name: a, connected_services: {nobody: null}}]", "nobody"),
        (
            "name: x\nprocesses: [{name: a, container_yml: {data: {}, mounted_volumes: [{type: Odd, name: v}]}}]",
            "is not a volume of Symphony",
        ),
    ],
)
def test_what_is_wrong_is_refused(text: str, what: str) -> None:
    with pytest.raises(SpecError, match=what):
        dump(text)


def test_a_dump_of_symphony_makes_symphonys_own_pods_but_for_restarts_and_what_is_added() -> None:
    source = read((EXAMPLES / "symphony-kube.yaml").read_bytes(), "dump", python_tags=True)
    experiment = import_legacy(source).experiment
    names = {f"process_groups[{at}]": f"groups.{name}" for at, name in enumerate(experiment.groups)}
    names |= {
        f"process_groups[{at}].processes[{inner}]": f"groups.{name}.processes.{process}"
        for at, (name, group) in enumerate(experiment.groups.items())
        for inner, process in enumerate(group.processes)
    }
    names |= {f"processes[{at}]": f"processes.{name}" for at, name in enumerate(experiment.processes)}
    templates = [sub(item, "spec", "template") for item in opened(prepare_experiment(experiment, force=True).objects)]
    ours = {str(sub(one, "metadata", "labels").get("symph.dev/group")): sub(one, "spec") for one in templates if one}
    found = [
        path
        for original in original_pods(source.documents[0].data, source.prefix(0), names)
        for path, value, mine in differences(seen(dict(original.spec)), seen(ours[original.pod]), original.pod)
        if not is_added(path, value, mine, is_chart=True)
    ]
    assert found == [
        "nonagent.containers[0].mounts./etc/secrets",
        "nonagent.containers[1].mounts./etc/secrets",
        "nonagent.containers[1].readinessProbe",
        "nonagent.containers[2].mounts./etc/secrets",
        "nonagent.restartPolicy",
        "nonagent.subdomain",
        "nonagent.tolerations",
        "agent-0.containers[0].mounts./etc/secrets",
    ]


def test_a_volume_that_only_the_pod_knows_is_lost() -> None:
    pod = {"data": {"spec": {"restartPolicy": "Never", "volumes": [{"name": "odd", "emptyDir": {}}]}}}
    container = {"data": {"name": "p", "image": "a:1", "args": ["x"]}, "mounted_volumes": []}
    process = {"name": "p", "container_image": "a:1", "container_yml": container, "pod_yml": pod}
    report = import_legacy(from_data({"name": "x", "processes": [process]}, "dump")).report
    assert [note.path for note in report.lost] == ["processes[0].pod_yml.data.spec.volumes[0]"]
