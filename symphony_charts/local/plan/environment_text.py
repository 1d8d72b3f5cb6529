"""The environment of a process as text: read back from its start script, written for a shell."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from symphony_charts.local.plan.masking import MASK
from symphony_charts.local.plan.scripts import quote

__all__ = ["read_environment", "shell_text"]

_EXPORT = re.compile(r"export ([A-Za-z_][A-Za-z0-9_]*)=((?:'[^']*'|\\')+)\n")


def read_environment(script: str) -> dict[str, str]:
    """The variables that a start script of ours sets, in its order."""
    found, position = {}, script.index("export ") if script.startswith("read -r pid") and "export " in script else 0
    while match := _EXPORT.match(script, position):
        parts = re.findall(r"'([^']*)'|(\\')", match[2])
        found[match[1]] = "".join("'" if escaped else plain for plain, escaped in parts)
        position = match.end()
    return found


def shell_text(env: Mapping[str, str], masked: Collection[str]) -> str:
    """Lines that a shell can source; those of `masked` are comments, so that sourcing them sets nothing wrong."""
    lines = [
        f"# export {name}={MASK}   (--show-secrets)" if name in masked else f"export {name}={quote(value)}"
        for name, value in env.items()
    ]
    return "".join(f"{line}\n" for line in lines)
