"""The table of verbs: what `symph --help` shows and which module answers.

A verb is one module of this package with two functions: ``configure(parser)`` adds its arguments, ``run(args)`` does
the work and returns the exit status. Only the module of the verb that was typed is imported, which keeps `symph --help`
fast. To add a verb, write the module and add one row.
"""

from __future__ import annotations

__all__ = ["GROUPS", "HIDDEN", "VERBS", "Verb", "find_verb"]


class Verb:
    """One row: a name, other names, one line of help, the module below `symphony_charts.cli`, a group of the help."""

    __slots__ = ("aliases", "group", "module", "name", "summary")

    # A plain class: importing dataclasses or typing costs more than the whole table.
    def __init__(self, name: str, aliases: tuple[str, ...], summary: str, module: str, group: str) -> None:
        self.name = name
        self.aliases = aliases
        self.summary = summary
        self.module = module
        self.group = group

    @property
    def names(self) -> tuple[str, ...]:
        """The name followed by the aliases."""
        return (self.name, *self.aliases)


# The order of the groups in `symph --help`.
GROUPS = ("Write", "Run here", "Watch and steer", "Charts", "Placement", "Git", "Cluster", "Tools")

VERBS: tuple[Verb, ...] = ()

# Verbs that programs call; no help page lists them.
HIDDEN: tuple[Verb, ...] = ()


def find_verb(name: str, verbs: tuple[Verb, ...] = VERBS) -> Verb | None:
    """The verb with that name or alias, or None."""
    for verb in verbs:
        if name in verb.names:
            return verb
    return None
