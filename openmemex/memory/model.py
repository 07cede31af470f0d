"""What a memory is: its fields in their order, with values and defaults (docs/protocol.md, "A memory").

Everything that must know the fields (reader, writer, JSON Schema, index, command line) reads this table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple

SCHEMA_VERSION: Final = 2
MAX_FILE_BYTES: Final = 1 << 20
MAX_TAGS: Final = 32
MAX_ALIASES: Final = 4

SCOPES: Final = ("personal", "project", "org")
RESERVED_SCOPES: Final = ("team", "public")
VISIBILITIES: Final = ("private", "internal", "shared")
TYPES: Final = (
    "fact",
    "preference",
    "decision",
    "constraint",
    "todo",
    "knowledge",
    "howto",
    "gotcha",
    "lesson",
    "observation",
    "reference",
)
RETIRED_TYPES: Final = {
    "warning": "gotcha",
    "workflow": "howto",
    "incident": "lesson",
    "architecture": "knowledge",
}
ROLES: Final = ("knowledge", "instruction")
IMPORTANCES: Final = ("low", "normal", "high")
STATUSES: Final = ("active", "superseded", "deprecated", "retracted", "archived")
SOURCES: Final = ("user", "tool", "keyword", "inference", "import")
REVIEW_STATES: Final = ("draft", "proposed", "approved", "rejected", "published")

Kind = Literal["id", "int", "choice", "text", "time", "list", "history", "links"]


class HistoryEntry(NamedTuple):
    """One step of a review: when (RFC 3339), who, from which state to which, and why."""

    at: str
    by: str | None
    from_state: str | None
    to_state: str | None
    note: str | None = None


class Link(NamedTuple):
    """A typed pointer to another memory (an id) or to anything else (a path, a URL)."""

    rel: str
    to: str


class Field(NamedTuple):
    """How one front matter field is read and written.

    `kind` decides how its YAML node is read, never YAML's own guess. `choices` are the allowed values of a
    `choice`. `optional` fields are written only when set; the others always, with `null` for None.
    """

    name: str
    kind: Kind
    choices: tuple[str, ...] = ()
    optional: bool = False


FIELDS: Final[tuple[Field, ...]] = (
    Field("id", "id"),
    Field("schema_version", "int"),
    Field("scope", "choice", SCOPES),
    Field("scope_key", "text"),
    Field("visibility", "choice", VISIBILITIES),
    Field("project_name", "text"),
    Field("type", "choice", TYPES),
    Field("role", "choice", ROLES),
    Field("importance", "choice", IMPORTANCES),
    Field("status", "choice", STATUSES),
    Field("tags", "list"),
    Field("aliases", "list"),
    Field("source", "choice", SOURCES),
    Field("created_at", "time"),
    Field("updated_at", "time"),
    Field("supersedes", "id"),
    Field("superseded_by", "id"),
    Field("review_state", "choice", REVIEW_STATES),
    Field("proposed_by", "text"),
    Field("approved_by", "text"),
    Field("derived_from", "text"),
    Field("review_note", "text"),
    Field("review_history", "history"),
    Field("canonical_ref", "text", optional=True),
    Field("paths", "list", optional=True),
    Field("valid_from", "time", optional=True),
    Field("valid_until", "time", optional=True),
    Field("expires_at", "time", optional=True),
    Field("links", "links", optional=True),
)
FIELD_BY_NAME: Final = {f.name: f for f in FIELDS}

# Fields that a review moves; what is left is what an approval covers (docs/protocol.md, "Standing").
REVIEW_FIELDS: Final = frozenset(
    {"review_state", "proposed_by", "approved_by", "review_note", "review_history", "updated_at"}
)


_NONE: Final[dict[str, Any]] = {}


class Memory(NamedTuple):
    """One memory, whole: the front matter's fields by their own names, and the body.

    `body` is the text after the closing fence exactly as it stands in the file (line ends included).
    `extra` holds the unknown fields of a file that was read, as plain values, for display only: writing keeps
    their bytes without looking at them, and two memories that differ in them alone are equal.
    """

    id: str
    body: str
    schema_version: int = SCHEMA_VERSION
    scope: str = "personal"
    scope_key: str | None = "personal"
    visibility: str = "private"
    project_name: str | None = None
    type: str = "fact"
    role: str = "knowledge"
    importance: str = "normal"
    status: str = "active"
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    source: str = "user"
    created_at: str = ""
    updated_at: str = ""
    supersedes: str | None = None
    superseded_by: str | None = None
    review_state: str = "draft"
    proposed_by: str | None = None
    approved_by: str | None = None
    derived_from: str | None = None
    review_note: str | None = None
    review_history: tuple[HistoryEntry, ...] = ()
    canonical_ref: str | None = None
    paths: tuple[str, ...] = ()
    valid_from: str | None = None
    valid_until: str | None = None
    expires_at: str | None = None
    links: tuple[Link, ...] = ()
    extra: dict[str, Any] = _NONE

    def value(self, name: str) -> Any:
        """The value of the field `name` of `FIELDS`."""
        return getattr(self, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Memory) and self[:-1] == other[:-1]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[:-1])


_LEAP_SECOND = re.compile(r"(T\d\d:\d\d):60")


def normal_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags as they count everywhere: trimmed, lower case, each once, in the order given, none empty."""
    return tuple(dict.fromkeys(tag for tag in (text.strip().lower() for text in tags) if tag))


def now_text(moment: datetime | None = None) -> str:
    """An instant as this project writes it: RFC 3339, UTC, whole seconds, `Z` ("2026-09-26T12:00:00Z")."""
    moment = moment or datetime.now(UTC)
    try:
        moment = moment.astimezone(UTC)
    except OverflowError:
        pass  # within a day of the first or last year that Python knows: the offset is what gives way
    return moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def parse_time(text: str | None) -> datetime | None:
    """The instant that `text` names, or None when it names none.

    Reads RFC 3339 with any offset and fraction, in either case, a leap second as the second before it; a bare
    date is midnight UTC, a time without an offset is UTC. Times are compared as instants, never as text.
    """
    if not text:
        return None
    plain = text.strip().upper()
    try:
        moment = datetime.fromisoformat(plain)
    except ValueError:
        try:
            moment = datetime.fromisoformat(_LEAP_SECOND.sub(r"\1:59", plain))
        except ValueError:
            return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
