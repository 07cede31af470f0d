"""Changing a memory file so that only the lines of the changed fields differ.

Three attempts, each read back before it counts: the values alone are exchanged in place; then also those
fields whose meaning followed from a changed one (a default) are written out; then whole fields are written
anew. What still does not read back as asked is refused: no file is written on a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from openmemex.errors import Refused
from openmemex.memory import yaml_writer
from openmemex.memory.fences import BOM, Unreadable, conflict_line
from openmemex.memory.ids import is_id
from openmemex.memory.model import (
    FIELD_BY_NAME,
    FIELDS,
    MAX_FILE_BYTES,
    Field,
    HistoryEntry,
    Link,
    Memory,
    normal_tags,
    parse_time,
)
from openmemex.memory.reading import Document, Front, load, parse, read_item, time_of_id
from openmemex.memory.yaml_tree import Collection, Node, Scalar

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_DASH = re.compile(r"([ \t]*)-[ \t]*\Z")
_BLOCK_HEADER_COMMENT = re.compile(r"[^\r\n#]*?([ \t]+#[^\r\n]*)")
_DIFF_LIMIT = 200


def render(memory: Memory) -> bytes:
    """A new file: fields in the table's order, LF, every field that is not optional, and the body as it is.

    A missing `created_at` is the id's own time, a missing `updated_at` is `created_at`.
    Raises Refused when a value is not allowed, when the text can't be stored as UTF-8, or when what would be
    written could not be read back as the same memory (conflict markers outside a code fence, over 1 MiB).
    """
    memory = memory._replace(created_at=memory.created_at or time_of_id(memory.id))
    memory = memory._replace(updated_at=memory.updated_at or memory.created_at)
    values = {field.name: _checked(field, memory.value(field.name)) for field in FIELDS}
    memory = memory._replace(**values)
    _check_body(memory.body)
    written = [
        (name, value)
        for name, value in values.items()
        if not (FIELD_BY_NAME[name].optional and value in (None, ()))
    ]
    front = "\n".join(yaml_writer.lines(written))
    raw = f"---\n{front}\n---\n{memory.body}".encode()
    wrong = _differences(raw, memory, {}, "personal")
    if wrong is not None:
        raise Refused(f"memory {memory.id} can't be written so that it reads back the same ({wrong})")
    return raw


def rewrite(document: Document, changes: Mapping[str, Any], *, body: str | None = None) -> bytes:
    """The file of `document` with `changes` (field name → new value) made, and the body exchanged if one is
    given.

    Only the lines of changed fields differ; comments, unknown fields, order, BOM, line ends and list styles
    stay. An optional field set to None or to nothing goes with its lines. A body with bare line feeds takes
    the line ends of a file with CRLF. With nothing to change the answer is `document.raw` itself.
    Raises Refused when a value is not allowed or the change can't be made without harming other lines.
    """
    memory = document.memory
    troubled = {problem.field for problem in document.problems}
    wanted: dict[str, Any] = {}
    for name, value in changes.items():
        checked = _checked(FIELD_BY_NAME[name], value)
        if checked != memory.value(name) or name in troubled:
            wanted[name] = checked
    front = load(document.raw)
    parts = front.parts
    new_body = parts.body
    if body is not None and body != parts.body:
        new_body = body
        if parts.eol == "\r\n" and "\r" not in body:
            new_body = body.replace("\n", "\r\n")
        _check_body(new_body)
    if not wanted and new_body == parts.body:
        return document.raw
    target = memory._replace(body=new_body, **wanted)
    reason = ""
    for whole in (False, False, True):
        text = _Editor(front, wanted, whole).text() + new_body
        raw = (BOM + text if parts.bom else text).encode()
        if len(raw) > MAX_FILE_BYTES:
            raise Refused(f"memory {memory.id} would be over the limit of {MAX_FILE_BYTES >> 20} MiB")
        wrong = _differences(raw, target, memory.extra, document.default_scope)
        if wrong is None:
            return raw
        reason = wrong
        if wrong in FIELD_BY_NAME:
            # A default that followed from a changed field: it has to be said now.
            wanted = dict(wanted)
            for field in FIELDS:
                if wrong == field.name:
                    wanted[field.name] = target.value(field.name)
            wanted |= _derived(raw, target, document.default_scope)
    raise Refused(
        f"memory {memory.id} can't be changed without touching other lines ({reason})",
        "Write the front matter of that file in its plain form (one `name: value` a line) and try again.",
    )


def _differences(raw: bytes, target: Memory, extra: dict[str, Any], default_scope: str) -> str | None:
    """None when `raw` reads as `target`; else what differs: a field's name, or words for people."""
    try:
        got = parse(raw, default_scope=default_scope).memory
    except Unreadable as error:
        return error.reason
    if got == target and got.extra == extra:
        return None
    for field in FIELDS:
        if got.value(field.name) != target.value(field.name):
            return field.name
    return "the body" if got.body != target.body else "an unknown field"


def _derived(raw: bytes, target: Memory, default_scope: str) -> dict[str, Any]:
    got = parse(raw, default_scope=default_scope).memory
    return {f.name: target.value(f.name) for f in FIELDS if got.value(f.name) != target.value(f.name)}


def _check_body(body: str) -> None:
    yaml_writer.require_utf8(body, "the text")
    line = conflict_line(body)
    if line:
        raise Refused(
            f"the text holds unresolved conflict markers (line {line})",
            "Remove the marker lines, or put an example of them into a code fence (```).",
        )


def _checked(field: Field, value: Any) -> Any:
    """The value as the model holds it. Raises Refused when it is not allowed."""
    name = field.name
    if field.kind in ("list", "history", "links"):
        items = tuple(value or ())
        for item in items:
            _check_item(field, item)
        return normal_tags(items) if name == "tags" else items
    if field.kind == "int":
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 1_000_000:
            raise Refused(f"{name} must be a whole number")
        return value
    if value is None and field.kind != "choice" and name not in ("id", "created_at", "updated_at"):
        return None
    if not isinstance(value, str):
        raise Refused(f"{name} must be text")
    if field.kind == "choice" and value not in field.choices:
        raise Refused(f"{name} has a value that is not allowed", f"Allowed: {', '.join(field.choices)}.")
    if field.kind == "id" and not is_id(value):
        raise Refused(f"{name} must be an id (a ULID of 26 characters, upper case)")
    if field.kind == "time" and parse_time(value) is None:
        raise Refused(f"{name} must be a time", "Write it as 2026-09-26T12:00:00Z.")
    yaml_writer.require_utf8(value, name)
    return value


def _check_item(field: Field, item: Any) -> None:
    texts: tuple[str | None, ...]
    if field.kind == "list" and isinstance(item, str):
        texts = (item,)
    elif field.kind == "history" and isinstance(item, HistoryEntry):
        texts = (item.at, item.by, item.from_state, item.to_state, item.note)
    elif field.kind == "links" and isinstance(item, Link):
        texts = (item.rel, item.to)
    else:
        raise Refused(f"{field.name} holds an item of the wrong kind")
    for text in texts:
        if text is not None:
            yaml_writer.require_utf8(text, field.name)


class _Edit(NamedTuple):
    start: int
    end: int
    new: str


class _Hard(Exception):
    """This field's layout is beyond an edit in place: its lines are written anew."""


class _Editor:
    """Collects edits of one file's text, from its start to its body, and makes them."""

    def __init__(self, front: Front, wanted: Mapping[str, Any], whole: bool) -> None:
        self.full = front.parts.text
        self.offset = front.parts.start
        self.front_text = self.full[front.parts.start : front.parts.end]
        self.body_start = front.parts.body_start
        self.eol = front.parts.eol
        self.root = front.root
        self.whole = whole
        self.edits: list[_Edit] = []
        self.places = {key.value: number for number, (key, _) in enumerate(front.root.pairs)}
        first = front.root.pairs[0][0].start
        self.indent = self.front_text[self._line_start(first) : first]
        for field in FIELDS:
            if field.name in wanted:
                self._change(field, wanted[field.name])

    def text(self) -> str:
        """The text up to the body, edited."""
        out = []
        done = 0
        for edit in sorted(self.edits, key=lambda e: (e.start, e.end)):
            out.append(self.front_text[done : edit.start])
            out.append(edit.new)
            done = max(done, edit.end)
        out.append(self.front_text[done:])
        head = self.full[: self.offset]
        tail = self.full[self.offset + len(self.front_text) : self.body_start]
        return head + "".join(out) + tail

    def _edit(self, start: int, end: int, new: str) -> None:
        self.edits.append(_Edit(start, end, new))

    def _change(self, field: Field, value: Any) -> None:
        number = self.places.get(field.name)
        absent = field.optional and value in (None, ())
        if number is None:
            if not absent:
                self._insert(field, value)
            return
        if absent:
            self._remove(number)
            return
        if self.root.flow:
            self._exchange_in_flow(field, value, number)
            return
        try:
            if self.whole:
                raise _Hard
            self._exchange(field, value, number)
        except _Hard:
            key, node = self.root.pairs[number]
            start = self._line_start(key.start)
            self._edit(start, self._lines_end(node), self._as_lines(yaml_writer.lines([(field.name, value)])))

    # Whole fields

    def _insert(self, field: Field, value: Any) -> None:
        number = 0
        for other in FIELDS:
            if other.name == field.name:
                break
            number = self.places.get(other.name, number)
        node = self.root.pairs[number][1]
        if self.root.flow:
            where = end_of(node)
            self._edit(where, where, f", {field.name}: {yaml_writer.inline(field, value)}")
            return
        where = self._lines_end(node)
        self._edit(where, where, self._as_lines(yaml_writer.lines([(field.name, value)])))

    def _remove(self, number: int) -> None:
        key, node = self.root.pairs[number]
        if not self.root.flow:
            start = self._line_start(key.start)
            if isinstance(node, Collection) and not node.flow and not node.is_map and not self.whole:
                # Item by item: a comment between the items is somebody's word, not the field's.
                try:
                    spans, _ = self._item_lines(node)
                except _Hard:
                    pass
                else:
                    self._edit(start, self._next_line(key.end), "")
                    for item_start, item_end in spans:
                        self._edit(item_start, item_end, "")
                    return
            self._edit(start, self._lines_end(node), "")
        elif number:
            self._edit(end_of(self.root.pairs[number - 1][1]), end_of(node), "")
        else:
            # The id is always there, so something follows.
            self._edit(key.start, self.root.pairs[1][0].start, "")

    def _exchange_in_flow(self, field: Field, value: Any, number: int) -> None:
        key, node = self.root.pairs[number]
        if (
            isinstance(node, Collection)
            and not node.is_map
            and not self.whole
            and field.kind not in ("text", "time")
        ):
            self._exchange_flow_list(field, value, node)
            return
        start, end = node.start, end_of(node)
        new = yaml_writer.inline(field, value)
        if start == end:
            colon = ":" not in self.front_text[key.end : end]
            new = (": " if colon else " ") + new
        self._edit(start, end, new)

    # One value

    def _exchange(self, field: Field, value: Any, number: int) -> None:
        key, node = self.root.pairs[number]
        if isinstance(node, Collection) and not node.is_map and field.kind in ("list", "history", "links"):
            if node.flow:
                self._exchange_flow_list(field, value, node)
            else:
                self._exchange_block_list(field, value, key, node)
            return
        if isinstance(node, Collection) and not node.flow:
            raise _Hard
        if field.kind in ("history", "links") and value:
            self._open_block_list(field, value, key, node)
            return
        style = node.style if isinstance(node, Scalar) else None
        if field.kind in ("list", "history", "links", "int") or (field.kind == "time" and not style):
            new = yaml_writer.inline(field, value)
        else:
            new = yaml_writer.scalar(value, style)
        start, end = node.start, end_of(node)
        if start == end:
            if ":" not in self.front_text[key.end : start]:
                raise _Hard
            self._edit(start, end, " " + new)
        elif style in ("|", ">"):
            block = self.front_text[start:end]
            comment = _BLOCK_HEADER_COMMENT.match(block)
            self._edit(start, start + len(block.rstrip()), new + (comment[1] if comment else ""))
        else:
            self._edit(start, end, new)

    def _open_block_list(self, field: Field, value: Any, key: Any, node: Node) -> None:
        """`review_history: []` gets its first entries: below, one a line."""
        colon = self.front_text.find(":", key.end, max(node.start, key.end + 1))
        if colon < 0 or (isinstance(node, Scalar) and node.style in ("|", ">")):
            raise _Hard
        self._edit(colon + 1, end_of(node), "")
        below = self._lines_end(node)
        self._edit(below, below, self._as_lines(yaml_writer.block_items(field, value)))

    # Lists

    def _exchange_flow_list(self, field: Field, value: Sequence[Any], node: Collection) -> None:
        if not node.items:
            if field.kind != "list" and not self.root.flow and value:
                for key, other in self.root.pairs:
                    if other is node:
                        self._open_block_list(field, value, key, node)
                return
            inner = "[" + ", ".join(yaml_writer.item(field, v) for v in value) + "]"
            opening = self.front_text.index("[", node.start)
            self._edit(opening, node.end, inner)
            return
        front = self.front_text
        spans = [(child.start, end_of(child)) for child in node.items]
        raws = [front[start:end] for start, end in spans]
        gaps = [front[spans[i][1] : spans[i + 1][0]] for i in range(len(spans) - 1)]
        opening = front.index("[", node.start)
        prefix = front[opening + 1 : spans[0][0]]
        suffix = front[spans[-1][1] : node.end - 1]
        out: list[tuple[str, str]] = []  # text of an item, and the original text after it ("" for a new one)
        for kept, thing in self._plan(field, value, node):
            if kept:
                out.append((raws[thing], gaps[thing] if thing < len(gaps) else ""))
            else:
                out.append((yaml_writer.item(field, thing), ""))
        if not out:
            self._edit(opening, node.end, "[]")
            return
        text = []
        for position, (item, gap) in enumerate(out):
            text.append(item)
            if position < len(out) - 1:
                text.append(gap or ", ")
            elif "#" in gap:
                # The comment belongs to the item that is now the last one.
                text.append(gap)
                suffix = suffix.lstrip(" \t,") if suffix.lstrip(" \t").startswith(",") else suffix
        self._edit(opening, node.end, "[" + prefix + "".join(text) + suffix + "]")

    def _exchange_block_list(self, field: Field, value: Sequence[Any], key: Any, node: Collection) -> None:
        spans, margin = self._item_lines(node)
        flow_items = not any(isinstance(child, Collection) and not child.flow for child in node.items)
        plan = self._plan(field, value, node)
        kept = {thing for is_kept, thing in plan if is_kept}
        if not plan:
            colon = self.front_text.find(":", key.end, node.start)
            if colon < 0:
                raise _Hard
            self._edit(colon + 1, colon + 1, " []")
        for number, (start, end) in enumerate(spans):
            if number not in kept:
                self._edit(start, end, "")
        where = spans[0][0]
        for is_kept, thing in plan:
            if is_kept:
                where = spans[thing][1]
                continue
            lines = yaml_writer.block_items(field, [thing], flow_items=flow_items)
            self._edit(where, where, "".join(margin + line + self.eol for line in lines))

    def _item_lines(self, node: Collection) -> tuple[list[tuple[int, int]], str]:
        """Where the lines of each item of a block list begin and end, and what stands before their dashes."""
        spans = []
        margin = ""
        for child in node.items:
            start = child.start
            line = self.front_text[self._line_start(start) : start]
            dash = _DASH.match(line)
            if dash is None:
                raise _Hard
            margin = dash[1]
            spans.append((start - len(line), self._lines_end(child)))
        return spans, margin

    def _plan(self, field: Field, value: Sequence[Any], node: Collection) -> list[tuple[bool, Any]]:
        """The new list as (True, number of an item that stays) and (False, new value), in order.

        Items that reading skips (of the wrong kind) stay where they are: nothing asked for their removal.
        """
        olds = [read_item(field, child) for child in node.items]
        numbers = [number for number, old in enumerate(olds) if old is not None]
        known = [olds[number] for number in numbers]
        kept = {new: numbers[old] for old, new in _common(known, value)}
        plan = [(True, kept[place]) if place in kept else (False, item) for place, item in enumerate(value)]
        stays = {thing for is_kept, thing in plan if is_kept}
        skipped: dict[int, list[tuple[bool, Any]]] = {}  # behind which item that stays
        last = -1
        for number, old in enumerate(olds):
            if number in stays:
                last = number
            elif old is None:
                skipped.setdefault(last, []).append((True, number))
        full = skipped.get(-1, [])
        for step in plan:
            full.append(step)
            if step[0]:
                full += skipped.get(step[1], [])
        return full

    # Places

    def _line_start(self, index: int) -> int:
        return line_start(self.front_text, index)

    def _lines_end(self, node: Node) -> int:
        return lines_end(self.front_text, node)

    def _next_line(self, index: int) -> int:
        return next_line(self.front_text, index)

    def _as_lines(self, lines: Sequence[str]) -> str:
        return "".join(self.indent + line + self.eol for line in lines)


def line_start(front: str, index: int) -> int:
    """Where the line of `front[index]` begins."""
    return max(front.rfind("\n", 0, index), front.rfind("\r", 0, index)) + 1


def lines_end(front: str, node: Node) -> int:
    """Where the line after a value begins; a trailing comment is on the value's line."""
    end = end_of(node)
    last = _last(node)
    if isinstance(last, Scalar) and last.style in ("|", ">") and line_start(front, end) == end:
        return end
    return next_line(front, end)


def next_line(front: str, index: int) -> int:
    """Where the line after that of `front[index]` begins."""
    match = _LINE.match(front, index)
    return match.end() if match else len(front)


def _last(node: Node) -> Node:
    while isinstance(node, Collection) and not node.flow:
        children = [value for _, value in node.pairs] if node.is_map else node.items
        if not children:
            return node
        node = children[-1]
    return node


def end_of(node: Node) -> int:
    """Where a value ends, comments and blank lines after it left out (a block scalar: where the next line
    begins).
    """
    return _last(node).end


def _common(old: Sequence[Any], new: Sequence[Any]) -> list[tuple[int, int]]:
    """Which items of `old` are which of `new`, in order: a longest common subsequence, but nothing quadratic
    where the lists are long.
    """
    head = 0
    while head < len(old) and head < len(new) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < len(old) - head and tail < len(new) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    pairs = [(number, number) for number in range(head)]
    rows, columns = len(old) - tail - head, len(new) - tail - head
    if 0 < rows <= _DIFF_LIMIT and 0 < columns <= _DIFF_LIMIT:
        # lengths[i][j]: how much old[i:] and new[j:] have in common
        lengths = [[0] * (columns + 1) for _ in range(rows + 1)]
        for i in range(rows - 1, -1, -1):
            for j in range(columns - 1, -1, -1):
                lengths[i][j] = (
                    lengths[i + 1][j + 1] + 1
                    if old[head + i] == new[head + j]
                    else max(lengths[i + 1][j], lengths[i][j + 1])
                )
        i = j = 0
        while i < rows and j < columns:
            if old[head + i] == new[head + j]:
                pairs.append((head + i, head + j))
                i, j = i + 1, j + 1
            elif lengths[i + 1][j] >= lengths[i][j + 1]:
                i += 1
            else:
                j += 1
    return pairs + [(len(old) - left, len(new) - left) for left in range(tail, 0, -1)]
