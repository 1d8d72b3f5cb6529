"""The files of a chart, its archive, and the metadata in its Chart.yaml.

Keys and annotations come from Helm and Artifact Hub (artifacthub/hub, docs/helm_annotations.md).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from textwrap import indent

import msgspec

from symphony_charts.chart.archive import check_version, content_digest, pack, packed
from symphony_charts.chart.build.chart import BuiltChart
from symphony_charts.chart.helpers import image_name
from symphony_charts.chart.release import ORIGIN, origin_text
from symphony_charts.chart.schema import ValuesSchema, readme_text, values_text
from symphony_charts.errors import SpecError
from symphony_charts.formats.data import Values, sub
from symphony_charts.formats.yaml_write import dump, quote


def _lines(said: Values, prefix: str = "") -> str:
    """Return the entries of `said` that are set, as YAML, each on a new line."""
    given = {key: value for key, value in said.items() if value}
    return indent(f"\n{dump(given)}".removesuffix("\n"), prefix) if given else ""


def _images(values: Values) -> list[Values]:
    """Return each image with the name of the first container that runs it."""
    found: dict[str, str] = {}
    for name, image in _containers(values):
        found.setdefault(image_name(values, image), name)
    return [{"name": name, "image": image} for image, name in found.items() if image]


def _containers(values: Values) -> Iterator[tuple[str, object]]:
    for group in sorted(sub(values, "groups")):
        for kind in ("initContainers", "containers"):
            members = sub(values, "groups", group, kind)
            for name in sorted(members):
                yield f"{group}-{name}", sub(members, name).get("image")
    yield "test", sub(values, "tests").get("image")


# Helm refuses archives with larger files (helm/helm, pkg/chart/loader/archive/archive.go).
_MAX_FILE_BYTES = 5 * 1024 * 1024

_FOLDER = "[[ cookiecutter.name ]]/"
_PLACE = re.compile(rb"\[\[ cookiecutter\.(\w+) \]\]")
# Places that a template needs to produce the chart of the experiment.
_NEEDED = {
    "Chart.yaml": b"[[ cookiecutter._chart_name ]]",
    "values.yaml": b"[[ cookiecutter._values ]]",
    "values.schema.json": b"[[ cookiecutter._schema ]]",
    "templates/_helpers.tpl": b"[[ cookiecutter._helpers ]]",
}
# Files that determine the objects. A test pod is an object, the notes after an installation are not.
_MAKERS = ("templates/", "charts/", "files/", "crds/", "values.schema.json")
_NOTES = "templates/NOTES.txt"
# The Helm templates that go into a template of ours, and their places in it.
_OF_TEMPLATE = {"_helpers.tpl": "_helpers", "NOTES.txt": "_notes"}


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart: `values` are its defaults, `files` the files of its folder by path.

    `digest` identifies its content regardless of the version.
    """

    name: str
    version: str
    values: Values
    files: dict[str, bytes]

    @property
    def packed(self) -> dict[str, bytes]:
        return packed(self.files)

    @cached_property
    def digest(self) -> str:
        """The ``sha256:`` digest of the packed files without the version; see `content_digest`."""
        return content_digest(self.packed)

    @cached_property
    def archive(self) -> bytes:
        return pack(self.name, self.packed)

    def with_version(self, version: str) -> Chart:
        """Return this chart with another version. Raises SpecError if it is not a semantic version."""
        check_version(version)
        line = f"version: {quote(version)}".encode()
        metadata = re.sub(rb"(?m)^version: .*$", line, self.files["Chart.yaml"])
        return replace(self, version=version, files={**self.files, "Chart.yaml": metadata})


class ChartTemplate:
    """The folder ``chart-template`` or a fork of it: a cookiecutter template, read once and filled many times.

    `makes` is a hash of the template's files that determine objects or values.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        """Read the template from the folder's `files` by path. Raises SpecError if it is not a chart template."""
        own = {path.removeprefix(_FOLDER): content for path, content in files.items() if path.startswith(_FOLDER)}
        for path, place in _NEEDED.items():
            if place not in own.get(path, b""):
                what = f"the template has no {path} with {place.decode()} in it"
                raise SpecError.one(
                    what, next="begin a template of your own as a copy of symphony-charts' chart-template/"
                )
        makers = {path: content for path, content in own.items() if path.startswith(_MAKERS) and path != _NOTES}
        self.makes = hashlib.sha256(
            b"".join(b"%b\0%b\0" % (key.encode(), makers[key]) for key in sorted(makers))
        ).digest()
        self._answers = _answers_of(files.get("cookiecutter.json", b"{}"))
        self._pieces = {path: _PLACE.split(content) for path, content in own.items()}

    def fill(self, context: Mapping[str, str]) -> dict[str, bytes]:
        """Return the same files as cookiecutter for `context`, byte for byte."""
        encoded = {key.encode(): value.encode() for key, value in {**self._answers, **context}.items()}
        return {path: _filled(pieces, encoded) for path, pieces in self._pieces.items()}


def make_chart(
    chart: BuiltChart,
    schema: ValuesSchema,
    version: str,
    template: ChartTemplate,
    extra: Mapping[str, bytes] | None = None,
) -> Chart:
    """Return the files of `chart`: those of the template, the chart's own, and a user's `extra` files.

    Raises:
        SpecError: Helm cannot read a file, or the template and the chart have a file of the same path.
    """
    check_version(version)
    texts = chart.texts()
    filled, own = template.fill(context_of(chart, texts, schema, version)), generated_files(chart, texts)
    both = sorted(filled.keys() & own.keys())
    if both:
        raise SpecError.one(f"the template has {both[0]}, which the experiment needs itself", next="rename it there")
    files = {**filled, **own, **(extra or {})}
    big = [path for path, content in files.items() if len(content) > _MAX_FILE_BYTES]
    if big:
        raise SpecError.one(f"{big[0]} is larger than helm reads (5 MiB)", "configs", "mount large files from a volume")
    return Chart(name=chart.name, version=version, values=dict(chart.values), files=dict(sorted(files.items())))


def generated_files(chart: BuiltChart, texts: Mapping[str, str]) -> dict[str, bytes]:
    """Return the chart's files that do not come from the template, by path. `texts` are the chart's template texts."""
    own = {f"templates/{name}": text.encode() for name, text in texts.items() if name not in _OF_TEMPLATE}
    return {**own, **chart.frame.files, ORIGIN: origin_text(chart.experiment, chart.draft.services.values())}


def context_of(chart: BuiltChart, texts: Mapping[str, str], schema: ValuesSchema, version: str) -> dict[str, str]:
    """Return the context for cookiecutter; it does not render keys with a leading underscore."""
    about = chart.experiment.chart
    facts: Values = {
        "appVersion": about.app_version,
        "home": about.home,
        "icon": about.icon,
        "maintainers": [msgspec.to_builtins(maintainer) for maintainer in about.maintainers],
        "sources": list(about.sources),
    }
    images = _images(dict(chart.values))
    annotations: Values = {
        "artifacthub.io/changes": dump(list(about.changes)) if about.changes else "",
        "artifacthub.io/images": dump(images) if images else "",
        "artifacthub.io/license": about.license,
    }
    return {
        "name": chart.name,
        "version": version,
        "_chart_name": quote(chart.name),
        "_chart_version": quote(version),
        "_description": quote(f"Experiment {chart.name}"),
        "_about": _lines(facts),
        "_annotations": _lines(annotations, "  "),
        "_values": values_text(chart.values).removesuffix("\n"),
        "_schema": schema.text.decode().removesuffix("\n"),
        "_readme": readme_text(chart).removesuffix("\n"),
        "_spec_digest": quote(str(chart.values["specDigest"])),
        **{key: texts[name].removesuffix("\n") for name, key in _OF_TEMPLATE.items()},
        "_files": "",
    }


def _filled(pieces: list[bytes], context: Mapping[bytes, bytes]) -> bytes:
    if len(pieces) == 1:
        return pieces[0]
    unknown = [piece.decode() for piece in pieces[1::2] if piece not in context]
    if unknown:
        what = f"the template asks for {', '.join(sorted(set(unknown)))}, which its cookiecutter.json does not answer"
        raise SpecError.one(what, next="give each a text there")
    return b"".join(context[piece] if index % 2 else piece for index, piece in enumerate(pieces))


def _answers_of(text: bytes) -> dict[str, str]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise SpecError.one(f"the template's cookiecutter.json is not JSON: {error}") from error
    return {key: value for key, value in data.items() if isinstance(value, str)} if isinstance(data, dict) else {}
