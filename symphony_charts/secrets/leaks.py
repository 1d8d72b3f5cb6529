"""Find declared secrets, keys and tokens in files that leave this machine.

Secrets that an experiment declares are found by their content (`declared`), all others by the rules of gitleaks
(`rules`). The guard searches the name of each file, and its content after each layer of `decoding`.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from symphony_charts.errors import Conflict
from symphony_charts.secrets.decoding import View, is_large_binary, views
from symphony_charts.secrets.rules import Found, entropy, fingerprint_of, search, search_path
from symphony_charts.settings.project import AllowedLeak

# Shorter secrets would match by accident.
_LEAST_BYTES = 8
_LEAST_LINE_BYTES = 12
_LEAST_WORD_BYTES = 16
_LEAST_ENTROPY = 3.3
# Names of values that are always secret, and names and forms that are never secret.
_SECRET_NAME = re.compile(
    r"(?i)pass(?:w|phrase|$)|pwd|secret|token|credential|api[_-]?key|private[_-]?key$|access[_-]?key|^key$|_key$|auth$|dsn"
)
_PUBLIC_NAME = re.compile(
    r"(?i)(?:^|_)(?:token|auth)_(?:uri|url|type|endpoint)$|cert_url$|(?:^|_)public_|_id$|file$|path$"
)
_PLAIN = re.compile(
    rb"(?i)true|false|null|none|yes|no|\d{1,12}|[a-z][a-z+.-]*://[^@\s]*|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|~?/[\w./-]*"
    rb"|[\w-]+(?:\.[\w-]+)+|(?:production|development|staging|password|disabled|enabled|localhost|change-?me)"
)
_WORD = re.compile(rb"[A-Za-z0-9+/_.=~!@#$%^&*-]+")
_LABEL = re.compile(rb"[a-z0-9]+(?:[-_][a-z0-9]+)+")
_UUID = re.compile(rb"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ASSIGNED = re.compile(rb"\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*(?:=|:\s)\s*(?=[^\s=])")
_NETRC = re.compile(rb"\b(password|account)\s+(\S+)")
_URL_PASSWORD = re.compile(rb"://[^\s:/@]*:([^\s/@]+)@")
_FRAME = re.compile(rb"-----(?:BEGIN|END) [A-Z0-9 ]+-----|#.*|[{}\[\],]*|\[[\w .-]+\]")


def pieces(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the secrets of a file with their names: the whole, its longer lines, and its values.

    For `KEY=VALUE`, netrc, INI and JSON, a value counts separately if it has a secret name or looks random: every chart
    contains regions and addresses. Comments and PEM frames are not secret.
    """
    whole = content.strip()
    if len(whole) >= _LEAST_BYTES:
        yield "", whole
    data = _json_of(whole)
    if data is not None:
        for name, text in _texts_in(data, ""):
            value = text.encode()
            if _is_secret(name.rpartition(".")[2], value):
                yield name, value
            if "\n" in text:
                yield from ((name, line) for line in _long_lines(value))
        return
    for number, line in enumerate(whole.splitlines(), 1):
        assignment = _ASSIGNED.match(line)
        name = assignment[1].decode() if assignment else f"line {number}"
        value = line[assignment.end() :].rstrip().strip(b"\"'") if assignment else b""
        if assignment and _is_secret(name, value):
            yield name, value
        if not assignment or _is_secret(name, value):
            yield from ((name, piece) for piece in _long_lines(line))
        for found in (*_NETRC.finditer(line), *_URL_PASSWORD.finditer(line)):
            secret = found[found.lastindex or 0]
            if len(secret) >= _LEAST_BYTES:
                yield name, secret


def _long_lines(text: bytes) -> Iterator[bytes]:
    lines = (line.strip() for line in text.splitlines())
    return (line for line in lines if len(line) >= _LEAST_LINE_BYTES and not _FRAME.fullmatch(line))


def _json_of(text: bytes) -> object:
    if not text.startswith((b"{", b"[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _texts_in(data: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(data, str):
        yield path, data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from _texts_in(value, f"{path}.{key}" if path else str(key))
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from _texts_in(value, f"{path}[{number}]")


def _is_secret(name: str, value: bytes) -> bool:
    if len(value) < _LEAST_BYTES or _PUBLIC_NAME.search(name) or _PLAIN.fullmatch(value):
        return False
    if _SECRET_NAME.search(name) or b"PRIVATE KEY" in value:
        return True
    if _UUID.fullmatch(value):
        return True
    is_random = _WORD.fullmatch(value) and re.search(rb"\d", value) and re.search(rb"[A-Za-z]", value)
    return bool(
        is_random
        and len(value) >= _LEAST_WORD_BYTES
        and not _LABEL.fullmatch(value)
        and entropy(value) >= _LEAST_ENTROPY
    )


def disguises(part: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the byte strings to search for if `part` is secret, each with the name of its form.

    `decoding` handles other codes. It cannot decode base64 mixed with binary data, or escapes in quotes.
    """
    yield "in plain text", part
    for text in _base64_forms(part):
        yield "in base64", text
    decoded = part.decode("utf-8", "replace")
    if "\ufffd" not in decoded:
        for quoted in (
            json.dumps(decoded)[1:-1],
            json.dumps(decoded, ensure_ascii=False)[1:-1],
            decoded.replace("'", "''"),
        ):
            yield "escaped", quoted.encode()


def _base64_forms(part: bytes) -> Iterator[bytes]:
    """Yield the base64 digits that depend only on `part`: for its three alignments in a text, in two alphabets."""
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + part)
        # A digit holds six bits: digits that share bits with a neighbour are unknown.
        core = encoded[(0, 2, 3)[offset] : 8 * (offset + len(part)) // 6]
        if len(core) >= _LEAST_BYTES:
            yield core
            yield core.translate(bytes.maketrans(b"+/", b"-_"))


_MOST_SHOWN = 10
_HIDDEN = "***"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """A found secret and its place; `name` is the name of the secret, never its value.

    `line` counts from 1 if the file contains the secret in plain text, else it is 0.
    """

    path: str
    name: str
    how: str
    line: int = 0
    found: Found = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """The identity of the finding, independent of its place, by which a user allows it."""
        return fingerprint_of(self.found)

    @property
    def remediation(self) -> str:
        return _remediation(self.fingerprint)

    def __str__(self) -> str:
        return f"{self.path}{f':{self.line}' if self.line else ''} contains {self.name} ({self.how})"


def _is_at(path: str, glob: str) -> bool:
    """Return True if a path or its end is like `glob`: a chart is searched before it has a place in a repository."""
    parts = path.split("/")
    ends = ("/".join(parts[number:]) for number in range(len(parts)))
    return any(fnmatchcase(end, glob.removeprefix("*/")) for end in ends)


def _covers(allowance: AllowedLeak, found: Found, path: str) -> bool:
    if allowance.fingerprint:
        # Computing a fingerprint is slow, so look at the rule first.
        is_rule = allowance.fingerprint in (found.rule, f"{found.rule}:{allowance.fingerprint.rpartition(':')[2]}")
        return is_rule and fingerprint_of(found) == allowance.fingerprint
    return (
        allowance.rule in ("", found.rule)
        and (not allowance.path or _is_at(path, allowance.path))
        and (not allowance.pattern or re.fullmatch(allowance.pattern.encode(), found.secret) is not None)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """One form of a declared secret: the secret's name, the piece of it, and its encoding."""

    name: str
    piece: str
    how: str

    @property
    def title(self) -> str:
        return f"{self.name}, {self.piece}" if self.piece else self.name

    @property
    def found(self) -> Found:
        """The form as a finding, whose fingerprint depends only on names, not on the spec's location."""
        file = self.name.removeprefix("the secret ").partition(" of ")[0]
        words = ("declared", file, self.piece)
        return Found(rule=":".join(word.replace(" ", "-") for word in words if word), secret=b"", start=0)


class Guard:
    """A search for `secrets` (contents by name), keys and tokens in files that leave this machine.

    Findings that one of `allowed` covers are ignored.
    """

    def __init__(self, secrets: Mapping[str, bytes], *, allowed: Iterable[AllowedLeak] = ()) -> None:
        self._allowed = tuple(allowed)
        self._forms: dict[bytes, _Form] = {}
        for name, content in secrets.items():
            for piece, part in pieces(content):
                for how, form in disguises(part):
                    self._forms.setdefault(form, _Form(name=name, piece=piece, how=how))

    def find(self, files: Mapping[str, bytes]) -> list[Leak]:
        """Return every secret in the content or name of a file, by path; paths are redacted."""
        places: dict[bytes, str] = {}
        for path, content in sorted(files.items()):
            # Charts of one template share most of their files: search equal content once.
            places.setdefault(content, path)
        looked = [view for content, path in places.items() for view in views(path, content)]
        hidden, leaks = self._in_names({*files, *(view.path for view in looked)})
        leaks += [replace(leak, path=_shown(leak.path, hidden)) for leak in self._in_views(looked)]
        first: dict[tuple[str, str, bytes], Leak] = {}
        for leak in leaks:
            first.setdefault((leak.path, leak.found.rule, leak.found.secret), leak)
        return sorted(first.values(), key=lambda leak: (leak.path, leak.line))

    def refuse(self, files: Mapping[str, bytes]) -> None:
        """Raise Conflict if a file or its name contains a secret; the error names both, never the value."""
        _raise(self.find(files))

    def refuse_names(self, names: Iterable[str]) -> None:
        """Raise Conflict if a name that is sent by itself, such as a branch, contains a secret."""
        _raise(self._in_names(set(names))[1])

    def _in_views(self, looked: list[View]) -> Iterator[Leak]:
        for view, form in self._declared_in(looked):
            yield from self._kept(view, [form.found], form.title, form.how)
        for view in looked:
            if view.is_cut:
                found = Found(rule=f"packed:{view.path.rpartition('/')[2]}", secret=b"", start=0)
                yield from self._kept(view, [found], "more data than symph can search")
            elif not is_large_binary(view.data):
                yield from self._kept(view, search(view.data, view.path))

    def _declared_in(self, looked: list[View]) -> Iterator[tuple[View, _Form]]:
        if not self._forms:
            return
        texts = [(view, view.data, view.data.translate(None, b" \t\r\n\v\f")) for view in looked]
        everything = b"\0".join(text for _, *pair in texts for text in pair)
        for form, meaning in self._forms.items():
            if form in everything:
                yield from ((view, meaning) for view, *pair in texts if any(form in text for text in pair))

    def _in_names(self, paths: set[str]) -> tuple[dict[str, str], list[Leak]]:
        """Return the leaks in the names of files and folders, and the parts of paths to redact."""
        # Search folders and file names once each, and all as one text: a thousand charts have few names. Rules expect
        # that a token ends at a blank or a quote, so the words of a name are searched, too.
        parts = sorted({part for path in paths for part in (path.rpartition("/")[0], path.rpartition("/")[2]) if part})
        texts = {part: _words_of(part) for part in parts}
        together = View(path="", data=b"\n".join(texts.values()))
        hidden: dict[str, str] = {}
        leaks: list[Leak] = []
        if any(True for view in views("", together.data) for _ in self._in_views([view])):
            for part, data in texts.items():
                found = [leak for view in views("", data) for leak in self._in_views([view])]
                if found:
                    hidden[part] = _without(part, [leak.found.secret for leak in found])
                    leaks += [replace(leak, path=f"the name {hidden[part]}", line=0) for leak in found]
        for path in sorted(paths):
            view = View(path=_shown(path, hidden), data=b"")
            leaks += self._kept(view, search_path(path))
        return hidden, leaks

    def _kept(self, view: View, findings: Iterable[Found], name: str = "", how: str = "") -> Iterator[Leak]:
        """Yield the leaks that are not allowed; without a `name`, findings by a rule of `rules`."""
        layers = ", ".join(f"in {layer}" for layer in view.layers)
        how = ", ".join(filter(None, (layers, how))) or "in plain text"
        for found in findings:
            if any(_covers(allowance, found, view.path) for allowance in self._allowed):
                continue
            line = 0 if name or view.layers else view.data.count(b"\n", 0, found.start) + 1
            yield Leak(path=view.path, name=name or f"a secret (rule {found.rule})", how=how, line=line, found=found)


def _words_of(name: str) -> bytes:
    """Return a name, and its words in lines of their own if it has several."""
    data = name.encode("utf-8", "surrogateescape")
    words = re.split(rb"[./:@=,]", data)
    return b"\n".join([data, *words] if len(words) > 1 else [data])


def _without(part: str, secrets: list[bytes]) -> str:
    """Return a name without the secrets in it; fully hidden if a secret is encoded in it."""
    shown = part
    for secret in secrets:
        text = secret.decode("utf-8", "surrogateescape")
        if not text or text not in shown:
            return _HIDDEN
        shown = shown.replace(text, _HIDDEN)
    return shown


def _shown(path: str, hidden: Mapping[str, str]) -> str:
    folder, slash, name = path.rpartition("/")
    return f"{hidden.get(folder, folder)}{slash}{hidden.get(name, name)}"


def _raise(leaks: list[Leak]) -> None:
    if not leaks:
        return
    others = [str(leak) for leak in leaks[1:_MOST_SHOWN]]
    if len(leaks) > _MOST_SHOWN:
        others.append(f"{len(leaks) - _MOST_SHOWN} more")
    what = "; ".join([str(leaks[0]), *others])
    allowed = "' '".join(dict.fromkeys(leak.fingerprint for leak in leaks[:_MOST_SHOWN]))
    raise Conflict(f"{what}; symph sent nothing", leaks[0].path, _remediation(allowed))


def _remediation(fingerprints: str) -> str:
    return (
        "remove it, and give it to processes as a file: `secrets: [PATH]` in the spec; if it is not a secret:"
        f" symph gitops allow '{fingerprints}' --reason WHY"
    )
