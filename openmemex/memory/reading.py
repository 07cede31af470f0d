"""From the YAML tree of a file to a Memory: every value read by its field's kind, leniently, with what was
odd told.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from openmemex.memory.fences import Parts, Unreadable, line_at, split
from openmemex.memory.ids import id_time_ms, is_id
from openmemex.memory.model import (
    FIELD_BY_NAME,
    FIELDS,
    RESERVED_SCOPES,
    RETIRED_TYPES,
    SCHEMA_VERSION,
    Field,
    HistoryEntry,
    Link,
    Memory,
    normal_tags,
    now_text,
    parse_time,
)
from openmemex.memory.yaml_lines import quick_scan
from openmemex.memory.yaml_tree import NULLS, Collection, Node, Scalar, resolved, text_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_MS = re.compile(r"[0-9]{12,14}\Z")
_ANY_EPOCH = re.compile(r"[0-9]{9,14}\Z")
_WHOLE = re.compile(r"[0-9]{1,6}\Z")


class Problem(NamedTuple):
    """Something that was read leniently, but is worth telling: which field, which line of the file, what."""

    field: str
    line: int
    text: str


class Document(NamedTuple):
    """One parsed file: its bytes, the memory in it, and what was odd about it."""

    raw: bytes
    memory: Memory
    problems: tuple[Problem, ...] = ()
    default_scope: str = "personal"


class Front(NamedTuple):
    """A file cut and scanned: what a rewrite needs to find the lines of a field."""

    parts: Parts
    root: Collection


def load(raw: bytes, *, loader: Any = None) -> Front:
    """Cut a file at its fences and scan its front matter. Raises Unreadable."""
    parts = split(raw)
    root = None if loader else quick_scan(parts.text, parts.start, parts.end)
    if root is None:
        # PyYAML takes longer to load than a merge to make, and files that we wrote don't need it.
        from openmemex.memory.yaml_parser import scan

        root = scan(parts.text, parts.start, parts.end, loader)
    return Front(parts, root)


def parse(
    raw: bytes, *, stem: str | None = None, default_scope: str = "personal", loader: Any = None
) -> Document:
    """Read one memory file.

    `stem`, when given, is the file's name without `.md`, which the id must equal. `default_scope` is what a
    file without `scope` and `scope_key` belongs to. `loader` is for tests: the PyYAML loader to use.
    Raises Unreadable for a file that has to be quarantined; everything else that is odd is in `problems`.
    """
    return read_front(raw, load(raw, loader=loader), stem=stem, default_scope=default_scope)


def read_front(
    raw: bytes, front: Front, *, stem: str | None = None, default_scope: str = "personal"
) -> Document:
    """As `parse`, for a file that `load` has cut and scanned already."""
    return _Reader(raw, front.parts, front.root, default_scope).document(stem)


def read_item(field: Field, node: Node) -> Any:
    """The value of one item of a list field, or None when the item is none (it is skipped, and kept on
    rewriting).
    """
    node = resolved(node)
    if field.kind == "list":
        if isinstance(node, Collection):
            return None
        text = node.value
        if not node.style and not text:
            return None
        if field.name == "tags":
            return text.strip().lower() or None
        return text
    if not isinstance(node, Collection) or not node.is_map:
        return None
    values: dict[str, str | None] = {}
    for key, value in node.pairs:
        inner = resolved(value)
        if isinstance(inner, Collection):
            if key.value in _ITEM_KEYS[field.kind]:
                return None
        else:
            values[key.value] = text_of(inner)
    if field.kind == "links":
        to = values.get("to")
        return None if to is None else Link(values.get("rel") or "", to)
    at = values.get("at")
    return HistoryEntry(at or "", values.get("by"), values.get("from"), values.get("to"), values.get("note"))


_ITEM_KEYS: Final = {"history": ("at", "by", "from", "to", "note"), "links": ("rel", "to")}


class _Reader:
    def __init__(self, raw: bytes, parts: Parts, root: Collection, default_scope: str) -> None:
        self.raw = raw
        self.parts = parts
        self.default_scope = default_scope
        self.problems: list[Problem] = []
        self.nodes: dict[str, Scalar | Collection] = {}
        self.extra: dict[str, Any] = {}
        for key, node in root.pairs:
            name = key.value
            if name in FIELD_BY_NAME:
                self.nodes[name] = resolved(node)
            else:
                self.extra[name] = _plain(node)

    def document(self, stem: str | None) -> Document:
        values: dict[str, Any] = {"id": self._own_id(stem)}
        nodes = self.nodes
        for field in FIELDS:
            name = field.name
            node = nodes.get(name)
            if node is None or name == "id":
                continue
            # A reader gives None for "not said": the defaults below then decide, as for a field that is
            # missing.
            value = _READERS[field.kind](self, field, node)
            if value is not None:
                values[name] = value
        self._fill_in(values)
        memory = Memory(body=self.parts.body, extra=self.extra, **values)
        return Document(self.raw, memory, tuple(self.problems), self.default_scope)

    def _own_id(self, stem: str | None) -> str:
        node = self.nodes.get("id")
        if node is None:
            raise Unreadable("no id in the front matter", line_at(self.parts.text, self.parts.start))
        text = None if isinstance(node, Collection) else text_of(node)
        if text is None or not is_id(text):
            raise Unreadable("the id is not a ULID (26 characters, upper case)", self._line(node))
        if stem is not None and text != stem:
            raise Unreadable("the id differs from the file's name", self._line(node))
        return text

    def _fill_in(self, values: dict[str, Any]) -> None:
        """The defaults that depend on other fields (docs/protocol.md, "A memory")."""
        scope = values.get("scope")
        if scope is None:
            key = values.get("scope_key") or ""
            prefix = key.partition("__")[0]
            scope = (
                prefix
                if prefix in ("project", "org")
                else "personal"
                if key == "personal"
                else self.default_scope
            )
            values["scope"] = scope
        if "scope_key" not in self.nodes:
            values["scope_key"] = "personal" if scope == "personal" else None
        else:
            values.setdefault("scope_key", None)
        values.setdefault("visibility", "private" if scope == "personal" else "internal")
        values.setdefault("schema_version", 1 if "schema_version" not in self.nodes else SCHEMA_VERSION)
        created = values.get("created_at")
        if created is None:
            values["created_at"] = created = time_of_id(values["id"])
        values.setdefault("updated_at", created)
        if values.get("type") == "instruction":
            values["type"] = "fact"
            values.setdefault("role", "instruction")
        if values["schema_version"] == 1 and "importance" not in self.nodes:
            importance = _importance_of_v1(self.extra.get("priority"))
            if importance:
                values["importance"] = importance

    def _line(self, node: Node) -> int:
        return line_at(self.parts.text, self.parts.start + node.start)

    def _tell(self, field: Field, node: Node, text: str) -> None:
        self.problems.append(Problem(field.name, self._line(node), text))

    def _scalar(self, field: Field, node: Scalar | Collection) -> str | None:
        if isinstance(node, Collection):
            self._tell(field, node, "must be one text, not a list or mapping: ignored")
            return None
        return text_of(node)

    def _text(self, field: Field, node: Scalar | Collection) -> str | None:
        return self._scalar(field, node)

    def _id(self, field: Field, node: Scalar | Collection) -> str | None:
        text = self._scalar(field, node)
        if text is None:
            return None
        upper = text.strip().upper() if text.isascii() else ""
        if is_id(upper):
            return upper
        self._tell(field, node, "is not an id (a ULID of 26 characters): ignored")
        return None

    def _int(self, field: Field, node: Scalar | Collection) -> int | None:
        text = self._scalar(field, node)
        if text is None:
            return None
        if not _WHOLE.match(text):
            self._tell(field, node, f"is not a whole number: read as {SCHEMA_VERSION}")
            return None
        number = int(text)
        if number > SCHEMA_VERSION:
            self._tell(
                field, node, f"was written by a newer version ({number}; this one knows {SCHEMA_VERSION})"
            )
        return number

    def _time(self, field: Field, node: Scalar | Collection) -> str | None:
        text = self._scalar(field, node)
        if text is None:
            return None
        if _ANY_EPOCH.match(text):
            # Version 1 wrote milliseconds since 1970.
            return _time_text(int(text) if _EPOCH_MS.match(text) else int(text) * 1000)
        if parse_time(text) is not None:
            return text
        self._tell(field, node, "is not a time (RFC 3339, such as 2026-09-26T12:00:00Z): ignored")
        return None

    def _choice(self, field: Field, node: Scalar | Collection) -> str | None:
        text = self._scalar(field, node)
        if text is None or text in field.choices:
            return text
        name = text.strip().lower()
        if name in field.choices:
            self._tell(field, node, f"is written in another spelling: read as {name}")
            return name
        if field.name == "type":
            if name in RETIRED_TYPES:
                return RETIRED_TYPES[name]
            if name == "instruction":  # version 1 had no role
                return name
        if field.name == "scope":
            if name == "user":  # version 1's word for personal
                return "personal"
            if name in RESERVED_SCOPES:
                self._tell(field, node, f"the scope {name} is reserved: it can be read, not written")
                return None
        self._tell(field, node, f"has a value that is not allowed (allowed: {', '.join(field.choices)})")
        return None

    def _list(self, field: Field, node: Scalar | Collection) -> tuple[Any, ...] | None:
        if not isinstance(node, Collection):
            text = text_of(node)
            if text is None:
                return ()
            if field.name == "tags":
                return normal_tags(text.split(","))
            return (text,)
        if node.is_map:
            self._tell(field, node, "must be a list: ignored")
            return ()
        return self._items(field, node)

    def _entries(self, field: Field, node: Scalar | Collection) -> tuple[Any, ...] | None:
        if isinstance(node, Collection) and not node.is_map:
            return self._items(field, node)
        if isinstance(node, Collection) or text_of(node) is not None:
            self._tell(field, node, "must be a list: ignored")
        return ()

    def _items(self, field: Field, node: Collection) -> tuple[Any, ...]:
        values = []
        wrong: list[Node] = []
        for child in node.items:
            value = read_item(field, child)
            if value is not None:
                values.append(value)
                continue
            inner = resolved(child)
            if isinstance(inner, Collection) or (field.kind != "list" and inner.value not in NULLS):
                wrong.append(child)
        if wrong:
            # One for all: a file of nothing but wrong items must not cost a search for each one's line.
            count = f"{len(wrong)} items" if len(wrong) > 1 else "an item"
            self._tell(field, wrong[0], f"holds {count} of the wrong kind: skipped")
        return normal_tags(values) if field.name == "tags" else tuple(values)


_READERS: Final[dict[str, Callable[[_Reader, Field, Any], Any]]] = {
    "id": _Reader._id,
    "int": _Reader._int,
    "choice": _Reader._choice,
    "text": _Reader._text,
    "time": _Reader._time,
    "list": _Reader._list,
    "history": _Reader._entries,
    "links": _Reader._entries,
}


def time_of_id(memory_id: str) -> str:
    """The instant that a ULID says it was made at, as RFC 3339 text; the end of year 9999 when it is
    later.
    """
    return _time_text(id_time_ms(memory_id))


def _time_text(milliseconds: int) -> str:
    try:
        return now_text(_EPOCH + timedelta(milliseconds=milliseconds))
    except OverflowError:
        return "9999-12-31T23:59:59Z"


def _importance_of_v1(priority: Any) -> str | None:
    # Version 1's `priority` 1-3, 4-7, 8-10 became low, normal, high.
    if not isinstance(priority, str) or not _WHOLE.match(priority):
        return None
    number = int(priority)
    return "low" if number <= 3 else "normal" if number <= 7 else "high"


def _plain(node: Node) -> Any:
    """An unknown field's value as text, None, lists and dicts of them; as deep as the scan let it be."""
    node = resolved(node)
    if not isinstance(node, Collection):
        return text_of(node)
    if node.is_map:
        return {key.value: _plain(value) for key, value in node.pairs}
    return [_plain(child) for child in node.items]
