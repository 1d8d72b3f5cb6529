"""The files of a chart, its archive, and the metadata in its Chart.yaml.

Keys and annotations come from Helm and Artifact Hub (artifacthub/hub, docs/helm_annotations.md).
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from textwrap import indent
from typing import Literal

import msgspec

from symphony_charts.chart.build.chart import BuiltChart
from symphony_charts.chart.helpers import image_name
from symphony_charts.chart.release import ORIGIN, origin_text
from symphony_charts.chart.schema import ValuesSchema, readme_text, values_text
from symphony_charts.errors import SpecError
from symphony_charts.formats.data import Values, sub
from symphony_charts.formats.yaml_write import dump, quote
from symphony_charts.spec.model import ChartSettings

# Writes the headers by hand: those of `tarfile` and `gzip` differ between Python versions and contain times. Order
# and fields are the same as in Helm's packages. Sources: POSIX ustar; RFC 1952; helm/helm,
# pkg/chart/v2/util/save.go.

_BLOCK = 512
_END = b"\0" * (2 * _BLOCK)
_FIRST = ("Chart.yaml", "Chart.lock", "values.yaml", "values.schema.json")
_TEN_BYTES = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


def pack(name: str, files: Mapping[str, bytes]) -> bytes:
    """Return the ``.tgz`` of chart `name`. The tar is reproducible; the compression depends on the zlib version."""
    tar = tar_of(name, files)
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    body = deflate.compress(tar) + deflate.flush()
    return _TEN_BYTES + body + struct.pack("<II", zlib.crc32(tar), len(tar) & 0xFFFFFFFF)


def tar_of(name: str, files: Mapping[str, bytes]) -> bytes:
    """Return the tar of chart `name`: regular files of mode 0644 under ``name/``, without an owner, from 1970."""
    parts = []
    for path in sorted(files, key=_place):
        content = files[path]
        parts += [_header(f"{name}/{path}", len(content)), content, b"\0" * (-len(content) % _BLOCK)]
    parts.append(_END)
    return b"".join(parts)


def content_digest(name: str, files: Mapping[str, bytes]) -> str:
    """Return a ``sha256:`` digest that is equal for charts that differ only in their version.

    It hashes the uncompressed tar with ``version: 0.0.0`` in Chart.yaml.
    """
    lines = files["Chart.yaml"].split(b"\n")
    unversioned = b"\n".join(b"version: 0.0.0" if line.startswith(b"version: ") else line for line in lines)
    return f"sha256:{hashlib.sha256(tar_of(name, {**files, 'Chart.yaml': unversioned})).hexdigest()}"


def _place(path: str) -> tuple[int, str]:
    if path in _FIRST:
        return _FIRST.index(path), path
    return (len(_FIRST) if path.startswith("templates/") else len(_FIRST) + 1), path


@lru_cache(maxsize=256)
def _header(path: str, size: int) -> bytes:
    prefix, name = _split(path.encode())
    fields = [
        name.ljust(100, b"\0"),
        b"0000644\0",
        b"0000000\0",
        b"0000000\0",
        b"%011o\0" % size,
        b"00000000000\0",
        b"        ",
        b"0",
        b"\0" * 100,
        b"ustar\x0000",
        b"\0" * 64,
        b"0000000\0",
        b"0000000\0",
        prefix.ljust(155, b"\0"),
        b"\0" * 12,
    ]
    header = b"".join(fields)
    return header[:148] + b"%06o\0 " % sum(header) + header[156:]


def _split(path: bytes) -> tuple[bytes, bytes]:
    """Return prefix and name of a path, split at a slash; ustar has room for 155 and 100 bytes."""
    if len(path) <= 100:
        return b"", path
    cut = path.find(b"/", len(path) - 101)
    if cut in (-1, 0) or cut > 155:
        raise ValueError(f"{path.decode()} is too long for an archive")
    return path[:cut], path[cut + 1 :]


FIRST_VERSION = "0.1.0"

# Semantic Versioning 2.0.0, clauses 9 to 11.
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesChange:
    """The difference between old and new values, as sorted paths."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def level(self) -> Literal["major", "minor", "patch"]:
        """The part of the version to raise, by the effect on users of the chart."""
        if self.removed or self.retyped:
            return "major"
        return "minor" if self.added else "patch"

    def describe(self) -> str:
        """Return a short description: counts, and the paths if there are few."""
        words = [
            f"{len(paths)} {'value' if len(paths) == 1 else 'values'} {verb}"
            for verb in ("removed", "retyped", "added")
            if (paths := getattr(self, verb))
        ]
        if self.changed:
            few = len(self.changed) <= 3
            words.append(", ".join(self.changed) + " changed" if few else f"{len(self.changed)} values changed")
        return ", ".join(words) or "templates changed"


def next_version(last: str, change: ValuesChange) -> str:
    match = _SEMVER.fullmatch(last)
    if match is None:
        raise SpecError.one(f'"{last}" is no semantic version', "version")
    major, minor, patch = (int(part) for part in match.groups()[:3])
    if change.level == "major":
        return f"{major + 1}.0.0"
    if change.level == "minor":
        return f"{major}.{minor + 1}.0"
    return f"{major}.{minor}.{patch + 1}"


def check_version(version: str) -> str:
    """Return `version` if it is a semantic version that Helm accepts. Raises SpecError otherwise."""
    if _SEMVER.fullmatch(version) is None or version == "0.0.0":
        raise SpecError.one(f'"{version}" is no semantic version above 0.0.0', "version", "write it like 1.2.3")
    return version


def compare_values(before: Values, after: Values) -> ValuesChange:
    """Return the difference from `before` to `after`, ignoring the digest of the experiment."""
    old, new = dict(_leaves(before, "")), dict(_leaves(after, ""))
    old.pop("specDigest", None)
    new.pop("specDigest", None)
    both = sorted(set(old) & set(new))
    return ValuesChange(
        added=tuple(sorted(set(new) - set(old))),
        removed=tuple(sorted(set(old) - set(new))),
        retyped=tuple(path for path in both if _type(old[path]) != _type(new[path])),
        changed=tuple(path for path in both if _type(old[path]) == _type(new[path]) and old[path] != new[path]),
    )


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Yield path and value of everything that can be set, including empty maps; a list is one value."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif value != {} or not path:
        yield path, value


def _type(value: object) -> str:
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


def about_text(about: ChartSettings) -> str:
    """Return the optional lines of Chart.yaml, each on a new line; empty if nothing is set."""
    said = {
        "appVersion": about.app_version,
        "home": about.home,
        "icon": about.icon,
        "maintainers": [msgspec.to_builtins(maintainer) for maintainer in about.maintainers],
        "sources": list(about.sources),
    }
    return _lines({key: value for key, value in said.items() if value})


def annotations_text(about: ChartSettings, values: Values) -> str:
    """Return the optional annotation lines of Chart.yaml."""
    images = [{"name": name, "image": image} for image, name in _images(values).items()]
    said = {
        "artifacthub.io/changes": dump(list(about.changes)) if about.changes else "",
        "artifacthub.io/images": dump(images) if images else "",
        "artifacthub.io/license": about.license,
    }
    return indent(_lines({key: value for key, value in said.items() if value}), "  ")


def _lines(said: Values) -> str:
    return f"\n{dump(said)}".removesuffix("\n") if said else ""


def _images(values: Values) -> dict[str, str]:
    """Return the name of the first container that runs each image, by image."""
    found: dict[str, str] = {}
    for name, image in _containers(values):
        if image_name(values, image):
            found.setdefault(image_name(values, image), name)
    return found


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
# Files for chart-testing in the folder, excluded from the archive.
_NOT_PACKED = ("ci/",)


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
        return {path: content for path, content in self.files.items() if not path.startswith(_NOT_PACKED)}

    @cached_property
    def digest(self) -> str:
        """The ``sha256:`` digest of the archive's tar without the version; see `content_digest`."""
        return content_digest(self.name, self.packed)

    @cached_property
    def archive(self) -> bytes:
        return pack(self.name, self.packed)

    def with_version(self, version: str) -> Chart:
        """Return this chart with another version. Raises SpecError if it is not a semantic version."""
        check_version(version)
        lines = self.files["Chart.yaml"].decode().splitlines()
        text = "\n".join(f"version: {quote(version)}" if line.startswith("version: ") else line for line in lines)
        return Chart(
            name=self.name,
            version=version,
            values=self.values,
            files={**self.files, "Chart.yaml": f"{text}\n".encode()},
        )


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
    return {
        "name": chart.name,
        "version": version,
        "_chart_name": quote(chart.name),
        "_chart_version": quote(version),
        "_description": quote(f"Experiment {chart.name}"),
        "_about": about_text(about),
        "_annotations": annotations_text(about, dict(chart.values)),
        "_values": values_text(chart.values).removesuffix("\n"),
        "_schema": schema.text.decode().removesuffix("\n"),
        "_readme": readme_text(chart).removesuffix("\n"),
        "_spec_digest": quote(str(chart.values["specDigest"])),
        **{key: texts[name].removesuffix("\n") for name, key in _OF_TEMPLATE.items()},
        "_files": "",
    }


def _filled(pieces: list[bytes], context: Mapping[bytes, bytes]) -> bytes:
    """Return `pieces` with context values; literal text and names alternate."""
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
        raise SpecError.one(f"the template's cookiecutter.json is no JSON: {error}") from error
    return {key: value for key, value in data.items() if isinstance(value, str)} if isinstance(data, dict) else {}
