"""Secret values are masked in texts for people and replaced by their names in what stays on disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import ProcessRef, processes_of
from symphony_charts.spec.sources import EnvSource
from symphony_charts.spec.variable_names import is_ours

__all__ = ["MASK", "secret_names", "secret_texts", "with_secrets", "without_secrets"]

MASK = "********"
# What variables that hold secrets are usually called; `symph validate` warns of the same names in charts.
_NAME = re.compile(r"(?:^|_)(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|PRIVATE_KEY|CREDENTIALS)(?:_|$)", re.IGNORECASE)
# A shorter secret is likely to be part of other words, and hiding those would tell what it is.
_SHORTEST = 4


def secret_texts(secrets: Mapping[str, bytes]) -> dict[str, str]:
    """Return the texts of secret files without blanks around them, by key; binary and tiny ones are left out."""
    texts = {}
    for key, content in secrets.items():
        try:
            text = content.decode().strip()
        except UnicodeDecodeError:
            continue
        if len(text) >= _SHORTEST:
            texts[key] = text
    return texts


def secret_names(
    experiment: Experiment, ref: ProcessRef, env: Mapping[str, str], secrets: Mapping[str, bytes]
) -> frozenset[str]:
    """Return the variables of `env` with secret values: by content, by source, or by name."""
    declared = {
        name: value
        for other, process in processes_of(experiment)
        if other == ref
        for name, value in process.env.items()
    }
    texts = secret_texts(secrets).values()
    return frozenset(
        name
        for name, value in env.items()
        if (_NAME.search(name) and not is_ours(name))
        or _is_secret_source(declared.get(name))
        or any(text in value for text in texts)
    )


def without_secrets(data: object, secrets: Mapping[str, bytes]) -> object:
    """JSON data with each secret's text replaced by its name between zero characters, which no variable can hold."""
    texts = sorted(secret_texts(secrets).items(), key=lambda item: len(item[1]), reverse=True)

    def hide(text: str) -> str:
        for key, secret in texts:
            text = text.replace(secret, f"\0{key}\0")
        return text

    return _map_texts(data, hide)


def with_secrets(data: object, secrets: Mapping[str, bytes]) -> object:
    """Restore the texts of secrets in the result of `without_secrets`."""
    texts = secret_texts(secrets)
    return _map_texts(data, lambda text: re.sub("\0([^\0]*)\0", lambda match: texts.get(match[1], ""), text))


def _is_secret_source(value: object) -> bool:
    return isinstance(value, EnvSource) and value.secret is not None


def _map_texts(data: object, change: Callable[[str], str]) -> object:
    if isinstance(data, str):
        return change(data)
    if isinstance(data, list):
        return [_map_texts(item, change) for item in data]
    if isinstance(data, dict):
        return {key: _map_texts(value, change) for key, value in data.items()}
    return data
