"""Print the objects that TorchX's own schedulers would submit for the applications on stdin, as JSON.

This program runs under the first TorchX on PYTHONPATH, apart from the tests: TorchX emits many warnings, and it draws
the app ids at random.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from importlib import import_module
from typing import Any

from kubernetes.client import ApiClient


def request(case: dict[str, Any]) -> dict[str, Any]:
    """Return the built application, as it dumps itself, and the object that its dry run shows."""
    specs = import_module("torchx.specs")
    roles = []
    for said in case["app"]["roles"]:
        fields = dict(said)
        fields["resource"] = specs.Resource(**fields["resource"])
        fields["mounts"] = specs.parse_mounts(fields["mounts"])
        fields["retry_policy"] = specs.RetryPolicy[fields["retry_policy"]]
        roles.append(specs.Role(**fields))
    app = specs.AppDef(name=case["app"]["name"], roles=roles, metadata=case["app"]["metadata"])
    dumped = json.loads(json.dumps(dataclasses.asdict(app)))
    scheduler = import_module(f"torchx.schedulers.{case['scheduler']}_scheduler").create_scheduler("test")
    shown = scheduler.submit_dryrun(app, case["cfg"]).request
    return {"app": dumped, "object": ApiClient().sanitize_for_serialization(shown.resource)}


def main() -> None:
    """Answer every case of the list on stdin, in order."""
    answers = [request(case) for case in json.load(sys.stdin)]
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
