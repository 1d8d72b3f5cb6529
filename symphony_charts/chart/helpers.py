"""The leaf helpers of every chart: a Go template and the equivalent Python function, side by side.

Helpers that only lay out YAML are trees and need no second version. ``docs/chart.md`` documents ``fullname``,
``labels``, ``selectorLabels``, ``run`` and ``image`` as an interface for users' templates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from symphony_charts.chart.evaluate import printed, short_sha256
from symphony_charts.chart.tree import Block, Helper, Include, Merged, Text, Tree, Value
from symphony_charts.errors import SpecError

# Longest Job name: pods add index and random suffix, and a host name has at most 63 characters.
MAX_WORKLOAD = 52
_HASH = 9

NAME = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
NO_NAME = "cannot name a Service: use a-z, 0-9 and hyphens, and begin with a letter"


def cut(text: str, limit: int) -> str:
    """Return `text` cut to `limit` characters, with a hash of the whole so that different texts stay different."""
    return text if len(text) <= limit else f"{text[: limit - _HASH].removesuffix('-')}-{short_sha256(text)}"


def chart_label(name: str, version: str) -> str:
    """Return the label ``helm.sh/chart`` of the objects of a chart."""
    return f"{name}-{version}".replace("+", "_")[:63].removesuffix("-")


def leaf_helpers(fullname_limit: int) -> list[Helper]:
    """Return the helpers that every chart needs. Full names are cut to `fullname_limit` characters."""
    return [_fullname(fullname_limit), _CHART, _TEXT, _STRINGS, _ENV, _IMAGE]


def label_helpers(constants: Mapping[str, str]) -> list[Helper]:
    """Return the helpers `selectorLabels` and `labels`; `constants` are further labels of all objects."""
    selector: Tree = {
        # In a parent chart this is the alias, so two aliases never select each other's pods.
        "app.kubernetes.io/name": Value(".Chart.Name", is_text=True),
        "app.kubernetes.io/instance": Value(".Release.Name", is_text=True),
    }
    ours = {"helm.sh/chart": Text("{chart}"), "app.kubernetes.io/managed-by": Value(".Release.Service")}
    labels = Merged(ours, Include("selectorLabels"), dict(constants), Block(".Values.commonLabels", via="strings"))
    return [Helper(name="selectorLabels", tree=selector), Helper(name="labels", tree=labels, is_constant=True)]


def _fullname(limit: int) -> Helper:
    def fullname(root: Mapping[str, Any]) -> str:
        release, name = root["Release"]["Name"], printed(root["Values"].get("nameOverride") or root["Chart"]["Name"])
        usual = release if root["Chart"]["IsRoot"] and name in release else f"{release}-{name}"
        full = cut(printed(root["Values"].get("fullnameOverride") or usual), limit)
        if not re.fullmatch(NAME[1:-1], full):
            raise SpecError.one(f'"{full}" {NO_NAME}', next="choose another release name, or set fullnameOverride")
        return full

    go = f"""
{{{{- $name := .Values.nameOverride | default .Chart.Name -}}}}
{{{{- $isShort := and .Chart.IsRoot (contains $name .Release.Name) -}}}}
{{{{- $full := .Values.fullnameOverride | default (ternary .Release.Name (print .Release.Name "-" $name) $isShort) -}}}}
{{{{- if le (len $full) {limit} }}}}{{{{ $full }}}}{{{{ else }}}}{{{{ $full | trunc {limit - _HASH} | trimSuffix "-" }}}}-{{{{ sha256sum $full | trunc 8 }}}}{{{{ end -}}}}
"""  # noqa: E501 - one line for both cases
    comment = f"All names begin with it. A hash replaces what exceeds {limit} characters."
    return Helper(name="fullname", go=go, py=fullname, comment=comment, is_plain=True)


_CHART = Helper(
    name="chart",
    is_plain=True,
    is_inline=True,
    py=lambda root: chart_label(root["Chart"]["Name"], root["Chart"]["Version"]),
    go='printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-"',
)

_TEXT = Helper(
    name="text",
    comment="A string, quoted only if YAML needs it.",
    reads=(".",),
    py=printed,
    go="""
{{- $text := ternary . (toJson .) (kindIs "string" .) -}}
{{- $isPlain := regexMatch "^(--?[A-Za-z]|[A-Za-z/_$])[-A-Za-z0-9/_.=@%+$()]*$" $text -}}
{{- $isSpecial := has (lower $text) (list "y" "n" "yes" "no" "on" "off" "true" "false" "null") -}}
{{- ternary $text (quote $text) (and $isPlain (not $isSpecial)) -}}
""",
)


def _strings(items: Mapping[str, Any] | list[Any]) -> Any:
    return {key: printed(item) for key, item in items.items()} if isinstance(items, dict) else [*map(printed, items)]


_STRINGS = Helper(
    name="strings",
    comment="A list or map of strings.",
    reads=(".",),
    is_range=True,
    py=_strings,
    go="""
{{- range $key, $value := . }}
{{ if kindIs "string" $key }}{{ include "CHART.text" $key }}:{{ else }}-{{ end }} {{ include "CHART.text" $value }}
{{- end }}
""",
)


def _env(dot: Mapping[str, Any]) -> list[dict[str, Any]]:
    user = dot["user"] or {}
    plain = [name for name in sorted(user) if not (isinstance(user[name], str) and "$(" in user[name])]
    referring = sorted(user.keys() - set(plain), key=lambda name: (not name.startswith("SYMPH"), name))
    items = {
        name: {"name": name} | ({"valueFrom": value} if isinstance(value, dict) else {"value": printed(value)})
        for name, value in user.items()
    }
    ours = [item for item in dot["own"] if item["name"] not in user]
    return [*(items[name] for name in plain), *ours, *(items[name] for name in referring)]


_ENV = Helper(
    name="env",
    comment="The user's variables replace ours; those that refer to others come last.",
    reads=(".user",),
    is_range=True,
    py=_env,
    go="""
{{- $items := dict "ours" .own -}}
{{- range $name, $value := .user -}}
{{- if contains (printf "{name: %s," $name) $items.ours }}{{ $_ := regexReplaceAll (printf "(?m)^- \\\\{name: %s, .*\\n?" (regexQuoteMeta $name)) $items.ours "" | set $items "ours" }}{{ end -}}
{{- $refers := and (kindIs "string" $value) (contains "$(" $value) -}}
{{- $place := $refers | ternary (hasPrefix "SYMPH" $name | ternary "x " "y ") "a " -}}
{{- $text := kindIs "map" $value | ternary (toYaml $value | nindent 4 | print "From:") (include "CHART.text" $value | print ": ") -}}
{{- $_ := set $items (print $place $name) (printf "- name: %s\\n  value%s" (include "CHART.text" $name) $text) -}}
{{- end -}}
{{- range $items }}
{{ . }}
{{- end }}
""",  # noqa: E501 - one line for both kinds of values
)


def _image_name(dot: Mapping[str, Any]) -> str:
    values, own = dot["root"]["Values"], dot["image"]
    if isinstance(own, str):
        return own
    image = {**values["image"], **(own or {})}
    registry = (values.get("global") or {}).get("imageRegistry") or image["registry"]
    name = f"{printed(registry)}/" if registry else ""
    name += printed(image["repository"])
    name += f":{printed(image['tag'])}" if image["tag"] != "" else ""
    return name + (f"@{printed(image['digest'])}" if image["digest"] else "")


def _image(dot: Mapping[str, Any]) -> dict[str, str]:
    own = dot["image"] if isinstance(dot["image"], Mapping) else {}
    policy = printed(own.get("pullPolicy", dot["root"]["Values"]["image"]["pullPolicy"]))
    return {"image": _image_name(dot)} | ({"imagePullPolicy": policy} if policy else {})


_IMAGE = Helper(
    name="image",
    comment="A container's own keys win, even if they are empty.",
    reads=(".root.Values.image", ".root.Values.global.imageRegistry", ".image"),
    py=_image,
    go="""
{{- $image := .root.Values.image -}}
{{- if and .image (kindIs "map" .image) }}{{ $image = dict -}}
{{- range list .root.Values.image .image }}{{ range $key, $value := . }}{{ $_ := set $image $key $value }}{{ end }}{{ end }}{{ end -}}
image: {{ if kindIs "string" .image }}{{ quote .image }}{{ else }}"{{ with (.root.Values.global).imageRegistry | default $image.registry }}{{ . }}/{{ end }}{{ $image.repository }}{{ with kindIs "string" $image.tag | ternary $image.tag (toJson $image.tag) }}:{{ . }}{{ end }}{{ with $image.digest }}@{{ . }}{{ end }}"{{ end }}
{{- with $image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
""",  # noqa: E501 - one line of YAML
)


def image_name(values: Mapping[str, Any], image: object) -> str:
    """Return the full image name of a container under the `values` of a release."""
    return _image_name({"root": {"Values": values}, "image": image})
