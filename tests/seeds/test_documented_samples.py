"""The code of Symphony's README and guides runs as written there, with only the import name changed.

Two samples had to be corrected, since they could never run:
- the guide's `settings = {assign_to = 'machine', ...}` is no Python; it is `{'assign_to': 'machine', ...}` here, and
  `dispatcher.assign_to(**settings)` gets the process that it leaves out;
- the README's `myproject.py` uses SymphonyConfig without importing it, has `...` for arguments, and its last line is
  not indented.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from symphony_charts.clusters.base import ExperimentSpec
from symphony_charts.kinds.base import is_conductor
from symphony_charts.kube import GKEDispatcher, KubeCluster, KubeExperimentSpec, KubeProcessSpec
from symphony_charts.local.runs import find_run, live_runs
from symphony_charts.local.up import wait
from symphony_charts.settings.user import SymphonyConfig
from symphony_charts.spec import files
from symphony_charts.tmux import TmuxCluster, TmuxExperimentSpec, TmuxProcessSpec

KUBERNETES_GUIDE = """
# Run experiment.py
from symphony_charts import Cluster, KubeCluster
cluster = Cluster.new('kubernetes') # cluster is a KubeCluster
exp = cluster.new_experiment('rl') # exp is a KubeExperimentSpec
learner = exp.new_process('learner', container_image='ubuntu:16,04', command='python', args=['learner.py'])
agent = exp.new_process('agent', container_image='ubuntu:16,04', command='python', args=['agent.py', '--env', 'half-cheetah']) # agent, learner are a KubeProcessSpec
learner.binds('replay-server')
learner.binds('parameter-server')
agent.connects('replay-server')
agent.connects('parameter-server')
learner.exposes('tensorboard')
cluster.launch(exp{launch}) # Runs agent.py and learner.py
"""  # noqa: E501 - the sample as it is written

README_TMUX = """
# Run experiment.py
from symphony_charts import Cluster

cluster = Cluster.new('tmux', preamble_cmds=['source activate venv', 'export DISABLE_MUJOCO_RENDERING=1'])  # cluster is a TmuxCluster
exp = cluster.new_experiment('rl')  # exp is a TmuxExperimentSpec
learner = exp.new_process('learner', cmds=['python learner.py'])
agent = exp.new_process('agent', cmds=['python learner.py'])  # agent, learner are a TmuxProcessSpec

learner.binds('replay-server')
learner.binds('parameter-server')
agent.connects('replay-server')
agent.connects('parameter-server')

cluster.launch(exp)  # Runs agent.py and learner.py in two tmux sessions
"""  # noqa: E501 - the sample as it is written

# The README's learner, with a server that answers a client's hello in place of its ReplayServer.
LEARNER = """
import os
import socket

replay_host = os.environ['SYMPH_REPLAY_SERVER_HOST']
replay_port = os.environ['SYMPH_REPLAY_SERVER_PORT']
address = (replay_host, int(replay_port))
if os.environ['SYMPHONY_ROLE'] == 'learner':
    server = socket.create_server(address)
    host = os.environ['SYMPH_PARAMETER_SERVER_HOST']
    parameters = socket.create_server((host, int(os.environ['SYMPH_PARAMETER_SERVER_PORT'])))
    greeting = b''
    while not greeting:  # who only asks whether anybody listens says nothing
        connection = server.accept()[0]
        greeting = connection.recv(10)
    connection.sendall(os.environ['DISABLE_MUJOCO_RENDERING'].encode())
else:
    with socket.create_connection(address, 20) as connection:
        connection.settimeout(20)
        connection.sendall(b'hello')
        print('rendering disabled:', connection.recv(10).decode(), flush=True)
"""

USERNAME = """
from symphony_charts.engine import SymphonyConfig
from symphony_charts import Cluster
SymphonyConfig().set_username('sarah')
cluster = Cluster.new('tmux') # cluster is a TmuxCluster
exp1 = cluster.new_experiment('rl') # exp is a TmuxExperimentSpec
print(exp1.name) # 'sarah-rl'
"""

EXPERIMENT_FOLDER = """
from symphony_charts.engine import SymphonyConfig
from symphony_charts import Cluster
SymphonyConfig().set_experiment_folder('~/foo')
cluster = Cluster.new('tmux') # cluster is a TmuxCluster
exp1 = cluster.new_experiment('rl') # exp is a TmuxExperimentSpec
exp1.new_process('one', cmds=['exec sleep 20'])
cluster.launch(exp1)
# information about this experiment will be saved to ~/foo/rl
"""

MYPROJECT = """
# myproject.py
from symphony_charts.commandline import SymphonyParser
from symphony_charts.engine import Cluster, SymphonyConfig
from symphony_charts.kube import KubeCluster
import sys

class MyProjectParser(SymphonyParser):
    def create_cluster(self): # step 1
        return Cluster.new('kube')

    def setup(self): # step 2
        super().setup()
        SymphonyConfig().set_username('sarah')
        parser = self.add_subparser('create')
        # add subcommand: `python myproject.py create`
        # This subcommand is mapped to self.action_create(args)
        parser.add_argument('--image', default='ubuntu:16.04')
        self.add_dry_run(parser)

    def action_create(self, args): # step 3
        exp = self.cluster.new_experiment('foo')
        p = exp.new_process('p', container_image=args.image, command='true')
        self.cluster.launch(exp, dry_run=args.dry_run)

if __name__ == '__main__':
    MyProjectParser().main()
"""

SYMPHONY_POOLS: dict[str, Any] = {
    "variable": {"cluster_name": {"default": "kurreal"}},
    "resource": {
        "google_container_node_pool": {
            name: {
                "name": name,
                "autoscaling": {"min_node_count": 0, "max_node_count": 10},
                "node_config": {
                    "machine_type": "n1-highmem-32" if gpus else "n1-standard-8",
                    "labels": {
                        "name": name,
                        "cpu": 32 if gpus else 8,
                        "memory_m": 212992 if gpus else 30720,
                        **({"gpu_type": "k80", "gpu_count": 4} if gpus else {}),
                    },
                    "taint": [],
                    **({"guest_accelerator": [{"type": "nvidia-tesla-k80", "count": 4}]} if gpus else {}),
                },
            }
            for name, gpus in (("cpu-pool", False), ("gpu-pool", True), ("gpu-pool-k80", True))
        }
    },
}


def run(path: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Return the output of the script `path`, run in its folder."""
    command = [sys.executable, path.name, *args]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(
        command, cwd=path.parent, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "experiment.py"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def local_runs(need_tool: Callable[[str], str]) -> Iterator[None]:
    need_tool("tmux")
    yield
    for started in live_runs():
        TmuxCluster().delete(started.experiment)
    SymphonyConfig.reset()


def names_of(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "sample.py", "exec"), names)  # noqa: S102 - the samples above
    return names


def test_the_kubernetes_guide_prints_its_objects(capsys: pytest.CaptureFixture[str]) -> None:
    names = names_of(KUBERNETES_GUIDE.format(launch=", dry_run=True"))
    objects = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [item["kind"] for item in objects if not is_conductor(item)].count("Job") == 2
    assert isinstance(names["cluster"], KubeCluster)
    assert isinstance(names["exp"], KubeExperimentSpec)
    assert isinstance(names["agent"], KubeProcessSpec)


def test_the_kubernetes_guide_as_written_is_a_spec_file_and_without_a_cluster_says_how_to_name_one(
    script: Callable[[str], Path],
) -> None:
    path = script(KUBERNETES_GUIDE.format(launch=""))
    experiment = files.read(path).experiment
    assert list(experiment.processes) == ["learner", "agent"]
    assert experiment.processes["agent"].args == ["agent.py", "--env", "half-cheetah"]
    done = run(path)
    assert (done.returncode != 0, "set $KUBECONFIG" in done.stderr) == (True, True), done.stderr


@pytest.mark.usefixtures("local_runs")
def test_the_readme_starts_in_tmux_and_its_processes_talk(script: Callable[[str], Path]) -> None:
    path = script(README_TMUX)
    (path.parent / "learner.py").write_text(LEARNER)
    (path.parent / "activate").write_text("export VIRTUAL_ENV=$1\n")
    done = run(path)
    assert done.returncode == 0, done.stderr
    assert wait(find_run("rl")) == 0, TmuxCluster().get_log("rl", "learner") + TmuxCluster().get_log("rl", "agent")
    assert "rendering disabled: 1" in TmuxCluster().get_log("rl", "agent")


def test_the_readmes_comments_tell_the_truth(script: Callable[[str], Path]) -> None:
    names = names_of(README_TMUX.replace("cluster.launch(exp)", "exp.finish()"))
    assert isinstance(names["cluster"], TmuxCluster)
    assert isinstance(names["exp"], TmuxExperimentSpec)
    assert isinstance(names["agent"], TmuxProcessSpec)


def test_a_username_stands_before_the_name(script: Callable[[str], Path]) -> None:
    assert run(script(USERNAME)).stdout == "sarah-rl\n"


@pytest.mark.usefixtures("local_runs")
def test_launched_experiments_are_saved_and_not_overwritten(script: Callable[[str], Path]) -> None:
    path = script(EXPERIMENT_FOLDER)
    assert run(path).returncode == 0
    saved = Path.home() / "foo" / "rl" / "experiment.yaml"
    assert saved.read_text().startswith("name: rl\n")
    again = run(path)
    assert again.returncode != 0
    assert "force=True" in again.stderr


def test_a_project_extends_the_parser_and_without_a_cluster_is_told_how_to_name_one(
    script: Callable[[str], Path],
) -> None:
    done = run(script(MYPROJECT), "create", "--dry-run")
    assert done.returncode == 0, done.stderr
    (job,) = [item for item in yaml.safe_load_all(done.stdout) if item["kind"] == "Job"]
    assert job["metadata"]["labels"]["symph.dev/experiment"] == "sarah-foo"
    done = run(script(MYPROJECT), "create")
    assert (done.returncode, done.stderr[:7], "set $KUBECONFIG" in done.stderr) == (6, "error: ", True), done.stderr


def process() -> KubeProcessSpec:
    return ExperimentSpec("rl").new_process("agent", container_image="ubuntu:16.04", command="x")


DISPATCHES: list[Callable[[GKEDispatcher, Any], Any]] = [
    # Occupies a machine in the CPU pool
    lambda dispatcher, process: dispatcher.assign_to_machine(process, node_pool_name="cpu-pool"),
    # Occupies 1/5 of a machine in the CPU pool
    lambda dispatcher, process: dispatcher.assign_to_machine(process, node_pool_name="cpu-pool", process_per_machine=5),
    # Occupies a GPU and claim other resources proportionally
    lambda dispatcher, process: dispatcher.assign_to_gpu(process, node_pool_name="gpu-pool"),
    # If every machine has 4 GPUs in gpu-pool, this is equivalent to
    lambda dispatcher, process: dispatcher.assign_to_machine(process, node_pool_name="gpu-pool", process_per_machine=4),
    lambda dispatcher, process: dispatcher.assign_to_gpu(process, cpu=2.5, memory_m=4096, gpu_type="k80", gpu_count=2),
    lambda dispatcher, process: dispatcher.assign_to_node_pool(
        process, node_pool_name="gpu-pool-k80", cpu=2.5, memory_m=4096, gpu_count=2
    ),
    lambda dispatcher, process: dispatcher.assign_to(process, assign_to="machine", node_pool_name="cpu-pool"),
]


@pytest.mark.parametrize("dispatch", DISPATCHES)
def test_the_guides_calls_of_the_dispatcher_schedule_the_process(dispatch: Callable[[GKEDispatcher, Any], Any]) -> None:
    agent = process()
    dispatch(GKEDispatcher(SYMPHONY_POOLS), agent)
    assert agent.experiment is not None
    made = agent.experiment.finish().processes["agent"]
    assert made.node_selector
    assert made.requests["cpu"]


def test_a_gpu_is_the_quarter_of_a_machine_that_the_guide_says_it_is() -> None:
    by_gpu, by_machine = process(), process()
    DISPATCHES[2](GKEDispatcher(SYMPHONY_POOLS), by_gpu)
    DISPATCHES[3](GKEDispatcher(SYMPHONY_POOLS), by_machine)
    assert by_gpu.to_data()["requests"] == by_machine.to_data()["requests"]
    assert by_gpu.to_data()["gpus"] == by_machine.to_data()["gpus"] == 1


def test_the_guides_resources_selectors_and_tolerations() -> None:
    proc = nonagent = process()
    proc.resource_request(cpu=1.5, mem="2G")
    proc.resource_limit(cpu=1.5, mem="2G", gpu=1)  # gpu is mapped to nvidia.com/gpu
    nonagent.node_selector(key="surreal-node", value="nonagent-cpu")
    nonagent.add_toleration(key="surreal", operator="Exists", effect="NoExecute")
    spec = proc.pod_yml["spec"]
    assert spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] in (1, "1")
    assert spec["nodeSelector"] == {"surreal-node": "nonagent-cpu"}
    assert {"key": "surreal", "operator": "Exists", "effect": "NoExecute"} in spec["tolerations"]


def test_the_guides_objects_can_be_edited() -> None:
    group = ExperimentSpec("rl").new_process_group("g")
    member = group.new_process("m", container_image="ubuntu:16.04", command="x")
    lone = process()
    assert lone.pod_yml["spec"]["containers"]
    assert lone.container_yml["name"] == "agent"
    assert group.pod_yml["spec"]["containers"]
    assert member.container_yml["name"] == "m"


def test_secret_files_are_mounted_in_every_process() -> None:
    experiment = ExperimentSpec("foo", secrets=["~/.mjkey.txt"])
    experiment.new_process("a", container_image="ubuntu:16.04", command="x")
    assert experiment.finish().secrets[0].file == "~/.mjkey.txt"
    container = experiment.get_process("a").container_yml
    assert "/etc/secrets" in [mount["mountPath"] for mount in container["volumeMounts"]]
