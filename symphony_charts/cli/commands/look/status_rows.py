"""What `symph status` knows of each place as a row, and what of that is told: here, environments, what waits in Git."""

from __future__ import annotations

import re
from dataclasses import dataclass

from symphony_charts.backend.status import FINAL, ExperimentStatus, age_since
from symphony_charts.backend.why import Why, to_data
from symphony_charts.gitops.store.pointers import Placed
from symphony_charts.gitops.store.review import Waiting

__all__ = ["Row"]

_VERSION = re.compile(r"-(\d+\.\d+\.\d+.*)$")
_BAD_PHASES = ("failed", "lost", "damaged")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One place: what Git says of it (`placed`), what runs there (`live`), or a change that waits for it.

    `where` is ``here``, an environment, or the context of a cluster. `runs` is what the environment of a change runs.
    """

    where: str
    name: str
    team: str = ""
    context: str | None = None
    placed: Placed | None = None
    live: ExperimentStatus | None = None
    waiting: Waiting | None = None
    runs: str | None = None
    review: str = ""
    why: Why | None = None

    @property
    def is_bad(self) -> bool:
        """Whether something has failed, or does not pass by itself."""
        return bool((self.why and self.why.is_bad) or (self.live and self.live.phase in _BAD_PHASES))

    @property
    def is_settled(self) -> bool:
        """Whether nothing of it will change by itself."""
        return self.live is None or self.live.is_final

    @property
    def running(self) -> str | None:
        """The version of the chart whose objects are there."""
        match = _VERSION.search(self.live.chart) if self.live else None
        return match[1] if match else None

    @property
    def version(self) -> str | None:
        """The version that Git says, else the one that is there."""
        if self.waiting:
            return self.waiting.version
        return self.placed.pointer.version if self.placed and self.placed.pointer else self.running

    @property
    def phase(self) -> str:
        """How it is, in a word that programs may rely on: a phase as of `ls` and `ps`, else what Git alone knows."""
        if self.live is not None:
            return self.live.phase
        if self.waiting:
            return "proposed"
        is_whole = self.placed is None or (self.placed.pointer is not None and self.placed.has_chart)
        return "published" if is_whole else "damaged"

    @property
    def state(self) -> str:
        """How it is, in a few words."""
        if self.waiting:
            return f"waits on {self.waiting.branch}"
        if self.placed and not self.placed.pointer:
            return "cannot be read"
        if self.placed and not self.placed.has_chart:
            return "chart missing"
        if self.live is None:
            return "published"
        if self.live.phase not in FINAL:
            return f"{self.live.phase} {age_since(self.live.started)}"
        ago = f" {age_since(self.live.ended)} ago" if self.live.ended else ""
        return f"{self.live.phase}{ago}"

    @property
    def color(self) -> str:
        """What the state means: good, busy, or bad."""
        if self.is_bad:
            return "bad"
        return "good" if self.state == "published" or (self.live and not self.why) else "busy"

    @property
    def counts(self) -> tuple[int, int] | None:
        """How many processes are ready or have succeeded, of how many; None of what runs nowhere."""
        if self.live is None:
            return None
        counted = [each for each in self.live.instances if not each.is_step]
        return sum(each.ready or each.phase == "succeeded" for each in counted), len(counted)

    def item(self) -> dict[str, object]:
        """All of it as JSON types; every key is always there."""
        pointer, live, waiting = (self.placed.pointer if self.placed else None), self.live, self.waiting
        ready, wanted = self.counts or (None, None)
        env = self.placed.env if self.placed else waiting.env if waiting else None
        return {
            "name": self.name,
            "team": self.team or None,
            "where": self.where,
            "env": env,
            "context": self.context,
            "namespace": live.namespace or None if live else pointer.destination.namespace if pointer else None,
            "version": self.version,
            "running": self.running,
            "state": self.state,
            "phase": self.phase,
            "ready": ready,
            "processes": wanted,
            "started": live.started if live else None,
            "ended": live.ended if live else None,
            "seconds": live.seconds if live else None,
            "run": live.run or None if live else None,
            "heldBy": list(live.held_by) if live else [],
            "why": to_data(self.why),
            "was": self.runs if waiting else pointer.history[0].version if pointer and pointer.history else None,
            "op": waiting.op if waiting else pointer.op if pointer else None,
            "at": pointer.at if pointer else None,
            "by": (pointer.by or None) if pointer else None,
            "digest": pointer.digest if pointer else None,
            "chart": pointer.chart if pointer else None,
            "values": pointer.values if pointer else None,
            "branch": waiting.branch if waiting else None,
            "review": self.review or None,
        }
