"""Where images come from and what they are pulled with: the twin of ``charts/symph/templates/_images.tpl``."""

from __future__ import annotations

from collections.abc import Mapping

from symphony_charts.chart.render.values import Values, scalar
from symphony_charts.formats.data import sub

__all__ = ["image_text", "pull_secrets"]


def image_text(values: Mapping[str, object], image: object) -> str:
    """An image as one text, from the registry of all images where there is one in place of its own."""
    text = _joined(image) if isinstance(image, dict) else scalar(image)
    registry = sub(dict(values), "global").get("imageRegistry")
    if not registry:
        return text
    host, slash, rest = text.partition("/")
    has_host = slash and ("." in host or ":" in host or host == "localhost")
    return f"{scalar(registry)}/{rest if has_host else text}"


def _joined(image: Values) -> str:
    parts = [("registry", "{}/"), ("repository", "{}"), ("tag", ":{}"), ("digest", "@{}")]
    return "".join(form.format(scalar(image[key])) for key, form in parts if image.get(key) not in (None, ""))


def pull_secrets(values: Mapping[str, object]) -> list[Values]:
    """The Secrets that all images are pulled with, those of a parent chart first, each once."""
    names: dict[str, None] = {}
    for settings in (sub(dict(values), "global"), sub(dict(values), "defaults")):
        said = settings.get("imagePullSecrets")
        for item in said if isinstance(said, list) else [] if said is None else [said]:
            names[scalar(item.get("name") if isinstance(item, dict) else item)] = None
    return [{"name": name} for name in names]
