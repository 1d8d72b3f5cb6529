"""A branch for review on real servers: its page, its text, and its state while main advances."""

from __future__ import annotations

import pytest
import yaml

from symphony_charts.gitops.store.review import review_link
from tests.cli.git_project import POINTER, SPEC, Project, git
from tests.gitops.servers import commit, set_hook

REVIEW = ("--branch", "review")


def is_ancestor(project: Project, one: str, other: str) -> bool:
    return git("-C", str(project.repo), "merge-base", one, other) == git("-C", str(project.repo), "rev-parse", one)


def merges_cleanly(project: Project) -> bool:
    folder = project.folder / "merging"
    git("clone", "-q", str(project.repo), str(folder))
    who = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    return "Merge made" in git("-C", str(folder), *who, "merge", "--no-ff", "origin/review")


@pytest.mark.parametrize(
    "heard",
    [
        ("Create a pull request for 'x' on GitHub by visiting:", "     https://github.com/t/c/pull/new/x"),
        ("To create a merge request for x, visit:", "  https://g.org/t/c/-/merge_requests/new?x=y"),
        ("See https://status.g.org.", "Create a new pull request for 'x':", "https://g.org/t/c/compare/main...x"),
    ],
)
def test_the_link_is_the_server_s_own(heard: tuple[str, ...]) -> None:
    assert review_link(heard) == heard[-1].strip()


def test_after_a_push_for_review_the_server_s_link_is_printed_without_its_escapes(project: Project) -> None:
    project.publish(2)
    link = "https://git.example.org/t/c/compare/main...review"
    set_hook(project.repo, "post-receive", f"printf 'Visit \\033[1m{link}\\033[0m to open a pull request\\n' >&2")
    status, _, err = project.publish(3, *REVIEW)
    assert status == 0, err
    assert f"review: {link}\nnext: symph status rl\n" in err
    project.write(SPEC.replace("replicas: 2", "replicas: 4"))
    assert project.json("publish", "rl.yaml", "--env", "dev", *REVIEW)["review"] == link


def test_the_text_of_the_pull_request_is_its_title_and_what_becomes_of_objects(project: Project) -> None:
    project.publish(2)
    _, out, _ = project.publish(3, *REVIEW, "-o", "markdown")
    assert out.startswith("# publish ml/rl 0.1.1 -> dev\n\n| change | paths |\n")
    assert "**0.1.0 in dev -> 0.1.1 in dev**: " in out
    assert "| Job/" in out


def test_a_retired_experiment_is_nothing_in_the_text(project: Project) -> None:
    project.publish(2)
    _, out, _ = project.symph("retire", "rl", "--env", "dev", "--yes", *REVIEW, "-o", "markdown")
    assert "**0.1.0 in dev -> nothing in dev**" in out


def test_a_stale_branch_is_brought_up_to_date_and_says_so(project: Project) -> None:
    """Both branches made a version 0.1.1; the published one stays, and the branch takes the next number."""
    project.publish(2)
    project.publish(3, *REVIEW)
    project.publish(4)
    published = project.show("charts/ml/rl/0.1.1/values.yaml")
    status, out, err = project.publish(3, *REVIEW)
    assert (status, "review lacks commits of main: merged into it" in err) == (0, True)
    assert "rl 0.1.2 -> dev   was 0.1.1" in out
    assert project.show("charts/ml/rl/0.1.1/values.yaml", "review") == published
    assert is_ancestor(project, "main", "review")
    assert yaml.safe_load(project.show(POINTER, "review"))["version"] == "0.1.2"
    assert merges_cleanly(project)


def test_a_stale_branch_is_merged_without_another_change(project: Project) -> None:
    project.publish(2)
    project.publish(3, *REVIEW)
    commit(project.repo, {"README.md": "by hand\n"})
    assert "merged into it" in project.publish(3, *REVIEW)[2]
    assert is_ancestor(project, "main", "review")
    assert "lacks" not in project.publish(3, *REVIEW)[2]


def test_other_changes_of_a_branch_are_kept(project: Project) -> None:
    project.publish(2)
    project.publish(3, *REVIEW)
    project.write(SPEC.replace("name: rl", "name: other"))
    assert project.symph("publish", "rl.yaml", "--env", "dev", *REVIEW)[0] == 0
    commit(project.repo, {"README.md": "by hand\n"})
    assert project.publish(5, *REVIEW)[0] == 0
    assert "version: 0.1.0" in project.show("envs/dev/ml/other.symph-app.yaml", "review").replace('"', "")
    assert project.show("README.md", "review") == "by hand\n"
    assert merges_cleanly(project)


def test_manual_changes_on_both_branches_conflict_and_change_nothing(project: Project) -> None:
    project.publish(2)
    project.publish(3, *REVIEW)
    git("-C", str(project.repo), "symbolic-ref", "HEAD", "refs/heads/main")
    commit(project.repo, {"envs/dev/ml/other.symph-app.yaml": "main's\n"})
    checkout = project.folder / "hand"
    git("clone", "-q", "-b", "review", str(project.repo), str(checkout))
    (checkout / "envs/dev/ml/other.symph-app.yaml").write_text("branch's\n")
    git("-C", str(checkout), "add", ".")
    git("-C", str(checkout), "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", "by hand")
    git("-C", str(checkout), "push", "-q", "origin", "review")
    before = git("-C", str(project.repo), "rev-parse", "review")
    status, _, err = project.publish(4, *REVIEW)
    assert (status, "both changed envs/dev/ml/other.symph-app.yaml" in err, "--branch NAME" in err) == (7, True, True)
    assert git("-C", str(project.repo), "rev-parse", "review") == before


def test_a_branch_that_experiments_share_conflicts_where_main_published_one_of_them_meanwhile(project: Project) -> None:
    """The chart of the other experiment cannot be made again without its spec: with it, nothing conflicts."""
    other = SPEC.replace("name: rl", "name: other")

    def write_other(replicas: int) -> None:
        (project.folder / "other.yaml").write_text(other.replace("replicas: 2", f"replicas: {replicas}"))

    write_other(3)
    project.publish(1)
    project.publish(2, *REVIEW)
    assert project.symph("publish", "other.yaml", "--env", "dev", *REVIEW)[0] == 0
    write_other(4)
    assert project.symph("publish", "other.yaml", "--env", "dev")[0] == 0
    status, _, err = project.publish(5, *REVIEW)
    assert (status, "both changed charts/ml/other/0.1.0" in err) == (7, True), err
    assert "publish other again in the same command, or use another branch" in err
    write_other(3)
    assert project.symph("publish", "rl.yaml", "other.yaml", "--env", "dev", *REVIEW)[0] == 0
    assert merges_cleanly(project)


def test_a_branch_that_is_up_to_date_is_left_so(project: Project) -> None:
    project.publish(2)
    project.publish(3, *REVIEW)
    _, _, err = project.publish(4, *REVIEW)
    assert "lacks" not in err
    _, _, err = project.publish(5, *REVIEW)
    assert "lacks" not in err
    assert git("-C", str(project.repo), "log", "--format=%s", "main..review").count("publish") == 3


def test_a_dry_run_of_a_stale_branch_changes_nothing(project: Project) -> None:
    project.publish(2)
    project.publish(3, *REVIEW)
    project.publish(4)
    before = git("-C", str(project.repo), "rev-parse", "review")
    status, out, err = project.publish(3, *REVIEW, "--dry-run")
    assert (status, "would be merged into it first" in err) == (0, True)
    assert "rl 0.1.2 -> dev   was 0.1.1" in out, "the result after the merge"
    assert "charts/ml/rl/0.1.2/" in out
    assert git("-C", str(project.repo), "rev-parse", "review") == before


def test_a_dry_run_reports_the_conflict_of_a_stale_branch(project: Project) -> None:
    """The publish writes only prod's pointer, and both branches changed dev's."""
    project.publish(4)
    project.publish(2, *REVIEW)
    project.publish(1)
    dry, real = (project.publish(2, *REVIEW, *words, env="prod") for words in (["--dry-run"], []))
    assert (dry[0], real[0]) == (7, 7)
    assert "both changed envs/dev/ml/rl.symph-app.yaml" in dry[2]
    assert "publish rl again in the same command" in dry[2]
