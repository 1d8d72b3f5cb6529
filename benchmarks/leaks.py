"""Recall and false alarms of the leak guard, of the guard with fewer decoders, and of gitleaks.

    python benchmarks/leaks.py [--small] [FOLDER...]

Prints the files in which each judge finds something: samples with a made-up secret, harmless pieces, and the files of
each FOLDER. Then it prints the findings that need each decoder. `--small` uses one sample, to see that it runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from unittest.mock import patch

from symphony_charts.secrets import leaks
from symphony_charts.secrets.decoding import View, views
from tests.e2e import leak_classes
from tests.e2e.leak_samples import FILES, FORMS, found_by_gitleaks, found_by_us, harmless, in_files, planted


def found_with(samples: Mapping[str, bytes], is_kept: Callable[[View], bool]) -> set[str]:
    """Return the paths in which the guard finds something in the kept views."""

    def some(path: str, data: bytes) -> Iterator[View]:
        return (view for view in views(path, data) if is_kept(view))

    with patch.object(leaks, "views", some):
        return found_by_us(samples)


JUDGES: Mapping[str, Callable[[Mapping[str, bytes]], set[str]]] = {
    "symph": found_by_us,
    "one base64": lambda samples: found_with(samples, lambda view: view.layers in ((), ("base64",))),
    "no decoding": lambda samples: found_with(samples, lambda view: not view.layers),
    "gitleaks": found_by_gitleaks,
    "gitleaks, no decoding": lambda samples: found_by_gitleaks(samples, "--max-decode-depth=0"),
    "gitleaks, archives": lambda samples: found_by_gitleaks(samples, "--max-archive-depth=5"),
}


def tables(folders: list[Path], *, is_small: bool) -> Iterator[str]:
    """Yield the lines of two tables in Markdown: the findings of each judge, and those that need each decoder."""
    hidden = {title: in_files(title) for title in list(FILES)[: 1 if is_small else None]}
    for form in () if is_small else FORMS:
        numbered = enumerate(planted(form).items())
        hidden[f"value, {form}"] = {f"{number}/{place}": data for number, ((_, place), data) in numbered}
    hidden["as users write them"] = leak_classes.planted()
    quiet = {"harmless strings": leak_classes.harmless()}
    quiet |= {"harmless pieces": {f"{number}/{name}": data for number, (name, data) in enumerate(harmless())}}
    for folder in folders:
        files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        quiet[f"files of {folder.name}"] = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    yield f"| sample | files | {' | '.join(JUDGES)} |"
    yield "|---" * (len(JUDGES) + 2) + "|"
    for title, samples in {**hidden, **quiet}.items():
        counts = [str(len(find(samples))) for find in JUDGES.values()]
        yield f"| {title} | {len(samples)} | {' | '.join(counts)} |"
    yield "\n| without | finds fewer | false alarms fewer |\n|---|---|---|"
    every = [(path, data) for samples in hidden.values() for path, data in samples.items()]
    for layer in sorted({layer for path, data in every for view in views(path, data) for layer in view.layers}):
        yield f"| {layer} | {_needs(layer, hidden)} | {_needs(layer, quiet)} |"


def _needs(layer: str, corpus: Mapping[str, Mapping[str, bytes]]) -> str:
    """Return the number of files of each sample that are found only with this layer."""
    lost = {
        title: len(found_by_us(samples)) - len(found_with(samples, lambda view: layer not in view.layers))
        for title, samples in corpus.items()
    }
    return ", ".join(f"{title}: {count}" for title, count in lost.items() if count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("folders", nargs="*", type=Path)
    options = parser.parse_args()
    for line in tables(options.folders, is_small=options.small):
        print(line, flush=True)


if __name__ == "__main__":
    main()
