"""The shell scripts of DIJobs: as `cmds`, with the files they write as `configs`, and the compile step apart."""

from __future__ import annotations

import re
from dataclasses import replace

from symphony_charts.formats.shell import command_lines, script_of
from symphony_charts.importers.common.heredoc import lift
from symphony_charts.importers.dijob.draft import Draft

__all__ = ["read_script"]

# DI-engine's old mode compiles the configuration to FILE.pkl, which all roles then read from a shared volume.
_COMPILE = re.compile(r"\s*ding\s+(?:\S+\s+)*?--module\s+config\b")
_CONFIG_ARGUMENT = re.compile(r"\s-c\s+(?P<file>[^\s;]+)")
_STEP_FIELDS = ("image", "env", "cwd", "mounts", "requests", "limits")


def read_script(
    process: dict[str, object], path: str, draft: Draft, *, may_split: bool = False
) -> dict[str, object] | None:
    """Turn the shell script of a container into `cmds`, in place; files it writes go to the draft's `configs`.

    Returns the step that compiles the configuration, where `may_split` and its results are seen to lie on a volume.
    """
    script = script_of(_texts(process.get("command")), _texts(process.get("args")))
    if script is None:
        return None
    lifted = lift(script.text, draft.configs)
    draft.configs |= lifted.files
    for name in lifted.files:
        draft.log.note(path, f"the file {name}, which the script writes, now stands in `configs`")
    for line in lifted.kept:
        what = (
            f"line {line} of the script writes a file that depends on variables, or has no plain name; it stays there"
        )
        draft.log.note(path, what)
    script = replace(script, text=lifted.script)
    if script.is_bash:
        draft.log.note(path, "the script needs bash; it stays an argument of its shell")
        process["command"], process["args"] = list(script.shell), [lifted.script]
        return None
    lines = command_lines(script, may_exec=may_split)
    if not lines:
        return None
    process.pop("command", None)
    process.pop("args", None)
    head = _compile_lines(lines, process) if may_split else []
    process["cmds"] = _without(lines, head) if head else lines
    if _texts(process["cmds"])[0] == "set +e" and lines[0] == "set +e" and not script.text.startswith("set +e"):
        what = "the script goes on after a failing line, as before"
        draft.log.note(path, what, "remove `set +e` to stop there")
    if not head:
        return None
    draft.log.note(path, "the configuration is compiled by a step of its own (`prepare`)")
    return {"cmds": head, **{key: process[key] for key in _STEP_FIELDS if key in process}}


def _compile_lines(lines: list[str], process: dict[str, object]) -> list[str]:
    """The first lines, which write and compile a configuration, if its place is seen to be on a volume."""
    count = 0
    for index, line in enumerate(lines):
        if _COMPILE.match(line):
            count = index + 1
        elif line != "set +e" and not line.startswith("cat < "):
            break
    head = [line.rstrip(" ;") for line in lines[:count] if line != "set +e"]
    compiled = _CONFIG_ARGUMENT.search(head[-1]) if head and count < len(lines) else None
    if compiled is None or any(mark in head[-1] for mark in ";|&"):
        return []
    result = compiled["file"].rpartition("/")[2] + ".pkl"
    later = re.search(rf"(?P<folder>/\S*)/{re.escape(result)}\b", "\n".join(lines[count:]))
    folder = later["folder"] if later else process.get("cwd")
    return head if isinstance(folder, str) and _is_mounted(folder, process.get("mounts")) else []


def _without(lines: list[str], head: list[str]) -> list[str]:
    rest = [line for line in lines if line.rstrip(" ;") not in head and line != "set +e"]
    goes_on = lines[0] == "set +e" and (len(rest) > 1 or ";" in rest[0])
    return ["set +e", *rest] if goes_on else rest


def _is_mounted(folder: str, mounts: object) -> bool:
    if not isinstance(mounts, list):
        return False
    places = [str(mount.get("at")).rstrip("/") for mount in mounts if isinstance(mount, dict)]
    return any(place and (folder == place or folder.startswith(f"{place}/")) for place in places)


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
