"""Write the rules of the leak guard from gitleaks' rules: without prose, one rule per line.

    python -m scripts.leak_rules

Keywords, entropy, groups, stop words and exceptions are copied unchanged. Patterns are translated from RE2's
syntax to the syntax of Python's `re`.
"""

from __future__ import annotations

import json
import re
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
    kept |= {key: in_python_syntax(kept[key]) for key in ("regex", "path") if key in kept}
    kept["keywords"] = sorted({keyword.lower() for keyword in rule.get("keywords", ())})
    allowed = [_allowed(allowlist) for allowlist in rule.get("allowlists", ())]
    return {**kept, "allow": allowed} if allowed else kept


def _allowed(allowlist: dict[str, Any]) -> dict[str, Any]:
    known = {"description", "condition", "regexTarget", "regexes", "paths", "stopwords"}
    if unknown := set(allowlist) - known:
        sys.exit(f"an allowlist has keys that the guard does not know: {', '.join(sorted(unknown))}")
    kept = {key: value for key, value in allowlist.items() if key != "description"}
    return kept | {key: [in_python_syntax(each) for each in kept[key]] for key in ("regexes", "paths") if key in kept}


_PARTS = re.compile(r"\\.|\[\^?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]|\(\?[a-z]+\)|.", re.DOTALL)


def in_python_syntax(pattern: str) -> str:
    """Return a pattern of RE2 in the syntax of `re`: scoped flags, other ends of the text, escapes in sets."""
    parts: list[str] = []
    # The flags for the rest of each open group: RE2 keeps them across `|`, so each branch gets them.
    flags: list[str] = [""]
    for piece in _PARTS.findall(pattern):
        closed = ")" * flags[-1].count(":")
        if piece.startswith("(?") and piece.endswith(")"):
            flags[-1] += f"{piece[:-1]}:"
            parts.append(f"{piece[:-1]}:")
        elif piece == "(":
            flags.append("")
            parts.append(piece)
        elif piece == ")":
            flags.pop()
            parts.append(closed + piece)
        elif piece == "|":
            parts.append(f"{closed}|{flags[-1]}")
        elif piece in ("$", r"\z"):
            parts.append(r"\Z")
        elif piece.startswith("["):
            inside = piece[1:].replace("[:alnum:]", "a-zA-Z0-9")
            parts.append("[" + re.sub(r"\\.|\[", lambda found: found[0].rjust(2, "\\"), inside))
        else:
            parts.append(piece)
    return "".join(parts) + ")" * flags[0].count(":")


_KEYS = {"id", "regex", "path", "keywords", "entropy", "secretGroup"}


if __name__ == "__main__":
    OUT.write_text(rules_text(modules.module_folder(modules.GITLEAKS)), encoding="utf-8")
    print(f"{OUT.name}: {OUT.stat().st_size >> 10} KiB", file=sys.stderr)
