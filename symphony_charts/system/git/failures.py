"""What git and the transports below it write when they fail is read: the line that says why, and what helps.

Judged is by exit status alone; the text chooses kinder words, and tells whether trying again can help.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from symphony_charts.formats.printable import printable_lines
from symphony_charts.system.subprocess_runner import Completed

__all__ = ["Reason", "reason_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """The reason why git failed: its line, the `next` step, and with `is_final` that a retry is useless."""

    text: str
    next: str
    is_final: bool = False


_PREFIX = re.compile(r"(?:(?:fatal|error|remote|hint|ERROR): *)+")
# What is said of every failure, or decorates it.
_NOISE = re.compile(
    r"Could not read from remote repository\.|Please make sure you have the correct access rights|"
    r"and the repository exists\.|Warning: Permanently added .*|[^\w]*"
)
_CHECK = "check the address, and that git itself can read it: git ls-remote"
_TRUST = "let git know who signed it: git config --global http.sslCAInfo FILE"
_KEY_OF_HOST = (
    "compare its key with what its owners say, and let ssh know it: ssh HOST, after ssh-keygen -R HOST if it is old"
)
_UNTRUSTED = (
    r"SSL certificate problem|certificate verification failed|no alternative certificate subject name"
    r"|SSL peer certificate|unable to get local issuer"
)
_REFUSED = (
    r"Permission denied|returned error: 40[0134]|unsupported protocol|dubious ownership|mismatched algorithms"
    r"|transport '.*' not allowed|is not a valid|No space left on device"
)
# The most telling first: one line of many is the headline. All of these are final. Sources: git's remote-curl.c,
# connect.c, http.c, credential.c; OpenSSH's sshconnect.c; libcurl's vtls.
_TELLING = (
    (r"Host key for .* has changed|No \S+ host key is known for|Host key verification failed", _KEY_OF_HOST),
    (
        r"Permission denied \(|Too many authentication failures",
        "ssh -vT HOST says which keys it offers; ssh-add KEY adds one",
    ),
    (_UNTRUSTED, _TRUST),
    (r"[Cc]ould not resolve host(?!.*Temporary failure)|Connection refused|Could(n't| not) connect to server", _CHECK),
    (r"[Rr]epository .*not found|does not appear to be a git repository|project you were looking for", _CHECK),
    (r"Authentication failed|could not read (Username|Password)|terminal prompts disabled", _CHECK),
    (_REFUSED, _CHECK),
)
_PATTERNS = tuple((re.compile(pattern), step) for pattern, step in _TELLING)


def reason_of(ended: Completed) -> Reason:
    """Return the reason in what git wrote: a line that is known to tell it, else the last that says anything."""
    lines = [_PREFIX.sub("", line.strip(), count=1) for line in printable_lines(ended.error_text).split("\n")]
    telling = [line for line in lines if not _NOISE.fullmatch(line)]
    for pattern, step in _PATTERNS:
        for line in telling:
            if pattern.search(line):
                return Reason(text=line, next=step, is_final=True)
    said = telling or [line for line in lines if line]
    said = telling[-1:] or [line for line in lines if line]
    return Reason(text=said[0] if said else f"git ended with status {ended.status}", next=_CHECK)
