"""Unpacks the test tools: `python -m tests.tools`; exit status 1 if one is missing."""

from __future__ import annotations

import sys

from tests.tools import unpack_all

lines = unpack_all()
sys.stdout.write("\n".join(lines) + "\n")
sys.exit(any("missing" in line for line in lines))
