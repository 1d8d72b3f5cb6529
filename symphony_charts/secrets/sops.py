"""Encryption of a manifest by the sops program, whose keys and rules (``.sops.yaml``) are the user's own."""

from __future__ import annotations

from pathlib import Path

from symphony_charts.system.subprocess_runner import run

__all__ = ["encrypt_manifest"]


def encrypt_manifest(manifest: bytes, path: str, folder: Path) -> bytes:
    """`manifest` with the values of ``data`` and ``stringData`` encrypted, by the rules that hold for `path`.

    Rules are looked for from `folder` upwards. Raises ToolMissing without sops, ToolFailed where no rule fits.
    """
    argv = ["sops", "--encrypt", "--input-type", "yaml", "--output-type", "yaml", "--filename-override", path]
    argv += ["--encrypted-regex", "^(data|stringData)$", "/dev/stdin"]
    ended = run(argv, input=manifest, timeout_s=60, cwd=folder, check=False)
    if ended.status:
        said = ended.error_text.strip().splitlines()
        raise ended.failure(
            f"sops did not encrypt: {said[-1] if said else 'no reason given'}",
            path,
            "write a .sops.yaml beside the spec",
        )
    return ended.stdout
