"""A compose file is read with the files beside it: variables, configuration, and what it mounts."""

from __future__ import annotations

import argparse
import os
from itertools import islice
from pathlib import Path

from symphony_charts.errors import SpecError, UsageError
from symphony_charts.importers.compose.interpolation import parse_env_file
from symphony_charts.importers.input_file import Source
from symphony_charts.importers.report import Imported
from symphony_charts.integrations.compose.importer import ComposeContext, import_compose

__all__ = ["read_compose"]

# Of what a compose file mounts: enough for configuration, and no data.
_MOST_FILES, _MOST_BYTES = 200, 65_536


def read_compose(source: Source, args: argparse.Namespace) -> Imported:
    """Return the experiment of a compose file, with the files beside it that it names."""
    folder = Path.cwd() if args.source == "-" else Path(args.source).absolute().parent

    def read_text(name: str) -> str | None:
        try:
            return (folder / Path(name).expanduser()).read_text("utf-8")
        except (OSError, UnicodeError, ValueError, RuntimeError):
            return None  # the importer says which name could not be read, and where it stands

    def texts_below(name: str) -> list[str]:
        try:
            found = islice((path for path in (folder / name).rglob("*") if path.is_file()), _MOST_FILES)
            paths = [folder / name] if (folder / name).is_file() else sorted(found)
            small = [str(path) for path in paths if path.stat().st_size <= _MOST_BYTES]
        except (OSError, ValueError):
            return []
        return [text for path in small if (text := read_text(path)) is not None]

    texts = [_read_text(name) for name in args.env_file] or [read_text(".env") or ""]
    variables = {name: value for text in texts for name, value in parse_env_file(text).items()}
    context = ComposeContext(
        name=args.name or folder.name or "compose",
        folder=str(folder),
        variables=variables,
        profiles=args.profile,
        images=_images(args.image),
        read_text=read_text,
        texts_below=texts_below,
        is_there=os.path.lexists,
        home=os.path.expanduser("~"),  # noqa: PTH111 - Path.home raises where there is none
    )
    return import_compose(source, context)


def _images(given: list[str]) -> dict[str, str]:
    images: dict[str, str] = {}
    for text in given:
        service, equals, image = text.partition("=")
        if not (service and equals and image):
            raise UsageError(f'--image takes SERVICE=IMAGE, got "{text}"', next="for example: --image web=host/web:1")
        images[service] = image
    return images


def _read_text(name: str) -> str:
    try:
        return Path(name).read_text("utf-8")
    except OSError as error:
        raise SpecError.one(
            f"cannot read {name}: {error.strerror or error}", name, "give a file that is there"
        ) from error
    except UnicodeError as error:
        raise SpecError.one(f"{name} is not UTF-8 text", next="save it as UTF-8") from error
