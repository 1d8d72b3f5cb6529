"""What a row of tries says of a process: its answer changes only after so many equal ones, as with the kubelet.

Source: kubernetes/kubernetes pkg/kubelet/prober/worker.go.
"""

from __future__ import annotations

from dataclasses import dataclass

from symphony_charts.local.plan.records import Check

__all__ = ["Health"]


@dataclass(slots=True)
class Health:
    """The answer of one check so far: not ready, alive, and not known to have started until the tries say more."""

    check: Check
    passes: bool | None = None
    _last: bool | None = None
    _row: int = 0

    def __post_init__(self) -> None:
        if self.passes is None and self.check.role != "started":
            self.passes = self.check.role == "alive"

    def note(self, passed: bool) -> bool:
        """Take in one more try; whether it has settled the answer (again) or only begun to doubt it."""
        self._row = self._row + 1 if passed == self._last else 1
        self._last = passed
        if self._row < (self.check.successes if passed else self.check.failures):
            return False
        self.passes = passed
        return True
