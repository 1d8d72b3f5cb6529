"""Patch an image with the files of a folder that its `.dockerignore` does not exclude."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from symphony_charts.errors import NotFound, Problem, SpecError
from symphony_charts.oci.client import Blob, Reference, Registry, parse_reference
from symphony_charts.oci.push import INDEX_TYPES, Entry, add_layer, as_map, index_of, layer_of, platforms_of
from symphony_charts.oci.transport import Access

# Source: moby/patternmatcher, patternmatcher.go and ignorefile/ignorefile.go; Docker docs, "Build context". The last
# pattern that matches a path or a folder above it decides; `!` includes files again.

_PIECE = re.compile(r"\*\*/?|\\.|\[(?:\\.|[^\]\\])+\]|.", re.DOTALL)
# Escapes, and characters that Python reserves in a set.
_IN_SET = re.compile(r"\\.|[\[&~|]", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pattern:
    expression: re.Pattern[str]
    takes_in: bool


@dataclass(frozen=True, slots=True)
class Ignore:
    """The patterns of one file, in order."""

    patterns: tuple[_Pattern, ...] = ()

    @property
    def takes_in(self) -> bool:
        """True if a pattern includes files again, so that ignored folders must be searched."""
        return any(pattern.takes_in for pattern in self.patterns)

    def leaves_out(self, path: str) -> bool:
        """Return True if `path`, relative and with `/`, is ignored."""
        places = [path]
        while "/" in places[-1]:
            places.append(places[-1].rpartition("/")[0])
        ignored = False
        for pattern in self.patterns:
            if pattern.takes_in == ignored and any(pattern.expression.fullmatch(candidate) for candidate in places):
                ignored = not pattern.takes_in
        return ignored


def read_ignore(text: str, at: str = ".dockerignore") -> Ignore:
    """Return the patterns of a `.dockerignore`. Raises SpecError with the line of each invalid pattern."""
    patterns: list[_Pattern] = []
    problems: list[Problem] = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        words = line.strip()
        if not words or line.startswith("#"):
            continue
        pattern = _clean(words)
        takes_in, glob = pattern.startswith("!"), pattern.removeprefix("!")
        try:
            patterns.append(_Pattern(expression=_expression(glob), takes_in=takes_in))
        except (re.error, ValueError) as error:
            problems.append(Problem(what=f'"{words}" is not a valid pattern: {error}', path=f"{at}:{number}"))
    if problems:
        raise SpecError(problems)
    return Ignore(tuple(patterns))


def _clean(words: str) -> str:
    """Return the pattern as Docker cleans it, in two passes: first without its `!`, then with it."""
    mark, glob = ("!", words[1:].strip()) if words.startswith("!") else ("", words)
    cleaned = _clean_path(glob) if glob else ""
    if len(cleaned) > 1:
        cleaned = cleaned.removeprefix("/")
    return _clean_path((mark + cleaned).strip())


def _clean_path(path: str) -> str:
    """Return the path like Go's `filepath.Clean`; POSIX keeps two slashes at the start."""
    cleaned = posixpath.normpath(path)
    return cleaned[1:] if cleaned.startswith("//") else cleaned


def _expression(glob: str) -> re.Pattern[str]:
    if not glob:
        raise ValueError("it has nothing after the !")
    rest = glob.removeprefix("**")
    if rest != glob and not any(character in rest for character in "*?[]\\"):
        # Docker compares the end of the path in this case: `**b` matches any path that ends with b.
        return re.compile(f"(?:.*{re.escape(rest)}|{re.escape(rest.removeprefix('/'))})", re.DOTALL)
    pieces = _PIECE.findall(glob)
    return re.compile("".join(map(_part, pieces[:-1])) + _part(pieces[-1], is_last=True), re.DOTALL)


def _part(piece: str, *, is_last: bool = False) -> str:
    if piece.startswith("**"):
        return ".*" if is_last else "(.*/)?"
    if piece in ("*", "?"):
        return "[^/]*" if piece == "*" else "[^/]"
    if piece in ("[", "\\"):
        raise ValueError("a [ is not closed" if piece == "[" else "it ends with a backslash")
    if piece.startswith("["):
        return f"[{_IN_SET.sub(lambda found: re.escape(found[0][-1]), piece[1:-1])}]"
    return re.escape(piece[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchedImage:
    """The image that replaces `base`: `image`, pinned by digest, which the registry also has under `tag`.

    `is_new`: the registry did not have it before. The layer fields describe the last platform.
    """

    base: str
    image: str
    tag: str
    layer_digest: str
    layer_bytes: int
    platforms: tuple[str, ...]
    is_new: bool


def read_workspace(folder: Path) -> list[Entry]:
    """Return the files of `folder` that its `.dockerignore` does not exclude, by path, without sockets and devices.

    Raises NotFound without the folder, SpecError if a file cannot be read.
    """
    if not folder.is_dir():
        raise NotFound(f"the folder {folder} does not exist", next="give the folder with the files for the image")
    try:
        rules = folder / ".dockerignore"
        ignore = read_ignore(rules.read_text(encoding="utf-8"), str(rules)) if rules.is_file() else Ignore()
        return sorted(_entries(folder, "", ignore), key=lambda entry: entry.path)
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError.one(f"cannot read the workspace: {error}", at=str(folder)) from error


def _entries(folder: Path, within: str, ignore: Ignore) -> Iterator[Entry]:
    with os.scandir(folder) as children:
        items = sorted(children, key=lambda item: item.name)
    for item in items:
        path = f"{within}{item.name}"
        left_out = ignore.leaves_out(path)
        if item.is_dir(follow_symlinks=False):
            below = [] if left_out and not ignore.takes_in else list(_entries(Path(item.path), f"{path}/", ignore))
            if below or not left_out:
                yield Entry(path=path, is_folder=True)
            yield from below
        elif left_out:
            continue
        elif item.is_symlink():
            yield Entry(path=path, target=str(Path(item.path).readlink()))
        elif item.is_file(follow_symlinks=False):
            mode = item.stat(follow_symlinks=False).st_mode
            yield Entry(path=path, content=Path(item.path).read_bytes(), is_program=bool(mode & 0o111))


def patch_image(
    base: str,
    entries: Sequence[Entry],
    repository: str,
    *,
    platforms: Sequence[str] = (),
    access: Access | None = None,
    dry_run: bool = False,
) -> PatchedImage:
    """Push `base` with `entries` in its working folder to `repository` (`HOST/PATH`), under a new tag.

    A multi-platform image stays one; `platforms` (`linux/amd64`) keeps only those. Existing blobs are not sent again.
    `access` is for the registry of `repository`, and for the base's if that is the same. Raises SpecError for an
    unusable base or platform, NotFound for a missing base.
    """
    source, target = _source(base), parse_reference(repository)
    if target.tag:
        raise SpecError.one(
            f'"{repository}" has a tag', next="give only HOST/PATH: symph makes the tag from the content"
        )
    reach = access or Access()
    from_there = reach if source.host == target.host else Access()
    with Registry(source.host, from_there) as there, Registry(target.host, reach) as here:
        work = _Patch(source=source, target=target, there=there, here=here, entries=entries, dry_run=dry_run)
        top = there.manifest(source.repository, source.tag)
        if top is None:
            raise NotFound(f"the image {base} does not exist", next="check its name and tag")
        patched, names = work.index(top, platforms) if top.media_type in INDEX_TYPES else work.image(top, platforms)
        tag = f"workspace-{patched.digest.removeprefix('sha256:')[:16]}"
        is_new = here.manifest(target.repository, tag) is None
        if is_new and not dry_run:
            here.put_tag_once(target.repository, tag, patched)
    return PatchedImage(
        base=base,
        image=f"{repository.removeprefix('oci://')}@{patched.digest}",
        tag=tag,
        layer_digest=work.layer_digest,
        layer_bytes=work.layer_bytes,
        platforms=tuple(names),
        is_new=is_new,
    )


def _source(base: str) -> Reference:
    # A tag beside a digest has no meaning.
    reference = parse_reference(re.sub(r":[\w.-]+@", "@", base))
    return reference if reference.tag else replace(reference, tag="latest")


@dataclass(slots=True, kw_only=True)
class _Patch:
    """State of one base that is patched into a repository."""

    source: Reference
    target: Reference
    there: Registry
    here: Registry
    entries: Sequence[Entry]
    dry_run: bool
    layer_digest: str = ""
    layer_bytes: int = 0

    def index(self, top: Blob, platforms: Sequence[str]) -> tuple[Blob, list[str]]:
        """Return the index of images with the layer, and their platforms."""
        manifests = platforms_of(top.data)
        wanted = [listed for listed in manifests if not platforms or listed.platform in platforms]
        lacking = set(platforms) - {listed.platform for listed in wanted}
        if lacking or not wanted:
            raise SpecError.one(
                f"{self.source} does not support {', '.join(sorted(lacking)) or 'Linux'}",
                next=f"it supports {', '.join(listed.platform for listed in manifests) or 'no known platform'}",
            )
        patched = []
        for listed in wanted:
            manifest = self.there.manifest(self.source.repository, listed.digest)
            if manifest is None:
                raise NotFound(f"{self.source} lists {listed.digest}, which does not exist")
            patched.append((listed, self.image(manifest, ())[0]))
        if not self.dry_run:
            for _, blob in patched:
                self.here.put_manifest(self.target.repository, blob.digest, blob)
        return index_of(top.media_type, patched), [listed.platform for listed in wanted]

    def image(self, manifest: Blob, platforms: Sequence[str]) -> tuple[Blob, list[str]]:
        named = as_map(manifest.data)
        config = self.there.blob(self.source.repository, _digest_of(named.get("config")))
        settings = as_map(config)
        platform = f"{settings.get('os', 'linux')}/{settings.get('architecture', 'amd64')}"
        if platforms and platform not in platforms:
            raise SpecError.one(f"{self.source} supports only {platform}", next="remove --platform")
        running = settings.get("config")
        folder = str(running.get("WorkingDir") or "/") if isinstance(running, dict) else "/"
        layer = layer_of(self.entries, folder)
        new_config, new_layer, image = add_layer(manifest.media_type, manifest.data, config, layer)
        self.layer_digest, self.layer_bytes = new_layer.digest, len(new_layer.data)
        if not self.dry_run:
            below = named.get("layers")
            self._copy([_digest_of(item) for item in below] if isinstance(below, list) else [])
            self.here.put_blob(self.target.repository, new_layer.data)
            self.here.put_blob(self.target.repository, new_config.data)
        return image, [platform]

    def _copy(self, digests: Sequence[str]) -> None:
        """Copy the base's layers to the target: mounted within one registry, else through this machine."""
        repository, source = self.target.repository, self.source.repository
        for digest in dict.fromkeys(digests):
            if self.here.has_blob(repository, digest):
                continue
            is_one = self.here.host == self.there.host
            if not (is_one and self.here.mount(repository, digest, source)):
                self.here.put_blob(repository, self.there.blob(source, digest))


def _digest_of(descriptor: object) -> str:
    digest = descriptor.get("digest") if isinstance(descriptor, dict) else None
    if not isinstance(digest, str) or not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        raise SpecError.one("the base is not a container image: a digest is missing")
    return digest
