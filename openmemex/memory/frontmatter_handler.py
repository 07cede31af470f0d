"""python-frontmatter over our codec: typed values in, only changed lines out; and the front matter of any
note.

python-frontmatter strips the text before a handler sees it, strips the body after, sorts keys and folds
lines. A handler that holds the file's own bytes is not touched by that: `read_post` makes one,
`frontmatter.dumps` of the post gives the text back, with only the lines of changed fields changed.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import frontmatter
from frontmatter.default_handlers import BaseHandler

from openmemex.errors import Refused
from openmemex.memory import yaml_writer
from openmemex.memory.fences import BOM, Unreadable
from openmemex.memory.ids import is_id
from openmemex.memory.model import FIELD_BY_NAME, FIELDS, HistoryEntry, Link, Memory
from openmemex.memory.reading import Document, Front, load, parse
from openmemex.memory.rewriting import render, rewrite
from openmemex.memory.yaml_tree import Collection, Node, resolved, text_of


class Note(NamedTuple):
    """A Markdown note that need be no memory: what its front matter says, as text, and the rest of it."""

    metadata: dict[str, str | list[str]]
    body: str


def read_note(text: str) -> Note:
    """Read any Markdown note: `metadata` by key, each a text or a list of texts, and the body.

    Values are text as written (`no` stays "no"); keys with nothing or with something deeper are left out. A
    note without front matter, or whose first rule begins no readable front matter, is all body: no text is
    lost, and nothing is raised.
    """
    try:
        front = load(text.encode("utf-8", "surrogatepass"))
    except Unreadable:
        return Note({}, text.removeprefix(BOM))
    metadata: dict[str, str | list[str]] = {}
    for key, node in front.root.pairs:
        value = _note_value(node)
        if value is not None:
            metadata[key.value] = value
    return Note(metadata, front.parts.body)


def _note_value(node: Node) -> str | list[str] | None:
    node = resolved(node)
    if not isinstance(node, Collection):
        return text_of(node)
    if node.is_map:
        return None
    items = [resolved(child) for child in node.items]
    return [item.value for item in items if not isinstance(item, Collection) and (item.style or item.value)]


def read_post(raw: bytes) -> frontmatter.Post:
    """One memory file as a python-frontmatter post.

    `post.metadata` holds the fields as the table types them (lists as lists, history and links as mappings)
    and unknown fields as text; `post.content` is the body, exactly. `frontmatter.dumps(post)` gives the
    file's text back, with only what was changed changed. Raises Unreadable.
    """
    handler = MemoryHandler(raw)
    # The text is handed over only because the library wants one: it is what the handler never looks at.
    post: frontmatter.Post = frontmatter.loads("", handler=handler)
    return post


class _Verbatim(str):
    """A text that python-frontmatter's `strip()` leaves alone."""

    __slots__ = ()

    def strip(self, chars: str | None = None, /) -> str:
        return str(self)


class MemoryHandler(BaseHandler):
    """python-frontmatter's handler for memory files.

    With the file's bytes (`MemoryHandler(raw)`) loading and dumping lose nothing. Without them it reads and
    writes the text that the library hands over, which has lost its outer blank space and its CRLF by then.
    """

    FM_BOUNDARY = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE)
    START_DELIMITER = END_DELIMITER = "---"

    def __init__(self, raw: bytes | None = None) -> None:
        super().__init__()
        self._document: Document | None = None
        self._front: Front | None = None
        if raw is not None:
            self._document = parse(raw)
            self._front = load(raw)

    def detect(self, text: str) -> bool:
        """Whether the text has front matter of ours."""
        try:
            load(text.encode("utf-8", "surrogatepass"))
        except Unreadable:
            return False
        return True

    def split(self, text: str) -> tuple[str, str]:
        """Front matter and body, exactly. Raises Unreadable."""
        if self._front is None:
            self._front = load(text.encode("utf-8", "surrogatepass"))
            try:
                self._document = parse(text.encode("utf-8", "surrogatepass"))
            except Unreadable:
                self._document = None
        parts = self._front.parts
        return parts.text[parts.start : parts.end], _Verbatim(parts.body)

    def load(self, fm: str) -> dict[str, Any]:
        """The fields of front matter text, typed by the table. Raises Unreadable."""
        document = self._document
        if document is None:
            document = parse(f"---\n{fm}\n---\n".encode())
        return _metadata(
            document.memory, {key.value for key, _ in self._front.root.pairs} if self._front else None
        )

    def export(self, metadata: dict[str, object], **kwargs: object) -> str:
        """Fields as front matter text, in the table's order; fields that are not ours are refused."""
        values = _values(metadata)
        ordered = [(field.name, values[field.name]) for field in FIELDS if field.name in values]
        return "\n".join(yaml_writer.lines(ordered))

    def format(self, post: frontmatter.Post, **kwargs: object) -> str:
        """The whole text: of the file that was read, with what changed in the post; or of a new file.

        Raises Refused for a value that is not allowed, and for a change of an unknown field.
        """
        if self._document is None:
            memory_id = post.metadata.get("id")
            if not isinstance(memory_id, str) or not is_id(memory_id):
                raise Refused("a memory needs an id", "Set post['id'] to a new ULID.")
            values = _values(post.metadata)
            return render(Memory(memory_id, str(post.content))._replace(**values)).decode()
        before = self.load("")
        now = post.metadata
        for name in before.keys() | now.keys():
            if name not in FIELD_BY_NAME and before.get(name) != now.get(name):
                raise Refused(f"the field {name} is not one of a memory's: change it in the file")
        changed = {name: now.get(name) for name in FIELD_BY_NAME if before.get(name) != now.get(name)}
        return rewrite(self._document, _values(changed), body=str(post.content)).decode()


def _metadata(memory: Memory, names: set[str] | None) -> dict[str, Any]:
    """A memory's fields as plain values; of those that the file lacks only the ones that every memory has."""
    out: dict[str, Any] = {}
    for field in FIELDS:
        if field.optional and names is not None and field.name not in names:
            continue
        value = memory.value(field.name)
        if isinstance(value, tuple):
            value = [_plain(item) for item in value]
        out[field.name] = value
    return {**out, **memory.extra}


def _plain(item: Any) -> Any:
    if isinstance(item, HistoryEntry):
        return {"at": item.at, "by": item.by, "from": item.from_state, "to": item.to_state, "note": item.note}
    return {"rel": item.rel, "to": item.to} if isinstance(item, Link) else item


def _values(metadata: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in metadata.items():
        field = FIELD_BY_NAME.get(name)
        if field is None:
            raise Refused(f"the field {name} is not one of a memory's")
        if field.kind == "history":
            value = tuple(
                HistoryEntry(i.get("at") or "", i.get("by"), i.get("from"), i.get("to"), i.get("note"))
                for i in value or ()
            )
        elif field.kind == "links":
            value = tuple(Link(i.get("rel") or "", i.get("to") or "") for i in value or ())
        elif field.kind == "list":
            value = tuple(value or ())
        values[name] = value
    return values
