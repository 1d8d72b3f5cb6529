"""Fills in what the wheel says of itself: links and the long description.

It also writes the manual pages into the wheel, from where installers lay them into ``share/man/man1``.

The page of a package on an index shows README.md without its repository: what it links to is named in full there.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

# Targets that are paths, in Markdown and in HTML: first those of pictures, then those of the links that are left.
_PATH = r"(?![a-z]+:|#|/)"
_PICTURE = re.compile(rf"(!\[[^\]]*\]\(|\bsrc(?:set)?=\"){_PATH}([^)\"\s]+)")
_LINK = re.compile(rf"(\]\(|\bhref=\"){_PATH}([^)\"\s]+)")


class Filled(MetadataHookInterface):
    """Adds what are dynamic fields, so that a wheel built from the sdist has them, too."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling before it reads the metadata."""
        facts: dict[str, str] = self.config["project"]
        metadata["urls"] = links(facts)
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        if facts["repository"]:
            text = with_full_links(text, facts["repository"], f"v{metadata['version']}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class ManualPages(BuildHookInterface):
    """Makes the pages of the parser, which needs nothing but the standard library, when a wheel is built."""

    PLUGIN_NAME = "custom"
    _folder: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects files; a checkout that is installed in place gets none."""
        if version == "editable":
            return
        self._folder = Path(tempfile.mkdtemp(prefix="symph-man-"))
        bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        sys.path.insert(0, self.root)
        # Modules of verbs import this library, but their arguments, which is all that the pages show, do not use it.
        is_missing = find_spec("msgspec") is None
        if is_missing:
            sys.modules["msgspec"] = ModuleType("msgspec")
        try:
            from scripts.man_pages import main

            main(self._folder)
        finally:
            sys.path.remove(self.root)
            if is_missing:
                del sys.modules["msgspec"]
            sys.dont_write_bytecode = bytecode
        build_data["shared_data"][str(self._folder)] = "share/man/man1"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - hatchling's
        """Called by hatchling when the wheel is written."""
        if self._folder is not None:
            shutil.rmtree(self._folder)


def links(facts: Mapping[str, str]) -> dict[str, str]:
    """The links that an index shows beside a package; none that is not known."""
    repository = facts["repository"]
    of_repository = {
        "Repository": repository,
        "Issues": f"{repository}/issues",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
        "Security": f"{repository}/blob/main/SECURITY.md",
    }
    documentation = {"Documentation": facts["documentation"]} if facts["documentation"] else {}
    return documentation | (of_repository if repository else {})


def with_full_links(text: str, repository: str, revision: str) -> str:
    """Markdown whose links and pictures are found from anywhere: as they were in `revision`."""

    text = _PICTURE.sub(rf"\g<1>{repository}/raw/{revision}/\g<2>", text)
    return _LINK.sub(rf"\g<1>{repository}/blob/{revision}/\g<2>", text)
