"""``python -m tests.e2e.fuzz SEED [COUNT]``: one case again with its complete output, or many."""

from __future__ import annotations

import os
import sys

from tests.e2e.fuzz.run import run_cases

seed, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
for record in run_cases(seed, count, workers=min(count, 2), helm=os.environ.get("HELM_BIN")):
    sys.stdout.write("".join(f"{key}: {value}\n" for key, value in record.items()) + "\n")
