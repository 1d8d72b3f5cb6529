"""`symph gitops review`: the effects of a change of experiments, as one Markdown text for its pull request."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from symphony_charts.cli import output
from symphony_charts.cli.specs import specs_of
from symphony_charts.settings.project import find_settings
from symphony_charts.spec.variable_names import Variable
from symphony_charts.system.subprocess_runner import run as start

MARK = "<!-- symph review -->"
"""The first line of a review, by which a script finds its own earlier comment."""
# Tokens of forges that CI jobs have, which a Python spec must not see.
_TOKENS = ("GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN")

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
    """Print the review; return 1 if a part fails."""
    parts = [part for spec in specs_of(args.specs) for part in _parts(args, spec)]
    bad = [part for part in parts if not part.is_good]
    text = review_text(parts)
    if args.output == "json":
        output.print_record(args, "Review", {"parts": [asdict(part) for part in parts], "passed": not bad})
    else:
        output.line(text)
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
    env = dict.fromkeys(_TOKENS, None)
    argv = [sys.executable, "-c", f"{begin}sys.exit(main())", *words]
    ended = start(argv, timeout_s=_TIMEOUT_S, check=False, env=env)
    return Part(command=words, status=ended.status, text=f"{ended.text}{ended.error_text}".strip())


def _part_text(part: Part) -> str:
    if part.command[0] == "diff" and part.status == 0:
        return f"`{_shown(part)}`\n\n{part.text}"
    is_open = " open" if not part.is_good or part.command[0] == "plan" else ""
    head = f"<details{is_open}><summary><code>{_shown(part)}</code></summary>"
    return f"{head}\n\n{output.fenced(part.text, 'text')}\n</details>"


def _shown(part: Part) -> str:
    """Return the command as a line without Markdown or HTML."""
    words = " ".join(part.command)
    return re.sub(r"[`<>&|\r\n]", "?", f"symph {words}")
