"""Read shell scripts: their lines, and files that they write from here-documents.

``cat <<EOF > conf.py`` ... ``EOF`` becomes ``cat < "$SYMPH_CONFIG_DIR/conf.py" > conf.py``, and the text between
becomes a configuration file of the experiment: readable, checked, diffed, and free of shell quoting. Only text that
the shell writes without expansion is lifted; a body with `$VARIABLE` stays in the script.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from symphony_charts.spec.variable_names import named_shell

_SHELLS = frozenset(("ash", "bash", "dash", "ksh", "sh", "zsh"))
# The options of a shell up to the one that takes a script; any other word would be the name of a file.
_OPTIONS = re.compile(r"(?:(?:--[a-z]+|[-+][A-Zabd-np-z]+|[-+][A-Zabd-np-z]*o [a-z]+) )*-[A-Zabd-np-z]*c(?:o [a-z]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A shell script found in a command: its text, and the words before it."""

    text: str
    shell: tuple[str, ...]

    @property
    def shell_field(self) -> str | list[str]:
        """The field `shell` of a process that runs this script: a name if the shell has one, else the words."""
        return named_shell(self.shell)

    @property
    def lines(self) -> list[str]:
        """The script as `cmds`: continued lines together, without blank lines and comments."""
        bare = "\n".join(line for line in self.text.split("\n") if not line.lstrip().startswith("#"))
        has_texts = "<<" in self.text or _has_open_quotes(bare)
        return _logical_lines(self.text if has_texts else bare, keep_all=has_texts)


def script_of(command: list[str], args: list[str]) -> Script | None:
    """Return the script in the last word of a shell command; None for other commands."""
    argv = [*command, *args]
    if len(argv) < 3 or not command or argv[0].rpartition("/")[2] not in _SHELLS:
        return None
    if not _OPTIONS.fullmatch(" ".join(argv[1:-1])):
        return None
    return Script(text=argv[-1], shell=tuple(argv[:-1]))


def _logical_lines(text: str, *, keep_all: bool) -> list[str]:
    """Return the lines, with continued lines joined. Drop blank lines unless `keep_all`: texts may span lines."""
    lines: list[str] = []
    pending = ""
    for line in text.strip("\n").split("\n"):
        pending = f"{pending}\n{line}" if pending else line
        if line.endswith("\\") and not line.endswith("\\\\"):
            continue
        if pending.strip() or keep_all:
            lines.append(pending if keep_all else pending.rstrip())
        pending = ""
    if pending:
        lines.append(pending)
    return lines


def _has_open_quotes(text: str) -> bool:
    return any(line.count("'") % 2 or line.replace('\\"', "").count('"') % 2 for line in text.split("\n"))


_OPERATOR = re.compile(r"""<<(?P<dash>-?)[ \t]*(?P<quote>['"]?)(?P<word>[A-Za-z_][A-Za-z0-9_]*)(?P=quote)""")
_FILE = r"""(?:"(?P<double>[^"`\\]+)"|'(?P<single>[^']+)'|(?P<bare>[^\s;&|<>()`'"\\]+))"""
_TARGET = re.compile(rf"(?:(?<![<>&0-9])>>?[ \t]*|\btee[ \t]+(?:-a[ \t]+)?){_FILE}")
_BASE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
# A backslash at a line's end joins the lines before the shell looks for the name of a variable.
_EXPANSION = re.compile(r"`|\$(?:\\\n)*[A-Za-z0-9_{(@*#?$!-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifted:
    """A script without the bodies in `files` (file name to text); `kept` are line numbers of bodies that stay."""

    script: str
    files: dict[str, str]
    kept: tuple[int, ...]


def lift(script: str, taken: dict[str, str]) -> Lifted:
    """Return `script` without its here-documents; a name in `taken` is reused only for the same text."""
    lines = script.split("\n")
    result: list[str] = []
    files: dict[str, str] = {}
    kept: list[int] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        operator = _operator(line)
        end = _end(lines, index, operator) if operator else None
        if operator is None or end is None:
            result.append(line)
            index += 1
            continue
        name = _file_name(line)
        body = literal_body(_body(lines[index + 1 : end], operator), is_quoted=bool(operator["quote"]))
        if name is None or body is None:
            kept.append(index + 1)
            result += lines[index : end + 1]
        else:
            name = _free_name(name, body, taken | files)
            files[name] = body
            result.append(f'{line[: operator.start()]}< "$SYMPH_CONFIG_DIR/{name}"{line[operator.end() :]}')
        index = end + 1
    return Lifted(script="\n".join(result), files=files, kept=tuple(kept))


def literal_body(body: str, *, is_quoted: bool) -> str | None:
    """Return the text that the shell writes for `body`; None if that depends on variables or commands.

    Under an unquoted delimiter a backslash escapes only `$`, a backtick, itself and a line's end.
    """
    if is_quoted:
        return body
    written: list[str] = []
    index = 0
    while index < len(body):
        letter, after = body[index], body[index + 1 : index + 2]
        if _EXPANSION.match(body, index):
            return None
        if letter == "\\" and after == "\n" and index + 2 == len(body):
            return None  # the backslash joins the delimiter to the body, so the here-document continues
        if letter == "\\" and after in ("$", "`", "\\", "\n") and after:
            written.append("" if after == "\n" else after)
            index += 2
            continue
        written.append(letter)
        index += 1
    return "".join(written)


def _operator(line: str) -> re.Match[str] | None:
    """Return the only here-document operator of a line; None if there are several, or it is in quotes or a comment."""
    operators = [match for match in _OPERATOR.finditer(line) if not line[: match.start()].endswith("<")]
    if len(operators) != 1:
        return None
    before = line[: operators[0].start()]
    is_plain = before.count("'") % 2 == 0 and before.count('"') % 2 == 0 and not re.search(r"(?:^|\s)#", before)
    return operators[0] if is_plain else None


def _end(lines: list[str], start: int, operator: re.Match[str]) -> int | None:
    for index in range(start + 1, len(lines)):
        line = lines[index].lstrip("\t") if operator["dash"] else lines[index]
        if line == operator["word"]:
            return index
    return None


def _body(lines: list[str], operator: re.Match[str]) -> str:
    kept = [line.lstrip("\t") for line in lines] if operator["dash"] else lines
    return "".join(f"{line}\n" for line in kept)


def _file_name(line: str) -> str | None:
    target = _TARGET.search(line)
    if target is None:
        return None
    path = target["double"] or target["single"] or target["bare"]
    name = path.rpartition("/")[2]
    return name if _BASE_NAME.fullmatch(name) else None


def _free_name(name: str, body: str, taken: dict[str, str]) -> str:
    stem, dot, suffix = name.partition(".")
    free, count = name, 2
    while taken.get(free, body) != body:
        free, count = f"{stem}-{count}{dot}{suffix}", count + 1
    return free
