"""`symph gitops review`: the effects of a change of experiments, as one Markdown text for its pull request."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import urllib3

from symphony_charts.cli import output
from symphony_charts.cli.specs import specs_of
from symphony_charts.errors import ToolFailed, UsageError
from symphony_charts.settings.project import find_settings
from symphony_charts.spec.variable_names import Variable
from symphony_charts.system.subprocess_runner import run as start

# GitHub Actions and GitLab CI pass the pull request and the token in the environment.
# Source: docs.github.com, "REST API endpoints for issue comments"; docs.gitlab.com, "Notes API".

MARK = "<!-- symph review -->"
TOKENS = ("GITHUB_TOKEN", "GITLAB_TOKEN")
_FORGE_TIMEOUT_S = 30
_PAGE = 100
_PAGES = 30
# GitHub accepts 65,536 characters, GitLab a million.
_LONGEST = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Forge:
    """API of a pull request's comments: URL `comments` lists and creates them, `one` with an id updates one."""

    comments: str
    one: str
    headers: Mapping[str, str]
    change: str


def comment(text: str, *, is_dry: bool, env: Mapping[str, str] | None = None) -> str:
    """Post `text` or replace our earlier comment; return a line that reports it. Raises UsageError, ToolFailed."""
    forge = forge_of(os.environ if env is None else env)
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}\n\n(Cut; `symph gitops review` prints all of it.)"
    earlier = next((str(item["id"]) for item in _all(forge) if str(item.get("body", "")).startswith(MARK)), None)
    if is_dry:
        return "the earlier comment would be replaced" if earlier else "a comment would be added"
    if earlier is None:
        _ask(forge, "POST", forge.comments, {"body": text})
        return "a comment was added"
    _ask(forge, forge.change, forge.one.format(id=earlier), {"body": text})
    return "the earlier comment was replaced"


def forge_of(env: Mapping[str, str]) -> Forge:
    """Return the forge that runs this CI job. Raises UsageError without a pull request or a token."""
    github = re.fullmatch(r"refs/pull/(\d+)/(?:merge|head)", env.get("GITHUB_REF", ""))
    if github and env.get("GITHUB_API_URL") and re.fullmatch(r"[\w.-]+/[\w.-]+", env.get("GITHUB_REPOSITORY", "")):
        issues = f"{env['GITHUB_API_URL']}/repos/{env['GITHUB_REPOSITORY']}/issues"
        return Forge(
            comments=f"{issues}/{github[1]}/comments",
            one=f"{issues}/comments/{{id}}",
            headers={
                "Authorization": f"Bearer {_token(env, TOKENS[0])}",
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": "2022-11-28",
            },
            change="PATCH",
        )
    numbers = [env.get(name, "") for name in ("CI_PROJECT_ID", "CI_MERGE_REQUEST_IID")]
    if env.get("CI_API_V4_URL") and all(re.fullmatch(r"\d+", number) for number in numbers):
        notes = f"{env['CI_API_V4_URL']}/projects/{numbers[0]}/merge_requests/{numbers[1]}/notes"
        return Forge(
            comments=notes, one=f"{notes}/{{id}}", headers={"PRIVATE-TOKEN": _token(env, TOKENS[1])}, change="PUT"
        )
    what = "no pull request is known here: neither GitHub Actions nor GitLab CI runs this for one"
    raise UsageError(what, "--post", "leave --post out, and hand on what is printed")


def _token(env: Mapping[str, str], name: str) -> str:
    token = env.get(name, "")
    if not token:
        raise UsageError(f"there is no token to comment with: {name} is empty", "--post", f"set {name} for this job")
    return token


def _all(forge: Forge) -> Iterator[Mapping[str, object]]:
    for page in range(1, _PAGES + 1):
        items = _ask(forge, "GET", f"{forge.comments}?per_page={_PAGE}&page={page}")
        if not isinstance(items, list):
            raise ToolFailed(f"the answer of {forge.comments} is no list of comments")
        yield from (item for item in items if isinstance(item, dict) and "id" in item)
        if len(items) < _PAGE:
            return


def _ask(forge: Forge, method: str, url: str, data: Mapping[str, object] | None = None) -> object:
    """Return the forge's parsed answer. Redirects are not followed: they would leak the token."""
    body = None if data is None else json.dumps(data).encode()
    headers = {**forge.headers, "User-Agent": "symph", **({"Content-Type": "application/json"} if body else {})}
    try:
        with urllib3.PoolManager() as pool:
            answer = pool.request(
                method, url, body=body, headers=headers, redirect=False, retries=False, timeout=_FORGE_TIMEOUT_S
            )
    except urllib3.exceptions.HTTPError as error:
        raise ToolFailed(f"{url} cannot be reached: {error}") from error
    if not 200 <= answer.status < 300:
        next_step = "the job's token may not write comments there" if answer.status in (401, 403, 404) else ""
        raise ToolFailed(f"{method} {url} answered {answer.status}", next=next_step)
    try:
        parsed: object = json.loads(answer.data)
    except ValueError as error:
        raise ToolFailed(f"the answer of {url} is no JSON") from error
    return parsed


# The parts are outputs of `validate`, `plan` and `diff`, so that a reader can run the same commands.

_TIMEOUT_S = 300
# Exit statuses that do not reject a change: unknown node pools, and a name that does not run yet.
_HARMLESS = {"plan": (0, 2), "diff": (0, 8)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A command (without `symph`), its exit status, and its output."""

    command: tuple[str, ...]
    status: int
    text: str

    @property
    def is_good(self) -> bool:
        """True if the part does not reject the change."""
        return self.status in _HARMLESS.get(self.command[0], (0,))


def run(args: argparse.Namespace) -> int:
    """Print the review, and with --post comment on the pull request; return 1 if a part fails."""
    parts = [part for spec in specs_of(args.specs) for part in _parts(args, spec)]
    bad = [part for part in parts if not part.is_good]
    text = review_text(parts)
    if args.output == "json":
        output.print_record(args, "Review", {"parts": [asdict(part) for part in parts], "passed": not bad})
    else:
        output.line(text)
    if args.post:
        output.note(comment(text, is_dry=args.dry_run))
    return int(bool(bad))


def review_text(parts: Sequence[Part]) -> str:
    """Return the Markdown of `parts`; it starts with the mark by which a later run finds the comment."""
    words = [f"{'ok' if part.is_good else '**no**'} `{_shown(part)}`" for part in parts]
    return "\n\n".join([MARK, "<br>".join(words), *(_part_text(part) for part in parts)])


def _parts(args: argparse.Namespace, spec: str) -> Iterator[Part]:
    settings = find_settings(Path(spec).absolute().parent)
    pools = [word for file in args.pools for word in ("--pools", file)]
    changes = [word for text in args.spec_set for word in ("-E" if isinstance(text, Variable) else "--spec-set", text)]
    valid = _run("validate", spec, *(["--strict"] if args.strict else []), *changes)
    yield valid
    if valid.status not in (0, 1):
        return
    plan = _run("plan", spec, *pools, *changes)
    if plan.status != 2:
        yield plan
    for env in args.env or settings.environments:
        yield _run("diff", spec, "--env", env, "-o", "markdown", *pools, *changes)


def _run(*words: str) -> Part:
    # Do not import from the current folder: a file there may have the name of a module.
    begin = "import sys; sys.path = [*filter(None, sys.path)]; from symphony_charts.cli.main import main; "
    # The command may run a Python spec, which must not see the tokens for comments.
    env = dict.fromkeys(TOKENS, None)
    argv = [sys.executable, "-c", f"{begin}sys.exit(main())", *words]
    ended = start(argv, timeout_s=_TIMEOUT_S, check=False, env=env)
    return Part(command=words, status=ended.status, text=f"{ended.text}{ended.error_text}".strip())


def _part_text(part: Part) -> str:
    if part.command[0] == "diff" and part.status == 0:
        return f"`{_shown(part)}`\n\n{part.text}"
    # Longer than any fence in the text, so that no line can end the block.
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall("`+", part.text))])
    is_open = " open" if not part.is_good or part.command[0] == "plan" else ""
    head = f"<details{is_open}><summary><code>{_shown(part)}</code></summary>"
    return f"{head}\n\n{fence}text\n{part.text}\n{fence}\n</details>"


def _shown(part: Part) -> str:
    """Return the command as a line without Markdown or HTML."""
    words = " ".join(part.command)
    return re.sub(r"[`<>&|\r\n]", "?", f"symph {words}")
