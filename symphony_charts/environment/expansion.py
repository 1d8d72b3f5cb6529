"""Kubernetes' rules for ``$(VAR)``: the kubelet expands them in commands, arguments and variables, in this order."""

from __future__ import annotations

from collections.abc import Mapping

from symphony_charts.spec.variable_names import reference_order

__all__ = ["expand", "pod_order"]


def pod_order(values: Mapping[str, object]) -> list[str]:
    """Return the names of variables in the order in which a pod gets them, since a value sees only what is before it.

    Texts with ``$(`` come behind everything else, those of SYMPH_* before others; each by name.
    """
    referring = [name for name, value in values.items() if isinstance(value, str) and "$(" in value]
    return [*sorted(values.keys() - referring), *sorted(referring, key=reference_order)]


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Return `text` with each ``$(NAME)`` replaced by its value.

    ``$$`` is one ``$``, a reference to an unknown name or one that is never closed stays as it stands, and nothing
    that came out of a value is looked at again.

    Source: kubernetes/kubernetes third_party/forked/golang/expansion/expand.go.
    """
    if "$" not in text:
        return text
    parts: list[str] = []
    position = 0
    while (dollar := text.find("$", position)) >= 0 and dollar + 1 < len(text):
        parts.append(text[position:dollar])
        following = text[dollar + 1]
        if following == "$":
            parts.append("$")
            position = dollar + 2
            continue
        end = text.find(")", dollar) if following == "(" else -1
        if following == "(" and end >= 0:
            name = text[dollar + 2 : end]
            parts.append(variables.get(name, f"$({name})"))
            position = end + 1
        elif following == "(":
            parts.append("$(")
            position = dollar + 2
        else:
            parts.append("$" + following)
            position = dollar + 2
    parts.append(text[position:])
    return "".join(parts)
