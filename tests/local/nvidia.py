"""A machine with GPUs for tests: a program `nvidia-smi` with the output format of the real one.

No GPU is needed. The format is the one that NVIDIA documents for driver 550 (``nvidia-smi --help-query-gpu`` and the
MIG User Guide), with other numbers.
"""

from __future__ import annotations

from pathlib import Path

import pytest


def gpu(number: int) -> str:
    """Return the UUID of GPU `number`; each has a different prefix."""
    return f"GPU-{number}a9f6b1c-8a55-4b0f-9c55-2f1d5e6a7b8c"


# GPU 3 reports fewer values, as desktop GPUs do.
USE = "".join(f"{gpu(number)}, {50 * number}, {1024 * number}\n" for number in range(3)) + f"{gpu(3)}, [N/A], 12\n"
LISTING = "".join(f"GPU {number}: Tesla V100-SXM2-16GB (UUID: {gpu(number)})\n" for number in range(4))
MIG_LISTING = f"""\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: {gpu(0)})
GPU 1: NVIDIA A100-SXM4-40GB (UUID: {gpu(1)})
  MIG 3g.20gb     Device  0: (UUID: MIG-11111111-2222)
  MIG 3g.20gb     Device  1: (UUID: MIG-33333333-4444)
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, count: int = 4) -> None:
    """Put such a program, on a machine of `count` GPUs, first in PATH."""
    import os

    place = folder / "nvidia"
    place.mkdir()
    for name, text in (("listing", LISTING), ("use", USE)):
        (place / name).write_text("".join(text.splitlines(keepends=True)[:count]))
    program = place / "nvidia-smi"
    program.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        f"'--query-gpu=uuid,utilization.gpu,memory.used --format=csv,noheader,nounits') exec cat '{place}/use';;\n"
        f"-L) exec cat '{place}/listing';;\n*) echo 'Invalid combination of input arguments.' >&2; exit 2;;\nesac\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
