"""Any order of the Git verbs on a real repository: environments lag, roll back, skip versions, are edited by hand.

An operation depends on the published version and on the running one, which may differ; every test here makes them
differ in another way.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.git_project import SPEC, Project
from tests.gitops.servers import commit

# What was published before (replicas and environment), other commands, the last command, and what it says.
CASES = {
    "after a rollback": (["2 dev", "3 dev"], "rollback rl --env dev", "publish rl.yaml --env dev", "0.1.2 -> dev"),
    "an environment lags": (["2 prod", "3 dev"], "", "publish rl.yaml --env prod", "0.1.2 -> prod"),
    "a version is named": (["2 dev"], "", "publish rl.yaml --env dev --version 1.0.0", "1.0.0 -> dev"),
    "a chart alone": (["2 dev"], "publish rl.yaml --chart-only", "publish rl.yaml --env dev", "0.1.2 -> dev"),
    "package": (["2 dev"], "", "package rl.yaml --push --env dev --version 1.0.0", "1.0.0 -> dev"),
}


@pytest.mark.parametrize("words", [(), ("--dry-run",), ("--branch", "review"), ("--into", "checkout")])
@pytest.mark.parametrize("case", CASES)
def test_something_new_goes_where_another_version_runs(project: Project, case: str, words: tuple[str, ...]) -> None:
    published, between, last, said = CASES[case]
    for replicas, env in map(str.split, published):
        project.publish(int(replicas), env=env)
    if between:
        project.write(SPEC.replace("replicas: 2", "replicas: 3"))
        assert project.symph(*between.split())[0] == 0
    project.clone()
    project.write(SPEC.replace("replicas: 2", "replicas: 4"))
    status, out, err = project.symph(*last.split(), *words)
    assert status == 0, err
    assert f"rl {said}   was 0.1.0" in out


def test_a_run_is_told_from_the_chart_that_runs_and_not_from_the_newest(project: Project) -> None:
    project.publish(2)
    project.publish(3)
    project.symph("rollback", "rl", "--env", "dev")
    project.write(SPEC.replace('cpu: "1"', 'cpu: "2"', 1))
    (change,) = project.json("publish", "rl.yaml", "--env", "dev")["changes"]
    assert (change["was"], change["run"]) == ("0.1.0", "new")


@pytest.mark.parametrize("content", [b"- a list\n", b"\xff\xfe", b"a: [", b""])
def test_values_that_somebody_broke_in_the_repository_do_not_stop_a_publish(project: Project, content: bytes) -> None:
    project.publish(2)
    commit(project.repo, {"charts/ml/rl/0.1.0/values.yaml": content})
    status, _, err = project.publish(3, "--version", "0.3.0")
    assert status == 0, err
    status, _, err = project.publish(4)
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
