"""Kubernetes' own library parses quantities; ``python -m tests.e2e.quantities`` records its answers."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tests.e2e.tools.build import find_tool
from tests.formats.quantity_texts import RECORDED, Answer, generated_texts

_MODULE = Path(__file__).resolve().parent / "tools" / "quantity" / "go.mod"
_SEED, _COUNT = 20261122, 2000


def answers_of(texts: list[str]) -> list[tuple[str, Answer]]:
    asked = "".join(f"{json.dumps(text)}\n" for text in texts)
    done = subprocess.run([find_tool("quantity")], input=asked, capture_output=True, text=True, timeout=120, check=True)
    return [(text, _short(json.loads(line))) for text, line in zip(texts, done.stdout.splitlines(), strict=True)]


def _short(answer: list[str | int] | None) -> Answer:
    """Return the answer with the trailing zeros of its digits moved to its power of ten."""
    if answer is None:
        return None
    digits, power, units, thousandths = answer
    kept = str(digits).rstrip("0") or "0"
    return kept, int(power) + len(str(digits)) - len(kept), str(units), str(thousandths)


def record() -> None:
    version = re.search(r"require (k8s\.io/apimachinery v\S+)", _MODULE.read_text(encoding="utf-8"))
    assert version is not None
    lines = [{"library": version[1]}, *answers_of(generated_texts(_SEED, _COUNT))]
    RECORDED.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    record()
