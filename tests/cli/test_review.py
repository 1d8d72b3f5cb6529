"""`symph gitops review`: the comment on a pull request and its place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
import yaml

from symphony_charts.cli.gitops_review import MARK, Part, comment, forge_of, review_text
from symphony_charts.errors import ToolFailed, UsageError
from tests.cli.git_project import SPEC, Project


class Server(ThreadingHTTPServer):
    """Keeps comments as both forges do, and every request with the relevant headers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments: dict[int, str] = {}
        self.asked: list[tuple[str, str, str]] = []
        self.refuses = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        page = int(self.path.rpartition("page=")[2])
        items = [{"id": key, "body": body} for key, body in self.server.comments.items()]
        self.answer(items[(page - 1) * 100 : page * 100])

    def do_POST(self) -> None:
        self.server.comments[max(self.server.comments, default=0) + 1] = self.body()
        self.answer({}, 201)

    def do_PATCH(self) -> None:
        self.server.comments[int(self.path.rpartition("/")[2])] = self.body()
        self.answer({})

    do_PUT = do_PATCH  # noqa: N815 - the name is that of the base class

    def body(self) -> str:
        read = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        return str(read["body"])

    def answer(self, data: object, status: int = 200) -> None:
        token = self.headers["Authorization"] or self.headers["PRIVATE-TOKEN"]
        self.server.asked.append((self.command, self.path.partition("?")[0], token))
        text = json.dumps(data).encode()
        self.send_response(self.server.refuses or status)
        self.send_header("Content-Length", str(len(text)))
        if self.server.refuses == 302:
            self.send_header("Location", f"{self.server.url}/elsewhere")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def github(server: Server) -> dict[str, str]:
    where = {"GITHUB_API_URL": server.url, "GITHUB_REPOSITORY": "o/n", "GITHUB_REF": "refs/pull/7/merge"}
    return {**where, "GITHUB_TOKEN": "key"}


def gitlab(server: Server) -> dict[str, str]:
    return {"CI_API_V4_URL": server.url, "CI_PROJECT_ID": "5", "CI_MERGE_REQUEST_IID": "7", "GITLAB_TOKEN": "key"}


def test_a_comment_is_added_once_and_then_replaced(server: Server) -> None:
    server.comments = dict.fromkeys(range(1, 151), "of others")
    assert comment(f"{MARK}\none", is_dry=False, env=github(server)) == "a comment was added"
    assert comment(f"{MARK}\ntwo", is_dry=False, env=github(server)) == "the earlier comment was replaced"
    assert (len(server.comments), server.comments[151]) == (151, f"{MARK}\ntwo")
    assert server.asked[2] == ("POST", "/repos/o/n/issues/7/comments", "Bearer key")
    assert server.asked[-1] == ("PATCH", "/repos/o/n/issues/comments/151", "Bearer key")


def test_gitlab_is_spoken_to_in_its_own_words(server: Server) -> None:
    comment(f"{MARK}\none", is_dry=False, env=gitlab(server))
    comment(f"{MARK}\ntwo", is_dry=False, env=gitlab(server))
    assert server.comments == {1: f"{MARK}\ntwo"}
    assert server.asked[1] == ("POST", "/projects/5/merge_requests/7/notes", "key")
    assert server.asked[-1] == ("PUT", "/projects/5/merge_requests/7/notes/1", "key")


def test_a_dry_run_leaves_nothing(server: Server) -> None:
    assert comment(f"{MARK}\none", is_dry=True, env=github(server)) == "a comment would be added"
    assert server.comments == {}


def test_a_long_review_is_cut_where_a_forge_would_refuse_it(server: Server) -> None:
    comment(f"{MARK}{'x' * 70_000}", is_dry=False, env=github(server))
    assert len(server.comments[1]) < 65_536
    assert "prints all of it" in server.comments[1]


@pytest.mark.parametrize("status", [302, 403, 500])
def test_a_forge_that_refuses_is_an_error_and_no_redirect_gets_the_token(server: Server, status: int) -> None:
    server.refuses = status
    with pytest.raises(ToolFailed, match=f"answered {status}"):
        comment(MARK, is_dry=False, env=github(server))
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"GITHUB_REF": "refs/heads/main"}, "no pull request is known"),
        ({"GITHUB_REPOSITORY": "o/n/../../x?"}, "no pull request is known"),
        ({"GITHUB_TOKEN": ""}, "GITHUB_TOKEN is empty"),
    ],
)
def test_without_a_pull_request_or_a_token_nothing_is_asked(server: Server, change: dict[str, str], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        forge_of({**github(server), **change})


def test_no_text_ends_its_block_or_becomes_markup() -> None:
    text = review_text([Part(command=("validate", "a`<b>.yaml"), status=0, text="````\n</details>")])
    assert "`````text\n````\n</details>\n`````" in text
    assert "symph validate a??b?.yaml" in text


def test_a_change_is_reviewed_against_what_runs(project: Project) -> None:
    project.symph("publish", "rl.yaml", "--env", "dev")
    project.write(SPEC.replace("replicas: 2", "replicas: 3"))
    status, out, _ = project.symph("gitops", "review", "rl.yaml", "--env", "dev")
    assert status == 0
    assert out.startswith(MARK)
    assert "ok `symph validate rl.yaml`" in out
    assert "ok `symph diff rl.yaml --env dev -o markdown`" in out
    assert "**0.1.0 in dev -> rl.yaml**" in out


def test_a_spec_that_is_wrong_says_no_and_nothing_else_is_asked(project: Project) -> None:
    project.write(SPEC.replace("replicas: 2", "relicas: 2"))
    status, out, _ = project.symph("gitops", "review", "rl.yaml", "-o", "json")
    said = json.loads(out)
    assert (status, said["kind"], said["passed"]) == (1, "Review", False)
    assert [(part["command"], part["status"]) for part in said["parts"]] == [(["validate", "rl.yaml"], 3)]
    assert "replicas" in said["parts"][0]["text"]


def test_what_was_never_published_says_nothing_against_a_change(project: Project) -> None:
    status, out, _ = project.symph("gitops", "review", "rl.yaml", "--env", "dev", "-o", "json")
    parts = json.loads(out)["parts"]
    assert (status, [part["status"] for part in parts]) == (0, [0, 8])


def test_a_spec_in_python_does_not_see_the_token(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "key")
    lines = ["import os", "assert 'GITHUB_TOKEN' not in os.environ", f"data = {yaml.safe_load(SPEC)!r}"]
    lines += ["from symphony_charts import ExperimentSpec", "experiment = ExperimentSpec.load_dict(data)", ""]
    (project.folder / "rl.py").write_text("\n".join(lines))
    status, out, _ = project.symph("gitops", "review", "rl.py", "--env", "dev")
    assert status == 0, out
