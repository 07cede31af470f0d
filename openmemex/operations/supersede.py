"""Supersede: a new text takes an old memory's place; the old one stays, marked, and is no longer found."""

from __future__ import annotations

from dataclasses import replace

from openmemex import faults
from openmemex.errors import DecisionNeeded, Refused
from openmemex.index.rows import Row
from openmemex.memory.model import Memory, now_text
from openmemex.results import Notice, Written
from openmemex.selecting import select
from openmemex.store import files
from openmemex.trust import admission
from openmemex.workspace import Workspace
from openmemex.writing import (
    chains,
    history_with,
    judged,
    late_index,
    link_pair,
    lock_key,
    new_memory,
    open_copy,
    shown_path,
    writer,
    writing,
)


def supersede(ws: Workspace, ref: str, draft: admission.Draft) -> Written:
    """Save `draft` as the memory that replaces the one `ref` names.

    What the draft leaves open (type, role, importance, tags, aliases, reference, paths) is carried on from
    the old memory. In the personal home and in the outbox both halves are written now. A memory in the
    repository is left alone until `submit` commits both halves together; the new one waits in the outbox
    and counts at once here. Where the old one had entered review, the new one starts at `proposed`.

    Raises as `select`; Refused for a memory that is already replaced or was retracted; DecisionNeeded for one
    that several others replace.
    """
    ws.reconcile()
    row = select(ws, ref)
    with writing(ws, lock_key(ws, row.scope)) as fresh:
        row = select(ws, row.id)
        copy = open_copy(ws, row)
        old = copy.document.memory
        _check(ws, old, row)
        screened = admission.screen(
            _carried(draft, old, row.scope), capture_aliases=ws.settings.capture_aliases, stored=old
        )
        notices = list(screened.notices)
        verdict = judged(ws, screened, replaces=old.id)
        notices += verdict.notices
        if isinstance(verdict, admission.Duplicate):
            return Written(verdict.id, "duplicate", shown_path(ws, verdict.id), tuple(notices))
        if isinstance(verdict, admission.Blocked):
            return Written(verdict.id, "refused", shown_path(ws, verdict.id), tuple(notices))
        at = now_text()
        here = copy.home if copy.home.kind in ("personal", "outbox") else ws.outbox_home()
        new = new_memory(ws, screened, here.scope_key)
        new = new._replace(supersedes=old.id, visibility=old.visibility)
        new = _review_goes_on(new, old, writer(ws), at)
        if copy.home == here and copy.file is not None:
            file = link_pair(ws, here, new, copy.file, at)
        else:
            file = files.write_new(here, new)
            faults.reached("supersede.new-written")
            notices.append(
                Notice(
                    "submit",
                    f"{old.id} is shared with the team and stays as it is until you share its replacement: "
                    f"open-memex submit {new.id}",
                )
            )
        notices += late_index(fresh)
    return Written(new.id, "superseded", here.shown(file.path), tuple(notices))


def _check(ws: Workspace, old: Memory, row: Row) -> None:
    if old.status == "retracted":
        raise Refused(f"{old.id} was retracted", "save the text as a new memory: open-memex add TEXT")
    known = chains(ws, row.scope)
    following = known.successors(old.id)
    by_hand = f"take `superseded_by` out of {row.rel_path} by hand, then try again"
    if old.id in known.loop(old.id):
        others = ", ".join(one for one in known.loop(old.id) if one != old.id)
        raise Refused(f"{old.id} is in a loop: it and {others} replace each other", by_hand)
    if len(following) > 1:
        raise DecisionNeeded(
            f"{old.id} is already replaced by several memories: {', '.join(following)}",
            f"replace one of those instead: open-memex supersede {following[0]} TEXT",
        )
    if following:
        newest = known.newest(old.id) or following[0]
        raise Refused(
            f"{old.id} is already replaced by {newest}",
            f"replace that one: open-memex supersede {newest} TEXT",
        )
    if old.superseded_by not in (None, old.id):
        raise Refused(
            f"{old.id} says that {old.superseded_by} replaces it, which does not count here", by_hand
        )


def _carried(draft: admission.Draft, old: Memory, scope: str) -> admission.Draft:
    return replace(
        draft,
        scope=scope,
        type=draft.type or old.type,
        role=draft.role or old.role,
        importance=draft.importance or old.importance,
        tags=old.tags if draft.tags is None else draft.tags,
        aliases=old.aliases if draft.aliases is None else draft.aliases,
        canonical_ref=draft.canonical_ref or old.canonical_ref,
        paths=old.paths if draft.paths is None else draft.paths,
        expires_at=draft.expires_at or old.expires_at,
    )


def _review_goes_on(new: Memory, old: Memory, by: str, at: str) -> Memory:
    if old.review_state == "draft":
        return new
    note = f"replaces {old.id}, which was {old.review_state}"
    return new._replace(
        review_state="proposed",
        proposed_by=by,
        review_history=history_with(new, by, "proposed", note, at),
    )
