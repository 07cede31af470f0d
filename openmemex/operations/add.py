"""Add: one text becomes one Markdown file, unless it is there already."""

from __future__ import annotations

from dataclasses import replace

from openmemex import faults
from openmemex.results import Notice, Written
from openmemex.store import files
from openmemex.trust import admission
from openmemex.workspace import Workspace
from openmemex.writing import already_expired, judged, late_index, lock_key, new_memory, shown_path, writing


def add(ws: Workspace, draft: admission.Draft) -> Written:
    """Save `draft` as a new memory: personal ones at home, project ones as a draft in the outbox.

    Without a scope it is a project memory where there is a project, else a personal one. Gives `created`,
    `duplicate` (the same text is there: nothing is written) or `refused` (an agent says again what a person
    has just saved). Raises UsageError for values that are not allowed, Refused where there is no project.
    """
    notices: list[Notice] = []
    if not draft.scope:
        scope = "personal" if ws.project.source == "none" else "project"
        draft = replace(draft, scope=scope)
        if scope == "personal":
            notices.append(
                Notice("scope", f"{ws.project.reason}; so this was saved as a personal memory, for you alone")
            )
    screened = admission.screen(draft, capture_aliases=ws.settings.capture_aliases)
    notices += screened.notices
    if screened.scope == "project":
        ws.require_project()
    home = ws.personal_home() if screened.scope == "personal" else ws.outbox_home()
    with writing(ws, lock_key(ws, screened.scope)) as fresh:
        verdict = judged(ws, screened)
        notices += verdict.notices
        if isinstance(verdict, admission.Duplicate):
            return Written(verdict.id, "duplicate", shown_path(ws, verdict.id), tuple(notices))
        if isinstance(verdict, admission.Blocked):
            return Written(verdict.id, "refused", shown_path(ws, verdict.id), tuple(notices))
        memory = new_memory(ws, screened, home.scope_key)
        file = files.write_new(home, memory)
        faults.reached("add.file-written")
        notices += late_index(fresh) + already_expired(screened.expires_at)
    faults.reached("add.indexed")
    return Written(memory.id, "created", home.shown(file.path), tuple(notices))
