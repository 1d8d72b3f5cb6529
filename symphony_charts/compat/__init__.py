"""Map Symphony's import names (`symphony.engine`, `symphony.kube`...) to this package.

`python -m symphony_charts.compat SCRIPT ARGUMENTS` runs an unchanged script written for Symphony 0.10. The names exist
only in such a run or inside `names()`: an installed distribution `symphony` is not affected.
"""

from __future__ import annotations

from symphony_charts.integrations.symphony.finder import names

__all__ = ["names"]
