"""Write the manual pages of the command and of each verb into a folder, for `man` and for packagers.

python scripts/man_pages.py docs/man
"""

from __future__ import annotations

import sys
from pathlib import Path

from symphony_charts.cli.help import manual_page, overview_page
from symphony_charts.cli.parser import SymphonyParser
from symphony_charts.cli.verbs import VERBS


def main(folder: Path) -> None:
    """Write symph.1 and symph-VERB.1."""
    folder.mkdir(parents=True, exist_ok=True)
    parser = SymphonyParser()
    # The pages must be equal wherever they are made.
    parser.master_parser.prog = "symph"
    parser.subparsers._prog_prefix = "symph"
    (folder / "symph.1").write_text(overview_page(), encoding="utf-8")
    for verb in VERBS:
        page = manual_page(verb.name, parser.get_subparser(verb.name))
        (folder / f"symph-{verb.name}.1").write_text(page, encoding="utf-8")
    print(f"{len(VERBS) + 1} pages in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
