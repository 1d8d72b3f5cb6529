"""ConfigMaps that stand in the file of a DIJob: their files become `configs` of the experiment."""

from __future__ import annotations

from symphony_charts.importers.common.pod import PodParts
from symphony_charts.importers.dijob.draft import Draft
from symphony_charts.spec.sources import CONFIG_DIR

__all__ = ["lift_config_maps"]


def lift_config_maps(parts: PodParts, pod: str, draft: Draft) -> None:
    """Take the files of mounted ConfigMaps into `configs`, and see that the pod finds them where it looks.

    Configuration files stand in one folder of every process. A ConfigMap mounted there needs nothing more; for any
    other place a step copies the files to an empty volume before the pod's processes start.
    """
    containers = [*parts.steps.items(), *parts.processes.items()]
    filled: set[str] = set()
    for container, process in containers:
        kept: list[object] = []
        mounts = process.get("mounts")
        for mount in mounts if isinstance(mounts, list) else []:
            if not isinstance(mount, dict) or not _stands_in_file(mount, draft):
                kept.append(mount)
            elif mount["at"] != CONFIG_DIR:
                name = draft.volumes.declare(f"files-{mount['volume']}", {"type": "empty_dir"})
                if name not in filled:
                    filled.add(name)
                    _add_copy(name, str(mount["volume"]), process, pod, parts.paths[container], draft)
                kept.append({**mount, "volume": name})
            else:
                _files(str(mount["volume"]), draft)
        if kept:
            process["mounts"] = kept
        else:
            process.pop("mounts", None)


def _stands_in_file(mount: dict[str, object], draft: Draft) -> bool:
    """Whether what is mounted is a ConfigMap of the file."""
    volume = draft.volumes.declared.get(str(mount["volume"]))
    return isinstance(volume, dict) and volume.get("type") == "config" and volume.get("config") in draft.config_maps


def _add_copy(volume: str, source: str, process: dict[str, object], pod: str, path: str, draft: Draft) -> None:
    folder = f"/mnt/{volume}"
    copies = [
        f'mkdir -p "{folder}/{target.rpartition("/")[0]}"\ncp "$SYMPH_CONFIG_DIR/{name}" "{folder}/{target}"'
        if "/" in target
        else f'cp "$SYMPH_CONFIG_DIR/{name}" "{folder}/{target}"'
        for target, name in _files(source, draft).items()
    ]
    step = {"cmds": copies or ["true"], "mounts": [{"volume": volume, "at": folder}], "groups": [pod]}
    if "image" in process:
        step["image"] = process["image"]
    draft.add_step(volume, step, path)


def _files(volume: str, draft: Draft) -> dict[str, str]:
    """The files of a ConfigMap's volume: path in the volume to name in `configs`."""
    content = draft.volumes.declared[volume]
    if not isinstance(content, dict):
        return {}
    held = draft.config_maps[str(content["config"])]
    draft.used_config_maps.add(str(content["config"]))
    draft.lifted_volumes.add(volume)
    data = held.text_map("data")
    held.skip("apiVersion", "metadata", "kind", "immutable")
    held.note_unread("of a ConfigMap is not carried over")
    items = content.get("items")
    chosen = items if isinstance(items, dict) else {key: key for key in data}
    return {str(path): draft.add_config(str(key), data[key]) for key, path in chosen.items() if key in data}
