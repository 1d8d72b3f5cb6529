"""Texts that are quantities, almost, or not at all, and the answers of Kubernetes' own library.

``tests/spec/quantities.jsonl`` holds recorded answers: the library's version, then ``[text, answer]`` per line, in the
format of tests/e2e/tools/quantity. ``python -m tests.e2e.quantities`` rewrites it.
"""

from __future__ import annotations

import json
import random
import re
from fractions import Fraction
from pathlib import Path
from typing import Literal, TypeAlias

from symphony_charts.formats.quantity import MOST, QuantityOverflowError, amount_of, quantity

Answer: TypeAlias = "tuple[str, int, str, str] | None"
"""None if refused, else the number as digits and a power of ten, and the counted units and thousandths."""
Verdict: TypeAlias = "tuple[Fraction, int | None, int | None] | Literal['refused', 'too large']"
"""The number, and the units and thousandths that the scheduler counts; None if it cannot, or must not."""

RECORDED = Path(__file__).with_name("quantities.jsonl")

_UNITS = ["n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
_NEAR_MISSES = """
+ - . +. -. .. 0 00 -0 +0 0.0 .0 0. 1. 0x10 1,5 1_0 1Gi1 1GiB 1GB 1ki 1KI 1mi 1K e E 1e 1E 1e+ 1E- 1ee5 1e5.5 1e5i 1Ee5
1Ei5 E5 e5 e-9 e-10 NaN inf 1n5 1m-3 1+5 1e007 1e+007 1e000000000000000000000000000001 1e400 1e-400 -1e400 1e2147483647
1e4294967296 1e4294967297 -1e4294967297 1e9223372036854775807 1e9223372036854775808 1e-9223372036854775808
1e-9223372036854775809 1.5e-2147483648 1Ei 7Ei 7.999Ei 8Ei 9Ei 16Ei -9Ei 9223372036854775807 9223372036854775808
9223372036854775.807k 9.3E 10E 9223372036854775807n 0.1n 0.0000000001 -0.1n 1.1Ki 0.0000000001Ki 0.5Ki 1.0000000001Ki
"""
_SPECIAL = [
    "",
    "1\n",
    "\n1",
    " 1",
    "1 ",
    "1 Gi",
    "1\x00",
    "\uff11",
    "1\u0661",
    "\u00b5",
    *_NEAR_MISSES.split(),
    *_UNITS,
]
_SIGNS = ["", "", "", "", "+", "-"]
_SUFFIXES = ["", "", *_UNITS]
_HOSTILE = "0123456789..++--eEinumkKMGTP _,\n\t\x00\u00a0\u0661\uff15xB"
# The library multiplies such numbers out, which takes minutes.
_ENDLESS = re.compile(r"[eE][+-]?[0-9]{4,}$")


def generated_texts(seed: int, count: int) -> list[str]:
    """Return `count` distinct texts: the same for the same seed."""
    chance = random.Random(seed)
    texts = dict.fromkeys(_SPECIAL)
    while len(texts) < count:
        text = _well_formed(chance)
        for _ in range(chance.choice([0, 0, 1, 1, 2, 3])):
            text = _mutated(text, chance)
        if not _ENDLESS.search(text):
            texts[text] = None
    return list(texts)[:count]


def recorded() -> list[tuple[str, Answer]]:
    lines = RECORDED.read_text(encoding="utf-8").splitlines()
    return [(text, tuple(answer) if answer else None) for text, answer in map(json.loads, lines[1:])]


def differences(answers: list[tuple[str, Answer]]) -> list[tuple[str, Verdict, Verdict]]:
    """Return the texts on which we and the library disagree: ours, theirs."""
    both = [(text, _ours(text), _theirs(answer)) for text, answer in answers]
    return [(text, ours, theirs) for text, ours, theirs in both if ours != theirs]


def _ours(text: str) -> Verdict:
    try:
        number = quantity(text)
    except QuantityOverflowError:
        return "too large"
    except ValueError:
        return "refused"
    return number, _counted("memory", text), _counted("cpu", text)


def _counted(resource: str, text: str) -> int | None:
    try:
        return amount_of(resource, text)
    except ValueError:
        return None


def _theirs(answer: Answer) -> Verdict:
    """Return the library's answer as a verdict: numbers beyond its integers and negative numbers are not counted."""
    if answer is None:
        return "refused"
    digits, power, units, thousandths = answer
    if digits != "0" and len(digits) + power > 100:
        return "too large"
    number = int(digits) * Fraction(10) ** power
    if abs(number) > MOST:
        return "too large"
    if number < 0:
        return number, None, None
    return number, int(units), int(thousandths) if number * 1000 <= MOST else None


def _well_formed(chance: random.Random) -> str:
    whole = _digits(chance)
    decimals = chance.choice(["", "", "", ".", f".{_digits(chance)}"])
    suffix = chance.choice(_SUFFIXES)
    if chance.random() < 0.25:
        most = chance.choice([3, 12, 30, 400])
        suffix = f"{chance.choice('eE')}{chance.choice(['', '+', '-'])}{chance.randint(0, most)}"
    return f"{chance.choice(_SIGNS)}{whole}{decimals}{suffix}"


def _digits(chance: random.Random) -> str:
    length = chance.choice([0, 1, 1, 2, 3, 5, 9, 15, 17, 18, 19, 20, 40])
    return (
        chance.choice(["", "0", "000"])
        + "".join(chance.choices("0123456789", k=length))
        + chance.choice(["", "", "000"])
    )


def _mutated(text: str, chance: random.Random) -> str:
    at = chance.randint(0, len(text))
    kept = chance.choice([at, at, at + 1])
    return f"{text[:at]}{chance.choice(['', *_HOSTILE])}{text[kept:]}"
