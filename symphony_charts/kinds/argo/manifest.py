"""Objects inside Argo Workflows' templates: text in which Argo expands what we mean, and nothing of the user's.

Argo replaces ``{{...}}`` anywhere in a template before its executor reads the manifest as YAML. So the manifest is
JSON, where a brace of the user's can be written as an escape that only the reader of the manifest undoes.

Source: argoproj/argo-workflows v3.7.3, util/template, workflow/controller/workflowpod.go (substitutePodParams) and
operator.go: `setOwnerReference` reads and writes the manifest anew and so undoes the escapes, before a last
substitution; that is why the owner stands in the manifest itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.go_json import dumps

__all__ = ["OWNER", "as_json", "as_text", "manifest", "manifests_of", "parameter"]

OWNER = (
    '"ownerReferences":[{"apiVersion":"argoproj.io/v1alpha1","controller":true,"kind":"Workflow",'
    '"name":"{{workflow.name}}","uid":"{{workflow.uid}}"}]'
)
"""What lets an object vanish with the Workflow that created it."""

# An input where a value stands, not inside of a text; the name of one whose value is a text.
_EXPRESSION = re.compile(r"(?<=[:,\[])\{\{(?:=toJson\(inputs\.parameters\.([^{}()]+)\)|[^{}]+)\}\}")


def manifest(item: Mapping[str, object], inputs: Mapping[str, str]) -> str:
    """The text of an object that has labels; `inputs` maps stand-ins in it, made by `parameter`, to what Argo reads."""
    head = {key: value for key, value in item.items() if key < "metadata"}
    tail = {key: value for key, value in item.items() if key > "metadata"}
    text = f'{dumps(head)[:-1]},"metadata":{dumps(item["metadata"])}{"," if tail else ""}{dumps(tail)[1:]}'
    text = text.replace("{{", "{\\u007b")
    for stand_in, said in inputs.items():
        text = text.replace(f'"{stand_in}"', said)
    return text.replace('"metadata":{', f'"metadata":{{{OWNER},', 1)


def as_text(name: str) -> str:
    """What Argo reads as the value of an input, whatever stands in it."""
    return f"{{{{=toJson(inputs.parameters.{name})}}}}"


def as_json(name: str) -> str:
    """What Argo reads as the JSON that an input holds, which must be ASCII without two braces."""
    return f"{{{{inputs.parameters.{name}}}}}"


def parameter(name: str, run: str) -> str:
    """What stands in an object for the input `name`. It holds the hash of the object's run, which no user can write."""
    return f"symph.dev/parameter/{name}/{run}"


def manifests_of(item: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """The objects that a Workflow, WorkflowTemplate or CronWorkflow creates, with the arguments that it says.

    Inputs that nothing is said of are empty texts, and so are those that stand for more than a text.
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
    """The object in a manifest of ours; those of others may be YAML, or not even that before Argo has expanded them."""

    def value(found: re.Match[str]) -> str:
        said = arguments.get(found[1])
        return json.dumps(said if isinstance(said, str) else "")

    try:
        found = json.loads(_EXPRESSION.sub(value, text))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
