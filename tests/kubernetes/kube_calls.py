"""Print the adapter's handling of kubeconfigs as JSON: run with one official client or another on PYTHONPATH.

Reads a list of `{name, file, context, write, paths}` from stdin; `write` is done between login and requests.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from symphony_charts.errors import SymphError, ToolFailed
from symphony_charts.kubernetes.client import KubeApi


def outcome(case: dict[str, object]) -> dict[str, object]:
    answers: list[object] = []
    try:
        with KubeApi(Path(str(case["file"])), case.get("context")) as api:  # type: ignore[arg-type]  # str or None
            for path, text in dict(case.get("write") or {}).items():  # type: ignore[call-overload]  # a JSON object
                Path(path).write_text(text)
            for path in case.get("paths") or ["/version"]:  # type: ignore[attr-defined]  # a JSON list
                answers.append(streamed(api, path) if path.endswith("/exec") else api.get(path))
    except SymphError as error:
        kind = type(error).__name__
        return {"answers": answers, "error": kind, "text": str(error), "exit": error.exit_code}
    return {"answers": answers}


def streamed(api: KubeApi, path: str) -> object:
    try:
        api.connection.websocket(path, [], ["v5.channel.k8s.io"])
    except ToolFailed as error:
        said = error.what.partition(": ")[2]
        if not said.startswith("{"):
            raise
        return json.loads(said)
    raise AssertionError("the peer opens no streams")


if __name__ == "__main__":
    print(json.dumps({case["name"]: outcome(case) for case in json.load(sys.stdin)}))  # noqa: T201  # its result
