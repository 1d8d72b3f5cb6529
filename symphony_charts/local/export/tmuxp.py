"""tmuxp loads a plan from a file with a window for each pod and a pane for each process.

Source of the format: tmuxp's documentation, "Configuration". tmuxp expands variables in every text, which nothing
escapes; so the file holds paths and names of ours alone.
"""

from __future__ import annotations

from symphony_charts.formats.yaml_write import dump
from symphony_charts.local.export.plain_files import Export, command_of, mount_notes, plain_files
from symphony_charts.local.plan.records import LocalPlan, PlannedProcess
from symphony_charts.local.plan.scripts import check_path

__all__ = ["to_tmuxp"]


def to_tmuxp(plan: LocalPlan, folder: str) -> Export:
    """Return the files that `tmuxp load` starts from the absolute path `folder`."""
    windows: dict[str, list[PlannedProcess]] = {}
    for process in plan.processes:
        windows.setdefault(process.pod, []).append(process)
    document = {
        "session_name": plan.experiment,
        # Of an earlier load: those that wait would take it for an end in this one.
        "before_script": f"/bin/sh {check_path(folder)}/clean",
        # Set for all windows before the first one exists: a process that ends at once must not end the session.
        "global_options": {"remain-on-exit": "on", "default-shell": "/bin/sh"},
        "windows": [
            {
                "window_name": pod,
                "layout": "tiled",
                "window_shell": command_of(panes[0], folder),
                # `window_shell` is the first pane; the others are split off with a shell of their own.
                "panes": ["blank", *({"shell": command_of(process, folder)} for process in panes[1:])],
            }
            for pod, panes in windows.items()
        ],
    }
    main = "tmuxp.yaml"
    files = {**plain_files(plan, folder, waits=True), main: (dump(document).encode(), 0o600)}
    files["clean"] = (f"rm -f {check_path(folder)}/p/*/exit\n".encode(), 0o600)
    return Export(main=main, files=files, notes=mount_notes(plan), start=f"tmuxp load {check_path(folder)}/{main}")
