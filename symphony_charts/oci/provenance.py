"""The text that a ``.prov`` file signs: the chart's metadata and the digest of its archive.

Source: helm/helm, pkg/provenance/sign.go, messageBlock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from symphony_charts.formats.yaml_text import dump

__all__ = ["provenance_text"]


def provenance_text(metadata: Mapping[str, object], file_name: str, archive: bytes) -> str:
    """What is to be signed of the archive called `file_name`; `metadata` is what its Chart.yaml holds."""
    digest = hashlib.sha256(archive).hexdigest()
    return f"{dump(dict(sorted(metadata.items())))}\n...\n{dump({'files': {file_name: f'sha256:{digest}'}})}"
