"""Any order of the Git verbs on a real repository: environments lag, roll back, skip versions, are edited by hand.

An operation depends on the published version and on the running one, which may differ; every test here makes them
differ in another way.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.test_git_verbs import SPEC, Project, git, project

__all__ = ["project"]  # the fixture


def publish(project: Project, replicas: int, *words: str, env: str = "dev") -> tuple[int, str, str]:
    """Publish the spec with `replicas` replicas; each number gives different content."""
    project.write(SPEC.replace("replicas: 2", f"replicas: {replicas}"))
    return project.symph("publish", "rl.yaml", "--env", env, *words)


ENDINGS = [(), ("--dry-run",), ("--branch", "review")]


@pytest.mark.parametrize("words", ENDINGS)
def test_after_a_rollback_something_new_is_published(project: Project, words: tuple[str, ...]) -> None:
    publish(project, 2)
    publish(project, 3)
    assert project.symph("rollback", "rl", "--env", "dev")[0] == 0
    status, out, err = publish(project, 4, *words)
    assert status == 0, err
    assert "rl 0.1.2 -> dev   was 0.1.0" in out


@pytest.mark.parametrize("words", ENDINGS)
def test_a_new_chart_goes_to_an_environment_that_lags(project: Project, words: tuple[str, ...]) -> None:
    publish(project, 2, env="prod")
    publish(project, 3)
    status, out, err = publish(project, 4, *words, env="prod")
    assert status == 0, err
    assert "rl 0.1.2 -> prod   was 0.1.0" in out


@pytest.mark.parametrize("words", ENDINGS)
def test_a_version_is_named_while_another_runs(project: Project, words: tuple[str, ...]) -> None:
    publish(project, 2)
    status, out, err = publish(project, 3, "--version", "1.0.0", *words)
    assert status == 0, err
    assert "rl 1.0.0 -> dev   was 0.1.0" in out
    assert publish(project, 3, "--version", "2.0.0", *words)[0] == 0


@pytest.mark.parametrize("words", ENDINGS)
def test_what_was_published_as_a_chart_alone_is_deployed_later(project: Project, words: tuple[str, ...]) -> None:
    publish(project, 2)
    project.write(SPEC.replace("replicas: 2", "replicas: 3"))
    assert project.symph("publish", "rl.yaml", "--chart-only")[0] == 0
    status, out, err = publish(project, 4, *words)
    assert status == 0, err
    assert "rl 0.1.2 -> dev   was 0.1.0" in out


@pytest.mark.parametrize("words", ENDINGS)
def test_package_with_push_names_a_version_while_another_runs(project: Project, words: tuple[str, ...]) -> None:
    publish(project, 2)
    project.write(SPEC.replace("replicas: 2", "replicas: 3"))
    status, out, err = project.symph("package", "rl.yaml", "--push", "--env", "dev", "--version", "1.0.0", *words)
    assert status == 0, err
    assert "rl 1.0.0 -> dev   was 0.1.0" in out


def test_a_lagging_environment_is_published_to_in_a_checkout(project: Project) -> None:
    publish(project, 2, env="prod")
    publish(project, 3)
    checkout = project.folder / "checkout"
    git("clone", "-q", str(project.repo), str(checkout))
    status, out, err = publish(project, 4, "--into", str(checkout), env="prod")
    assert status == 0, err
    assert "rl 0.1.2 -> prod   was 0.1.0" in out


def test_a_run_is_told_from_the_chart_that_runs_and_not_from_the_newest(project: Project) -> None:
    publish(project, 2)
    publish(project, 3)
    project.symph("rollback", "rl", "--env", "dev")
    project.write(SPEC.replace('cpu: "1"', 'cpu: "2"', 1))
    (change,) = project.json("publish", "rl.yaml", "--env", "dev")["changes"]
    assert (change["was"], change["run"]) == ("0.1.0", "new")


@pytest.mark.parametrize("content", [b"- a list\n", b"\xff\xfe", b"a: [", b""])
def test_values_that_somebody_broke_in_the_repository_do_not_stop_a_publish(project: Project, content: bytes) -> None:
    publish(project, 2)
    checkout = project.folder / "checkout"
    git("clone", "-q", str(project.repo), str(checkout))
    (checkout / "charts/ml/rl/0.1.0/values.yaml").write_bytes(content)
    who = ("-c", "user.name=Eve", "-c", "user.email=eve@example.org")
    git("-C", str(checkout), *who, "commit", "-qam", "by hand")
    git("-C", str(checkout), "push", "-q")
    status, _, err = publish(project, 3, "--version", "0.3.0")
    assert status == 0, err
    status, _, err = publish(project, 4)
    assert status == 0, err


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from(["dev", "prod"]), st.integers(1, 4)),
        st.tuples(st.just("version"), st.sampled_from(["dev", "prod"]), st.integers(1, 4)),
        st.tuples(st.just("branch"), st.sampled_from(["dev", "prod"]), st.integers(1, 4)),
        st.tuples(st.just("chart"), st.just(""), st.integers(1, 4)),
        st.tuples(st.just("promote"), st.just("prod"), st.booleans()),
        st.tuples(st.just("rollback"), st.sampled_from(["dev", "prod"]), st.booleans()),
        st.tuples(st.just("retire"), st.sampled_from(["dev", "prod"]), st.booleans()),
        st.tuples(st.just("gc"), st.just(""), st.integers(1, 2)),
    ),
    min_size=4,
    max_size=9,
)


def command(number: int, verb: str, env: str, choice: int) -> list[str]:
    place = [] if not env else ["--env", env]
    return {
        "publish": ["publish", "rl.yaml", *place],
        "version": ["publish", "rl.yaml", *place, "--version", f"{number + 1}.0.0"],
        "branch": ["publish", "rl.yaml", *place, "--branch", f"review-{choice}"],
        "chart": ["publish", "rl.yaml", "--chart-only"],
        "promote": ["promote", "rl", "--from", "dev", "--to", "prod", *(["--copy-values"] if choice else [])],
        "rollback": ["rollback", "rl", *place],
        "retire": ["retire", "rl", *place, "--yes"],
        "gc": ["gitops", "gc", "--keep", str(choice), "--yes"],
    }[verb]


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_no_order_of_verbs_meets_a_fault_of_ours(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str], steps: list[tuple[str, str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("sequence")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SYMPH_STATE_DIR", str(folder / "state"))
        project = Project(folder, capsys)
        for number, (verb, env, choice) in enumerate(steps):
            if verb in ("publish", "version", "branch", "chart"):
                project.write(SPEC.replace("replicas: 2", f"replicas: {choice}"))
            words = command(number, verb, env, choice)
            dry, _, said = project.symph(*words, "--dry-run")
            status, _, err = project.symph(*words)
            # 7: the version exists, 8: nothing runs yet, 6: the repository has no commit yet.
            assert status in (0, 6, 7, 8), (steps[: number + 1], err)
            assert dry == status, (steps[: number + 1], said, err)
