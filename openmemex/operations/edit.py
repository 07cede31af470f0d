"""Edit: change fields or the text of one memory; only the lines of what changed differ."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from openmemex.errors import Refused, UsageError
from openmemex.memory import frontmatter
from openmemex.memory.model import Memory, now_text
from openmemex.results import Notice, Written
from openmemex.selecting import select
from openmemex.store import files
from openmemex.trust import admission
from openmemex.workspace import Workspace
from openmemex.writing import (
    already_expired,
    history_with,
    late_index,
    lock_key,
    repository_notice,
    writable_copy,
    writer,
    writing,
)

# A change of one of these makes an approval cover something that no reviewer has seen.
_REVIEWED = ("type", "role", "scope")


@dataclass(frozen=True)
class Changes:
    """The fields to change; None leaves a field as it is, an empty text or tuple empties it.

    `body_before` is the text that `body` was made from: if it changed since, nothing is written.
    """

    type: str | None = None
    role: str | None = None
    importance: str | None = None
    tags: tuple[str, ...] | None = None
    aliases: tuple[str, ...] | None = None
    source: str | None = None
    canonical_ref: str | None = None
    paths: tuple[str, ...] | None = None
    expires_at: str | None = None
    body: str | None = None
    body_before: str | None = None


def edit(ws: Workspace, ref: str, changes: Changes) -> Written:
    """Apply `changes` to the memory that `ref` names, through the same door as every new text.

    A memory that has entered review and whose text, role or type changes is `proposed` again, with an entry
    in its history. Raises as `select`; UsageError when nothing is to be changed or a value is not allowed.
    """
    if all(getattr(changes, field.name) is None for field in fields(changes)):
        raise UsageError(
            "nothing to change was given",
            "name a field (`--tag`, `--type`, …), or `--body TEXT`, or run it on a terminal for your editor",
        )
    ws.reconcile()
    row = select(ws, ref)
    with writing(ws, lock_key(ws, row.scope)) as fresh:
        file = writable_copy(ws, select(ws, row.id))
        old = file.memory
        if changes.body_before not in (None, old.body):
            raise Refused(
                f"{row.id} was changed by somebody else while you were editing it",
                f"look at it (open-memex show {row.id}), then put your text in again",
            )
        screened = admission.screen(
            _draft(changes, old, row.scope), capture_aliases=ws.settings.capture_aliases, stored=old
        )
        wanted = _wanted(changes, screened, old)
        body = screened.content if changes.body is not None and screened.content != old.body else None
        shown = file.home.shown(file.path)
        if not wanted and body is None:
            return Written(row.id, "unchanged", shown, tuple(screened.notices))
        at = now_text()
        notices = list(screened.notices)
        if old.review_state != "draft" and (body is not None or any(name in wanted for name in _REVIEWED)):
            by = writer(ws)
            wanted["review_state"] = "proposed"
            wanted["approved_by"] = None
            wanted["review_history"] = history_with(old, by, "proposed", "changed after the review", at)
            if old.review_state != "proposed":
                notices.append(
                    Notice("review", f"it was {old.review_state}; changed, it needs a review again")
                )
        wanted["updated_at"] = at
        files.replace(file, frontmatter.rewrite(file.document, wanted, body=body))
        notices += late_index(fresh) + repository_notice(file.home, row.id)
        if "expires_at" in wanted:
            notices += already_expired(screened.expires_at)
    return Written(row.id, "updated", shown, tuple(notices))


def editable_text(ws: Workspace, ref: str) -> tuple[str, str]:
    """The id and the text of the memory that `ref` names, for an editor. Raises as `select`."""
    ws.reconcile()
    row = select(ws, ref)
    return row.id, writable_copy(ws, row).memory.body


def _draft(changes: Changes, old: Memory, scope: str) -> admission.Draft:
    def kept(name: str) -> Any:
        given = getattr(changes, name)
        return getattr(old, name) if given is None else given

    return admission.Draft(
        content=old.body if changes.body is None else changes.body,
        scope=scope,
        type=kept("type"),
        role=kept("role"),
        importance=kept("importance"),
        tags=kept("tags"),
        aliases=kept("aliases"),
        source=kept("source"),
        canonical_ref=kept("canonical_ref"),
        paths=kept("paths"),
        expires_at=kept("expires_at"),
    )


def _wanted(changes: Changes, screened: admission.Screened, old: Memory) -> dict[str, Any]:
    """The front matter fields that were given and really differ."""
    return {
        field.name: getattr(screened, field.name)
        for field in fields(changes)
        if field.name not in ("body", "body_before")
        and getattr(changes, field.name) is not None
        and getattr(screened, field.name) != getattr(old, field.name)
    }
