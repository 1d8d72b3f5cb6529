"""Files at other paths than the pod's, for a machine that cannot show them there: texts that name them are changed.

A path is changed where it stands as a whole or begins a longer one, as in ``--data=/mnt/d/x``; what a program builds
from parts, or has inside of it, cannot be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from symphony_charts.local.plan.records import Bind
from symphony_charts.spec.model import Process, Step

__all__ = ["note_of", "original", "relocated"]


def relocated(process: Process | Step, binds: Sequence[Bind]) -> Process | Step:
    """`process` whose command, shell lines, variables and folder name the sources of `binds` and not their targets."""
    moves = {bind.target: bind.source for bind in binds}
    if not moves:
        return process

    def words(given: list[str] | None) -> list[str] | None:
        return None if given is None else [_replaced(word, moves) for word in given]

    env = {name: _replaced(value, moves) if isinstance(value, str) else value for name, value in process.env.items()}
    return msgspec.structs.replace(
        process,
        command=words(process.command),
        args=words(process.args),
        cmds=words(process.cmds),
        env=env,
        cwd=None if process.cwd is None else _replaced(process.cwd, moves),
    )


def original(text: str, binds: Iterable[Bind]) -> str:
    """`text` as it was before `relocated`."""
    return _replaced(text, {bind.source: bind.target for bind in binds})


def note_of(binds: Iterable[Bind]) -> tuple[str, ...]:
    """What users must know of volumes that are not where the pod has them; nothing when there are none."""
    moved = {bind.target: bind.source for bind in binds if bind.source != bind.target}
    if not moved:
        return ()
    places = ", ".join(f"{target} is {source}" for target, source in list(moved.items())[:5])
    more = f" and {len(moved) - 5} more" if len(moved) > 5 else ""
    return (f"volumes are other folders here, in commands and variables as well: {places}{more}",)


def _replaced(text: str, moves: dict[str, str]) -> str:
    if not any(path in text for path in moves):
        return text
    # The longest first, or a folder would be taken for one above it.
    choices = "|".join(re.escape(path) for path in sorted(moves, key=len, reverse=True))
    return re.sub(rf"(?<![\w./-])(?:{choices})(?![\w.-])", lambda found: moves[found[0]], text)
