"""`recreate_pane_commands` gives the commands by which a pane that was closed is opened again, in a window of its own.

They are those of the file by which all panes were opened, so that there is one place that says how.
"""

from __future__ import annotations

import re

from symphony_charts.errors import ToolFailed

__all__ = ["recreate_pane_commands"]

_OPEN = re.compile(r"(?:new-session|new-window|split-window) .*?-c / (?:-n ('[^']*') )?(.*)")
_LOG = re.compile(r"pipe-pane -t %\d+ (.*)")


def recreate_pane_commands(commands: str, folder: str, *, has_session: bool) -> str:
    """Return the tmux commands for the pane of the process in `folder`, out of all `commands` of its run."""
    lines, name = commands.splitlines(), ""
    for number, line in enumerate(lines):
        if not (match := _OPEN.fullmatch(line)):
            continue
        # The panes of a pod share its window.
        name = match[1] or name
        if match[2].endswith(f"{folder}'"):
            how = "new-window" if has_session else "new-session -d -s symph"
            logs = [other for other in lines if _LOG.fullmatch(other) and f"{folder}/log" in other]
            # A new pane is the current one.
            logs = [_LOG.sub(r"pipe-pane \1", log) for log in logs]
            opened = [f"{how} -c / -n {name} {match[2]}", lines[number + 1], *logs]
            return "\n".join(opened) + "\n"
    raise ToolFailed("the commands of the pane are not there", folder)
