"""`python -m symphony_charts.torchx_scheduler` registers the scheduler `symph` with TorchX 0.7.

TorchX 0.7 finds schedulers only as entry points, and forgets its own if any is registered. So the wheel has none:
this command installs a distribution with entry points only, TorchX's own and `symph`, in TorchX's order.
Newer releases find `torchx_plugins`; for them the command removes that distribution.
See docs/decisions/0006-torchx-entry-points.md.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import sys
import sysconfig
from pathlib import Path

from symphony_charts.version import __version__

_NAME = "symphony-charts-torchx"
_FOLDER = f"symphony_charts_torchx-{__version__}.dist-info"
_OURS = {
    # Also right after an upgrade to a TorchX that no longer has it.
    "kubernetes_mcad": "symphony_charts.integrations.torchx.kubernetes_mcad",
    "symph": "symphony_charts.integrations.torchx.scheduler",
}


def main(site: Path) -> str:
    """Install the entry points for TorchX 0.7 in `site`, or remove them for a newer one; return a message."""
    for old in site.glob("symphony_charts_torchx-*.dist-info"):
        shutil.rmtree(old)
    if importlib.util.find_spec("torchx.plugins") is not None:
        return "nothing to install: this TorchX already finds the scheduler `symph`"
    own = importlib.import_module("torchx.schedulers").DEFAULT_SCHEDULER_MODULES
    lines = [f"{name} = {module}:create_scheduler" for name, module in {**own, **_OURS}.items()]
    files = {
        "METADATA": f"Metadata-Version: 2.1\nName: {_NAME}\nVersion: {__version__}\n"
        "Summary: Entry points that add the scheduler symph to TorchX 0.7.\n",
        "INSTALLER": "symphony-charts\n",
        "entry_points.txt": "\n".join(["[torchx.schedulers]", *lines, ""]),
    }
    files["RECORD"] = "".join(f"{_FOLDER}/{name},,\n" for name in (*files, "RECORD"))
    (site / _FOLDER).mkdir()
    for name, text in files.items():
        (site / _FOLDER / name).write_text(text, encoding="utf-8")
    return f"TorchX finds the scheduler `symph` now; to undo it: pip uninstall {_NAME}"


if __name__ == "__main__":
    if importlib.util.find_spec("torchx") is None:
        sys.exit("error: TorchX is not installed\n  next: pip install 'symphony-charts[torchx]'")
    sys.stdout.write(main(Path(sysconfig.get_path("purelib"))) + "\n")
