"""Symphony's own import names (`symphony.engine`, `symphony.kube`...) stand for names of this package.

``python -m symphony_charts.compat SCRIPT ARGUMENTS`` runs a script that was written for Symphony 0.10, unchanged. The
names exist inside such a run, or inside `names()`, and nowhere else: a distribution `symphony` stays what it is.
"""

from __future__ import annotations

from symphony_charts.integrations.symphony.finder import names

__all__ = ["names"]
