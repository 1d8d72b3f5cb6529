"""A branch for review on real servers: its page, its text, and its state while main advances."""

from __future__ import annotations

import pytest
import yaml

from symphony_charts.gitops.store.review import review_link
from tests.cli.git_project import POINTER, SPEC, Project, git
from tests.gitops.servers import commit, set_hook

REVIEW = ("--branch", "review")
GITLAB = "https://gitlab.example.org/a/b/charts/-/merge_requests/new?merge_request%5Bsource_branch%5D=my%2Frl"
GITLAB += "&merge_request%5Btarget_branch%5D=main"


def is_ancestor(project: Project, one: str, other: str) -> bool:
    return git("-C", str(project.repo), "merge-base", one, other) == git("-C", str(project.repo), "rev-parse", one)


def merges_cleanly(project: Project) -> bool:
    folder = project.folder / "merging"
    git("clone", "-q", str(project.repo), str(folder))
    who = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    return "Merge made" in git("-C", str(folder), *who, "merge", "--no-ff", "origin/review")


@pytest.mark.parametrize(
    ("url", "forge", "link"),
    [
        ("git@github.com:team/charts.git", "", "https://github.com/team/charts/compare/main...my/rl?expand=1"),
        ("ssh://git@gitlab.example.org:2222/a/b/charts.git", "", GITLAB),
        ("https://codeberg.org/team/charts", "", "https://codeberg.org/team/charts/compare/main...my/rl"),
        ("https://git.example.org:3000/t/c.git", "gitea", "https://git.example.org:3000/t/c/compare/main...my/rl"),
        ("https://git.example.org/t/c.git", "", ""),
        ("/srv/github/charts.git", "", ""),
        ("file:///srv/github/charts.git", "", ""),
    ],
)
def test_the_page_of_a_pull_request_is_known_of_each_forge(url: str, forge: str, link: str) -> None:
    assert review_link(url, "my/rl", "main", forge=forge) == link


@pytest.mark.parametrize(
    "heard",
    [
        ("Create a pull request for 'x' on GitHub by visiting:", "     https://github.com/t/c/pull/new/x"),
        ("To create a merge request for x, visit:", "  https://g.org/t/c/-/merge_requests/new?x=y"),
        ("See https://status.g.org.", "Create a new pull request for 'x':", "https://g.org/t/c/compare/main...x"),
    ],
)
def test_the_server_s_own_link_goes_first(heard: tuple[str, ...]) -> None:
    assert review_link("git@github.com:other/x.git", "x", "main", heard=heard) == heard[-1].strip()


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


def test_what_else_a_branch_holds_comes_along(project: Project) -> None:
    project.publish(2)
    project.publish(3, *REVIEW)
    project.write(SPEC.replace("name: rl", "name: other"))
    assert project.symph("publish", "rl.yaml", "--env", "dev", *REVIEW)[0] == 0
    commit(project.repo, {"README.md": "by hand\n"})
    assert project.publish(5, *REVIEW)[0] == 0
    assert "version: 0.1.0" in project.show("envs/dev/ml/other.symph-app.yaml", "review").replace('"', "")
    assert project.show("README.md", "review") == "by hand\n"
    assert merges_cleanly(project)


def test_what_both_changed_by_hand_is_a_conflict_and_changes_nothing(project: Project) -> None:
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
    status, _, err = project.publish(3, *REVIEW, "--dry-run")
    assert (status, "would be merged into it first" in err) == (0, True)
    assert git("-C", str(project.repo), "rev-parse", "review") == before


def waiting(project: Project, *words: str) -> list[tuple[str, str, str, str | None]]:
    items = project.json("status", *words)["items"]
    return [(item["env"], item["version"], item["op"], item["was"]) for item in items if item.get("branch")]


def test_status_shows_what_waits_for_review_until_it_is_merged(project: Project) -> None:
    project.publish(2)
    project.publish(3, *REVIEW)
    assert waiting(project) == waiting(project, "rl") == [("dev", "0.1.1", "publish", "0.1.0")]
    assert waiting(project, "--env", "prod") == []
    _, out, _ = project.symph("status", "rl")
    assert "waits on review" in out
    git("-C", str(project.repo), "update-ref", "refs/heads/main", "refs/heads/review")
    assert waiting(project) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("promote", "rl", "--from", "dev", "--to", "prod"), ("prod", "0.1.1", "promote", None)),
        (("rollback", "rl", "--env", "dev"), ("dev", "0.1.0", "rollback", "0.1.1")),
        (("retire", "rl", "--env", "dev", "--yes"), ("dev", "0.1.1", "retire", "0.1.1")),
    ],
)
def test_every_change_of_an_environment_waits(
    words: tuple[str, ...], expected: tuple[str, str, str, str | None], project: Project
) -> None:
    project.publish(2)
    project.publish(3)
    assert project.symph(*words, *REVIEW)[0] == 0
    assert waiting(project) == [expected]
    git("-C", str(project.repo), "update-ref", "refs/heads/main", "refs/heads/review")
    assert waiting(project) == []


def test_branches_of_others_are_no_reviews_of_ours(project: Project) -> None:
    project.publish(2)
    git("-C", str(project.repo), "branch", "theirs", "main")
    assert waiting(project) == []
