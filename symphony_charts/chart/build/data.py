"""ConfigMaps, Secrets, variables, volumes and the service account of a release as trees."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import replace

from symphony_charts.chart.build.draft import Draft, Group, Kind, volume_source, with_names
from symphony_charts.chart.evaluate import printed, short_sha256
from symphony_charts.chart.helpers import cut
from symphony_charts.chart.tree import (
    Block,
    Either,
    File,
    Helper,
    Include,
    Merged,
    NonZero,
    Text,
    Tree,
    Value,
    When,
    function_of,
    optional,
    text_of,
)
from symphony_charts.formats import yaml_write
from symphony_charts.spec import variable_names
from symphony_charts.spec.environment import ServiceFact, hosts_variables, shared_variables
from symphony_charts.spec.model import Process, Step
from symphony_charts.spec.sources import CONFIG_DIR, SECRETS_DIR, AnyVolume, DeviceVolume, Mount, NfsVolume, key_of

_POD_INDEX = "metadata.labels['apps.kubernetes.io/pod-index']"


def shared_environment(draft: Draft) -> Tree:
    """Return the data of the shared ConfigMap of variables: the address of each service."""
    data: dict[str, Tree] = {
        variable_names.EXPERIMENT: draft.experiment.name,
        variable_names.CONFIG_FOLDER: CONFIG_DIR,
        variable_names.SECRETS_FOLDER: SECRETS_DIR,
    }
    for name, source in shared_variables(draft.services):
        assert isinstance(source, ServiceFact)  # noqa: S101 - shared variables hold nothing else
        group = draft.groups[draft.services[source.service].listener.pod]
        data[name] = When(NonZero(f"{group.path}.replicas"), _fact(draft, source))
    return data


def variables_name(group: Group, process: str) -> str:
    return f"variables.{group.name}.{process}"


def _items(variables: Mapping[str, Tree]) -> list[Tree]:
    items: list[Tree] = []
    for name, tree in variables.items():
        value = tree.tree if isinstance(tree, When) else tree
        item = {"name": name, "valueFrom" if isinstance(value, dict) else "value": value}
        items.append(When(tree.condition, item) if isinstance(tree, When) else item)
    return items


def own_variables(draft: Draft, group: Group) -> list[Helper]:
    """Return a helper with the private variables of each process and step of `group`."""
    pod = _pod_variables(draft, group)
    shared = [Helper(name=f"variables.{group.name}", tree=_items(pod))] if pod and len(group.programs) > 1 else []
    helpers = list(shared)
    for name in group.programs:
        process = group.pod.processes.get(name)
        common = {**_common(draft, group, name), **draft.kind.variables(process or group.steps[name])}
        own: dict[str, Tree] = {}
        if process is not None:
            own |= {} if shared else pod
            own |= _process_variables(draft, group, name, process.connects)
            own |= draft.peers.variables(draft, group, _field(draft.kind.index))
        inside: list[Tree] = [Include(shared[0].name)] if shared and process is not None else []
        tree = Merged(_items(common), *inside, _items(own)) if inside else _items(common | own)
        helpers.append(Helper(name=variables_name(group, name), tree=with_names(tree)))
    return helpers


def _common(draft: Draft, group: Group, name: str) -> dict[str, Tree]:
    is_run = draft.kind.runs(group)
    index = draft.kind.index if is_run else Kind.index if group.is_ended else _POD_INDEX
    attempt = draft.kind.attempt(group) if is_run else ""
    return {
        variable_names.ROLE: name,
        variable_names.GROUP: group.name,
        **({variable_names.INDEX: _field(index)} if index else {}),
        **({variable_names.INDEX: "0"} if is_run and draft.kind.is_single(group) else {}),
        variable_names.REPLICAS: Value(f"{group.path}.replicas", is_text=True),
        **({} if group.is_kept else {variable_names.RUN: Text("{$run}")}),
        **({variable_names.ATTEMPT: _field(attempt)} if attempt else {}),
    }


def _pod_variables(draft: Draft, group: Group) -> dict[str, Tree]:
    """Return the addresses of a pod's services for its own processes, inside the pod."""
    tree: dict[str, Tree] = {}
    for service in draft.services_of(group):
        host = variable_names.service_variable(service.name, "HOST")
        tree[host] = _field("status.podIP")
        port = f"{{.Values.services.{service.name}.port}}"
        tree[variable_names.service_variable(service.name, "ADDR")] = Text(f"$({host}):{port}")
    return tree


def _process_variables(draft: Draft, group: Group, name: str, connects: Iterable[str]) -> dict[str, Tree]:
    """Return the addresses that a process can bind, and those of the replicas of its own and dialled services."""
    listens = [service.name for service in draft.services_of(group, name)]
    tree: dict[str, Tree] = {
        variable_names.service_variable(service, "BIND_HOST"): _field("status.podIP") for service in listens
    }
    conditional: dict[str, Tree] = {}
    for variable, source in hosts_variables(listens, (each for each in connects if each in draft.services)):
        assert isinstance(source, ServiceFact)  # noqa: S101 - these variables hold nothing else
        service = draft.services[source.service]
        other = draft.groups[service.listener.pod]
        if other.name == group.name:
            tree[variable] = draft.hosts(service)
        else:
            conditional[variable] = When(NonZero(f"{other.path}.replicas"), draft.hosts(service))
    return tree | conditional


def _field(path: str) -> Tree:
    return {"fieldRef": {"fieldPath": path}}


def _fact(draft: Draft, fact: ServiceFact) -> Tree:
    service = draft.services[fact.service]
    host = draft.name(service.name).format
    match fact.part:
        case "HOST":
            return Text(host)
        case "ADDR":
            return Text(f"{host}:{{.Values.services.{service.name}.port}}")
        case _:
            return Value(f".Values.services.{service.name}.port", is_text=True)


# The controller of SealedSecrets reads the scope from these annotations; strict is its default.
# Source: bitnami-labs/sealed-secrets, pkg/apis/sealedsecrets/v1alpha1.
SCOPES = {
    "namespace-wide": "sealedsecrets.bitnami.com/namespace-wide",
    "cluster-wide": "sealedsecrets.bitnami.com/cluster-wide",
}
# Argo CD applies it before everything that mounts the Secret.
_FIRST = {"argocd.argoproj.io/sync-wave": "-1"}


# The labels and annotations of an object.
METADATA = Helper(
    name="metadata",
    tree={
        "labels": Merged(Include("labels", ".root"), Include("ownLabels", ".")),
        "annotations": Block(".root.Values.commonAnnotations", via="strings"),
    },
)

# The labels of one object: one per argument except the root.
OWN_LABELS = Helper(
    name="ownLabels",
    tree={f"symph.dev/{name}": optional(f".{name}") for name in ("group", "process", "run", "service")},
    is_range=True,
    go="""
{{- range $key, $value := omit . "root" }}
symph.dev/{{ $key }}: {{ $value | quote }}
{{- end }}
""",
)

# Merges an object's annotations over the shared ones.
ANNOTATIONS = Helper(
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
    """Return the helper with the name of the ConfigMap of shared variables; `digest` hashes them."""
    full, digest_of = function_of(fullname), function_of(digest)
    return replace(
        digest,
        go=f'{{{{- include "CHART.fullname" . }}}}-environment-\n{digest.go}',
        py=lambda root: f"{full(root)}-environment-{digest_of(root)}",
        comment="The name of the ConfigMap of variables changes with the addresses of services.",
        reads=(*digest.reads, *fullname.reads),
        is_plain=True,
    )


def metadata(name: Text, **arguments: str) -> Tree:
    """Return the metadata of an object; `arguments` are its labels as paths: `group`, `service`, `run`."""
    return Merged({"name": name}, Include("metadata", {"root": ".", **arguments}))


def annotated(name: Text, own: str | Mapping[str, Tree], **arguments: str) -> dict[str, Tree]:
    """Return the metadata of an object with its own annotations: constants, or the path of a value."""
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
    return {
        f"files/{name}": (file.text or "").encode() if file.base64 is None else base64.b64decode(file.base64)
        for name, file in sorted(draft.experiment.configs.items())
    }


def config_name(draft: Draft, fullname: str = "$fullname") -> Text:
    """Return the name of the ConfigMap of files, which changes with their content. `fullname` is a path."""
    contents = {path: base64.b64encode(content).decode() for path, content in config_files(draft).items()}
    return Text(f"{{{fullname}}}-config-{short_sha256(yaml_write.dumps(contents))}")


def config_maps(draft: Draft) -> list[Tree]:
    """Return the ConfigMap of shared variables and, if there are any, the one of configuration files."""
    common = {"apiVersion": "v1", "kind": "ConfigMap"}
    maps: list[Tree] = [
        {**common, "metadata": metadata(Text("{environment}")), "immutable": True, "data": shared_environment(draft)}
    ]
    files = config_files(draft)
    if files:
        data: dict[str, dict[str, Tree]] = {"data": {}, "binaryData": {}}
        for path, content in files.items():
            data["binaryData" if text_of(content) is None else "data"][path.removeprefix("files/")] = File(path)
        filled = {key: entries for key, entries in data.items() if entries}
        maps.append({**common, "metadata": metadata(config_name(draft)), "immutable": True, **filled})
    return maps


def secret(draft: Draft) -> Tree | None:
    """Return the SealedSecret or ExternalSecret of the release; None if the Secret is not part of the chart."""
    source, files = draft.experiment.secret_source, sorted(draft.experiment.secrets, key=key_of)
    if not files or source.source not in ("sealed", "external"):
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
    data = []
    for file in files:
        place, hash_, part = (file.remote or key_of(file)).partition("#")
        data.append({"secretKey": key_of(file), "remoteRef": {"key": place} | ({"property": part} if hash_ else {})})
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


def name_helper(name: str, section: str, fullname: Helper, suffix: str = "") -> Helper:
    """Return a helper with the name in a section of the values, or else the full name and `suffix`."""
    full = function_of(fullname)
    return Helper(
        name=name,
        reads=(f".Values.{section}.name",),
        py=lambda root: root["Values"][section]["name"] or f"{full(root)}{suffix}",
        go=f'{{{{- .Values.{section}.name | default (print (include "CHART.fullname" .) "{suffix}") -}}}}',
    )


def service_account() -> Tree:
    """Return the ServiceAccount; values decide if it is created."""
    return When(
        ".Values.serviceAccount.create",
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": annotated(Text("{serviceAccountName}"), ".Values.serviceAccount.annotations"),
            "automountServiceAccountToken": False,
        },
    )


_RBAC = "rbac.authorization.k8s.io"


def account_with_rights(metadata: Tree, name: Text, rules: Tree) -> list[Tree]:
    """Return a ServiceAccount, a Role with `rules` and their RoleBinding; all are called `name`, as in `metadata`."""
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name}],
        },
    ]


_CONFIG = "symph-config"
_SECRETS = "symph-secrets"
FILES_MOUNT: Tree = {"name": _CONFIG, "mountPath": CONFIG_DIR, "readOnly": True}


def used_volumes(draft: Draft, group: Group) -> Mapping[str, AnyVolume]:
    """Return the volumes of the experiment that containers of `group` mount."""
    programs: list[Process | Step] = [*group.pod.processes.values(), *group.steps.values()]
    return {mount.volume: draft.experiment.volumes[mount.volume] for one in programs for mount in one.mounts}


def volumes_of(draft: Draft, group: Group) -> list[dict[str, Tree]]:
    """Return the volumes of a pod: the experiment's, its configuration files, and the visible secrets."""
    volumes: list[dict[str, Tree]] = [
        {"name": name, **volume_source(volume)} for name, volume in used_volumes(draft, group).items()
    ]
    if draft.experiment.configs:
        volumes.append(files_volume(draft))
    secrets: dict[str, dict[str, Tree]] = {}
    for name in (*group.pod.processes, *group.steps):
        keys = _visible_secrets(draft, group, name)
        if keys:
            volume = _secret_volume(draft, name, keys)
            items = [{"key": key, "path": key} for key in keys]
            secrets[volume] = {"name": volume, "secret": {"secretName": Text("{secretName}"), "items": items}}
    return [*volumes, *(secrets[name] for name in sorted(secrets))]


def has_only_files(draft: Draft) -> bool:
    """Return True if all pods mount the configuration files and nothing else."""
    return (
        bool(draft.experiment.configs)
        and not draft.experiment.secrets
        and not any(used_volumes(draft, group) for group in draft.groups.values())
    )


def files_volume(draft: Draft, fullname: str = "$fullname") -> dict[str, Tree]:
    """Return the volume of the configuration files; `fullname` is the path of the full name."""
    files = draft.experiment.configs
    source: dict[str, Tree] = {"name": config_name(draft, fullname)}
    if any(file.mode is not None for file in files.values()):
        source["items"] = [
            {"key": name, "path": name} | ({"mode": int(file.mode, 8)} if file.mode is not None else {})
            for name, file in sorted(files.items())
        ]
    return {"name": _CONFIG, "configMap": source}


def _visible_secrets(draft: Draft, group: Group, name: str) -> dict[str, list[str]]:
    """Return the keys of the secret files that a container sees, each with its further paths."""
    names = {f"{group.name}/{name}"} | ({name} if name in group.pod.processes else set())
    return {
        key_of(secret): list(secret.also_at)
        for secret in sorted(draft.experiment.secrets, key=key_of)
        if not secret.only or names & set(secret.only)
    }


def _secret_volume(draft: Draft, name: str, keys: Iterable[str]) -> str:
    is_all = len(list(keys)) == len(draft.experiment.secrets)
    return _SECRETS if is_all else cut(f"{_SECRETS}-{name}", 63)


def mounts_of(draft: Draft, group: Group, name: str, program: Process | Step) -> list[Tree]:
    """Return the mounts of a container: declared mounts, configuration files and secret files."""
    mounts: list[Tree] = [_mount(mount, draft.experiment.volumes[mount.volume]) for mount in program.mounts]
    if draft.experiment.configs:
        mounts.append(FILES_MOUNT)
    keys = _visible_secrets(draft, group, name)
    if keys:
        volume = _secret_volume(draft, name, keys)
        mounts.append({"name": volume, "mountPath": SECRETS_DIR, "readOnly": True})
        mounts += [
            {"name": volume, "mountPath": path, "subPath": key, "readOnly": True}
            for key, paths in keys.items()
            for path in paths
        ]
    return mounts


def _mount(mount: Mount, volume: AnyVolume) -> Tree:
    entry: dict[str, Tree] = {"name": mount.volume, "mountPath": mount.at}
    is_fixed_device = isinstance(volume, DeviceVolume) and "w" not in volume.perm
    if mount.read_only or is_fixed_device or (isinstance(volume, NfsVolume) and volume.read_only):
        entry["readOnly"] = True
    if mount.sub_path:
        entry["subPath"] = mount.sub_path
    return entry
