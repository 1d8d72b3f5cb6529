"""A plain `sh` script starts all of a plan, waits, and ends the rest when one process fails."""

from __future__ import annotations

from symphony_charts.local.export.plain_files import Export, label_of, mount_notes, plain_files
from symphony_charts.local.plan.records import LocalPlan
from symphony_charts.local.plan.scripts import quote

__all__ = ["to_shell"]


def to_shell(plan: LocalPlan, folder: str) -> Export:
    """The script ``run.sh`` for the absolute path `folder`, whatever that path holds.

    Its status is that of the first process that failed, as with `symph up --wait`; output goes to a log per process.
    """
    slots = " ".join(str(process.slot) for process in plan.processes)
    aims = " ".join(map(str, plan.done_when))
    lines = [
        "#!/bin/sh",
        f"# The processes of {plan.experiment}. Ctrl-C ends them all.",
        f"cd -- {quote(folder)} || exit 125",
        *(f"# {process.slot}: {label_of(process)}" for process in plan.processes),
        f"slots='{slots}'",
        # What has to succeed; without any aim everything has to end.
        f"aims='{aims or slots}'",
        f"grace={max((process.grace_s for process in plan.processes), default=30)}",
        *_BODY,
    ]
    files = {**plain_files(plan, folder, waits=True), "run.sh": ("\n".join([*lines, ""]).encode(), 0o700)}
    notes = (*mount_notes(plan), "the script restarts nothing")
    return Export(main="run.sh", files=files, notes=notes, start=f"sh {quote(folder + '/run.sh')}")


_BODY = (
    'end_of() { status=; if [ -e "p/$1/end" ]; then read -r status <"p/$1/end"; fi; }',
    "signal() {",
    "    for slot in $slots; do",
    '        end_of "$slot"',
    '        if [ -z "$status" ] && read -r pid _ <"p/$slot/pid"; then kill "-$1" "$pid"; fi 2>/dev/null',
    "    done",
    "}",
    "stop() {",
    "    trap : INT TERM",
    "    signal TERM",
    "    (sleep $grace; signal KILL) &",
    "    watch=$!",
    "    wait $children",
    '    kill "$watch" 2>/dev/null',
    '    exit "$1"',
    "}",
    "children=",
    'for slot in $slots; do rm -f "p/$slot/pid" "p/$slot/end" "p/$slot/exit"; done',
    "for slot in $slots; do",
    "    (",
    "        trap : INT TERM",
    '        /usr/bin/env -i /bin/sh "$PWD/p/$slot/run" >"p/$slot/log" 2>&1 </dev/null',
    '        echo "$?" >"p/$slot/end.new"',
    '        mv "p/$slot/end.new" "p/$slot/end"',
    "    ) &",
    '    children="$children $!"',
    "done",
    "trap 'stop 130' INT",
    "trap 'stop 143' TERM",
    "while :; do",
    "    left=",
    "    for slot in $slots; do",
    '        end_of "$slot"',
    '        if [ -n "$status" ] && [ "$status" -ne 0 ]; then stop "$status"; fi',
    '        case " $aims " in *" $slot "*) if [ -z "$status" ]; then left=yes; fi ;; esac',
    "    done",
    '    if [ -z "$left" ]; then stop 0; fi',
    "    sleep 0.1",
    "done",
)
