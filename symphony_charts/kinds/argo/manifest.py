"""Objects as texts inside templates of Argo Workflows, in which Argo expands our variables and no text of users.

Argo replaces ``{{...}}`` anywhere in a template before its executor reads the manifest as YAML. So the manifest is
JSON, in which a brace of a user can be written as an escape that only the reader of the manifest undoes.

Source: argoproj/argo-workflows v3.7.3, util/template, workflow/controller/workflowpod.go (substitutePodParams) and
operator.go: `setOwnerReference` reads and writes the manifest, which undoes the escapes before a last substitution.
That is why the manifest itself names its owner.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.go_json import dumps

__all__ = ["as_json", "manifest", "manifests_of", "parameter"]

_OWNER = (
    '"ownerReferences":[{"apiVersion":"argoproj.io/v1alpha1","controller":true,"kind":"Workflow",'
    '"name":"{{workflow.name}}","uid":"{{workflow.uid}}"}]'
)

# An input in place of a value, not inside a text, with its name if its value is a text.
_EXPRESSION = re.compile(r"(?:(?<=[:,\[])|(?<=[^\\]\": ))\{\{(?:=toJson\(inputs\.parameters\.([^{}()]+)\)|[^{}]+)\}\}")


def manifest(item: Mapping[str, object], inputs: Mapping[str, str]) -> str:
    """Return the text of an object that has labels. `inputs` maps stand-ins made by `parameter` to what Argo reads."""
    head = {key: value for key, value in item.items() if key < "metadata"}
    tail = {key: value for key, value in item.items() if key > "metadata"}
    text = f'{dumps(head)[:-1]},"metadata":{dumps(item["metadata"])}{"," if tail else ""}{dumps(tail)[1:]}'
    text = text.replace("{{", "{\\u007b")
    for stand_in, said in inputs.items():
        text = text.replace(f'"{stand_in}"', said)
    return text.replace('"metadata":{', f'"metadata":{{{_OWNER},', 1)


def as_json(name: str) -> str:
    """Return what Argo replaces with the JSON in an input, which must be ASCII without two braces."""
    return f"{{{{inputs.parameters.{name}}}}}"


def parameter(name: str, run: str) -> str:
    """Return the stand-in for the input `name`. No user can write it: it contains a hash of the object."""
    return f"symph.dev/parameter/{name}/{run}"


def manifests_of(item: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """Yield the objects that a Workflow, WorkflowTemplate or CronWorkflow creates, with its arguments.

    Inputs without an argument are empty texts, and so are those that replace more than a text.
    """
    spec = item.get("spec")
    if item.get("kind") == "CronWorkflow" and isinstance(spec, Mapping):
        spec = spec.get("workflowSpec")
    templates = spec.get("templates") if isinstance(spec, Mapping) else None
    arguments = {str(one.get("name")): one.get("value") for one in maps(sub(spec, "arguments"), "parameters")}
    for template in templates if isinstance(templates, list) else ():
        resource = template.get("resource") if isinstance(template, Mapping) else None
        text = resource.get("manifest") if isinstance(resource, Mapping) else None
        found = _read(text, arguments) if isinstance(text, str) else None
        if found is not None:
            yield found


def _read(text: str, arguments: Mapping[str, object]) -> dict[str, object] | None:
    """Return the object in a manifest of ours; None for one of others, which may be YAML with variables of Argo."""

    def value(found: re.Match[str]) -> str:
        said = arguments.get(found[1])
        return json.dumps(said if isinstance(said, str) else "")

    try:
        found = json.loads(_EXPRESSION.sub(value, text))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
