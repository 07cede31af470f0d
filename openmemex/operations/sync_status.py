"""Sync status: what waits on this computer, what the repository holds, what is not committed yet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from openmemex.branches import lost_branches
from openmemex.errors import OpenMemexError
from openmemex.index.rows import EVERY, Filters, Row, Unread
from openmemex.memory.ids import is_id
from openmemex.memory.model import now_text
from openmemex.results import Notice, Progress
from openmemex.store import state
from openmemex.workspace import Project, Workspace, staleness


@dataclass(frozen=True)
class Uncommitted:
    """A memory file that git sees as changed: its path in the repository, and how."""

    path: str
    state: str


@dataclass(frozen=True)
class SyncStatus:
    """Where the project's memories stand.

    `outbox`: drafts waiting to be shared, newest first. `on_branches`: submitted to a branch that is neither
    checked out nor merged. `unpushed`: commits with memories that no remote has yet. `states`: how many
    memories of the repository are in each review state. `git` says in one line why there is nothing to tell
    of git ("" when there is).
    """

    project: Project
    outbox: tuple[Row, ...]
    on_branches: tuple[Row, ...]
    uncommitted: tuple[Uncommitted, ...]
    states: dict[str, int]
    quarantined: tuple[Unread, ...]
    last_sync: str | None
    fetched_at: str | None
    unpushed: int
    git: str
    notices: tuple[Notice, ...]


def sync_status(ws: Workspace, *, progress: Progress | None = None) -> SyncStatus:
    """The state of this project's memories. Where there is no project: of the personal ones' files alone."""
    freshness = ws.reconcile(progress)
    homes = ws.homes()

    def rows(kind: str) -> tuple[Row, ...]:
        chosen = [home for home in homes if home.kind == kind]
        return tuple(ws.index.list(chosen, Filters(all=True), EVERY).rows) if chosen else ()

    states: dict[str, int] = {}
    for row in rows("repository"):
        states[row.review_state] = states.get(row.review_state, 0) + 1
    uncommitted, unpushed, git = _uncommitted(ws)
    lost = [Notice("branch-gone", f"{one.told}: {one.remedy}") for one in lost_branches(ws)]
    pulled = None if ws.site is None else state.pulled(ws.data_root, ws.site.common_dir)
    return SyncStatus(
        project=ws.project,
        outbox=rows("outbox"),
        on_branches=_not_here(ws, rows("branch")),
        uncommitted=uncommitted,
        states=dict(sorted(states.items())),
        quarantined=tuple(ws.index.quarantined(homes)),
        last_sync=_last_sync(ws),
        fetched_at=pulled.at if pulled else None,
        unpushed=unpushed,
        git=git,
        notices=(*staleness(ws, freshness), *lost),
    )


def _not_here(ws: Workspace, rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """Without those that have come to HEAD since: by a merge of their branch, or just as they are."""
    home = ws.repository_home() if rows else None
    if home is None or ws.git.head().unborn:
        return rows
    try:
        here = ws.git.entries("HEAD", home.shown(home.folder))
        branches = {row.place_label.removeprefix("on branch ") for row in rows}
        merged = {f"on branch {name}" for name in branches if ws.git.merged(f"refs/heads/{name}")}
    except OpenMemexError:
        return rows
    return tuple(
        row for row in rows if row.place_label not in merged and here.get(f"{row.id}.md") != row.blob
    )


def _last_sync(ws: Workspace) -> str | None:
    told = ws.index.recall("last-sync")
    return now_text(datetime.fromtimestamp(int(told), UTC)) if told else None


def _uncommitted(ws: Workspace) -> tuple[tuple[Uncommitted, ...], int, str]:
    if ws.site is None:
        return (), 0, "not in a git repository: memories stay on this computer"
    try:
        home = ws.repository_home()
        if home is None:
            return (), 0, "a bare repository has no work tree: nothing to commit here"
        folder = home.shown(home.folder)
        entries = ws.git.folder_status(folder)
        unpushed = ws.git.unpushed(folder)
    except OpenMemexError as error:
        return (), 0, error.message
    files = tuple(
        Uncommitted(entry.path, entry.state)
        for entry in entries
        if entry.path.endswith(".md") and is_id(entry.path.rpartition("/")[2][:-3])
    )
    return files, unpushed, ""
