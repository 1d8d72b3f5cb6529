"""The scripts of a run: a start script and mounts for each process, and one command file for tmux.

User data appears in them only inside single quotes of `sh` (`quote`). The tmux file holds our own paths and pod names,
both from a whitelist, since tmux expands formats and runs commands inside names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from symphony_charts.errors import SpecError
from symphony_charts.local.plan.records import Bind, Limit, LocalPlan, PlannedProcess, log_pipe
from symphony_charts.spec.variable_names import ATTEMPT, is_shell_name

TRIES = "tries"
"""The file in the folder of a process with the number of its earlier tries."""

_EXPORT = re.compile(r"export ([A-Za-z_][A-Za-z0-9_]*)=((?:'[^']*'|\\')+)\n")
# GNU's env substitutes ${NAME} itself, so that no argument list ever holds the values.
_RENAME = "set -- /usr/bin/env -S '"
_RENAMED = re.compile(r" ([-._a-zA-Z0-9]+)=\$\{([_a-z0-9]+)\}")
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/_.@+-]+")
_QUOTABLE_PATH = re.compile(r"[^'\"#%$`\\\x00-\x1f\x7f]+")
_PLAIN_WORD = re.compile(r"[A-Za-z0-9/_.@+=:%-]+")
_PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
# So that a detached session does not wrap at 80 columns.
_WIDTH, _HEIGHT = 200, 50


def quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def quote_path(path: str) -> str:
    """Return `path` as one word of tmux, also inside a shell command. Raises SpecError for special characters."""
    step = "set SYMPH_STATE_DIR to a path without quotes and without any of # % $ ` \\"
    return _matching(_QUOTABLE_PATH, path, f"the run folder {path!r}", step)


def check_path(path: str) -> str:
    """Return `path` if it is safe in tmux. Raises SpecError for characters that tmux would interpret."""
    step = "set SYMPH_STATE_DIR to a path of letters, digits and / . _ - only"
    return _matching(_PLAIN_PATH, path, f"the run folder {path!r}", step)


def _matching(pattern: re.Pattern[str], text: str, what: str, step: str) -> str:
    if not pattern.fullmatch(text):
        raise SpecError.one(f"{what} has characters that tmux would interpret", next=step)
    return text


def start_script(process: PlannedProcess) -> str:
    """Return the script that becomes the process: it writes its pid, sets environment and folder, then runs `exec`.

    It runs in an empty environment, so values are in no argument list; the shell's own PWD does not reach the process.
    """
    # Not $$, which in a subshell is the parent's.
    lines = ["read -r pid _ </proc/self/stat", "echo $pid >pid", "unset pid"]
    aliases = _aliases(process.env)
    lines += [f"export {aliases.get(name, name)}={quote(value)}" for name, value in process.env.items()]
    if aliases:
        unset = " ".join(f"-u {alias}" for alias in aliases.values())
        lines.append(f"{_RENAME}{unset} -- {' '.join(f'{name}=${{{alias}}}' for name, alias in aliases.items())}'")
    if process.counts_tries:
        lines.append(f"if [ -s {TRIES} ]; then read -r {ATTEMPT} <{TRIES}; export {ATTEMPT}; fi")
    lines.append(f'cd -- {quote(process.cwd)} || {{ echo "symph: no folder" {quote(process.cwd)} >&2; exit 126; }}')
    lines += rlimit_lines(process.limits)
    words = " ".join([*map(quote, process.enter), *(['"$@"'] if aliases else []), *map(quote, process.argv)])
    clean = " ".join(name for name in ("PWD", "OLDPWD") if name not in process.env)
    if process.preamble:
        lines.append(f"exec $(command -v bash || echo /bin/sh) -c {quote(_preamble(process, clean))} symph {words}")
    else:
        lines.append(f"unset {clean}" if clean else ":")
        lines.append(f"exec {words}")
    return "\n".join(lines) + "\n"


def read_environment(script: str) -> dict[str, str]:
    """Return the variables that a `start_script` sets, in its order."""
    environment = {}
    position = script.index("export ") if script.startswith("read -r pid") and "export " in script else 0
    while match := _EXPORT.match(script, position):
        parts = re.findall(r"'([^']*)'|(\\')", match[2])
        environment[match[1]] = "".join("'" if escaped else plain for plain, escaped in parts)
        position = match.end()
    if script.startswith(_RENAME, position):
        for name, alias in _RENAMED.findall(script[position : script.index("\n", position)]):
            environment[name] = environment.pop(alias)
    return environment


def _aliases(env: Mapping[str, str]) -> dict[str, str]:
    """Map names that no shell can set (``my.var``) to shell names that carry their values."""
    free = (alias for alias in (f"_symph_{number}" for number in count()) if alias not in env)
    return {name: next(free) for name in env if not is_shell_name(name)}


def _preamble(process: PlannedProcess, clean: str) -> str:
    lines = []
    for line in process.preamble:
        lines += [line, f"status=$?; if [ $status -ne 0 ]; then echo {quote(f'symph: preamble failed: {line}')} >&2"]
        lines += ["exit 126; fi"]
    return "\n".join([*lines, f"unset status SHLVL {clean}", 'exec "$@"'])


def mounts_script(binds: Iterable[Bind]) -> str:
    """Return a script that mounts `binds` in its own mount namespace and then executes its remaining arguments."""
    lines = []
    for bind in binds:
        lines.append(f"mount --rbind {quote(bind.source)} {quote(bind.target)} || exit 125")
        if bind.read_only:
            lines.append(f"mount -o remount,bind,ro {quote(bind.target)} || exit 125")
    return "\n".join([*lines, 'exec "$@"']) + "\n"


def helper_script(helper: Iterable[str]) -> str:
    """Return a `mounts_script` for mounts that only `helper`, an argument list, can make."""
    return f'exec {" ".join(map(quote, helper))} "$@"\n'


# The control group reports OOM kills, but only while the shell that started the process is still in it.
_OOM_SCRIPT = """\
read -r group </proc/self/cgroup
events=/sys/fs/cgroup${group#0::}/memory.events
if [ -r "$events" ]; then
    while read -r key count; do
        if [ "$key" = oom_kill ] && [ "$count" != 0 ]; then echo "out of memory, limit @" >limit; fi
    done <"$events"
fi
"""
_RLIMIT_SCRIPT = """\
if [ "$status" != 0 ]; then echo "memory limited to @ by rlimit" >limit; fi
"""


def rlimit_lines(limits: Sequence[Limit]) -> list[str]:
    """Return lines of `sh` that apply the rlimits in `limits` to the program it executes."""
    return [f"ulimit -d {max(1, limit.amount // 1024)} || exit 125" for limit in limits if limit.by == "rlimit"]


def verdict_script(limits: Sequence[Limit]) -> str:
    """Return lines of `sh` that write to ``limit`` if a limit ended a process with ``$status``."""
    scripts = {"systemd": _OOM_SCRIPT, "rlimit": _RLIMIT_SCRIPT}
    return "".join(scripts[limit.by].replace("@", limit.said) for limit in limits if limit.resource == "memory")


# tmux commands

_SESSION = f"new-session -d -s symph -x {_WIDTH} -y {_HEIGHT}"


def tmux_commands(plan: LocalPlan, run_dir: str) -> str:
    """Return all tmux commands that start a run: settings, a window for each pod, a pane for each process.

    The log pipes must be in the same file as the panes: tmux reads no output before the end of the file. They come last
    because programs that start at once delay tmux. A new server counts panes from 0.
    """
    lines = [
        "set-option -g update-environment ''",
        "set-option -g remain-on-exit on",
        "set-option -g history-limit 20000",
        "set-option -g automatic-rename off",
        "set-option -g allow-rename off",
        f"set-option -g status-left '[{plan.experiment}] '",
        "set-option -g status-left-length 40",
        "set-option -g status-right 'C-b n: next  C-b d: detach, it keeps running'",
        "set-option -g status-right-length 40",
        "set-option -g default-terminal tmux-256color",
    ]
    windows: dict[str, list[PlannedProcess]] = {}
    for process in plan.processes:
        windows.setdefault(process.pod, []).append(process)
    logs: list[str] = []
    for first, *others in windows.values():
        lines += _window(first, run_dir, "new-window" if logs else _SESSION)
        logs.append(_log(first, run_dir, f"-t %{len(logs)} "))
        for process in others:
            # A window holds few panes at its first size; balance it before each split, or tmux finds no space.
            lines += ["select-layout tiled", *_pane(process, run_dir, "split-window")]
            logs.append(_log(process, run_dir, f"-t %{len(logs)} "))
        if others:
            lines.append("select-layout tiled")
    return "\n".join([*lines, *filter(None, logs), "select-window -t ':^'"]) + "\n"


def new_pane(process: PlannedProcess, run_dir: str, *, has_session: bool) -> str:
    """Return the tmux commands that open another pane for `process`, in a window of its own."""
    opened = _window(process, run_dir, "new-window" if has_session else _SESSION)
    return "\n".join([*opened, _log(process, run_dir)]) + "\n"


def _window(process: PlannedProcess, run_dir: str, how: str) -> list[str]:
    name = process.pod if _PLAIN_NAME.fullmatch(process.pod) else f"pod-{process.slot}"
    return _pane(process, run_dir, f"{how} -n '{name}'")


def _pane(process: PlannedProcess, run_dir: str, how: str) -> list[str]:
    # Command words are not expanded as formats.
    step = "set `local: {limits: false}`"
    scope = "".join(f"'{_matching(_PLAIN_WORD, word, repr(word), step)}' " for word in process.scope)
    run_dir = quote_path(run_dir)
    program = f"{scope}/bin/sh '{run_dir}/wrapper.sh' '{run_dir}/p/{process.slot}'"
    return [f"{how} -c / {program}", f"set-option -p @slot {process.slot}"]


def _log(process: PlannedProcess, run_dir: str, pane: str = "") -> str:
    """Return the command that writes the log of a process with a terminal; empty if the process writes it itself."""
    return f"pipe-pane {pane}'{log_pipe(quote_path(f'{run_dir}/p/{process.slot}'))}'" if process.tty else ""
