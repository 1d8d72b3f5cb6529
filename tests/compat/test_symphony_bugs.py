"""Faults that Symphony's users found in its Kubernetes objects, by their number, and the behaviour here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from symphony_charts.engine import Cluster
from symphony_charts.integrations.symphony.kube import KubeExperimentSpec
from symphony_charts.settings.user import SymphonyConfig
from tests.compat.bugs import container, pod, two

pytestmark = pytest.mark.usefixtures("symphony")


def test_7_no_secret_is_written_and_each_process_sees_what_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text("hush")
    SymphonyConfig().set_experiment_folder(tmp_path / "saved")
    exp, _, _ = two()
    exp.add_secret(str(tmp_path / "key.txt"), only=["learner"])
    text = exp.compile()
    assert ("aHVzaA" in text, "hush" in text, "kind: Secret" in text) == (False, False, False)
    mounts = [one["mountPath"] for one in container(exp, "agent").get("volumeMounts", [])]
    assert "/etc/secrets" not in mounts


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


def test_16_every_name_stays_within_what_kubernetes_takes() -> None:
    exp = KubeExperimentSpec("e" * 40)
    process = exp.new_process("p" * 40, container_image="u:1")
    process.binds("s" * 40)
    for item in yaml.safe_load_all(exp.compile()):
        assert len(item["metadata"]["name"]) <= 63
        assert all(len(key.rpartition("/")[2]) <= 63 for key in item["metadata"]["labels"])
        assert all(len(value) <= 63 for value in item["metadata"]["labels"].values())


def test_17_a_placeholder_for_a_username_is_refused() -> None:
    SymphonyConfig().set_username("<your_username>")
    with pytest.raises(ValueError, match=r"\S"):
        Cluster.new("kube").new_experiment("x").finish()


@pytest.mark.parametrize("backend", ["kube", "tmux", "subproc"])
def test_40_every_backend_takes_the_same_calls(backend: str) -> None:
    import inspect

    cluster: Any = Cluster.new(backend)
    assert {"force", "dry_run"} <= set(inspect.signature(cluster.launch).parameters)
    process = cluster.new_experiment("rl").new_process("p", image="u:1")
    process.set_env("A", 1)
    process.set_envs({"B": "x"})
    assert process.to_data()["env"] == {"A": 1, "B": "x"}
