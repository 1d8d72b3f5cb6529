"""ConfigMaps, Secrets and the service account of a release as trees."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace

from symphony_charts.chart.build.draft import Draft
from symphony_charts.chart.build.environment import shared_environment
from symphony_charts.chart.digest import short_sha256
from symphony_charts.chart.evaluate import printed
from symphony_charts.chart.helpers import cut
from symphony_charts.chart.tree import (
    Block,
    Either,
    File,
    Helper,
    Include,
    Merged,
    Text,
    Tree,
    Value,
    When,
    function_of,
    text_of,
)
from symphony_charts.formats import go_json
from symphony_charts.spec.sources import key_of

# The controller of SealedSecrets reads the scope from these annotations; strict is its default.
# Source: bitnami-labs/sealed-secrets, pkg/apis/sealedsecrets/v1alpha1.
SCOPES = {
    "namespace-wide": "sealedsecrets.bitnami.com/namespace-wide",
    "cluster-wide": "sealedsecrets.bitnami.com/cluster-wide",
}
# Argo CD applies it before everything that mounts the Secret.
_FIRST = {"argocd.argoproj.io/sync-wave": "-1"}


def metadata_helper() -> Helper:
    """Return the helper with the labels and annotations of an object."""
    tree = {
        "labels": Merged(Include("labels", ".root"), Include("ownLabels", ".")),
        "annotations": Block(".root.Values.commonAnnotations", via="strings"),
    }
    return Helper(name="metadata", tree=tree)


def own_labels_helper() -> Helper:
    """Return the helper with the labels of one object: a label for each of its arguments except the root."""
    names = ("group", "process", "run", "service")
    return Helper(
        name="ownLabels",
        tree={f"symph.dev/{name}": When(f".{name}", Value(f".{name}", is_text=True)) for name in names},
        is_range=True,
        go="""
{{- range $key, $value := omit . "root" }}
symph.dev/{{ $key }}: {{ $value | quote }}
{{- end }}
""",
    )


def annotations_helper() -> Helper:
    """Return the helper with the annotations of one object over those of all."""
    return Helper(
        name="annotations",
        py=lambda dot: {key: printed(item) for key, item in {**(dot["common"] or {}), **dot["own"]}.items()},
        go="""
{{- $all := dict -}}
{{- range $key, $value := .common }}{{ $_ := set $all $key $value }}{{ end -}}
{{- range $key, $value := .own }}{{ $_ := set $all $key $value }}{{ end -}}
{{- include "CHART.strings" $all | trim -}}
""",
    )


def environment_name_helper(digest: Helper, fullname: Helper) -> Helper:
    """Return the helper with the name of the ConfigMap of shared variables, from the helper that hashes them."""
    full, digest_of = function_of(fullname), function_of(digest)
    printed_digest = "{{- .Values.environmentDigest -}}"
    go = digest.go.replace(
        printed_digest, '{{- include "CHART.fullname" . }}-environment-{{ .Values.environmentDigest -}}'
    )
    return replace(
        digest,
        go=go,
        py=lambda root: f"{full(root)}-environment-{digest_of(root)}",
        comment="The name of the ConfigMap of variables, which changes with the addresses of services.",
        reads=(*digest.reads, *fullname.reads),
        is_plain=True,
    )


def metadata(name: Text, **arguments: str) -> Tree:
    """Return the metadata of an object; `arguments` are its labels as paths: `group`, `service`, `run`."""
    return Merged({"name": name}, Include("metadata", {"root": ".", **arguments}))


def annotated(name: Text, own: str | Mapping[str, Tree], **arguments: str) -> dict[str, Tree]:
    """Return the metadata of an object with annotations of its own: constants, or the path of a value."""
    labels: dict[str, Tree] = {
        f"symph.dev/{label}": path.strip('"') if path.startswith('"') else Value(path, is_text=True)
        for label, path in arguments.items()
    }
    common = ".Values.commonAnnotations"
    if isinstance(own, str):
        both = Include("annotations", {"common": common, "own": own})
        annotations: Tree = When(Either((common, own)), both)
    else:
        annotations = Merged(dict(own), Block(common, via="strings"))
    all_labels = Merged(Include("labels"), labels) if labels else Include("labels")
    return {"name": name, "labels": all_labels, "annotations": annotations}


def config_files(draft: Draft) -> dict[str, bytes]:
    """Return the configuration files of the experiment by their path in the chart."""
    return {
        f"files/{name}": (file.text or "").encode() if file.base64 is None else base64.b64decode(file.base64)
        for name, file in sorted(draft.experiment.configs.items())
    }


def config_name(draft: Draft, fullname: str = "$fullname") -> Text:
    """Return the name of the ConfigMap of files, which changes with their content. `fullname` is a path."""
    contents = {path: base64.b64encode(content).decode() for path, content in config_files(draft).items()}
    return Text(f"{{{fullname}}}-config-{short_sha256(go_json.dumps(contents))}")


def config_maps(draft: Draft) -> list[Tree]:
    """Return the ConfigMap of shared variables, and the one of configuration files if there are any."""
    common = {"apiVersion": "v1", "kind": "ConfigMap"}
    maps: list[Tree] = [
        {
            **common,
            "metadata": metadata(Text("{environment}")),
            "immutable": True,
            "data": shared_environment(draft),
        },
    ]
    files = config_files(draft)
    if files:
        texts = {path: File(path) for path, content in files.items() if text_of(content) is not None}
        binaries = {path: File(path) for path in files if path not in texts}
        content: dict[str, Tree] = {}
        for key, chosen in (("data", texts), ("binaryData", binaries)):
            if chosen:
                content[key] = {path.removeprefix("files/"): file for path, file in chosen.items()}
        maps.append({**common, "metadata": metadata(config_name(draft)), "immutable": True, **content})
    return maps


def secret_name_helper(draft: Draft, fullname: Helper) -> Helper:
    """Return the helper with the name of the Secret that pods mount."""
    own = function_of(fullname)
    suffix = cut("secrets", 63 - 1 - draft.fullname_limit)
    return Helper(
        name="secretName",
        reads=(".Values.secrets.name",),
        py=lambda root: root["Values"]["secrets"]["name"] or f"{own(root)}-{suffix}",
        go=f'{{{{- .Values.secrets.name | default (printf "%s-{suffix}" (include "CHART.fullname" .)) -}}}}',
    )


def secret(draft: Draft) -> Tree | None:
    """Return the SealedSecret or ExternalSecret of the release; None if the Secret is made apart from the chart."""
    source = draft.experiment.secret_source
    keys = sorted(key_of(file) for file in draft.experiment.secrets)
    if not keys or source.source not in ("sealed", "external"):
        return None
    if source.source == "sealed":
        scope = {SCOPES[source.scope]: "true"} if source.scope in SCOPES else {}
        inner: dict[str, Tree] = {"name": Text("{secretName}"), "labels": Include("labels")}
        if scope:
            inner["annotations"] = scope
        return When(
            ".Values.secrets.encryptedData",
            {
                "apiVersion": "bitnami.com/v1alpha1",
                "kind": "SealedSecret",
                "metadata": annotated(Text("{secretName}"), {**_FIRST, **scope}),
                "spec": {
                    "encryptedData": Block(".Values.secrets.encryptedData", via="strings"),
                    "template": {"metadata": inner, "type": "Opaque"},
                },
            },
        )
    remotes = {key_of(file): file.remote or key_of(file) for file in draft.experiment.secrets}
    data = []
    for key in keys:
        place, hash_, part = remotes[key].partition("#")
        data.append({"secretKey": key, "remoteRef": {"key": place} | ({"property": part} if hash_ else {})})
    return {
        "apiVersion": "external-secrets.io/v1",
        "kind": "ExternalSecret",
        "metadata": annotated(Text("{secretName}"), _FIRST),
        "spec": {
            "refreshInterval": Value(".Values.secrets.refreshInterval", is_text=True),
            "secretStoreRef": {
                "kind": Value(".Values.secrets.store.kind"),
                "name": Value(".Values.secrets.store.name", is_text=True),
            },
            "target": {"name": Text("{secretName}"), "creationPolicy": "Owner"},
            "data": data,
        },
    }


def service_account_helper(fullname: Helper) -> Helper:
    """Return the helper with the name of the release's service account."""
    own = function_of(fullname)
    return Helper(
        name="serviceAccountName",
        reads=(".Values.serviceAccount.name",),
        py=lambda root: root["Values"]["serviceAccount"]["name"] or own(root),
        go='{{- .Values.serviceAccount.name | default (include "CHART.fullname" .) -}}',
    )


def service_account() -> Tree:
    """Return the ServiceAccount, made only if the values ask for it."""
    return When(
        ".Values.serviceAccount.create",
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": annotated(Text("{serviceAccountName}"), ".Values.serviceAccount.annotations"),
            "automountServiceAccountToken": False,
        },
    )
