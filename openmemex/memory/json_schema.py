"""A JSON Schema of a memory's front matter, made from the table of fields.

`docs/memory.schema.json` is this schema, written by `scripts/write_schema.py`; a test holds
them equal. It describes what is written; reading accepts more (docs/protocol.md, "A memory").
"""

from __future__ import annotations

import json
from typing import Any

from openmemex.memory.model import (
    FIELDS,
    MAX_ALIASES,
    MAX_TAGS,
    SCHEMA_VERSION,
    Field,
)

_ID = "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"
_SCOPE_KEY = "^(personal|(project|org)__.+__[0-9a-f]{12})$"
_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_TIME = {"type": "string", "format": "date-time"}
_DESCRIPTIONS = {
    "id": "A ULID; equals the file's name without .md.",
    "schema_version": "Version of this format.",
    "scope": "Whose memory it is.",
    "scope_key": "Which person's, project's or organisation's memory it is.",
    "visibility": "Who may read it; a private memory never enters a repository.",
    "project_name": "The project's name, for people.",
    "type": "What kind of content it is.",
    "role": "How it may be used; an instruction needs evidence of an approval before an agent follows it.",
    "importance": "A hint for ranking.",
    "status": "Where it stands in its life.",
    "tags": "What it is about: lower case, each once.",
    "aliases": "Other words that someone may search it by.",
    "source": "Who or what wrote it.",
    "created_at": "When it was made (RFC 3339, UTC).",
    "updated_at": "When it was last changed (RFC 3339, UTC).",
    "supersedes": "The id of the older memory that this one replaces.",
    "superseded_by": "The id of the newer memory that replaces this one.",
    "review_state": "Where it stands on the ladder of review.",
    "proposed_by": "Who proposed it.",
    "approved_by": "Who is said to have approved it; a claim, not evidence.",
    "derived_from": "The memory that this one was copied from.",
    "review_note": "The last word of a review.",
    "review_history": "Every step of its review; only ever appended to.",
    "canonical_ref": "The document that it sums up: a path in the repository or a URL.",
    "paths": "Globs of the files that it is about.",
    "valid_from": "From when it holds.",
    "valid_until": "Until when it holds; later it is left out of recall.",
    "expires_at": "When it is left out of recall.",
    "links": "Typed pointers to other memories, paths or URLs.",
}


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the front matter that this program writes."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "OpenMemex memory: front matter",
        "type": "object",
        "properties": {
            field.name: {"description": _DESCRIPTIONS[field.name], **_value(field)} for field in FIELDS
        },
        "required": [field.name for field in FIELDS if not field.optional],
        "additionalProperties": True,
    }


def text() -> str:
    """The schema as it stands in `docs/memory.schema.json`."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _value(field: Field) -> dict[str, Any]:
    if field.kind == "choice":
        return {"enum": list(field.choices)}
    if field.kind == "int":
        return {"type": "integer", "minimum": 1, "maximum": SCHEMA_VERSION}
    if field.kind == "id":
        return {"type": "string" if field.name == "id" else ["string", "null"], "pattern": _ID}
    if field.kind == "time":
        return dict(_TIME)
    if field.kind == "history":
        return {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "at": _TIME,
                    "by": _TEXT_OR_NULL,
                    "from": _TEXT_OR_NULL,
                    "to": _TEXT_OR_NULL,
                    "note": _TEXT_OR_NULL,
                },
                "required": ["at", "by", "from", "to", "note"],
            },
        }
    if field.kind == "links":
        item = {"type": "object", "properties": {"rel": _TEXT, "to": _TEXT}, "required": ["rel", "to"]}
        return {"type": "array", "items": item}
    if field.kind == "list":
        value: dict[str, Any] = {"type": "array", "items": _TEXT}
        if field.name == "tags":
            return {**value, "maxItems": MAX_TAGS, "uniqueItems": True}
        return {**value, "maxItems": MAX_ALIASES} if field.name == "aliases" else value
    if field.name == "scope_key":
        return {**_TEXT_OR_NULL, "pattern": _SCOPE_KEY}
    return dict(_TEXT_OR_NULL)
