"""Show: one memory, whole, as its file has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openmemex.index.rows import Row
from openmemex.memory.fences import split
from openmemex.memory.model import FIELDS, Memory
from openmemex.results import Notice
from openmemex.selecting import copies
from openmemex.trust import secrets
from openmemex.trust.showing import shown_value
from openmemex.workspace import Workspace, staleness
from openmemex.writing import open_copy


@dataclass(frozen=True)
class Shown:
    """One memory: its row, its fields, its text, and the other places that hold the same id.

    `content` and `front_matter` (field name → value as JSON has it; fields that this program does not know
    too) are what the file says, with any secret that was put there by hand masked.
    """

    row: Row
    memory: Memory
    content: str
    front_matter: dict[str, Any]
    others: tuple[Row, ...]
    notices: tuple[Notice, ...]


def show(ws: Workspace, ref: str) -> Shown:
    """The memory that `ref` names, read from its file or, for one that only a branch has, from git.

    Raises as `selecting.select`; Unreadable when the file changed into no memory in the meantime.
    """
    freshness = ws.reconcile()
    row, *others = copies(ws, ref)
    document = open_copy(ws, row).document
    notices = staleness(ws, freshness)
    text = secrets.mask(document.memory.body)
    parts = split(document.raw)
    hidden = len(text.spans) + len(secrets.find(parts.text[parts.start : parts.end]))
    if hidden:
        notices.append(
            Notice(
                "secret",
                f"{row.rel_path} holds {hidden} secret(s) in clear; "
                "they are masked here only. Edit the file and replace them.",
            )
        )
    return Shown(row, document.memory, text.text, _front(document.memory), tuple(others), tuple(notices))


def _front(memory: Memory) -> dict[str, Any]:
    """The front matter's fields by name: in the table's order, optional ones where set, unknown ones last."""
    fields = {
        field.name: shown_value(memory.value(field.name))
        for field in FIELDS
        if not (field.optional and memory.value(field.name) in (None, ()))
    }
    return {**fields, **{secrets.mask(name).text: shown_value(value) for name, value in memory.extra.items()}}
