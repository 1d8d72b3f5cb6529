"""A kubeconfig as its files say it: which cluster and which user a context means, or what is wrong with the files.

The merge is kubectl's, and so helm's: the first file that names something wins. The official client lets the last
file's current context win, so it is always told which one to take.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from symphony_charts.errors import SpecError, ToolFailed

__all__ = ["Entry", "KubeContext", "kubeconfig_files", "read_context"]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LISTS = {"contexts": "context", "clusters": "cluster", "users": "user"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One named entry of a kubeconfig: a context, a cluster or a user, and the file that it stands in."""

    name: str
    file: str
    fields: Mapping[str, object] = field(repr=False)

    def text(self, key: str) -> str:
        """Return the value of a key as text; empty where it is not there."""
        value = self.fields.get(key)
        return "" if value is None else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeContext:
    """A context with the cluster and the user that it names, and all files that were read; no user is anonymous."""

    name: str
    namespace: str
    cluster: Entry
    user: Entry
    files: tuple[str, ...]


def kubeconfig_files(kubeconfig: Path | None = None) -> list[str]:
    """Return the files that count: the one given, else those of $KUBECONFIG as it stands now, else ~/.kube/config."""
    if kubeconfig is not None:
        return [str(kubeconfig.expanduser())]
    named = [name for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    return [str(Path(name).expanduser()) for name in named or ["~/.kube/config"]]


def read_context(kubeconfig: Path | None = None, name: str | None = None) -> KubeContext:
    """Return the context `name`, or the current one.

    Raises ToolFailed where there is no kubeconfig, and SpecError, with the file, for one that cannot be used.
    """
    wanted = kubeconfig_files(kubeconfig)
    files = [file for file in wanted if Path(file).exists()]
    if not files:
        what = f"no cluster is configured: there is no {' nor '.join(wanted)}"
        raise ToolFailed(what, next="set $KUBECONFIG, or give a --kubeconfig")
    documents = {file: _document(file) for file in files}
    entries = {kind: _merged(documents, kind) for kind in _LISTS}
    chosen = name or next(
        (str(document["current-context"]) for document in documents.values() if document.get("current-context")), ""
    )
    context = _named(entries["contexts"], chosen, files)
    cluster = _referred(context, "cluster", entries["clusters"])
    if not cluster.text("server"):
        raise _broken(cluster.file, f'the cluster "{cluster.name}" has no server', "clusters")
    user = Entry(name="", file=context.file, fields={})
    if context.text("user"):
        user = _referred(context, "user", entries["users"])
    namespace = context.text("namespace") or "default"
    return KubeContext(name=context.name, namespace=namespace, cluster=cluster, user=user, files=tuple(files))


def _document(file: str) -> Mapping[str, object]:
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise _broken(file, f"the kubeconfig cannot be read: {reason}") from error
    try:
        document = yaml.load(text, _LOADER)  # noqa: S506  # a safe loader, by another name
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f"{file}:{mark.line + 1}" if mark else file
        reason = getattr(error, "problem", None) or str(error)
        raise _broken(at, f"the kubeconfig is no YAML: {reason}") from error
    if document is None:
        raise _broken(file, "the kubeconfig is empty")
    if not isinstance(document, Mapping):
        raise _broken(file, f"the kubeconfig is no mapping but a {type(document).__name__}")
    return document


def _merged(documents: Mapping[str, Mapping[str, object]], kind: str) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for file, document in documents.items():
        for entry in _entries(file, document, kind):
            entries.setdefault(entry.name, entry)
    return entries


def _entries(file: str, document: Mapping[str, object], kind: str) -> Iterator[Entry]:
    listed = document.get(kind) or []
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise _broken(file, f"{kind} is no list", kind)
    for index, item in enumerate(listed):
        fields = (item.get(_LISTS[kind]) or {}) if isinstance(item, Mapping) else None
        if not isinstance(item, Mapping) or not item.get("name") or not isinstance(fields, Mapping):
            raise _broken(file, f"an entry is no `name` with its `{_LISTS[kind]}`", f"{kind}[{index}]")
        yield Entry(name=str(item["name"]), file=file, fields=fields)


def _named(contexts: Mapping[str, Entry], name: str, files: Sequence[str]) -> Entry:
    if name in contexts:
        return contexts[name]
    names = ", ".join(contexts) or "none"
    near = difflib.get_close_matches(name, contexts, 1)
    what = f'there is no context "{name}"' if name else "no context is chosen: current-context is not set"
    guess = f' (did you mean "{near[0]}"?)' if near else ""
    raise SpecError.one(what, next=f"choose a --context; there are: {names}{guess}", at=" ".join(files))


def _referred(context: Entry, kind: str, entries: Mapping[str, Entry]) -> Entry:
    name = context.text(kind)
    if name in entries:
        return entries[name]
    what = f'the context "{context.name}" names the {kind} "{name}", which is not there'
    raise SpecError.one(what, kind + "s", f"add it, or name one that is: {', '.join(entries) or 'none'}", context.file)


def _broken(at: str, what: str, path: str = "") -> SpecError:
    return SpecError.one(what, path, "kubectl config view shows what kubectl makes of it", at)
