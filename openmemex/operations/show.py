"""Show: one memory, whole, as its file has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openmemex import then
from openmemex.errors import NotFound
from openmemex.index.rows import Row
from openmemex.memory import frontmatter
from openmemex.memory.fences import split
from openmemex.memory.model import FIELDS, Memory
from openmemex.results import Notice
from openmemex.selecting import copies
from openmemex.then import Then
from openmemex.trust import secrets
from openmemex.trust.showing import shown_value
from openmemex.workspace import Workspace, staleness, unseen
from openmemex.writing import open_copy


@dataclass(frozen=True)
class Shown:
    """One memory: its row, its fields, its text, and the other places that hold the same id.

    `content` and `front_matter` (field name → value as JSON has it; fields that this program does not know
    too) are what the file says, with any secret that was put there by hand masked. `then` is the revision
    that was asked about, if one was.
    """

    row: Row
    memory: Memory
    content: str
    front_matter: dict[str, Any]
    others: tuple[Row, ...]
    notices: tuple[Notice, ...]
    then: Then | None = None


def show(ws: Workspace, ref: str, *, at: str | None = None) -> Shown:
    """The memory that `ref` names, read from its file or, for one that only a branch has, from git.

    `at`: as it was at a revision or a date. Raises as `selecting.select`, and for `at` as `then.look`;
    Unreadable when the file changed into no memory in the meantime.
    """
    seen: Then | None = None
    others: list[Row] = []
    if at is not None:
        seen = then.look(ws, at)
        row = then.select(ws, seen, ref)
        document = frontmatter.parse(
            dict(ws.git.blobs([row.blob]))[row.blob], stem=row.id, default_scope="project"
        )
        notices = list(seen.notices)
    else:
        freshness = ws.reconcile()
        try:
            row, *others = copies(ws, ref)
        except NotFound as error:
            told = [notice.text for notice in unseen(ws)]
            raise NotFound(error.message, " ".join(told) or error.hint) from None
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
    front = _front(document.memory)
    return Shown(row, document.memory, text.text, front, tuple(others), tuple(notices), seen)


def _front(memory: Memory) -> dict[str, Any]:
    """The front matter's fields by name: in the table's order, optional ones where set, unknown ones last."""
    fields = {
        field.name: shown_value(memory.value(field.name))
        for field in FIELDS
        if not (field.optional and memory.value(field.name) in (None, ()))
    }
    return {**fields, **{secrets.mask(name).text: shown_value(value) for name, value in memory.extra.items()}}
