"""Status: move a memory along its life (active, deprecated, archived, retracted)."""

from __future__ import annotations

from openmemex.memory import frontmatter, lifecycle
from openmemex.memory.model import now_text
from openmemex.results import Written
from openmemex.selecting import select
from openmemex.store import files
from openmemex.workspace import Workspace
from openmemex.writing import late_index, lock_key, repository_notice, writable_copy, writing


def set_status(ws: Workspace, ref: str, state: str) -> Written:
    """Give the memory that `ref` names the lifecycle state `state`.

    Raises as `select`; UsageError for a state that does not exist or is set otherwise (`superseded`); Refused
    for a step that the lifecycle does not allow.
    """
    ws.reconcile()
    row = select(ws, ref)
    with writing(ws, lock_key(ws, row.scope)) as fresh:
        file = writable_copy(ws, select(ws, row.id))
        shown = file.home.shown(file.path)
        if file.memory.status == state:
            return Written(row.id, "unchanged", shown)
        lifecycle.check_transition(file.memory.status, state)
        files.replace(file, frontmatter.rewrite(file.document, {"status": state, "updated_at": now_text()}))
        notices = late_index(fresh) + repository_notice(file.home, row.id)
    return Written(row.id, "updated", shown, tuple(notices))
