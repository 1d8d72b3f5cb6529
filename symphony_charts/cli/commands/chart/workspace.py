"""`symph package --workspace`: a folder in the images of an experiment, pushed before the chart is made."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from symphony_charts.cli import output
from symphony_charts.cli.registry import access_of
from symphony_charts.errors import UsageError
from symphony_charts.oci.client import parse_reference
from symphony_charts.oci.image_layer import Entry
from symphony_charts.oci.images import Images, images_of
from symphony_charts.oci.workspace import patch_image, read_workspace
from symphony_charts.secrets.files import guard_of
from symphony_charts.settings.project import find_settings
from symphony_charts.spec import files as specfile

__all__ = ["push_workspace"]


def push_workspace(args: argparse.Namespace, specs: Sequence[str]) -> Images:
    """The images of all `specs` with the workspace in them.

    With `--dry-run` nothing is pushed: what would be is said on stderr. Raises Conflict for a secret in a file.
    """
    if args.workspace is None or args.image_repo is None:
        raise UsageError("--workspace and --image-repo go together", "", "give both: what to add, and where to push it")

    access = access_of(args, host=parse_reference(args.image_repo).host)
    folder = Path(args.workspace).expanduser()
    read = [specfile.read(path, args.spec_set) for path in specs]
    bases = list(dict.fromkeys(image for spec in read for image in images_of(spec.experiment)))
    entries = read_workspace(folder)
    guard_of(read, find_settings(folder).allowed_leaks).refuse(
        {str(folder / entry.path): entry.content for entry in entries}
    )
    _list(args, folder, entries)
    images = Images()
    files = [{"path": entry.path, "bytes": len(entry.content)} for entry in entries if not entry.is_folder]
    with output.progress("images", len(bases)) as advance:
        for base in bases:
            patched = patch_image(
                base, entries, args.image_repo, platforms=args.platform, access=access, dry_run=args.dry_run
            )
            state = "there already" if not patched.is_new else "would be pushed" if args.dry_run else "pushed"
            platforms = ", ".join(patched.platforms)
            layer = f"layer {patched.layer_digest[:19]}… of {patched.layer_bytes} bytes"
            output.note(f"image {patched.image}   {state}   tag {patched.tag}   {base} for {platforms}   {layer}")
            images.by_base[base] = patched.image
            images.records.append(
                {
                    "base": base,
                    "image": patched.image,
                    "tag": patched.tag,
                    "state": state,
                    "platforms": list(patched.platforms),
                    "layer": patched.layer_digest,
                    "bytes": patched.layer_bytes,
                    "files": files,
                }
            )
            advance(1)
    return images


def _list(args: argparse.Namespace, folder: Path, entries: Sequence[Entry]) -> None:
    """What goes into the layer: every file in a dry run, else their number."""
    files = [entry for entry in entries if not entry.is_folder]
    if args.dry_run:
        for entry in files:
            output.note(f"  {len(entry.content):>10}  {entry.path}{f' -> {entry.target}' if entry.target else ''}")
    total = sum(len(entry.content) for entry in files)
    output.note(f"workspace {folder}   {len(files)} files, {total} bytes")
