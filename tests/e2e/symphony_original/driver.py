"""Builds experiments from calls and dumps them: the same program for Symphony itself and for our replacement.

It reads a list of cases from stdin and writes a list of answers. It imports nothing of this package.
"""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import json
import sys
from typing import Any

# Symphony 0.10 was written for a Python whose `collections` still had these names.
for _name in ("Mapping", "Sequence"):
    setattr(collections, _name, getattr(collections.abc, _name))


def build(case: dict[str, Any]) -> Any:
    """Build one experiment; each call of a case names its object, a method and its keywords."""
    import symphony

    kind = {"kube": symphony.KubeExperimentSpec, "tmux": symphony.TmuxExperimentSpec}[case["backend"]]
    held: dict[str, Any] = {"": kind(**case["experiment"])}
    for name, on, method, words, keywords in case["calls"]:
        made = getattr(held[on], method)(*words, **keywords)
        if name:
            held[name] = made
    return held[""]


def readable(dump: dict[str, Any]) -> Any:
    """Return a dump as its reader takes it: Symphony's own takes attribute dictionaries only."""
    try:
        from benedict import BeneDict  # type: ignore[import-not-found]  # part of Symphony
    except ImportError:
        return dump
    return BeneDict(dump)


def main() -> None:
    """Answer every case: its dump, or a dump of the experiment in `load`, and its address book before and after.

    With `pods` the answer has Symphony's own pods, as it sends them to a cluster.
    """
    answers = []
    for case in json.load(sys.stdin):
        with contextlib.redirect_stdout(sys.stderr):
            exp = build(case)
            again = type(exp).load_dict(readable(case["load"])) if "load" in case else exp
            answer = {"dump": json.loads(json.dumps(again.dump_dict())), "before": dict(exp.address_book.entries)}
            if case["backend"] == "kube" and "secrets" not in case["experiment"]:
                if case.get("pods"):
                    made = exp._compile()
                    answer["pods"] = [text for name, text in made.items() if name.startswith("process")]
                else:
                    exp.compile()
            answer["ports"] = [[name, entry["port"]] for name, entry in exp.address_book.entries.items()]
            answers.append(answer)
    json.dump(answers, sys.stdout)


main()
