"""The next step of an error goes on where its command line looked: on the same backend, in the same namespace.

What raises an error knows neither; so each `symph VERB` in its step is given those flags here that the verb takes.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Mapping

__all__ = ["placed"]

_FLAGS = {"on": "--on", "namespace": "-n", "context": "--context", "kubeconfig": "--kubeconfig"}
_COMMAND = re.compile(r"\bsymph ([a-z][a-z-]*)(?= |$)")


def placed(step: str, args: argparse.Namespace) -> str:
    """`step` with what `args` say of the place after each verb that takes it and does not say it already."""
    # This machine is where verbs look by themselves.
    given = {name: str(value) for name in _FLAGS if (value := getattr(args, name, None)) not in (None, "", "tmux")}
    starts = [match.start() for match in _COMMAND.finditer(step)]
    if not given or not starts or not hasattr(args, "symphony"):
        return step
    ends = [*starts[1:], len(step)]
    commands = (_completed(step[start:end], given, args) for start, end in zip(starts, ends, strict=True))
    return step[: starts[0]] + "".join(commands)


def _completed(text: str, given: Mapping[str, str], args: argparse.Namespace) -> str:
    """What begins with a command, its flags after the verb."""
    match = _COMMAND.match(text)
    try:
        parser: argparse.ArgumentParser | None = args.symphony.get_subparser(match[1]) if match else None
    except KeyError:
        parser = None
    if match is None or parser is None:
        return text
    takes = {action.dest: action for action in parser._actions if action.option_strings}
    flags = []
    for name, value in given.items():
        option = takes.get(name)
        is_said = option is not None and set(option.option_strings) & {*text.split()}
        if option is not None and not is_said and (option.choices is None or value in option.choices):
            flags += [_FLAGS[name], shlex.quote(value)]
    return " ".join([match[0], *flags]) + text[match.end() :]
