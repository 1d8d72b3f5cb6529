"""`symph gitops review`: what a change of experiments means, as one Markdown text for its pull request.

Its parts are what `validate`, `plan` and `diff` print, each run as by hand, so that a reader can run it, too.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from symphony_charts.cli import output
from symphony_charts.cli.commands.gitops.review_comment import MARK, TOKENS, comment
from symphony_charts.cli.specs import specs_of
from symphony_charts.settings.project import find_settings
from symphony_charts.system.subprocess_runner import run as start

__all__ = ["run"]

_TIMEOUT_S = 300
# What says nothing against a change: no node pools are known, nothing of that name runs yet.
_HARMLESS = {"plan": (0, 2), "diff": (0, 8)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A command that was run, without `symph`, its exit status, and what it printed."""

    command: tuple[str, ...]
    status: int
    text: str

    @property
    def is_good(self) -> bool:
        """Whether nothing speaks against the change."""
        return self.status in _HARMLESS.get(self.command[0], (0,))


def run(args: argparse.Namespace) -> int:
    """Print the review, and with --post leave it at the pull request; the status is 1 when a part says no."""
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
    """The Markdown of `parts`; it begins with the mark by which a later one finds it."""
    words = [f"{'ok' if part.is_good else '**no**'} `{_shown(part)}`" for part in parts]
    return "\n\n".join([MARK, "<br>".join(words), *(_part_text(part) for part in parts)])


def _parts(args: argparse.Namespace, spec: str) -> Iterator[Part]:
    settings = find_settings(Path(spec).absolute().parent)
    pools = [word for file in args.pools for word in ("--pools", file)]
    changes = [word for text in args.spec_set for word in ("--spec-set", text)]
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
    # A file of the current folder may be called as a module of ours: it is no place to import from.
    begin = "import sys; sys.path = [*filter(None, sys.path)]; from symphony_charts.cli.main import main; "
    # A spec in Python is run by these; what comments is none of its business.
    env = dict.fromkeys(TOKENS, None)
    argv = [sys.executable, "-c", f"{begin}sys.exit(main())", *words]
    ended = start(argv, timeout_s=_TIMEOUT_S, check=False, env=env)
    return Part(command=words, status=ended.status, text=f"{ended.text}{ended.error_text}".strip())


def _part_text(part: Part) -> str:
    if part.command[0] == "diff" and part.status == 0:
        return f"`{_shown(part)}`\n\n{part.text}"
    # No line of the text may end the block.
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall("`+", part.text))])
    is_open = " open" if not part.is_good or part.command[0] == "plan" else ""
    head = f"<details{is_open}><summary><code>{_shown(part)}</code></summary>"
    return f"{head}\n\n{fence}text\n{part.text}\n{fence}\n</details>"


def _shown(part: Part) -> str:
    """The command, as a line that no Markdown or HTML reads."""
    words = " ".join(part.command)
    return re.sub(r"[`<>&|\r\n]", "?", f"symph {words}")
