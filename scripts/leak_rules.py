"""Write the rules of the leak guard from gitleaks' rules: without prose, one rule per line.

    python -m scripts.leak_rules

Patterns, keywords, entropy, paths, groups, stop words and exceptions are copied unchanged.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.e2e.tools import modules

OUT = Path(__file__).resolve().parent.parent / "symphony_charts" / "secrets" / "rules.json"


def rules_text(module: Path) -> str:
    """Return the content of ``rules.json`` from gitleaks' sources in the folder `module`."""
    import tomllib  # newer than the oldest Python that the package itself runs on

    config = tomllib.loads((module / "config" / "gitleaks.toml").read_text(encoding="utf-8"))
    head = {
        "source": f"{modules.GITLEAKS}, config/gitleaks.toml",
        "licence": (module / "LICENSE").read_text(encoding="utf-8").split("\n"),
        "allow": [_allowed(config["allowlist"])],
    }
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    rules = [json.dumps(_rule(rule), ensure_ascii=False) for rule in config["rules"]]
    return "\n".join(["{", *lines, '  "rules": [', ",\n".join(f"    {rule}" for rule in rules), "  ]", "}", ""])


def _rule(rule: dict[str, Any]) -> dict[str, Any]:
    unknown = set(rule) - _KEYS - {"description", "allowlists", "tags"}
    if unknown:
        sys.exit(f"rule {rule['id']} has keys that the guard does not know: {', '.join(sorted(unknown))}")
    kept = {key: value for key, value in rule.items() if key in _KEYS and value}
    kept["keywords"] = sorted({keyword.lower() for keyword in rule.get("keywords", ())})
    allowed = [_allowed(allowlist) for allowlist in rule.get("allowlists", ())]
    return {**kept, "allow": allowed} if allowed else kept


def _allowed(allowlist: dict[str, Any]) -> dict[str, Any]:
    known = {"description", "condition", "regexTarget", "regexes", "paths", "stopwords"}
    if unknown := set(allowlist) - known:
        sys.exit(f"an allowlist has keys that the guard does not know: {', '.join(sorted(unknown))}")
    return {key: value for key, value in allowlist.items() if key != "description"}


_KEYS = {"id", "regex", "path", "keywords", "entropy", "secretGroup"}


if __name__ == "__main__":
    OUT.write_text(rules_text(modules.module_folder(modules.GITLEAKS)), encoding="utf-8")
    print(f"{OUT.name}: {OUT.stat().st_size >> 10} KiB", file=sys.stderr)
