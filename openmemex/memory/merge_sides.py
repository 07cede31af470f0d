"""The three versions that a merge works on, read: their values, and the lines that each field stands in."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from openmemex.memory.fences import Unreadable
from openmemex.memory.model import FIELD_BY_NAME, HistoryEntry, Link, Memory
from openmemex.memory.reading import Document, Front, load, read_front
from openmemex.memory.rewriting import line_start, lines_end, next_line
from openmemex.memory.yaml_tree import Collection, Node, Scalar

Side = Literal["base", "ours", "theirs"]

# What git merges lies in a repository: a file without a scope is the project's.
SCOPE = "project"
_BOM = b"\xef\xbb\xbf"


class Unread(NamedTuple):
    """A field that could not be read as what it should be: the lines that it stands in count as its value."""

    text: str


class Lines(NamedTuple):
    """Where one field stands: the comments and blank lines above it, and its own lines."""

    above: str
    own: str


class Version:
    """One version of a memory file that reads; making one raises Unreadable for a file that doesn't.

    `extra` fields (not in the table) and fields with a problem have values like all others. `lines` has the
    lines of each field in the order of the file, or is None where the front matter is not one field a line.
    """

    def __init__(self, raw: bytes, stem: str | None) -> None:
        self.front: Front = load(raw)
        document: Document = read_front(raw, self.front, stem=stem, default_scope=SCOPE)
        self.document = document
        self.memory: Memory = document.memory
        parts = self.front.parts
        self.text = parts.text[parts.start : parts.end]
        self.lines, self.below = _cut(self.front)
        self._nodes: dict[str, tuple[Scalar, Node]] | None = None
        self.extra = {field_name(name): value for name, value in self.memory.extra.items()}
        self._unread = {problem.field for problem in document.problems}

    def own_lines(self, name: str) -> str:
        """The lines that field `name` stands in; "" where it is not there."""
        found = (self.lines or {}).get(name)
        return found.own if found else ""

    def value(self, name: str) -> Any:
        """The field's value: of the table's type, plain for an unknown field (None: not there), or Unread."""
        if name not in FIELD_BY_NAME:
            return self.extra.get(name, ABSENT)
        if name in self._unread:
            return Unread(self.own_lines(name) or self.text)
        return self.memory.value(name)

    def comments(self, name: str) -> list[str]:
        """The comments within and behind the lines of a field, in order."""
        own = self.own_lines(name)
        if "#" not in own:
            return []
        if self._nodes is None:
            self._nodes = {field_name(key.value): (key, node) for key, node in self.front.root.pairs}
        key, node = self._nodes[name]
        start = line_start(self.text, key.start)
        spans = [(key.start, key.end), *_leaves(self.text, node)]
        return _comments_between(self.text, start, start + len(own), spans)


class Absent:
    """The value of an unknown field that a version does not have."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()


class Three(NamedTuple):
    """The versions of one file: `base` is None where both sides added it, or where it can't be read (`blind`:
    then nobody knows what a side removed).
    """

    base: Version | None
    ours: Version
    theirs: Version
    blind: bool = False

    @property
    def versions(self) -> tuple[Version | None, Version, Version]:
        """Base, ours, theirs."""
        return self.base, self.ours, self.theirs

    def side(self, side: Side) -> Version | None:
        """The version of that side."""
        return self.base if side == "base" else self.ours if side == "ours" else self.theirs


def field_name(key: str) -> str:
    """The name that a field has in decisions: its key, but `body:` and `file:` for fields of such a name, as
    `body` is the text and `file` the whole.
    """
    return f"{key}:" if key in ("body", "file") else key


def read(raw: bytes, stem: str | None) -> Version:
    """Read one version. Raises Unreadable."""
    return Version(raw, stem)


def with_base(base: bytes | None, ours: Version, theirs: Version, stem: str | None) -> Three:
    """Both sides with what they began from; a base that can't be read is none (git's own merge of two bases
    may have left markers in it).
    """
    if base is None:
        return Three(None, ours, theirs)
    try:
        return Three(read(base, stem), ours, theirs)
    except Unreadable:
        return Three(None, ours, theirs, blind=True)


def in_one_form(base: bytes | None, ours: bytes, theirs: bytes) -> tuple[bytes | None, bytes, bytes]:
    """The three with one kind of line end, and with a byte order mark all or none.

    CRLF stays where both sides have it throughout, else whole-CRLF versions become LF, so that an editor's
    line ends are no change of every line. Versions that mix line ends are left as they are.
    """
    mark = _has_mark(base, ours, theirs)
    crlf = _is_crlf(ours) and _is_crlf(theirs)

    def formed(raw: bytes) -> bytes:
        raw = raw.removeprefix(_BOM)
        if crlf or _is_crlf(raw):
            raw = raw.replace(b"\r\n", b"\n")
        return (_BOM if mark else b"") + (raw.replace(b"\n", b"\r\n") if crlf else raw)

    return None if base is None else formed(base), formed(ours), formed(theirs)


def _has_mark(base: bytes | None, ours: bytes, theirs: bytes) -> bool:
    of_ours, of_theirs = ours.startswith(_BOM), theirs.startswith(_BOM)
    if of_ours == of_theirs or base is None:
        return of_ours and of_theirs
    return not base.startswith(_BOM)  # the side that differs from base changed it


def _is_crlf(raw: bytes) -> bool:
    ends = raw.count(b"\r\n")
    return ends > 0 and ends == raw.count(b"\n") == raw.count(b"\r")


def shown(value: Any) -> Any:
    """A value as JSON would show it."""
    if isinstance(value, Unread):
        return value.text.partition(":")[2].strip()
    if isinstance(value, HistoryEntry):
        return {
            "at": value.at,
            "by": value.by,
            "from": value.from_state,
            "to": value.to_state,
            "note": value.note,
        }
    if isinstance(value, Link):
        return {"rel": value.rel, "to": value.to}
    if isinstance(value, tuple):
        return [shown(item) for item in value]
    return None if isinstance(value, Absent) else value


def _cut(front: Front) -> tuple[dict[str, Lines] | None, str]:
    """The lines of each field, and what stands below the last; (None, "") when fields share lines."""
    if front.root.flow:
        return None, ""
    text = front.parts.text[front.parts.start : front.parts.end]
    lines: dict[str, Lines] = {}
    done = 0
    for key, node in front.root.pairs:
        start, end = line_start(text, key.start), lines_end(text, node)
        if start < done or end < start:
            return None, ""
        lines[field_name(key.value)] = Lines(text[done:start], text[start:end])
        done = end
    return lines, text[done:]


def _leaves(text: str, node: Node) -> list[tuple[int, int]]:
    """Where the scalars and aliases of a value stand, in order."""
    spans: list[tuple[int, int]] = []
    todo: list[Node] = [node]
    while todo:
        node = todo.pop()
        if not isinstance(node, Collection):
            start = node.start
            if isinstance(node, Scalar) and node.style in ("|", ">"):
                # The header of a block of text may have a comment of its own.
                start = next_line(text, start)
            spans.append((start, node.end))
        elif node.is_map:
            for key, value in reversed(node.pairs):
                todo += [value, key]
        else:
            todo += reversed(node.items)
    return spans


def _comments_between(text: str, start: int, end: int, spans: list[tuple[int, int]]) -> list[str]:
    found: list[str] = []
    for gap_end, next_start in [*spans, (end, end)]:
        # Between two scalars YAML has only its own signs, blanks and comments.
        for line in text[start:gap_end].splitlines():
            sign = line.find("#")
            if sign >= 0:
                found.append(line[sign:].rstrip())
        start = next_start
    return found
