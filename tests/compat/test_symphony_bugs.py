"""Faults that users of Symphony met in what it sent to Kubernetes, by their number, and what happens now.

The others are in `test_symphony_bugs_placement` and `test_symphony_bugs_local`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from symphony_charts.compat.kube import KubeCluster, KubeExperimentSpec, KubeProcessSpec
from symphony_charts.engine import Cluster
from symphony_charts.errors import SpecError, SymphError
from symphony_charts.settings.user import SymphonyConfig
from tests.compat.bugs import compiled, container, pod, two

pytestmark = pytest.mark.usefixtures("symphony")


def test_3_a_launch_that_fails_raises_and_leaves_the_kubeconfig_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: u, user: {}}]\n"
    )
    before = config.read_bytes()
    monkeypatch.setenv("KUBECONFIG", str(config))
    with pytest.raises(SymphError):
        Cluster.new("kube").launch(two()[0])
    assert config.read_bytes() == before


def test_5_two_paths_of_one_server_are_two_volumes() -> None:
    exp, learner, _ = two()
    learner.mount_nfs("10.0.0.2", "/data", "/mnt/data")
    learner.mount_nfs("10.0.0.2", "/code", "/mnt/code")
    learner.mount_host_path("/a/x", "/host/a")
    learner.mount_host_path("/b/x", "/host/b")
    volumes = {one["name"]: one for one in pod(exp, "learner")["volumes"]}
    shown = {one["mountPath"]: volumes[one["name"]] for one in container(exp, "learner")["volumeMounts"]}
    assert (shown["/mnt/data"]["nfs"]["path"], shown["/mnt/code"]["nfs"]["path"]) == ("/data", "/code")
    assert (shown["/host/a"]["hostPath"]["path"], shown["/host/b"]["hostPath"]["path"]) == ("/a/x", "/b/x")


def test_5_one_name_with_two_contents_is_refused() -> None:
    exp, learner, agent = two()
    learner.mount_nfs("s", "/data", "/mnt", name="v")
    agent.mount_nfs("s", "/code", "/mnt", name="v")
    with pytest.raises(SpecError, match="v"):
        exp.finish()


def test_6_a_service_open_to_the_world_is_a_finding_of_lint() -> None:
    from symphony_charts.chart.lint import lint
    from symphony_charts.package import template
    from symphony_charts.prepare import prepare_experiment

    exp, learner, agent = two()
    learner.exposes("tensorboard")
    agent.binds("inside")
    made = exp.finish()
    findings = lint(prepare_experiment(made).chart(template()))
    assert [str(one) for one in findings if "tensorboard" in str(one) and "world" in str(one)]
    assert not [str(one) for one in findings if "inside" in str(one) and "world" in str(one)]


def test_7_no_secret_is_written_and_each_process_sees_what_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text("hush")
    SymphonyConfig().set_experiment_folder(tmp_path / "saved")
    exp, _, _ = two()
    exp.add_secret(str(tmp_path / "key.txt"), only=["learner"])
    text = exp.compile()
    assert ("aHVzaA" in text, "hush" in text, "kind: Secret" in text) == (False, False, False)
    mounts = [one["mountPath"] for one in container(exp, "agent").get("volumeMounts", [])]
    assert "/etc/secrets" not in mounts


def test_7_two_secrets_of_one_base_name_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "key").write_text(folder)
    with pytest.raises(SpecError, match="key"):
        two(secrets=[str(tmp_path / "a" / "key"), str(tmp_path / "b" / "key")])[0].finish()


def test_8_the_type_of_a_host_path_is_kubernetes_own_field() -> None:
    exp, learner, _ = two()
    learner.mount_host_path("/data", "/data", hostpath_type="Directory")
    (volume,) = [one for one in pod(exp, "learner")["volumes"] if "hostPath" in one]
    assert volume["hostPath"] == {"path": "/data", "type": "Directory"}


def test_9_scratch_space_stands_at_its_path_under_its_name() -> None:
    exp, learner, _ = two()
    learner.mount_empty_dir("scratch", True, "/scratch")
    (volume,) = [one for one in pod(exp, "learner")["volumes"] if "emptyDir" in one]
    mount = next(one for one in container(exp, "learner")["volumeMounts"] if one["name"] == volume["name"])
    assert (volume["emptyDir"], mount["mountPath"], "/" in volume["name"]) == ({"medium": "Memory"}, "/scratch", False)


def test_10_a_git_repository_is_cloned_by_an_init_container() -> None:
    exp, learner, _ = two()
    learner.mount_git_repo("https://git.test/a.git", "main", "/code")
    found = pod(exp, "learner")
    assert "gitRepo" not in str(found["volumes"])
    assert any("git" in str(one.get("command", "")) + str(one.get("args", "")) for one in found["initContainers"])


@pytest.mark.parametrize("server", ["10.0.0.2", "NFS.example.com", "-x-"])
def test_11_names_of_volumes_are_valid_whatever_the_server_is_called(server: str) -> None:
    import re

    exp, learner, _ = two()
    learner.mount_nfs(server, "/", "/mnt")
    learner.mount_host_path("/", "/host")
    for volume in pod(exp, "learner")["volumes"]:
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", volume["name"])


def test_12_every_object_is_plain_yaml_of_json_types(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\x00\xff")
    exp, _, _ = two(secrets=[str(tmp_path / "key")])
    text = exp.compile()
    assert "!!" not in text
    assert list(yaml.safe_load_all(text))


def test_13_a_service_that_is_bound_and_exposed_is_one_service_with_a_pod_behind_it() -> None:
    exp, learner, _ = two()
    learner.binds("tensorboard")
    learner.exposes({"tensorboard": 6006})
    (service,) = compiled(exp, "Service")
    assert (service["spec"]["type"], service["spec"]["ports"][0]["port"]) == ("LoadBalancer", 6006)
    (job,) = [one for one in compiled(exp, "Job") if one["metadata"]["labels"]["symph.dev/group"] == "learner"]
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()


def test_14_a_group_and_a_lone_process_of_one_name_are_refused() -> None:
    exp, _, _ = two()
    with pytest.raises(ValueError, match="learner"):
        exp.new_process_group("learner")


def test_14_an_empty_group_and_a_missing_image_are_refused_at_once() -> None:
    exp = KubeExperimentSpec("rl")
    exp.new_process_group("empty")
    exp.new_process("learner")
    with pytest.raises(SpecError) as caught:
        exp.finish(for_cluster=True)
    said = str(caught.value)
    assert ("empty" in said, "image" in said) == (True, True)


def test_15_compiling_twice_gives_the_same_twice(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k")
    exp, _, _ = two(secrets=[str(tmp_path / "key")])
    assert exp.compile() == exp.compile()
    paths = [one["mountPath"] for one in container(exp, "learner")["volumeMounts"]]
    assert sorted(paths) == sorted(set(paths))


def test_16_every_name_stays_within_what_kubernetes_takes() -> None:
    exp = KubeExperimentSpec("e" * 40)
    process = exp.new_process("p" * 40, container_image="u:1")
    process.binds("s" * 40)
    for item in yaml.safe_load_all(exp.compile()):
        assert len(item["metadata"]["name"]) <= 63
        assert all(len(key.rpartition("/")[2]) <= 63 for key in item["metadata"]["labels"])
        assert all(len(value) <= 63 for value in item["metadata"]["labels"].values())


@pytest.mark.parametrize("service", ["s" * 64, "A b", "replay\n", "-x"])
def test_16_a_service_that_cannot_be_named_is_refused(service: str) -> None:
    exp, learner, _ = two()
    learner.binds(service)
    with pytest.raises(ValueError, match=r"\S"):
        exp.finish()


@pytest.mark.parametrize(
    ("username", "name", "full"),
    [("Jim_Fan", "my exp", "jim-fan-my-exp"), ("jim", "jimmy-x", "jim-jimmy-x"), ("jim", "jim-x", "jim-x")],
)
def test_17_the_user_is_sanitised_and_compared_as_a_whole_word(username: str, name: str, full: str) -> None:
    SymphonyConfig().set_username(username)
    assert Cluster.new("kube").new_experiment(name).name == full


def test_17_a_placeholder_for_a_username_is_refused() -> None:
    SymphonyConfig().set_username("<your_username>")
    with pytest.raises(ValueError, match=r"\S"):
        Cluster.new("kube").new_experiment("x").finish()


def test_18_a_finished_agent_is_not_started_again_and_no_pod_is_bare() -> None:
    exp, _, _ = two()
    assert compiled(exp, "Pod") == []
    assert {one["metadata"]["labels"]["symph.dev/group"] for one in compiled(exp, "Job")} == {"learner", "agent"}
    assert pod(exp, "agent")["restartPolicy"] == "Never"


def test_39_a_keyword_that_nobody_knows_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="container_imag") as caught:
        KubeProcessSpec("p", container_imag="u:1")  # type: ignore[call-arg]  # the mistake
    assert "container_image" in str(caught.value)


@pytest.mark.parametrize("backend", ["kube", "tmux", "subproc", "docker"])
def test_40_every_backend_takes_the_same_calls(backend: str) -> None:
    import inspect

    cluster: Any = Cluster.new(backend)
    assert {"force", "dry_run"} <= set(inspect.signature(cluster.launch).parameters)
    process = cluster.new_experiment("rl").new_process("p", image="u:1")
    process.set_env("A", 1)
    process.set_envs({"B": "x"})
    assert process.to_data()["env"] == {"A": 1, "B": "x"}


def test_40_kubernetes_is_a_name_of_the_backend() -> None:
    assert isinstance(Cluster.new("Kubernetes"), KubeCluster)
